"""``gsd paths``: shows where gsd keeps its files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from gsd_core.errors import GsdError

from .global_options import global_options_of, gsd_command
from .output import json_flag, print_json, print_line, styled


@gsd_command("paths", "gsd paths", "gsd paths --json", last=json_flag)
def command(ctx: click.Context, as_json: bool) -> None:
    """Show where the journal, the logs, the settings, the caches and other files of gsd are.

    A path that does not exist yet is marked. The journal and the lock are in git's own directory, so that
    neither an agent nor 'git clean' removes them.
    """
    import tempfile

    from gsd_core.run.private_home import homes_folders
    from gsd_core.settings import journals_folder, trust_folder, user_config
    from gsd_core.views.state_file import FOLDER

    from .project import core_folder, journal_path, project_root
    from .project_trust import PROJECT_SETTINGS

    root = project_root(global_options_of(ctx))
    places: dict[str, Callable[[], Path | None]] = {
        "project": lambda: root,
        "planning": lambda: root / ".planning",
        "settings": lambda: root / PROJECT_SETTINGS,
        "plugins": lambda: root / ".gsd" / "plugins",
        "logs": lambda: root / FOLDER,
        "data": lambda: core_folder(root),
        "journal": lambda: journal_path(root) if core_folder(root) else None,
        "user settings": user_config,
        "trust": trust_folder,
        "known journals": journals_folder,
        "private homes": lambda: homes_folders()[0],
        "temporary files": lambda: Path(tempfile.gettempdir()),
    }
    found: dict[str, Path | None] = dict.fromkeys(places)
    for name, place in places.items():
        # A path cannot be known without git, for example, or without a home folder.
        with suppress(GsdError, OSError):
            found[name] = place()
    if as_json:
        paths = [
            {"name": name, "path": str(path) if path else None, "exists": bool(path and path.exists())}
            for name, path in found.items()
        ]
        print_json({"paths": paths})
        return
    width = max(map(len, found))
    for name, path in found.items():
        line = styled(f"{name:<{width}}  ", "bold")
        state = "unknown" if path is None else "" if path.exists() else " (does not exist)"
        print_line(line.append_text(styled(f"{path or ''}{state}")), exact=True)
