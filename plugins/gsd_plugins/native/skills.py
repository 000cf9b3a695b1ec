"""The project's skills: an index by name and description, from which an executor reads what it needs.

Source: the Agent Skills format, a folder with a SKILL.md whose frontmatter has ``name`` and ``description``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import cast

from gsd_core import PhaseView, PlanningError, Role, StepRequest
from gsd_core.planning.frontmatter import read_frontmatter
from gsd_core.planning.markdown import read_text

from .models import agents_of
from .prompt_context import (
    codebase_section,
    conventions_section,
    fence,
    files_section,
    join,
    programs_section,
    section,
)

FOLDERS = (".agents/skills", ".claude/skills")
MAX_SKILLS = 30
MAX_ENTRIES = 300
"""How many entries of a folder are looked at."""
MAX_DESCRIPTION = 250


def skills_section(step: StepRequest) -> str:
    """Return the index of the project's skills; a skill that cannot be read is left out."""
    lines: dict[str, str] = {}
    for folder in FOLDERS:
        with suppress(OSError):
            entries = islice((step.tree / folder).iterdir(), MAX_ENTRIES)
            for found in sorted(entry.name for entry in entries):
                path = f"{folder}/{found}/SKILL.md"
                with suppress(PlanningError):
                    front = read_frontmatter(read_text(step.tree, path), path=path)
                    name = " ".join(front.text("name").split())[:80] or found
                    # The same skill may be in both folders, for different tools.
                    if description := " ".join(front.text("description").split())[:MAX_DESCRIPTION]:
                        lines.setdefault(name, f"- {name} ({path}): {description}")
    body = "\n".join(list(lines.values())[:MAX_SKILLS])
    return section("Skills of the project: read the file of one that fits your task", fence("skills", body))


def code_sections(step: StepRequest, phase: PhaseView, role: Role) -> str:
    """Return the project's files, programs and existing code, and the rules for the agent of *role*."""
    return join(
        files_section(step, phase), programs_section(step), codebase_section(step), rules_section(step, role)
    )


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
