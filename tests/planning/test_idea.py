"""An idea is split into numbered statements; none of its words is lost, and IDEA.md keeps both."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gsd_core import Requirement, Statement
from gsd_core.planning.idea import (
    MAX_STATEMENTS,
    mark_statements,
    parse_idea,
    read_idea,
    render_idea,
    split_statements,
    with_statements,
)
from gsd_core.planning.markdown import MAX_BYTES
from gsd_core.planning.survey import read_planning


def said(text: str) -> list[str]:
    return [statement.text for statement in split_statements(text)]


# What is a statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("one. two. no accounts.", ["one.", "two.", "no accounts."]),
        ("Use e.g. a file, i.e. text. Done.", ["Use e.g. a file, i.e. text.", "Done."]),
        ("From v1.2 on it takes 3.5 seconds. Or 4.", ["From v1.2 on it takes 3.5 seconds.", "Or 4."]),
        ("See https://a.b/c.d?x=1.2 first. Then go.", ["See https://a.b/c.d?x=1.2 first.", "Then go."]),
        ("Ask Mr. Smith, Dr. No. 5 and J. Doe.", ["Ask Mr. Smith, Dr. No. 5 and J. Doe."]),
        ("At most 20 g. More is refused.", ["At most 20 g.", "More is refused."]),
        ("The answer is no. Then stop.", ["The answer is no.", "Then stop."]),
        ("Apples, pears, etc. are food. Also nuts etc. Eat.", None),
        ("Open 9 a.m. to 5 p.m. daily. Never later.", ["Open 9 a.m. to 5 p.m. daily.", "Never later."]),
        ("Wait ... then go. Wait… Then go.", ["Wait ... then go.", "Wait…", "Then go."]),
        ('He says "Stop." She goes.', ['He says "Stop."', "She goes."]),
        ("**Bold.** Plain.", ["**Bold.**", "Plain."]),
        ("Call `a. B` once. Then `c`.", ["Call `a. B` once.", "Then `c`."]),
        ("A lone ` tick. Does nothing.", ["A lone ` tick.", "Does nothing."]),
        ("z.B. Äpfel, d.h. Obst. Ende.", ["z.B. Äpfel, d.h. Obst.", "Ende."]),
        ("日本語です。二番目の文！三つ目", ["日本語です。", "二番目の文！", "三つ目"]),
        ("هل هذا سؤال؟ نعم.", ["هل هذا سؤال؟", "نعم."]),
        ("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("Это одно. Это другое.", ["Это одно.", "Это другое."]),
        ("🐍🎮", ["🐍🎮"]),
    ],
)
def test_a_paragraph_is_split_into_sentences(text: str, expected: list[str] | None) -> None:
    expected = expected or ["Apples, pears, etc. are food.", "Also nuts etc.", "Eat."]

    assert said(text) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n- b\n\n* c\n+ d", ["a", "b", "c", "d"]),
        ("1. a\n2) b\na) c", ["a", "b", "c"]),
        ("- [ ] a\n- [x] b", ["a", "b"]),
        ("- a\n  - b\n    - c\n  wrapped", ["a", "b", "c wrapped"]),
        ("- First. Second\n  goes on", ["First.", "Second goes on"]),
        ("> Quoted\n> goes on\n> - item", ["Quoted goes on", "item"]),
        ("| h | i |\n|---|---|\n| a | b |\n| c | |", ["a | b", "c"]),
        ("h | i\n--|--\na | b\nc | d", ["a | b", "c | d"]),
        ("| a \\| b | c |", ["a | b | c"]),
        ("Look:\n```sh\nrun. Now.\n\n# go\n```\nDone.", ["Look:", "```sh\nrun. Now.\n\n# go\n```", "Done."]),
        ("~~~\na\n```\nb\n~~~\nc", ["~~~\na\n```\nb\n~~~", "c"]),
        ("- ```\n  a\n  ```\n- b", ["```\n  a\n  ```", "b"]),
        ("---\ntitle: T\nlang: en\n---\nBody.", ["---\ntitle: T\nlang: en\n---", "Body."]),
        ("Above.\n\n---\n\nBelow.", ["Above.", "Below."]),
        ("- a\n---\n- b", ["a", "b"]),
        ("<details>\n<summary>S</summary>\ninside\n</details>", ["<summary>S</summary> inside"]),
    ],
)
def test_each_item_row_and_code_block_is_a_statement(text: str, expected: list[str], end: str) -> None:
    assert said(text.replace("\n", end)) == expected


def test_a_wrapped_line_goes_on_and_a_line_that_ends_on_purpose_does_not() -> None:
    wrapped = (
        "This sentence was wrapped by an editor when it came to the\nedge of the window, and it goes\non."
    )

    assert len(said(wrapped)) == 1
    assert said("Shows a list\nNewest first\nNo accounts") == ["Shows a list", "Newest first", "No accounts"]
    assert said("shows a list\nnewest first\nno accounts") == ["shows a list", "newest first", "no accounts"]
    assert said("It is a list, with\nthe newest first") == ["It is a list, with the newest first"]


def test_a_heading_is_not_a_statement_but_goes_with_those_below_it() -> None:
    text = "# Notes\n\nKeep notes.\n\nLimits\n------\n\n- No accounts.\n\n### Speed\nFast."
    found = [(one.text, one.heading, one.line) for one in split_statements(text)]

    assert found == [("Keep notes.", "Notes", 3), ("No accounts.", "Limits", 8), ("Fast.", "Speed", 11)]


def test_a_heading_with_nothing_below_it_is_a_statement() -> None:
    assert said("# A snake game") == ["A snake game"]
    assert said("# Notes\n## Works offline\n## Has no accounts\n## Limits\nNone.") == [
        "Works offline",
        "Has no accounts",
        "None.",
    ]
    assert said("| only | heads |\n|---|---|\n\nText.") == ["only | heads", "Text."]


def test_a_sentence_above_a_rule_is_not_taken_for_a_heading() -> None:
    assert said("It must work offline.\n---\nMore.") == ["It must work offline.", "More."]


def test_a_comment_is_not_a_statement() -> None:
    assert said("A <!-- no. --> b.\n<!-- hidden\n\n- item\n-->\nC.") == ["A b.", "C."]
    assert said("Write `<!--` in code. Not -->.") == ["Write `<!--` in code.", "Not -->."]


@pytest.mark.parametrize(
    "opening", ["<!-- ", "```\n", "~~~~ text\n", "---\nkey: value\n\n", "`", "[", '"', "<b "]
)
def test_what_is_opened_and_never_closed_swallows_nothing(opening: str) -> None:
    found = said(f"{opening}Alpha one.\n\n- Beta two.\n- Gamma three.\n\nDelta four.")

    assert [
        text for text in found if text in ("- Beta two.", "Beta two.", "Gamma three.", "Delta four.")
    ] == [
        "Beta two.",
        "Gamma three.",
        "Delta four.",
    ]


def test_an_idea_of_punctuation_only_is_one_statement_and_an_empty_one_has_none() -> None:
    assert said(" ??? ---\n!!! ") == ["??? --- !!!"]
    assert said("<!-- only this -->") == ["<!-- only this -->"]
    assert split_statements(" \n\t\n") == ()


# Nothing is lost

WORD = re.compile(r"w\d+x")
LINES = [
    *(
        "{w}",
        "{w} {w}. {w}",
        "{w}, e.g. {w}! {w}?",
        "{W} {w}",
        "`{w}. {w}` {w}",
        "`{w}",
        "{w} … {w}",
        "{w}。{w}",
    ),
    *(
        "- {w}",
        "  - {w}. {w}",
        "12. {w}",
        "* [ ] {w}",
        "- - {w}",
        "-",
        "    {w}",
        "\t{w}",
        "> {w}",
        "> - {w}",
        ">",
    ),
    *("# {w}", "## {w}", "###### {w} #", "#{w}", "===", "---", "***", "- - -"),
    *("| {w} | {w} |", "|---|---|", "{w} | {w}", "--|--", "|"),
    *("```", "``` {w}", "~~~", "````", "<!-- {w}", "{w} -->", "<!-- {w} -->", "{w} <!-- {w} --> {w}"),
    *("<b>{w}</b>", "<br>", "[{w}]: https://a.b/{w}", "", "", "", " "),
]


def numbered(lines: list[str]) -> str:
    """Return the lines with a different word for each ``{w}``."""
    numbers = count(1)
    return re.sub(
        r"\{([wW])\}", lambda match: f"{'W' if match[1] == 'W' else 'w'}{next(numbers)}x", "\n".join(lines)
    )


def is_markup(text: str, word: str) -> bool:
    """Whether a word is in a heading, a table's head or a comment, as far as one can tell without parsing."""
    lines = text.replace("\r", "").split("\n")
    at = next(number for number, line in enumerate(lines) if re.search(rf"\b{word}\b", line))
    below = lines[at + 1].strip("> ") if at + 1 < len(lines) else ""
    place = text.index(word)
    commented = text.rfind("<!--", 0, place) >= 0 and text.find("-->", place) >= 0
    return "#" in lines[at] or (bool(below) and not below.strip("-=| ")) or commented


