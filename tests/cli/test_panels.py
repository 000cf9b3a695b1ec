"""``gsd panels``: what plugins show about a project."""

from __future__ import annotations

from pathlib import Path

from tests.cli.bench import Bench, call, said, trust_everything

PLUGIN = """
from gsd_core import Panel, implements
from gsd_core.hookspecs import gsd_panels

@implements(gsd_panels)
def show(project):
    yield Panel(
        name="lines", title="Lines\\x1b]0;owned\\x07", text="**many**", figures={"Total": "12"},
        columns=("file", "lines"), rows=(("a\\u202e.py", "7"), ("sk-ant-api03-" + "x" * 90, "5")),
    )
"""
BROKEN = """
from gsd_core import Panel, implements
from gsd_core.hookspecs import gsd_panels

@implements(gsd_panels)
def show(project):
    yield Panel(name="rows", title="Rows", columns=("one",), rows=(("1", "2"),))
"""


def plugin(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def test_panels_are_shown_without_escape_sequences_and_secrets(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    plugin(folder, "lines", PLUGIN)

    found = said("panels", "-C", bench.root, "--plugins-dir", folder)
    shown = call("panels", "-C", bench.root, "--plugins-dir", folder)

    [panel] = found["panels"]
    assert (panel["plugin"], panel["name"], panel["figures"]) == ("lines", "lines", {"Total": "12"})
    assert panel["text"] == "**many**"
    assert panel["columns"] == ["file", "lines"]
    assert found["failures"] == []
    for text in (str(found), shown.stdout):
        assert not {"\x1b", "\u202e"} & set(text)
        assert "sk-ant-api03" not in text
    assert shown.stdout.startswith("Lines")
    assert "Total: 12" in shown.stdout


def test_a_plugin_that_fails_is_named_and_the_others_are_shown(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    plugin(folder, "broken", BROKEN)
    plugin(folder, "lines", PLUGIN)

    found = said("panels", "-C", bench.root, "--plugins-dir", folder)
    shown = call("panels", "-C", bench.root, "--plugins-dir", folder)

    assert [panel["plugin"] for panel in found["panels"]] == ["lines"]
    [failure] = found["failures"]
    assert failure["plugin"] == "broken"
    assert "a row has 2 texts for 1 columns" in failure["reason"]
    assert failure["reason"] in shown.stderr


def test_a_panel_with_fields_of_wrong_types_is_a_failure_of_its_plugin(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    for name, fields in {
        "figures": "figures=7",
        "rows": "columns=('one',), rows=(1,)",
        "text": "rows=None",
    }.items():
        wrong = BROKEN.replace('columns=("one",), rows=(("1", "2"),)', fields)
        assert fields in wrong
        plugin(folder, name, wrong)
    plugin(folder, "lines", PLUGIN)

    found = said("panels", "-C", bench.root, "--plugins-dir", folder)

    assert [panel["plugin"] for panel in found["panels"]] == ["lines"]
    assert {one["plugin"] for one in found["failures"]} == {"figures", "rows", "text"}


def test_the_projects_own_plugins_are_asked_only_if_it_is_trusted(bench: Bench) -> None:
    plugin(bench.root / ".gsd" / "plugins", "lines", PLUGIN)

    assert said("panels", "-C", bench.root)["panels"] == []
    trust_everything(bench.root)
    assert [panel["plugin"] for panel in said("panels", "-C", bench.root)["panels"]] == ["lines"]


def test_a_project_of_which_no_plugin_knows_anything(bench: Bench) -> None:
    assert call("panels", "-C", bench.root).stdout == "no plugin has anything to show\n"
