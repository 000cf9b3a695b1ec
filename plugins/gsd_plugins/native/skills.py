"""The project's skills: an index by name and description, from which an executor reads what it needs.

Source: the Agent Skills format, a folder with a SKILL.md whose frontmatter has ``name`` and ``description``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import cast

from gsd_core import PlanningError, Role, StepRequest
from gsd_core.planning.frontmatter import read_frontmatter
from gsd_core.planning.markdown import read_text

from .models import agents_of
from .prompt_context import conventions_section, fence, join, section

FOLDERS = (".agents/skills", ".claude/skills")
MAX_SKILLS = 30
MAX_ENTRIES = 300
"""How many entries of a folder are looked at."""
MAX_DESCRIPTION = 250


def skills_section(step: StepRequest) -> str:
    """Return the index of the project's skills; a skill that cannot be read is left out."""
    lines: dict[str, str] = {}
    for path, name, description in _skills(step.tree):
        # The same skill may be in both folders, for different tools.
        lines.setdefault(name, f"- {name} ({path}): {description}")
    body = "\n".join(list(lines.values())[:MAX_SKILLS])
    return section("Skills of the project: read the file of one that fits your task", fence("skills", body))


def rules_section(step: StepRequest, role: Role) -> str:
    """Return the project's own rules for agents, and the skills that it assigns to the agent of *role*."""
    return join(conventions_section(step), agent_skills_section(step, role))


def agent_skills_section(step: StepRequest, role: Role) -> str:
    """Return the skills that config.json assigns to the agent of *role* (``agent_skills.<agent>``).

    Source: the agent skills of gsd-core: paths of folders, relative to the project. What is not there, or is
    outside of the project (``global:…``), is left out.
    """
    assigned = step.planning.config.get("agent_skills")
    if not isinstance(assigned, Mapping):
        return ""
    files: dict[str, None] = {}
    for agent in agents_of(role):
        value = cast("Mapping[str, object]", assigned).get(agent)
        listed = cast("list[object]", value) if isinstance(value, list) else [value]
        for path in listed[:MAX_SKILLS]:
            if isinstance(path, str) and path.strip():
                file = f"{path.strip().removeprefix('./').rstrip('/')}/SKILL.md"
                with suppress(PlanningError):
                    read_text(step.tree, file)
                    files[file] = None
    return section("Skills assigned to you: read these files first", fence("skills", "\n".join(files)))


def _skills(root: Path) -> Iterator[tuple[str, str, str]]:
    for folder in FOLDERS:
        try:
            names = sorted(entry.name for entry in islice((root / folder).iterdir(), MAX_ENTRIES))
        except OSError:
            continue
        for name in names:
            path = f"{folder}/{name}/SKILL.md"
            try:
                front = read_frontmatter(read_text(root, path), path=path)
            except PlanningError:
                continue
            description = " ".join(front.text("description").split())[:MAX_DESCRIPTION]
            if description:
                yield path, " ".join(front.text("name").split())[:80] or name, description
