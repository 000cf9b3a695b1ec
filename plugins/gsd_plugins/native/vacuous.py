"""Checks that prove nothing: commands that end with 0 whatever the project is like."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Part: TypeAlias = tuple[str, tuple[str, ...]]
"""One simple command, after the operator before it (empty for the first)."""

OPERATORS = ";&|()\n"
SAY_YES = ("true", ":", "echo", "printf", "sleep")
PASS_ON = ("cat", "tee", "head", "tail")


def always_passes(command: str) -> bool:
    """Whether *command* obviously cannot fail: ``true``, ``echo ok``, ``pytest || true``.

    What is not understood at a glance (a subshell, ``set -e``) may fail.
    """
    try:
        parts = tuple(_parts(command))
    except ValueError:
        return False
    if any("(" in operator or ")" in operator or words[:1] == ("set",) for operator, words in parts):
        return False
    return bool(parts) and _passes(parts)


def _parts(command: str) -> Iterator[Part]:
    operator, words = "", list[str]()
    for token in _tokens(command):
        if token.strip(OPERATORS):
            words.append(token)
            continue
        if words:
            yield operator, tuple(words)
            operator, words = "", []
        operator += token.strip("\n") or ";"
    if words or "(" in operator or ")" in operator:
        yield operator, tuple(words)


def _tokens(command: str) -> Iterator[str]:
    lexer = shlex.shlex(command.strip(), posix=False, punctuation_chars=OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    return iter(lexer)


def _passes(parts: Sequence[Part]) -> bool:
    """The last command decides; after ``&&``, those before it as well."""
    if not parts:
        return True
    operator, words = parts[-1]
    if not _says_yes(operator, words):
        return False
    return operator != "&&" or _passes(parts[:-1])


def _says_yes(operator: str, words: Sequence[str]) -> bool:
    passed_on = operator in ("|", "|&") and words[0] in PASS_ON
    return passed_on or words[0] in SAY_YES or tuple(words[:2]) == ("exit", "0")
