"""A session host: runs `gsd run --bg` as a plain process, and writes what it prints to a file.

Session hosts are asked in the order of the setting `run.session_host`.
To use this one, put `my_plugin` first in that setting.
It knows the sessions that this process started; a real host keeps a registry.

Settings in `gsd.toml`:

    [my_plugin]
    output = "/var/log/gsd"
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
from gsd_core import (
    Session,
    SessionHost,
    SessionRequest,
    UserError,
    implements,
    own_command,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_session_host, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*output*: the folder for what sessions print; if empty, the one for temporary files."""

    output: str = setting("")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@attrs.define
class Processes:
    """Sessions as processes of this one."""

    output: Path
    command: tuple[str, ...] = own_command()
    _started: dict[str, tuple[Session, subprocess.Popen[bytes]]] = attrs.field(
        factory=dict[str, tuple[Session, "subprocess.Popen[bytes]"]], init=False
    )

    def start(self, request: SessionRequest) -> Session:
        """Start the command, with its output in a file."""
        if request.not_yet:
            raise UserError(request.not_yet, hint=request.hint)
        name = f"p{len(self._started) + 1}"
        now = datetime.now(UTC)
        with (self.output / f"gsd-{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self.command, *request.arguments],
                cwd=request.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        session = Session(
            id=name,
            project=request.project,
            command=request.arguments,
            state="running",
            slot=1,
            pid=process.pid,
            created=now,
            updated=now,
        )
        self._started[name] = (session, process)
        return session

    def stop(self, session: str) -> Session:
        """Ask the process to end."""
        if session not in self._started:
            raise UserError(f"no session {session!r}", hint="see what was started")
        known, process = self._started[session]
        process.terminate()
        return attrs.evolve(known, state="stopped", exit=process.wait())

    def list(self) -> Sequence[Session]:
        """Return the sessions of this process."""
        return [session for session, _ in self._started.values()]


@implements(gsd_session_host)
async def processes() -> SessionHost | None:
    """Run sessions as plain processes."""
    output = settings_of(MyPluginSettings).output or tempfile.gettempdir()
    return Processes(Path(output))
