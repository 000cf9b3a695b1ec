"""A user, a project and a sandbox around it, all real: what the run's core does for each process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from gsd_core import ConfinedProcess, Place, SandboxedCommand, SandboxUnavailable
from gsd_core.git import throwaway
from gsd_core.git.command import Command
from gsd_core.run.places import prepare
from gsd_core.run.private_home import home_environment, private_home
from gsd_plugins import bubblewrap

PASSED_ON = ("PATH", "LANG", "RUSTUP_HOME", "JAVA_HOME", "PYENV_ROOT", "TERM")


def why_no_sandbox() -> str:
    """Return why bubblewrap cannot be used here, else an empty string."""
    if sys.platform != "linux":
        return "bubblewrap is for Linux"
    launcher = bubblewrap.launcher_of(bubblewrap.program("bwrap"))
    return launcher.reason if isinstance(launcher, SandboxUnavailable) else ""


def require_sandbox() -> None:
    """Skip the test if there is no sandbox; fail it if ``GSD_REQUIRE_SANDBOX=1`` is set."""
    if reason := why_no_sandbox():
        if os.environ.get("GSD_REQUIRE_SANDBOX") == "1":
            pytest.fail(f"no sandbox: {reason}")
        pytest.skip(reason)


def git(folder: Path, *arguments: str) -> str:
    """Run git in *folder*, with a fixed identity, and return its output."""
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ("git", *identity, *arguments)
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@attrs.define(kw_only=True)
class Box:
    """The project *project* and its private *home*; *tree* is where processes work."""

    project: Path
    home: Path
    tree: Path
    folder: Path
    writable: bool = True
    throwaway: Path | None = None

    @classmethod
    def around(cls, project: Path, tree: Path | None = None) -> Box:
        """Make the private home and the throwaway git directory, as at the start of an agent call."""
        box = cls(
            project=project,
            tree=tree or project,
            home=private_home(project),
            folder=Path(tempfile.mkdtemp(dir=project.parent, prefix="call-")),
        )
        box.throwaway = throwaway.make(Command(root=box.tree), box.folder)
        return box

    def places(self) -> tuple[Place, ...]:
        """Return the places of the next process."""
        return prepare(self.project, self.tree, writable=self.writable, git=self.throwaway, home=self.home)

    def confined(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        extra: Sequence[Place] = (),
    ) -> SandboxedCommand:
        """Return the command line that runs *command* in the sandbox."""
        own = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        process = ConfinedProcess(
            command=tuple(command),
            cwd=cwd or self.tree,
            environment=home_environment({**own, **(environment or {})}, self.home),
            places=(*self.places(), *extra),
            home=self.home,
        )
        result = bubblewrap.confined(process)
        assert isinstance(result, SandboxedCommand), result
        return result

    def run(
        self,
        script: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a bash script in the sandbox to its end."""
        started = self.confined(("bash", "-c", script, "bash", *arguments), environment, cwd)
        return subprocess.run(
            started.command,
            env=dict(started.environment),
            cwd=self.tree,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            start_new_session=True,
            timeout=300,
            check=False,
        )

    def out(self, script: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a bash script that has to succeed, and return its output."""
        result = self.run(script, *arguments, environment=environment)
        assert result.returncode == 0, f"exit {result.returncode}: {result.stdout}\n{result.stderr}"
        return result.stdout.strip()
