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
