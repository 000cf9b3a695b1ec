"""What commands print at a terminal: whole words, whole commands, and tables that fit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from gsd_core.cli.output import wrapped_text
from tests.cli.bench import Bench, call
from tests.terminal.pseudo_terminal import on_a_terminal

COLORS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def shown(bench: Bench, *words: str, columns: int) -> list[str]:
    """Return the lines that ``gsd`` prints at a terminal that is so wide."""
    with on_a_terminal("gsd_core", "-C", str(bench.root), *words, COLUMNS=str(columns)) as screen:
        screen.ended()
    return COLORS.sub("", screen.seen).replace("\r", "").splitlines()


def fits(line: str, columns: int) -> bool:
    """Whether *line* fits, or is something to copy, which a terminal may divide."""
    return len(line) <= columns or len(line.split()) == 1 or line.strip().startswith("gsd -C ")


@pytest.mark.parametrize("columns", [40, 57, 80])
def test_a_terminal_gets_whole_words_and_nothing_is_left_out(bench: Bench, columns: int) -> None:
    bench.fact("run.started", idea={"name": "a-rather-long-name-of-an-idea.md", "text": "", "sha256": ""})
    bench.fact("run.opened", agent=["fake"], options={})
    reason = "the agent gave up, because the interface that it should call does not exist on this machine"
    bench.fact("run.closed", outcome="failed", exit=1, reason=reason)

    lines = shown(bench, "status", columns=columns)

    assert all(fits(line, columns) for line in lines), lines
    assert " ".join(lines).split() == call("-C", bench.root, "status").stdout.split()


def test_a_command_is_on_one_line_so_that_it_can_be_copied(bench: Bench) -> None:
    bench.start()
    bench.ask()

    lines = shown(bench, "questions", columns=40)

    assert f"  gsd -C {bench.root} answer q-1 CHOICE" in lines


@pytest.mark.parametrize("columns", [30, 40])
def test_a_table_that_does_not_fit_has_some_lines_for_each_row(bench: Bench, columns: int) -> None:
    lines = shown(bench, "plugins", columns=columns)

    assert "bubblewrap" in lines
    assert "  status: active" in lines
    assert max(map(len, lines)) <= columns


def test_a_table_that_fits_stays_one(bench: Bench) -> None:
    lines = shown(bench, "plugins", columns=80)

    assert lines[0].split() == ["plugin", "source", "status", "version", "hooks"]
    assert max(map(len, lines)) <= 80


def test_numbers_end_in_one_column(bench: Bench) -> None:
    bench.start()
    for step, dollars in (("init", "12.50"), ("1/plan", "0.25")):
        usage = {"input_tokens": 10, "output_tokens": 1, "turns": 1, "basis": "reported", "dollars": dollars}
        bench.fact("agent.opened", step, key="k", model="opus")
        bench.fact("agent.closed", step, key="k", ended="done", usage=usage)

    costs = ("$12.50", "$0.25", "$12.75")
    table = call("cost", "-C", bench.root).stdout.splitlines()

    ends = {line.index(cost) + len(cost) for line, cost in zip(table[-3:], costs, strict=True)}
    assert len(ends) == 1, table


def test_an_error_is_wrapped_between_words_and_its_label_is_colored(bench: Bench) -> None:
    with on_a_terminal("gsd_core", "-C", str(bench.root), "gaps", "nine", COLUMNS="40") as screen:
        assert screen.ended() != 0

    assert "\x1b[31m\x1b[1merror:\x1b[0m" in screen.seen
    lines = COLORS.sub("", screen.seen).replace("\r", "").splitlines()
    assert len(lines) > 2
    assert all(fits(line, 40) for line in lines), lines


@given(st.text("abäöß東京 -", max_size=200), st.integers(10, 60))
def test_wrapping_loses_no_word_and_only_a_long_word_exceeds_the_width(text: str, width: int) -> None:
    rows = [row.plain for row in wrapped_text(Text(text), width)]

    assert " ".join(rows).split() == text.split()
    assert all(cell_len(row) <= width or " " not in row.strip() for row in rows), rows


@pytest.mark.parametrize("kept", ["`git rebase --continue`", "gsd -C my-app resume", "2 min 03 s", "57.2 s"])
def test_a_command_and_a_duration_stay_on_one_row(kept: str) -> None:
    for width in range(len(kept) + 4, 60):
        rows = wrapped_text(Text(f"the words before it: {kept} (and the words after it)"), width)
        assert any(kept in row.plain for row in rows), (width, rows)
