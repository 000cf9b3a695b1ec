"""Sanitizing, redacting and clipping untrusted text."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsd_core.sanitize import REDACTED, clip, one_line, redact, sanitize

ANY = st.text(st.characters(exclude_categories=()))
"""Any text, including lone surrogates, controls and noncharacters."""

PIECES = st.sampled_from(
    [
        "\x1b",
        "\x1b]",
        "\x1b[",
        "\x9b",
        "\x9d",
        "\x07",
        "\x1b\\",
        "52;c;aGk=",
        "8;;http://x",
        "2J",
        "\r",
        "\n",
        "a",
        "‮",
    ]
)
HOSTILE = st.lists(PIECES).map("".join)


@given(ANY | HOSTILE)
def test_no_control_character_is_left(text: str) -> None:
    left = {char for char in sanitize(text) if unicodedata.category(char) in ("Cc", "Cf", "Cs")}

    assert left <= {"\n", "\t"} | VISIBLE_FORMATS


VISIBLE_FORMATS = {
    char for char in map(chr, range(0x110000)) if unicodedata.category(char) == "Cf" and sanitize(char) != ""
}


def test_the_remaining_format_characters_are_visible() -> None:
    """Prefixes of Arabic, Syriac and Kaithi numbers and Egyptian joiners have a glyph."""
    names = {re.split(r" ", unicodedata.name(char))[0] for char in VISIBLE_FORMATS}

    assert names <= {"ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN", "SHORTHAND"}


@given(ANY | HOSTILE)
def test_a_single_line_has_no_line_end_and_no_tab(text: str) -> None:
    assert not set(sanitize(text, multiline=False)) & {"\n", "\t", "\r", "\u2028", "\x85"}


@given(ANY | HOSTILE, st.booleans())
def test_sanitizing_again_changes_nothing(text: str, multiline: bool) -> None:
    once = sanitize(text, multiline=multiline)

    assert sanitize(once, multiline=multiline) == once


@given(ANY)
def test_sanitized_text_can_be_written_to_a_file(text: str) -> None:
    assert sanitize(text).encode("utf-8").decode("utf-8") == sanitize(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;Y3VybCBldmls\x07clipboard", "clipboard"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        ("rm a\u202etxt.sh", "rm atxt.sh"),
        ("pass\u200bword", "password"),
        ("tag\U000e0041\U000e0042ged", "tagged"),
        ("safe\rrm -rf", "safe\nrm -rf"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("lone\ud800", "lone"),
        ("⚠️ ünï 日本 é", "⚠️ ünï 日本 é"),
        ("hidden\ufe00\ufe01\ufe02", "hidden"),
    ],
)
def test_terminal_sequences_and_invisible_characters_are_removed(text: str, expected: str) -> None:
    assert sanitize(text) == expected


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrSt",
        "sk-proj-AbCdEfGhIjKlMnOpQrSt",
        "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
        "github_pat_11ABCDEFG0AbCdEfGhIjKl_MnOp",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\ncut off here",
    ],
)
def test_secrets_of_known_formats_are_redacted_within_text(secret: str) -> None:
    redacted = redact(f"before ({secret}")

    assert redacted == f"before ({REDACTED}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("curl -H 'Authorization: Bearer abcdef0123456789'", "curl -H 'Authorization: Bearer [redacted]'"),
        ("https://me:pa55@host/x", "https://me:[redacted]@host/x"),
        ("GITHUB_TOKEN=abc make", "GITHUB_TOKEN=[redacted] make"),
        ("export DB_PASSWORD='a b c'", "export DB_PASSWORD='[redacted]'"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": "[redacted]", "n": 1}'),
        ("?access_token=abc&x=1", "?access_token=[redacted]&x=1"),
    ],
)
def test_values_of_secret_names_are_redacted_but_not_the_names(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=500",
        "the key: it is simple",
        "primary_key=True",
        'curl -H "X-Key: $API_KEY"',
        "API_KEY=$OTHER",
        "sk-1",
        "http://localhost:8080/a@b",
        "monkey=3",
    ],
)
def test_ordinary_text_is_not_redacted(text: str) -> None:
    assert redact(text) == text


@given(ANY)
def test_redacting_again_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@given(st.text(), st.integers(0, 50))
def test_a_clipped_text_keeps_its_beginning_and_states_the_omission(text: str, characters: int) -> None:
    clipped = clip(text, characters)

    assert clipped == text if len(text) <= characters else clipped.startswith(text[:characters] + "… [")


@given(ANY, st.integers(0, 50))
def test_one_line_has_no_line_break_and_fits_the_width(text: str, width: int) -> None:
    line = one_line(text, width)

    assert len(line) <= width
    assert len(line.splitlines()) <= 1
