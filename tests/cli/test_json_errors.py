"""With ``--json``, every command reports an error as one JSON object on the last line of stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gsd_core.cli.app import gsd
from tests.cli.bench import EVIL, call

NEED_NO_FOLDER = {("version",), ("plugins", "list"), ("plugins", "outdated"), ("settings", "show", "1")}


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the built-in commands with ``--json``, each with a value for each of its arguments."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        elif found and any("--json" in parameter.opts for parameter in found.params):
            yield (*path, name, *("1" for one in found.params if isinstance(one, click.Argument)))


COMMANDS = tuple(commands(gsd))


def test_most_commands_have_json() -> None:
    assert len(COMMANDS) > 20


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_error_of_any_command_with_json_is_one_object(tmp_path: Path, command: tuple[str, ...]) -> None:
    wrong = call(*command, "--json", "--no-such-option")

    refused = json.loads(wrong.stdout)
    assert (refused["exit"], refused["error"]["kind"], wrong.exit_code) == (2, "UsageError", 2)
    assert "--no-such-option" in refused["error"]["message"]
    assert wrong.stderr.startswith("error: ")
    if command not in NEED_NO_FOLDER:
        absent = call("-C", tmp_path / "absent", *command, "--json")
        found = json.loads(absent.stdout.splitlines()[-1])
        assert set(found) == {"schema_version", "error", "exit"}
        assert set(found["error"]) == {"kind", "message", "cause", "hint"}
        assert (found["exit"], absent.exit_code) == (2, 2)
        assert found["error"]["message"]


def test_the_object_cannot_control_the_terminal_and_text_output_has_none(tmp_path: Path) -> None:
    wrong = call("status", "-C", tmp_path / EVIL, "--json")
    as_text = call("status", "-C", tmp_path / EVIL)
    after_dashes = call("-C", tmp_path / "absent", "todo", "add", "--", "--json")

    assert json.loads(wrong.stdout)["exit"] == 2
    assert not {"\x1b", "\x07", "\u202e"} & {*wrong.output, *as_text.output}
    assert as_text.stdout == after_dashes.stdout == ""


@pytest.mark.parametrize("output", ["--output-format=json", "--output-format=stream-json"])
def test_a_run_that_cannot_start_says_so_as_an_object(tmp_path: Path, output: str) -> None:
    for options in ([output], output.split("=")):
        result = call("run", "-C", tmp_path, *options)

        assert json.loads(result.stdout)["error"]["kind"] == "IdeaError"
