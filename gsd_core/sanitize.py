"""Make untrusted text safe to show and to store: remove control characters, redact secrets, shorten it.

All text from an agent, a file or a person passes through here before it reaches a terminal, a commit
message or the journal.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_SEQUENCE = re.compile(
    r"""
    (?:\x1b\]|\x9d) [^\x07\x1b\x9c\r\n]* (?:\x07|\x1b\\|\x9c)?      # OSC: titles, links (8), clipboard (52)
    | (?:\x1b[PX^_]|[\x90\x98\x9e\x9f]) [^\x1b\x9c\r\n]* (?:\x1b\\|\x9c)?   # DCS, SOS, PM, APC
    | (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]?                          # CSI: colors, cursor, clear
    | \x1b [ -/]* [0-~]?                                            # everything else that ESC begins
    """,
    re.VERBOSE,
)

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab and line ends, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Mongolian separators
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, bidi, line separators, invisible operators
    "\u3164\ufeff\uffa0\ufff9-\uffff"  # fillers, byte order mark, annotations, noncharacters
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # musical controls, tags and variation supplements
    "\ud800-\udfff"  # lone surrogates: no terminal and no UTF-8 file takes them
    "]"
)


_SELECTORS = re.compile("[\ufe00-\ufe0f]{2,}")
"""One variation selector makes an emoji; a series of them can carry hidden text."""


def sanitize(text: str, *, multiline: bool = True) -> str:
    """Return *text* without anything that controls a terminal or that a reader cannot see.

    Removes escape sequences (colors, clipboard, links, titles), control characters, bidirectional and
    zero-width characters, Unicode tags and lone surrogates. If *multiline*, tabs and newlines stay;
    otherwise they become spaces. A carriage return becomes a newline, so that no line can overwrite
    another one.
    """
    text = _SELECTORS.sub("", _INVISIBLE.sub("", _SEQUENCE.sub("", text)))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if multiline else re.sub(r"[\t\n]+", " ", text)


def one_line(text: str, width: int) -> str:
    """Return *text* sanitized, on one line with single spaces, and cut to *width* characters."""
    line = " ".join(sanitize(text).split())
    if len(line) <= width:
        return line
    return line[: width - 1] + "…" if width > 0 else ""


def clip(text: str, characters: int) -> str:
    """Return at most *characters* of *text*; if it is cut, the result says how much is missing."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… [{len(text) - characters} more characters]"


_NAME = (
    r"[A-Za-z0-9_.-]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|[_-]KEY|PRIVATE_?KEY)"
)

_SHAPES = re.compile(
    r"""
    -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z0-9\ ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}                     # Anthropic, OpenAI and others
    | \b[sr]k_(?:live|test)_[A-Za-z0-9]{10,}                # Stripe
    | \b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bAIza[A-Za-z0-9_-]{35}    # AWS, Google
    | \bxox[a-z]-[A-Za-z0-9-]{10,}                          # Slack
    | \b(?:npm_|pypi-|hf_)[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*  # JWT
    """,
    re.VERBOSE,
)
_AUTHORIZATION = re.compile(r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{12,}", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,200}):[^\s/@]{1,500}@", re.IGNORECASE)
# Variables (`$X`), booleans and short numbers are not secrets: `API_KEY=$OTHER`, `primary_key=True`.
_ASSIGNMENT = re.compile(
    rf"""
    (?<![A-Za-z0-9_.-])({_NAME}["']?\s{{0,4}}[:=]\s{{0,4}})
    (?: "[^"\n]*" | '[^'\n]*'
      | (?!\[redacted\]|\$|(?:true|false|none|null|\d{{1,6}})\b)[^\s"',;&]+ )
    """,
    re.IGNORECASE | re.VERBOSE,
)

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (_SHAPES, REDACTED),
    (_AUTHORIZATION, rf"\1\2{REDACTED}"),
    (_URL_PASSWORD, rf"\1:{REDACTED}@"),
    (_ASSIGNMENT, rf"\1{REDACTED}"),
)


def redact(text: str) -> str:
    """Return *text* with everything that looks like a secret replaced by ``[redacted]``.

    That is: API keys of common services, JWTs, bearer tokens, private keys, passwords in URLs, and the
    values of names such as ``*_TOKEN``, ``*_KEY``, ``*_SECRET`` and ``PASSWORD``. Sanitize the text
    first: an invisible character inside a secret would hide it.
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
