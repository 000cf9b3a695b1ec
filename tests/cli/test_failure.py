"""Errors as text and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.cli.failures import report_failure
from gsd_core.errors import (
    Credentials,
    Exhausted,
    Fenced,
    GsdError,
    JournalError,
    Locked,
    MachineError,
    Parked,
    Permanent,
    PlanningError,
    PluginError,
    Transient,
    UserError,
)
from gsd_core.exit_codes import exit_code
from tests.cli.bench import Bench, call
from tests.terminal.pseudo_terminal import on_a_terminal


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("x"), 2),
        (Locked("x"), 2),
        (PlanningError("x", path="ROADMAP.md", line=3), 2),
        (Parked("x"), 3),
        (Credentials("x"), 4),
        (Exhausted("x"), 5),
        (Transient("x"), 75),
        (Permanent("x"), 1),
        (PluginError("p", "h", "x"), 1),
        (JournalError("x"), 2),
        (Fenced("x"), 1),
        (MachineError("x"), 2),
        (ValueError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code


def test_an_error_is_reported_with_its_cause_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    error = UserError("the plan cannot be read", hint="fix line 3")
    error.__cause__ = GsdError("line 3: no title")

    code = report_failure(error)

    assert code == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: the plan cannot be read",
        "cause: line 3: no title",
        "hint: fix line 3",
    ]


def test_an_interruption_exits_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_failure(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_bug_is_reported_in_three_lines_and_its_traceback_is_saved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError as error:
        code = report_failure(error)

    lines = capsys.readouterr().err.splitlines()
    saved = Path(lines[-1].removeprefix("hint: full traceback: "))
    assert (code, lines[0]) == (1, "error: ZeroDivisionError: by zero")
    assert "Traceback" in saved.read_text()


def test_an_error_message_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report_failure(UserError("\x1b]52;c;x\x07\x1b[2Jbad", hint="\u202ebad"))

    assert capsys.readouterr().err == "error: bad\nhint: bad\n"


def test_in_a_terminal_hints_are_wrapped_between_words_but_not_in_commands(bench: Bench) -> None:
    arguments = ("gsd_core", "-C", str(bench.root), "resume")
    with on_a_terminal(*arguments, NO_COLOR="1", COLUMNS="30") as screen:
        assert screen.ended() == 2
        rows = screen.seen.replace("\r\n", "\n").splitlines()

    piped = call(*arguments[1:]).stderr
    assert "error: nothing to resume in this project\nhint: start with: gsd -C" in piped
    assert [row for row in rows if len(row) > 30] == [f"  gsd -C {bench.root} run IDEA"]
    assert len(rows) == 4
    assert " ".join(row.strip() for row in rows) == " ".join(piped.split("\n")).strip()


def test_the_lines_of_a_long_error_keep_their_indentation_when_they_are_wrapped(bench: Bench) -> None:
    file = bench.root / "bad.toml"
    file.write_text('[[rule]]\ndo = "x"\n')
    arguments = ("gsd_core", "-C", str(bench.root), "run", "--agent", "rehearsal", "--script", str(file))
    with on_a_terminal(*arguments, NO_COLOR="1", COLUMNS="40") as screen:
        assert screen.ended() == 2
        rows = screen.seen.replace("\r\n", "\n").splitlines()

    assert "  [[rule]] 1: do: unknown 'x'; allowed:" in rows
    assert "    error, disconnect, usage limit," in rows
    assert [row for row in rows if len(row) > 40 and str(file) not in row] == []
