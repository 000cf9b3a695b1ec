"""The pages for plugin authors: their examples pass the check, and the diagram shows every hook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gsd_core.plugins.validation import HOOKS
from gsd_core.testing.new import NewPackage, write_package
from tests.cli.bench import call
from tests.docs.pages import Block, blocks, pages

PLUGINS = [block for block in blocks("python") if "write-a" in block.page and block.text.startswith('"""')]
PICTURE = "docs/explanation/hooks-in-order.md"
FIRST = "docs/how-to/write-a-plugin.md"
WITH_AN_OBJECT = "docs/how-to/write-a-lifespan.md"


def test_every_how_to_page_has_a_plugin() -> None:
    assert len({block.page for block in PLUGINS}) == 14


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for block in PLUGINS if block.page != WITH_AN_OBJECT], ids=str)
def test_the_plugin_on_a_page_keeps_the_rules(block: Block, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(block.text, encoding="utf-8")
    result = call("plugins", "check", str(tmp_path / "shown.py"), "--run-agent", "--json")

    assert broken(result.stdout) == {}


@pytest.mark.slow
def test_a_plugin_that_is_an_object_is_checked_by_its_entry_point(tmp_path: Path) -> None:
    [block] = [block for block in PLUGINS if block.page == WITH_AN_OBJECT]
    folder = write_package(NewPackage.of("reporter", "lifespan"), tmp_path)
    module = "gsd_plugin_reporter"
    (folder / "src" / module / "__init__.py").write_text(block.text, encoding="utf-8")
    pyproject = folder / "pyproject.toml"
    declared = pyproject.read_text("utf-8").replace(f'= "{module}"', f'= "{module}:reporter"')
    pyproject.write_text(declared, encoding="utf-8")

    # The tests in the package are those of the scaffold.
    assert {*broken(call("plugins", "check", str(folder), "--json").stdout)} == {"tested"}

    pyproject.write_text(declared.replace(":reporter", ":absent"), encoding="utf-8")
    assert "absent" in str(broken(call("plugins", "check", str(folder), "--json").stdout)["imports"])


def broken(checked: str) -> dict[str, list[str]]:
    return {
        rule["id"]: rule["problems"] for rule in json.loads(checked)["rules"] if rule["status"] == "broken"
    }


def test_the_diagram_shows_every_hook() -> None:
    [text] = [text for page, text in pages() if page == PICTURE]
    picture = next(block.text for block in blocks("text") if block.page == PICTURE)

    assert set(re.findall(r"gsd_\w+", picture)) == set(HOOKS)
    assert set(re.findall(r"`(gsd_\w+)`", text)) == set(HOOKS)


@pytest.mark.slow
def test_the_first_page_leads_to_a_tested_plugin(tmp_path: Path) -> None:
    shown = {block.language: block.text for block in blocks("python", "text") if block.page == FIRST}
    made = call("plugins", "new", "license-check", "--hook", "find_gaps", "--directory", str(tmp_path))
    folder = tmp_path / "gsd-plugin-license-check"
    (folder / "src/gsd_plugin_license_check/__init__.py").write_text(shown["python"], encoding="utf-8")
    (folder / "tests/test_license_check.py").write_text(shown["text"], encoding="utf-8")

    assert made.exit_code == 0
    for command in ("pytest -q", "mypy", "ruff check", "gsd_core plugins check ."):
        done = subprocess.run(
            [sys.executable, "-m", *command.split()], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