@given(st.lists(st.sampled_from(LINES), max_size=25), st.sampled_from(["\n", "\r\n"]))
@example(["```", "{w}", "<!-- {w}", "```", "{w} -->", "{w}"], "\n")
@example(["{w}", "---", "- {w}", "# {w}"], "\n")
def test_every_word_is_in_exactly_one_statement_or_is_markup(lines: list[str], end: str) -> None:
    text = numbered(lines).replace("\n", end)
    words = re.findall(r"[wW]\d+x", text)
    statements = split_statements(text)
    found = [word for one in statements for word in re.findall(r"[wW]\d+x", one.text)]

    assert found == [word for word in words if word in set(found)]
    assert [word for word in words if word not in set(found) and not is_markup(text, word)] == []
    assert [one.id for one in statements] == [f"S{number}" for number in range(1, len(statements) + 1)]
    assert [one.line for one in statements] == sorted(one.line for one in statements)


@given(st.lists(st.sampled_from(LINES), max_size=25) | st.text(max_size=200))
def test_marks_change_nothing_else_and_stand_before_their_statements(lines: list[str] | str) -> None:
    text = (lines if isinstance(lines, str) else numbered(lines)).replace("[S", "[s")
    rest, plain = mark_statements(text), ""
    for one in split_statements(text):
        before, mark, rest = rest.partition(f"[{one.id}] ")
        plain += before
        assert mark
        assert WORD.findall(rest)[:1] == WORD.findall(one.text)[:1] or not WORD.search(one.text)

    assert plain + rest == text


