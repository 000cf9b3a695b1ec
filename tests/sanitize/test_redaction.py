"""Redaction: every shape, alone and in its quoted forms, and no ordinary text."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from gsd_core.sanitize import (
    REDACTED,
    clip,
    known,
    one_line,
    redact,
    redact_data,
    register_secrets,
    safe_file,
    safe_text,
    sanitize,
)
from tests.sanitize.corpus import ORDINARY, shapes

SHAPES = shapes()
VALUE = 'Xk3/+q9Zp~7 wL0vT"b'


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Let a test set variables, and forget what is known afterwards."""
    monkeypatch.setattr(known, "_registered", set[str]())
    register_secrets([])
    yield monkeypatch
    register_secrets([])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_is_redacted(name: str, seed: int) -> None:
    text, secret = shapes(seed)[name]

    for strict in (False, True):
        around = redact(f"see ({text}\n)", strict=strict)
        assert secret not in around
        assert redact(around, strict=strict) == around


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_is_redacted_in_json_and_with_escape_sequences(name: str) -> None:
    text, secret = SHAPES[name]
    split = text.replace(secret, f"{secret[:5]}\x1b[31m\u200b{secret[5:9]}\u202e{secret[9:]}")

    assert secret not in redact(json.dumps({"output": f"\n{text}"}))
    assert secret not in safe_text(split)
    assert secret[9:] not in safe_text(repr(ValueError(split)))
    assert secret not in str(redact_data({"a": [{"b": text}]}))


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_not_changed(text: str) -> None:
    assert redact(text) == text
    assert redact(text, strict=True) == text


@pytest.mark.parametrize("name", ["anthropic", "github classic", "private key", "jwt", "age"])
def test_a_secret_that_was_cut_off_is_redacted(name: str) -> None:
    text, secret = SHAPES[name]
    where = text.index(secret) + len(secret) * 2 // 3

    for cut in (text[:where], f"{text[:where]}…", clip(text, where)):
        assert secret[:8] not in redact(cut)


def test_a_line_is_redacted_before_it_is_cut() -> None:
    text, secret = SHAPES["github fine-grained"]

    assert secret[:4] not in one_line(f"token {text}", 30)


