"""Exact facts: what a requirement may not drop or change, however it is worded."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path

import pytest

from gsd_core.planning.exact import contradictions, exact_facts, missing_facts, patterns_in_code

PAIRS = tomllib.loads(Path(__file__).with_name("data").joinpath("exact_facts.toml").read_text("utf-8"))


def lost(statement: str, text: str) -> list[str]:
    return [fact.text for fact in missing_facts(exact_facts(statement), text)]


@pytest.mark.parametrize("pair", [*PAIRS["changed"], *PAIRS["honest"]], ids=lambda pair: pair["requirement"])
def test_a_changed_fact_is_found_and_an_honest_paraphrase_passes(pair: dict[str, str | list[str]]) -> None:
    assert lost(str(pair["statement"]), str(pair["requirement"])) == pair.get("lost", [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("twenty", "20"),
        ("twenty-five", "25"),
        ("two hundred", "200"),
        ("a thousand", "1,000"),
        ("one minute", "60 seconds"),
        ("24 hours", "1 day"),
        ("two weeks", "14 days"),
        ("20MB", "20 megabytes"),
        ("5 %", "5 percent"),
        ("2–3 weeks", "between 14 days and 21 days"),
        ("at most 20", "≤ 20"),
        ("at most 20", "20 or fewer"),
        ("at most 20", "a limit of 20"),
        ("at least 3", "3+"),
        ("at least 3", "no less than three"),
        ("newest first", "descending"),
        ("newest last", "in chronological order"),
        ("sorted alphabetically", "in alphabetical order"),
        ("`get()`", "get(id)"),
        ('"Not found."', "'not found'"),
        ("`a=1`", "a = 1"),
        ("says so in README.md", "`README.md` has it"),
    ],
)
def test_the_same_fact_is_recognized_in_another_form(one: str, other: str) -> None:
    assert exact_facts(one)
    assert lost(one, other) == []


@pytest.mark.parametrize(
    "text",
    [
        "One command marks a habit, and another one shows it.",
        "It copies DIR to DIR.bak and says so in NAME.json",
        "Marking it twice on one day counts as one mark.",
        "A third and a 2nd page, in UTF-8, on S3, and so on.",
        "Colors such as `red`, `green` or 7 others.",
        'Each row is a line like "A .##."',
        "For example, 10 or 20 rows.",
        "```\nport = 8080\n```",
        "The roommates' list isn't the guests' list.",
        "Never guess; say why and/or ask.",
    ],
)
def test_what_is_no_exact_fact_is_ignored(text: str) -> None:
    assert exact_facts(text) == ()


@pytest.mark.parametrize(
    ("statement", "option", "contradicted"),
    [
        ("Newest first, at most twenty.", "Oldest first", ["newest first"]),
        ("Newest first, at most twenty.", "At most 50 on a page", ["at most twenty"]),
        ("Newest first, at most twenty.", "The 20 newest, in descending order", []),
        ("Overdue after 30 days.", "Overdue after 60 days", ["30 days"]),
        ("Overdue after 30 days.", "Overdue loans are red, for 5 seconds", ["30 days"]),
        ("Overdue after 30 days.", "Three colors", []),
        ("It answers 404.", "It answers 410", []),
    ],
)
def test_another_order_or_number_of_the_same_kind_contradicts_a_fact(
    statement: str, option: str, contradicted: list[str]
) -> None:
    assert [one.text for one in contradictions(exact_facts(statement), option)] == contradicted


@pytest.mark.parametrize(
    "piece", ["1-", "`", '"', "/a", "a.b/", "limit a ", "newest a ", "such as ", "one to ", " "]
)
def test_facts_are_found_in_linear_time(piece: str) -> None:
    began = time.process_time()
    missing_facts(exact_facts(piece * 20_000), piece * 20_000)

    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('is refused with "unknown name: NAME"', "throw new Error(`Unknown name: ${name}`)"),
        ('prints "the queue is full"', '"the queue"\n    " is full"'),
        ('has a button "Add"', "<button>add</button>"),
        ("`New(capacity)` makes a queue", "func New(capacity int)"),
        ("takes `--dry-run`", 'add_argument("--dry-run")'),
        ("ends with exit code 2", "sys.exit(2)"),
        ("at most 20 posts", "if (posts.length >= 21)"),
        ("more than 30 is refused", "x >= 31"),
        ("waits 90 seconds", "timeout = 1.5 * MINUTE"),
        ("waits 90 seconds", "setTimeout(end, 90_000)"),
        ("up to 5 MB", "limit = 5 * 1024 * 1024"),
        ("up to 1 GB", ""),
        ("at most 10,000 rows", "ROWS = 1e4"),
        ("a card number of 16 digits", ""),
        ("a discount of 5 %", "price * .05"),
        ("costs 35 percent more", "cents * 135 / 100"),
        ("costs ten percent less", "price * 0.9"),
        ("a rate of 1.00052", "RATE = 1.00052"),
    ],
)
def test_what_code_has_to_contain_is_found_however_it_is_written(text: str, code: str) -> None:
    patterns = [found.replace("[:alnum:]", "a-zA-Z0-9") for found in patterns_in_code(text).values()]

    assert len(patterns) == bool(code)
    assert all(re.search(pattern, code, re.IGNORECASE) for pattern in patterns)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('is refused with "unknown name: NAME"', 'throw new Error("missing value")'),
        ("ends with exit code 2", "os.Exit(1) // in 12 ways, 1.2"),
        ("more than 30 is refused", "x > 60"),
        ("`ErrFull` is returned", "return nil"),
        ('shows "free all day"', "return []"),
    ],
)
def test_what_code_has_to_contain_is_missed(text: str, code: str) -> None:
    [pattern] = patterns_in_code(text).values()

    assert not re.search(pattern.replace("[:alnum:]", "a-zA-Z0-9"), code, re.IGNORECASE)


@pytest.mark.parametrize(
    "text",
    [
        "`sh backup.sh DIR` copies DIR to DIR.bak",
        'The greeting is "Hej, NAME"',
        'lists the bookings as lines like "09:05-10:00"',
        "The table has two columns and one row",
        "Values are escaped: `<`, `>` and `&`",
        'Titles such as "Hello, World!" get an address',
        "Opens at 09:30 on 2026-01-31, as in data/items.txt",
    ],
)
def test_what_may_be_spelled_in_many_ways_need_not_be_in_the_code(text: str) -> None:
    assert patterns_in_code(text) == {}
