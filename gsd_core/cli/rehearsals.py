"""Where a rehearsal may run: not among other work, unless the user says so.

A rehearsal writes and commits a scripted program, which nobody wants in their work by mistake.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from gsd_core.git import Git
from gsd_core.git.history import made_by_others
from gsd_core.machine.facts import RunOpened
from gsd_core.sanitize import one_line
from gsd_core.settings import RunSettings, Settings

from .options import value_of
from .project import REHEARSAL_AGENTS, foreign_files, needs_repository, open_journal

HERE = "--here"
MAX_SUBJECT = 60
MAX_FILES_SHOWN = 5
HINT = "rehearse in a new folder, with `gsd demo` or -C DIR, or pass --here to rehearse in this one"


def why_not_here(root: Path, idea: Path | None, settings: Settings) -> str:
    """Return why a rehearsal may not run at *root*; empty if it may, or if the agent is another one.

    Commits count unless a rehearsal made them or they change ``.planning`` only. Files count if no rehearsal
    has run there yet; the *idea*, and what gsd reads and writes itself, do not.
    """
    run: RunSettings = settings.of(RunSettings)
    if not set(REHEARSAL_AGENTS) & {*run.agent} or value_of(settings, HERE) or not root.is_dir():
        return ""
    rehearsals: frozenset[str] = frozenset()
    if not needs_repository(root):
        # Those that were rehearsals from the beginning.
        agents: dict[str, tuple[str, ...]] = {}
        with open_journal(root) as journal:
            for fact in journal.facts(RunOpened):
                agents.setdefault(fact.run, fact.data.agent)
        rehearsals = frozenset(run for run, agent in agents.items() if agent == REHEARSAL_AGENTS)
        git = Git(root)
        found = asyncio.run(git.call(partial(made_by_others, git.command, rehearsals)))
        if found:
            subject = one_line(found.subject, MAX_SUBJECT)
            return f"{str(root)!r} has commits that no rehearsal made, such as {found.sha[:9]} {subject!r}"
    files = [name for name in foreign_files(root, idea) if name != ".git"]
    if files and not rehearsals:
        more = ", …" if len(files) > MAX_FILES_SHOWN else ""
        listed = one_line(", ".join(files[:MAX_FILES_SHOWN]), 200)
        return f"{str(root)!r} has files that no rehearsal made: {listed}{more}"
    return ""