@pytest.mark.parametrize("name", [*SHAPES])
def test_a_secret_over_several_lines_is_redacted_before_they_are_joined(name: str) -> None:
    text, secret = SHAPES[name]

    joined = safe_text(f"first\n{text}\nlast", multiline=False)

    assert " ".join(secret.split()) not in joined
    assert "\n" not in joined


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        quote(VALUE, safe=""),
        json.dumps(VALUE),
        json.dumps(json.dumps(VALUE)),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        VALUE.encode().hex(":"),
        "\n".join(textwrap.wrap(base64.b64encode(f"{VALUE * 4}".encode()).decode(), 24)),
        *(base64.b64encode(f"{before}{VALUE}:after".encode()).decode() for before in ("", "a", "ab", "abc")),
        base64.urlsafe_b64encode(VALUE.encode()).decode(),
        base64.b32encode(VALUE.encode()).decode(),
        base64.b32encode(f"login:{VALUE}\n".encode()).decode().lower(),
        base64.b64encode(base64.b64encode(VALUE.encode())).decode(),
    ],
)
def test_a_secret_of_the_environment_is_redacted_in_every_form(
    form: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("MY_DEPLOY_TOKEN", VALUE)

    redacted = redact(f"it is {form} here")

    assert REDACTED in redacted
    assert form[4:-4] not in redacted


def test_a_token_of_a_service_is_redacted_in_base32() -> None:
    text, _ = SHAPES["github classic"]

    for before in ("", "a:", "see "):
        assert REDACTED in redact(f"it is {base64.b32encode(f'{before}{text}'.encode()).decode()} here")


def test_a_short_secret_of_the_environment_is_redacted_in_base64(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("MY_PASSWORD", "qW3rT-9z")

    for text in ("qW3rT-9z", "qW3rT-9z\n"):
        assert REDACTED in redact(f"it is {base64.b64encode(text.encode()).decode()} here")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKEN", "true"),
        ("API_KEY", "development"),
        ("SECRET", "12345"),
        ("AUTH_TOKEN", "/run/secrets/token"),
        ("DB_PASSWORD", "postgres"),
        ("SECRET_NAME", "https://vault.invalid/v1"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1"),
        ("XDG_SESSION_ID", "c2-ordinary-1"),
    ],
)
def test_an_ordinary_value_of_a_secret_name_is_not_redacted_everywhere(
    name: str, value: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(name, value)
    text = f"development is {value} here"

    assert redact(text) == text


def test_a_password_in_a_url_of_the_environment_is_redacted_alone(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("CACHE", "redis://app:qW3rTy-uiop9@cache.invalid:1")

    assert redact("got qW3rTy-uiop9 instead") == f"got {REDACTED} instead"


def test_the_parts_of_a_notification_url_are_redacted(environment: pytest.MonkeyPatch) -> None:
    register_secrets(["slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general"])

    assert "TIiajkdnlazkcOXrIdevi7FQ" not in redact("cannot send to TIiajkdnlazkcOXrIdevi7FQ")


def test_a_name_in_data_makes_its_value_a_secret() -> None:
    found = redact_data({"password": "hunter22", "name": "hunter22", "n": 1, "tokens": 3})

    assert found == {"password": REDACTED, "name": "hunter22", "n": 1, "tokens": 3}


def test_text_that_is_read_back_keeps_values_for_tests() -> None:
    check = "API_TOKEN=test-token JWT_SECRET=secret DATABASE_URL=postgres://user:pass@localhost/x pytest -q"

    assert redact(check, strict=True) == check
    assert redact(check) != check


def test_a_planning_file_keeps_the_lines_that_people_wrote() -> None:
    token, secret = SHAPES["github classic"]
    before = f"# Plan\r\nmine: {token}\u200b\r\n"

    after = safe_file(f"{before}new: {token}\x1b[1m!\r\n", before)

    assert after == f"{before}new: {REDACTED}!\r\n"
    assert secret in before


HOSTILE = (
    "-",
    "=",
    "//",
    "--a-",
    "token=",
    'token="',
    "password: ",
    "sk-",
    "eyJ",
    "://a:",
    "aws_key_",
    "A1b2",
)
HOSTILE_MORE = ("-----BEGIN PRIVATE KEY-----\n", "1234567890:", "\\", "auth=", "\u0301", "\x1b]", "cookie:a=")


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE + HOSTILE_MORE)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        began = time.process_time()
        redact(sanitize(text))
        return time.process_time() - began

    seconds(1000)
    # Quadratic time would need a hundred times as long for ten times the text. Other work counts too.
    assert any(seconds(1_000_000) < 30 * max(seconds(100_000), 0.03) for _ in range(3))


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_password_is_found_in_a_representation_that_escapes_its_quotes(quote: str) -> None:
    secret = "i7Pw" + "Sti4T7aj"
    text = f"""it's "said": DB_PASSWORD={quote}{secret}{quote} and more"""
    escaped = [text.replace(quote, "\\" * count + quote) for count in (1, 2, 3)]

    assert [secret in redact(one) for one in (text, repr(text), repr(repr(text)), *escaped)] == [False] * 6


def test_no_secret_is_verified_over_the_network() -> None:
    code = (
        "import sys\n"
        "def refuse(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto'): raise SystemExit(event)\n"
        "sys.addaudithook(refuse)\n"
        "from gsd_core.sanitize import redact, find_secrets\n"
        "text = sys.stdin.read()\n"
        "redact(text); list(find_secrets(text))\n"
    )
    text = "\n".join(text for text, _ in SHAPES.values())
    done = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
