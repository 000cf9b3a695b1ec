"""Exact facts: what a requirement may not drop or change, however it is worded."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from gsd_core.planning.exact import contradictions, exact_facts, missing_facts

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
    ],
)
def test_the_same_fact_is_recognized_in_another_form(one: str, other: str) -> None:
    assert exact_facts(one)
    assert lost(one, other) == []


@pytest.mark.parametrize(
    "text",
    [
        "One command marks a habit, and another one shows it.",
        "Marking it twice on one day counts as one mark.",
        "A third and a 2nd page, in UTF-8, on S3, and so on.",
        "Colors such as `red`, `green` or 7 others.",
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