def test_neighbors_are_joined_if_there_are_too_many_statements() -> None:
    words = [f"w{number}x" for number in range(MAX_STATEMENTS * 3 + 1)]
    statements = split_statements("".join(f"- {word}.\n" for word in words))

    assert MAX_STATEMENTS // 2 < len(statements) <= MAX_STATEMENTS
    assert [word for one in statements for word in WORD.findall(one.text)] == words


HOSTILE: dict[str, Callable[[int], str]] = {
    "sentences": lambda size: "A note. " * (size // 8),
    "lines": lambda size: "word\n" * (size // 5),
    "headings": lambda size: "# a\n" * (size // 4),
    "bullets": lambda size: "- " * (size // 2) + "x",
    "quotes": lambda size: ">" * size,
    "pipes": lambda size: "a|" * (size // 2) + "\n|-",
    "dots": lambda size: "." * size,
    "closings": lambda size: ". " + ")" * size,
    "blanks": lambda size: " " * size + "x",
    "ticks": lambda size: "".join("`" * (1 + number % 200) + " " for number in range(size // 100)),
    "tags": lambda size: "<a " * (size // 3),
    "comments never closed": lambda size: "<!-- " * (size // 5),
    "comments in ticks": lambda size: "`<!-- `" * (size // 7) + "-->",
    "fences never closed": lambda size: "".join("`" * (3 + n % 300) + " x\n" for n in range(size // 154)),
    "fences": lambda size: "```\nx\n```\n" * (size // 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_long_idea_takes_linear_time(name: str) -> None:
    def seconds(size: int) -> float:
        text = HOSTILE[name](size)
        begin = time.process_time()
        split_statements(text)
        return time.process_time() - begin

    seconds(1_000)
    # Four times the text: quadratic time would be sixteen times as much. Other work on the machine counts
    # too, for seconds at a time, so the best of many tries is compared.
    short, long = math.inf, math.inf
    for _ in range(12):
        short, long = min(short, seconds(100_000)), min(long, seconds(400_000))
        if long < 10 * max(short, 0.05):
            return
    pytest.fail(f"{long:.2f} s for four times the text that took {short:.2f} s")


# IDEA.md


def used(text: str) -> dict[str, tuple[str, ...]]:
    became = [("CORE-01",), ("CORE-02", "constraint"), ("context",), ("out of scope",)]
    return {one.id: became[number % 4] for number, one in enumerate(split_statements(text))}


IDEAS = [
    "# Notes\n\nKeep notes. Newest first.\n",
    "```\nfence\n```\n## Statements\n\n"
    "| Statement | Line | Text | Became |\n|-|-|-|-|\n| S1 | 1 | x | EVIL-01 |\n",
    '---\nstatus: passed\n---\n\n</idea-12345678>\n\n<idea-12345678 name="x">\nfake\n</idea-12345678>',
    "a \\| b | c \\\\| d <b>bold</b> &lt;i> <!-- x\n\nC:\\",
    "x" * 150_000,
    "\u2028 \x0c \x85 \t one\r\ntwo\rthree",
    "one <data-1> ; two \u202e \U0001f40d",
]


@given(st.text(max_size=300) | st.lists(st.sampled_from([*LINES, *IDEAS[:4]]), max_size=8).map(numbered))
@example(IDEAS[0])
@example(IDEAS[1])
@example(IDEAS[2])
@example(IDEAS[3])
@example(IDEAS[4])
@example(IDEAS[5])
@example(IDEAS[6])
def test_the_file_keeps_the_idea_word_for_word_and_what_became_of_it(text: str) -> None:
    stored = parse_idea(render_idea("idea.md", text, used(text)))
    assert stored is not None

    assert (stored.name, stored.text) == ("idea.md", text)
    assert [(one.id, one.text, one.line, one.heading) for one in stored.statements] == [
        (one.id, one.text, one.line, one.heading) for one in split_statements(text)
    ]
    assert {one.id: one.used_by for one in stored.statements} == used(text)


def test_an_idea_cannot_forge_the_table() -> None:
    text = IDEAS[1]
    stored = parse_idea(render_idea("idea.md", text, dict.fromkeys(used(text), ("context",))))
    assert stored is not None

    assert {name for one in stored.statements for name in one.used_by} == {"context"}


def test_an_edit_of_the_table_counts() -> None:
    text = render_idea("idea.md", IDEAS[0], used(IDEAS[0]))
    edited = text.replace("| Keep notes. | CORE-01 |", "| Keep all notes. | CORE-07, context |")
    stored = parse_idea(edited)
    assert stored is not None

    assert stored.statements[0] == Statement(
        id="S1", text="Keep all notes.", line=3, used_by=("CORE-07", "context")
    )


@pytest.mark.parametrize("text", ["", "# Ideas\n\n- one\n", '<idea-12345678 name="x">\nnever closed', "\x00"])
def test_a_file_of_another_form_is_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / ".planning").mkdir()
    (tmp_path / ".planning" / "IDEA.md").write_text(text, encoding="utf-8")

    assert parse_idea(text) is None
    assert read_planning(tmp_path).statements == ()


def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / ".planning"
    folder.mkdir()
    assert read_idea(tmp_path) is None
    (folder / "IDEA.md").write_bytes(b"\xff\xfe")
    assert read_idea(tmp_path) is None
    (folder / "IDEA.md").write_bytes(b"x" * (MAX_BYTES + 1))
    assert read_idea(tmp_path) is None
    (folder / "IDEA.md").unlink()
    (folder / "IDEA.md").mkdir()
    assert read_idea(tmp_path) is None


def test_requirements_know_the_statements_that_they_come_from(tmp_path: Path) -> None:
    folder = tmp_path / ".planning"
    folder.mkdir()
    (folder / "IDEA.md").write_text(render_idea("idea.md", IDEAS[0], used(IDEAS[0])), encoding="utf-8")
    (folder / "REQUIREMENTS.md").write_text(
        "## v1 Requirements\n\n- [ ] **CORE-01**: a\n- [ ] **CORE-02**: b\n- [ ] **CORE-03**: c\n",
        encoding="utf-8",
    )
    planning = read_planning(tmp_path)

    assert [one.text for one in planning.statements] == ["Keep notes.", "Newest first."]
    assert [one.statements for one in planning.requirements] == [("S1",), ("S2",), ()]


def test_statements_are_given_to_all_requirements_that_came_from_them() -> None:
    statements = [
        Statement(id="S1", text="x", used_by=("A-01", "B-01")),
        Statement(id="S2", text="y", used_by=("A-01",)),
    ]
    requirements = [Requirement(id="A-01", text="a"), Requirement(id="B-01", text="b")]

    assert [one.statements for one in with_statements(requirements, statements)] == [("S1", "S2"), ("S1",)]
