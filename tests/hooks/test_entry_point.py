"""The example package, installed and found by its entry point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "contrib" / "gsd-plugin-example-gaps"
LIST = """
import json
from gsd_core.plugins.loading import Choice, build_manager, load
infos = load(build_manager(), Choice(defaults=()))
print(json.dumps([[i.name, i.source, i.status, i.distribution, i.version, i.hooks] for i in infos]))
"""


@pytest.mark.slow
def test_the_example_package_is_found_by_its_entry_point_once_installed(tmp_path: Path) -> None:
    target = tmp_path / "site"
    subprocess.run([*_pip(), "--no-deps", "--target", str(target), str(PACKAGE)], check=True, timeout=300)

    rows = json.loads(_run(LIST, target, tmp_path))

    hooks = ["gsd_find_gaps", "gsd_settings"]
    package = ["gsd-plugin-example-gaps", "0.1.0"]
    assert [row for row in rows if row[0] == "example_gaps"] == [
        ["example_gaps", "entry point", "active", *package, hooks]
    ]


def _pip() -> list[str]:
    """The available installer; it downloads the build tool only if it is missing."""
    if find_spec("pip"):
        isolated = [] if find_spec("hatchling") is None else ["--no-build-isolation"]
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *isolated]
    if shutil.which("uv") is None and not os.environ.get("CI"):
        pytest.skip("neither pip nor uv")
    return ["uv", "pip", "install", "--quiet", "--python", sys.executable]


def _run(code: str, site: Path, cwd: Path) -> str:
    path = os.pathsep.join(map(str, (site, ROOT, ROOT / "plugins")))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
