"""``--bg`` with a session host of a third party."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
        now = datetime.now(UTC)
        return Session(
            id=session, project=Path("demo"), command=(), state="running", slot=1, created=now, updated=now
        )

    def list(self):
        return []


@implements(gsd_settings)
def settings():
    yield Chosen


@implements(gsd_session_host)
async def host():
    return Elsewhere()
'''


def test_a_host_has_its_settings_and_its_name_is_shown(tmp_path: Path) -> None:
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

    def gsd(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gsd_core", "--plugins-dir", "plugins", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

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
