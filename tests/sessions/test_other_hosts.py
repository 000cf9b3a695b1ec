"""``--bg`` with a session host of a third party."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

pytestmark = pytest.mark.slow

Gsd: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

HOST = '''
"""A host that starts nothing, and says where it would."""
from datetime import UTC, datetime
from pathlib import Path

import attrs
from gsd_core import Session, implements, setting, settings_of
from gsd_core.hookspecs import gsd_session_host, gsd_settings


@attrs.frozen(kw_only=True)
class Chosen:
    """*place* of the sessions."""

    place: str = setting("nowhere")


class Elsewhere:
    def start(self, request):
        now = datetime.now(UTC)
        return Session(
            id=settings_of(Chosen).place, project=request.project, command=request.arguments,
            state="running", slot=1, created=now, updated=now,
        )

    def stop(self, session):
        return self._session(session)

    def list(self):
        if settings_of(Chosen).place == "broken":
            raise OSError("the moon does not answer")
        return [self._session("moon-1")]

    def _session(self, name):
        now = datetime.now(UTC)
        return Session(
            id=name, project=Path("demo"), command=("run",), state="running", slot=1, created=now, updated=now
        )


@implements(gsd_settings)
def settings():
    yield Chosen


@implements(gsd_session_host)
async def host():
    return Elsewhere()
'''


@pytest.fixture
def gsd(tmp_path: Path) -> Gsd:
    """Return a function that runs a command of gsd with the host."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "elsewhere.py").write_text(HOST)
    (tmp_path / "idea.md").write_text("# Thing\n\nA small thing.\n")
    environment = {
        **os.environ,
        "GSD_STATE_DIR": str(tmp_path / "state"),
        "GSD_SESSION_HOST": "elsewhere",
        "GSD_ELSEWHERE_PLACE": "moon-1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gsd_core", "--plugins-dir", "plugins", *words],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_host_has_its_settings_and_its_name_is_shown(tmp_path: Path, gsd: Gsd) -> None:
    done = gsd("run", "idea.md", "--agent", "rehearsal", "-C", "demo", "--bg")
    stopped = gsd("stop", "moon-1")

    assert done.returncode == 0, done.stderr
    assert "started session moon-1" in done.stdout
    assert "elsewhere" in done.stdout
    assert "gsd attach" not in done.stdout  # it knows the sessions of the built-in host only
    assert f"gsd -C {tmp_path / 'demo'} status" in done.stdout
    assert stopped.returncode == 0, stopped.stderr
    assert "gsd -C demo status" in stopped.stdout
    assert "gsd logs" not in stopped.stdout


def test_the_commands_agree_about_the_sessions_of_another_host(gsd: Gsd) -> None:
    listed = gsd("ps")
    data = json.loads(gsd("ps", "--json").stdout)["sessions"]
    refused = [gsd("logs", "moon-1"), gsd("logs", "moon-1", "--since", "1h"), gsd("rm", "moon-1")]
    unknown = gsd("logs", "moon-2")
    # New sessions go to the built-in host, and the older ones are still found.
    stopped = gsd("stop", "moon-1", GSD_SESSION_HOST="sessions,elsewhere")

    assert "moon-1   running  1      -       0s   -      -     demo     run" in listed.stdout
    assert (
        "moon-1 is run by the plugin elsewhere; see how far it is with: gsd -C demo status" in listed.stdout
    )
    assert [(one["id"], one["host"]) for one in data] == [("moon-1", "elsewhere")]
    for one in refused:
        assert (one.returncode, one.stdout) == (2, "")
        assert "session moon-1 is run by the plugin elsewhere" in one.stderr
        assert "gsd -C demo status" in one.stderr
    assert unknown.returncode == 2
    assert "not a session: 'moon-2'" in unknown.stderr
    assert stopped.returncode == 0, stopped.stderr
    assert "asked session moon-1 of demo to stop" in stopped.stdout


def test_a_host_that_fails_does_not_hide_the_other_sessions(gsd: Gsd) -> None:
    listed = gsd("ps", GSD_ELSEWHERE_PLACE="broken")

    assert listed.returncode == 0
    assert "no sessions are active" in listed.stdout
    assert "cannot list the sessions of the plugin elsewhere: the moon does not answer" in listed.stderr
