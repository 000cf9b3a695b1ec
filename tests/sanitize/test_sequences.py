"""Escape sequences and invisible characters: removed, except where a script or an emoji needs them."""

from __future__ import annotations

import unicodedata

import pytest

from gsd_core.sanitize import safe_file, sanitize
from tests.sanitize.sequences import KEPT, SEQUENCES


def test_there_are_enough_of_them() -> None:
    assert len(SEQUENCES) >= 60


@pytest.mark.parametrize("name", sorted(SEQUENCES))
def test_nothing_of_a_sequence_reaches_a_terminal_or_a_planning_file(name: str) -> None:
    text = f"before {SEQUENCES[name]} after\n"

    for safe in (sanitize(text), safe_file(text), sanitize(text, multiline=False)):
        assert "before" in safe
        assert not [c for c in safe if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"]
        assert not {"\u2028", "\u2029", "\u3164", "\u115f", "\uffa0", "\ufe01", "\uffff"} & set(safe)
        assert sum(unicodedata.combining(c) > 0 or unicodedata.category(c) == "Me" for c in safe) <= 5


@pytest.mark.parametrize("text", KEPT)
def test_text_keeps_what_its_script_needs(text: str) -> None:
    assert sanitize(text) == text
    assert safe_file(f"{text}\n") == f"{text}\n"


@pytest.mark.parametrize("text", KEPT)
def test_joiners_that_a_script_needs_do_not_carry_more(text: str) -> None:
    flooded = text.replace("\u200d", "\u200d\u200d\u200c\u200d").replace("\u200c", "\u200c" * 3)

    assert "\u200d\u200c" not in sanitize(flooded)
    assert "\u200c\u200c" not in sanitize(flooded)
