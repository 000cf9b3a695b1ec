"""Numbers with their nouns, for messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 commit`` or ``2 commits``; *plural* is for nouns that do not just get an ``s``."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
