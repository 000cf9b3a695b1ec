"""How to try what was built: only what the project's own files say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gsd_core.views.try_it import how_to_try

INSTALL, TESTS = "## Install\n\n```sh\npip install .\n```", "## Tests\n\n```sh\npytest\n```\n"
USAGE = f"# Notes\n\n{INSTALL}\n\n## Usage\n\n{{block}}\n\n{TESTS}"


def project(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def readme(root: Path, block: str) -> tuple[str, ...]:
    found = how_to_try(project(root, **{"README.md": USAGE.format(block=block)}), ())
    return found.commands if found else ()


@pytest.mark.parametrize(
    ("block", "commands"),
    [
        ("```sh\nnotes add x\n# then\nnotes list\n```", ("notes add x", "notes list")),
        ("```console\n$ notes add x\nadded\n$ notes list\n- x\n```", ("notes add x", "notes list")),
        ("~~~bash\nnotes list\n~~~", ("notes list",)),
        ("```\n$ notes list\n- x\n```", ("notes list",)),
        ("```\nprint('no shell')\n```", ()),
        ("```python\nimport notes\n```\n\n```sh\nnotes list\n```", ("notes list",)),
        ("```sh\nnotes add \\\n  x\n```", ()),
        ("```sh\ncat <<END > x\nrm -rf y\nEND\n```", ()),
        ("```sh\n" + "x" * 400 + "\n```", ()),
        ("```sh\nnever closed", ()),
        ("no block at all", ()),
    ],
)
def test_the_shell_commands_of_the_usage_section_count(
    tmp_path: Path, block: str, commands: tuple[str, ...]
) -> None:
    assert readme(tmp_path, block) == commands


def test_a_section_about_tests_or_development_is_not_usage(tmp_path: Path) -> None:
    text = "# X\n\n## Running the tests\n\n```sh\npytest\n```\n\n## Run\n\n```sh\nx\n```\n"

    found = how_to_try(project(tmp_path, **{"README.md": text}), ())

    assert found is not None
    assert found.commands == ("x",)


def test_commands_that_a_check_ran_are_known(tmp_path: Path) -> None:
    project(tmp_path, **{"README.md": USAGE.format(block="```sh\nnotes add x\nnotes list\n```")})

    found = how_to_try(tmp_path, ["pytest -q", "cd . && notes list | grep x"])

    assert found is not None
    assert found.checked == {"notes list"}


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"pyproject.toml": "[project.scripts]\nnotes = 'notes:main'\n"}, ("pip install .", "notes --help")),
        ({"notes/__main__.py": ""}, ("python3 -m notes",)),
        ({"package.json": json.dumps({"scripts": {"start": "node ."}})}, ("npm install", "npm start")),
        ({"Cargo.toml": "[package]", "src/main.rs": ""}, ("cargo run",)),
        ({"go.mod": "module x", "main.go": ""}, ("go run .",)),
        ({"tests/__main__.py": ""}, ()),
        ({"pyproject.toml": "[", "package.json": "[[["}, ()),
        ({"package.json": "[1]", "pyproject.toml": "project = 1"}, ()),
        ({}, ()),
    ],
)
def test_without_usage_in_the_readme_the_package_files_count(
    tmp_path: Path, files: dict[str, str], commands: tuple[str, ...]
) -> None:
    found = how_to_try(project(tmp_path, **files), ())

    assert (found.commands if found else ()) == commands


def test_a_pipe_or_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    outside = project(tmp_path / "outside", **{"README.md": USAGE.format(block="```sh\nx\n```")})
    root = tmp_path / "project"
    root.mkdir()
    (root / "README.md").symlink_to(outside / "README.md")
    os.mkfifo(root / "pyproject.toml")

    assert how_to_try(root, ()) is None
