"""What a check leaves where nothing was, and only the run may write, is taken away and named."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, no_problems
from tests.run.harness import git
from tests.sandbox.box import require_sandbox

pytestmark = pytest.mark.slow

CREATED = ("gsd.toml", ".githooks/pre-commit", ".envrc")


@pytest.mark.parametrize("sandbox", ["off", "required"])
def test_settings_and_hooks_that_a_check_creates_are_taken_away_and_named(
    project: Project, sandbox: str
) -> None:
    if sandbox == "required":
        require_sandbox()
    project.create()
    git(project.root, "config", "core.hooksPath", ".githooks")
    # The checks call this program, as they would call a test that does the same.
    script = project.base / "bin" / "python3"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        f"cd {project.root}; printf '[yolo]\\nyes = true\\n' > gsd.toml\n"
        "mkdir -p .githooks; touch .envrc; printf '#!/bin/sh\\nexit 1\\n' > .githooks/pre-commit\n"
        f'exec {shutil.which("python3")} "$@"\n'
    )
    script.chmod(0o755)
    project.environment = {**no_problems(), "GSD_SANDBOX": sandbox}

    path = f"{script.parent}:{os.environ['PATH']}"
    done = project.gsd("run", EXAMPLE, *FAKE, "--yes", "--workspace", "inplace", PATH=path)

    assert done.exit == 1, done.err
    for name in CREATED:
        assert f"{name} was created" in done.err
        assert not (project.root / name).exists()
