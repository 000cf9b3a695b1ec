"""Commands in hints: they repeat the global options that the user gave."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import MissingParameter

from gsd_core.cli.commands import with_global_options
from gsd_core.cli.global_options import GlobalOptions
from tests.cli.bench import Bench, call
from tests.cli.pasted import check, commands_in
from tests.package.source import ROOT

IN_DEMO = GlobalOptions(
    directory=Path("my demo"), directory_given=True, plugins=("no:uat",), plugin_dirs=(Path("own"),)
)


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("gsd log", "gsd -C 'my demo' log"),
        (
            "run `gsd answer q-1 …`, then gsd log",
            "run `gsd -C 'my demo' answer q-1 …`, then gsd -C 'my demo' log",
        ),
        ("gsd resume", "gsd -C 'my demo' -p no:uat --plugins-dir own resume"),
        ("gsd writes nothing, and gsd runs on", "gsd writes nothing, and gsd runs on"),
    ],
)
def test_a_hint_repeats_the_global_options(hint: str, shown: str) -> None:
    assert with_global_options(hint, IN_DEMO) == shown


def test_without_global_options_a_hint_stays_as_it_is() -> None:
    assert with_global_options("gsd resume", GlobalOptions()) == "gsd resume"


def test_a_plugin_of_a_named_folder_is_checked_by_its_name(bench: Bench) -> None:
    (bench.root / "own.py").write_text('"""A plugin."""\n')

    shown = call("--plugins-dir", bench.root, "plugins", "check", "own")

    assert "own (file)" in shown.stdout, shown.stderr


def test_a_plugin_s_file_has_its_whole_path_in_what_is_typed_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = "from gsd_core import implements\nfrom gsd_core.hookspecs import gsd_panels\n"
    plugin += "@implements(gsd_panels)\ndef panels(project):\n    return []\n"
    (tmp_path / "mine.py").write_text(plugin)
    (tmp_path / "native").touch()
    monkeypatch.chdir(tmp_path)

    result = call("-p", "mine.py", "-p", "native", "mcp", "install", "--print")

    assert result.stdout.endswith(f"gsd mcp -p {tmp_path / 'mine.py'} -p native\n"), result.stderr


def test_a_failure_names_the_project_in_its_hint(bench: Bench) -> None:
    text = call("resume", "-C", bench.root)
    data = call("-C", bench.root, "resume", "--output-format", "json")

    assert f"gsd -C {bench.root} run IDEA" in text.stderr
    assert f"gsd -C {bench.root} run IDEA" in json.loads(data.stdout)["error"]["hint"]


def test_a_health_issue_names_the_project_in_its_fix(bench: Bench) -> None:
    (bench.root / ".planning").mkdir()

    assert f"gsd -C {bench.root} health --repair" in call("health", "-C", bench.root).stdout


def texts(path: Path) -> Iterator[str]:
    """Yield the texts in a module that are not documentation, each value in them as ``1``."""
    tree = ast.parse(path.read_text("utf-8"))
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in documents | within:
            yield from [node.value] if isinstance(node.value, str) else []


def commands_in_the_code() -> list[str]:
    modules = [path for folder in ("gsd_core", "plugins") for path in (ROOT / folder).rglob("*.py")]
    found = {
        command
        for path in modules
        if "testing" not in path.parts and "rehearsal" not in path.parts
        for text in texts(path)
        for command in commands_in(text)
    }
    return sorted(found)


@pytest.mark.parametrize("command", commands_in_the_code())
def test_each_command_that_a_message_names_can_be_pasted(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSD_PLUGINS", "")
    try:
        assert check(command)
    except MissingParameter:
        assert command.endswith(("gsd answer", "gsd run", "gsd quick")), command


def test_each_command_that_the_state_of_a_run_names_can_be_pasted(bench: Bench) -> None:
    bench.start()
    bench.work()
    bench.ask()
    printed = "".join(
        call(verb, "-C", bench.root).stdout for verb in ("status", "questions", "next", "cost", "progress")
    )

    found = list(commands_in(printed))

    assert f"gsd -C {bench.root} answer q-1 CHOICE" in found
    assert all(check(command) for command in found)
