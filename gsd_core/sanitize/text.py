"""Remove from text what controls a terminal or what a reader cannot see, and shorten it."""

from __future__ import annotations

import re

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
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # zero width, bidi, line separators, invisible operators
    "\u3164\ufeff\uffa0\ufff9-\uffff"  # fillers, byte order mark, annotations, noncharacters
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # musical controls, tags and variation supplements
    "\ud800-\udfff"  # lone surrogates: no terminal and no UTF-8 file takes them
    "]"
)

_JOINERS = re.compile("[\u200c\u200d\ufe00-\ufe0f]+")
"""Joiners and variation selectors: needed one at a time, while a series of them can carry hidden text."""

# Scripts whose spelling needs joiners: Arabic (Persian, Urdu), Indic scripts, Khmer, Mongolian, Syriac …
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18aa\ufb50-\ufdff]")
_EMOJI = re.compile("[\u2190-\u2bff\U0001f000-\U0001faff]")

MAX_MARKS = 5
"""How many combining marks may follow one another: more cover the lines above and below."""
_MARKS = re.compile(
    "([\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
    f"{{{MAX_MARKS}}})"
    "[\u0300-\u034e\u0350-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)


def sanitize(text: str, *, multiline: bool = True) -> str:
    """Return *text* without anything that controls a terminal or that a reader cannot see.

    Removes escape sequences (colors, clipboard, links, titles), control characters, bidirectional and
    zero-width characters, Unicode tags, lone surrogates, and floods of combining marks. Zero-width joiners
    stay where spelling needs them: within an emoji, and between letters of Arabic and Indic scripts. If
    *multiline*, tabs and newlines stay; otherwise they become spaces. A carriage return becomes a newline,
    so that no line can overwrite another one.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _JOINERS.sub(_needed_joiners, _INVISIBLE.sub("", _SEQUENCE.sub("", text)))
    text = _MARKS.sub(r"\1", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if multiline else re.sub(r"[\t\n]+", " ", text)


def _needed_joiners(found: re.Match[str]) -> str:
    joiners, text = found[0], found.string
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    if len(joiners) == 1 and joiners >= "\ufe00":
        return joiners  # one selector chooses between two forms of a character, such as an emoji
    if joiners in ("\u200d", "\ufe0f\u200d") and _EMOJI.match(before) and _EMOJI.match(after):
        return joiners
    if len(joiners) == 1 and _JOINING.match(before) and _JOINING.match(after):
        return joiners
    return ""


def clip(text: str, characters: int) -> str:
    """Return at most *characters* of *text*; if it is cut, the result says how much is missing."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… [{len(text) - characters} more characters]"
