"""A session host: runs `gsd run --bg` as a plain process, and remembers it in a folder.

Session hosts are asked in the order of the setting `run.session_host`.
To use this one, put `my_plugin` first in that setting.
Each session has two files in the folder: `p1.json`, what is known about it, and `p1.log`, what it printed.

Settings in `gsd.toml`:

    [my_plugin]
    folder = "~/.gsd-sessions"
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
from gsd_core import (
    Session,
    SessionHost,
    SessionRequest,
    UserError,
    boot_id,
    implements,
    own_command,
    process_start,
    setting,
    settings_of,
    signal_process,
)
from gsd_core.hookspecs import gsd_session_host, gsd_settings

# Starts the command in a session of its own, prints its process id and ends: so the command has no parent
# here that would have to wait for it.
START = """
import subprocess, sys
log = open(sys.argv[1], "wb")
null = subprocess.DEVNULL
process = subprocess.Popen(sys.argv[2:], stdin=null, stdout=log, stderr=log, start_new_session=True)
print(process.pid)
process.returncode = 0
"""


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*folder*: where the list of sessions and their output are kept."""

    folder: str = setting("~/.gsd-sessions")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@attrs.define
class Processes:
    """Sessions as processes; the list is in *folder*, because each command of gsd is another process."""

    folder: Path
    command: tuple[str, ...] = attrs.field(factory=own_command)

    def start(self, request: SessionRequest) -> Session:
        """Start the command, with its output in a file."""
        if request.not_yet:
            raise UserError(request.not_yet, hint=request.hint)
        name = self._new_name()
        # With -P, modules in the project's folder are not imported.
        command = [sys.executable, "-P", "-c", START, str(self.folder / f"{name}.log"), *self.command]
        started = subprocess.run(
            [*command, *request.arguments], cwd=request.folder, check=True, stdout=subprocess.PIPE
        )
        pid = int(started.stdout)
        about = {
            "pid": pid,
            "pid_started": process_start(pid),
            "boot": boot_id(),
            "project": str(request.project),
            "command": request.arguments,
            "created": datetime.now(UTC).isoformat(),
        }
        (self.folder / f"{name}.json").write_text(json.dumps(about))
        return self._find(name)

    def stop(self, session: str) -> Session:
        """Ask the process to end; gsd finishes what it is writing first."""
        found = self._find(session)
        if found.state != "running":
            raise UserError(f"session {session!r} has ended", hint=f"see {self.folder / session}.log")
        # Not os.kill: by now, another process may have the id.
        signal_process(found.pid, self._about(session)["pid_started"], signal.SIGTERM)
        return found

    def list(self) -> Sequence[Session]:
        """Return the sessions, oldest first."""
        found = [self._find(path.stem) for path in self.folder.glob("p*.json") if path.stat().st_size]
        return sorted(found, key=lambda session: session.created)

    def _new_name(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            with suppress(FileExistsError):
                (self.folder / f"p{number}.json").touch(exist_ok=False)
                return f"p{number}"
        raise AssertionError("there is always another number")

    def _find(self, session: str) -> Session:
        about = self._about(session)
        created = datetime.fromisoformat(about["created"])
        return Session(
            id=session,
            project=Path(about["project"]),
            command=tuple(about["command"]),
            state="running" if _runs(about) else "completed",
            slot=1,
            pid=about["pid"],
            created=created,
            updated=created,
        )

    def _about(self, session: str) -> dict[str, Any]:
        try:
            about: dict[str, Any] = json.loads((self.folder / f"{session}.json").read_text())
        except (OSError, ValueError) as error:
            raise UserError(f"no session {session!r}", hint=f"see {self.folder}") from error
        return about


def _runs(about: Mapping[str, Any]) -> bool:
    """Whether the session's process runs; one that has ended may keep its id, or another may get it."""
    if not about["pid_started"] or about["boot"] != boot_id():
        return False
    return bool(process_start(about["pid"]) == about["pid_started"])


@implements(gsd_session_host)
async def processes() -> SessionHost | None:
    """Run sessions as plain processes."""
    return Processes(_folder())


def _folder() -> Path:
    return Path(settings_of(MyPluginSettings).folder).expanduser()
