"""Reads shell text with tree-sitter-bash: the commands in it and their words, as far as they are literal.

Nothing is computed but what a careless agent writes: variables with literal values, here-documents, and what
``echo`` prints. A part of a word that is known only at run time is a marker, a control character that no
command may contain.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

    from .shell import Shell

UNKNOWN, STAR = "\x00", "\x03"
"""Any text, and any part of one name: a number, a pattern of file names, ``{a,b}``."""
_LEFT, _COMMA, _RIGHT, _TILDE, _SPLIT, _BODY = "\x06", "\x0e", "\x0f", "\x10", "\x11", "\x12"
_FROM, _TO = "\x04", "\x05"
_MARKERS = re.compile(r"[\x00-\x06\x0e-\x12]")
_LIVE = str.maketrans("*?{,}[]", STAR + STAR + _LEFT + _COMMA + _RIGHT + _FROM + _TO)
_LITERAL = str.maketrans(_LEFT + _COMMA + _RIGHT + _FROM + _TO, "{,}[]")
_BRACES = re.compile(f"{_LEFT}[^{_LEFT}{_RIGHT}]*{_COMMA}[^{_LEFT}{_RIGHT}]*{_RIGHT}")
_HERE_DOCUMENT = re.compile(
    r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)(?P<rest>(?![\w'\"])[^\n]*)\n"
    r"(?P<body>.*?)(?P<last>^\t*(?P=end)$)",
    re.DOTALL | re.MULTILINE,
)
_ESCAPES = re.compile(r"\\(?:[xuU]([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_PARAMETER = re.compile(r"\$\{(\w+|[@*])(?:\[[@*]\])?(?:(:?[-=]|%%?)([^$`]*))?\}", re.DOTALL)

# The parser's time and memory grow with the square of some of these counts (measured: 100 kB of `a|` need
# more than 10 GB, 8 kB of them 0.9 s).
MAX_LENGTH, MAX_STRUCTURE, MAX_PIPES, MAX_DOCUMENTS = 20_000, 1500, 300, 20
MAX_EXPANDED, MAX_WORDS = 100_000, 1000


class TooComplex(Exception):
    """A command that is too long or too complex to be checked."""


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(text: str) -> tuple[Node, list[str]]:
    """Return the syntax tree of shell text, and the bodies of here-documents that were taken out of it.

    Raises:
        TooComplex: it is too long or too complex.
    """
    if _MARKERS.search(text):
        raise TooComplex("the command contains control characters")
    bodies: list[str] = []

    def take(found: re.Match[str]) -> str:
        if not found["quote"] and re.search(r"[$`\\]", found["body"]):
            return found[0]
        bodies.append(found["body"].removesuffix("\n"))
        return f"{found[0][: found.start('body') - found.start()]}{_BODY}{len(bodies) - 1}\n{found['last']}"

    # Files are written with long here-documents, which the parser is too slow for.
    short = _HERE_DOCUMENT.sub(take, text) if 0 < text.count("<<") <= MAX_DOCUMENTS else text
    for source in (short, text):
        structure = len(re.findall(r"[|&;<>(){}$`\[]", source))
        if len(source) > MAX_LENGTH or source.count("|") > MAX_PIPES or structure > MAX_STRUCTURE:
            break
        root = _parser().parse(source.encode("utf-8", "replace")).root_node
        # If `<<` was in quotes or a comment, what was taken out is not the body of a here-document.
        if source is text or sum(_BODY in text_of(n) for n in descendants(root, "heredoc_body")) == len(
            bodies
        ):
            return root, bodies
    raise TooComplex("the command is too long or too complex to be checked")


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def descendants(node: Node, kind: str) -> Iterator[Node]:
    """Yield the outermost nodes of a kind below a node."""
    for child in node.named_children:
        if child.type == kind:
            yield child
        elif child.child_count:
            yield from descendants(child, kind)


def known(word: str) -> bool:
    """Whether all of a word is known; a pattern of file names counts as known."""
    return UNKNOWN not in word


def shown(word: str) -> str:
    """Return a word for a message."""
    return word.replace(UNKNOWN, "$…").replace(STAR, "*")


def unescaped(text: str) -> str:
    r"""Return text with ``\n``, ``\x41``, ``\101`` and the like replaced, as ``printf`` and ``$'…'`` do."""

    def character(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 16) & 0xFFFF if found[1] else int(found[2], 8) & 0xFF)
        return {"n": "\n", "t": "\t", "r": "\r"}.get(found[3], found[3])

    return _ESCAPES.sub(character, text)


def expand(node: Node, shell: Shell) -> list[str]:
    """Return the words that a node expands to."""
    text = _render(node, shell, quoted=False)
    if not text and node.type in ("string", "raw_string", "concatenation", "ansi_c_string"):
        return [""]
    words = [part for part in text.split(_SPLIT) if part]
    if len(words) > MAX_WORDS:
        raise TooComplex("the command has too many words")
    return [_finished(word) for word in words]


def expand_text(node: Node, shell: Shell) -> str:
    """Return what a node expands to where the shell splits no words: a value or a here-document."""
    return _finished(_render(node, shell, quoted=False).replace(_SPLIT, " "))


def body_of(node: Node, shell: Shell) -> str:
    """Return the text of a here-document."""
    for body in descendants(node, "heredoc_body"):
        if match := re.match(rf"[ \t\n]*{_BODY}(\d+)", text_of(body)):
            return shell.bodies[int(match[1])]
        quoted = any(re.match(r"['\"\\]", text_of(start)) for start in descendants(node, "heredoc_start"))
        return text_of(body) if quoted else _render_parts(body, shell, quoted=True)
    return ""


def _finished(word: str) -> str:
    word = re.sub(f"{_FROM}[^{_TO}/]+{_TO}", STAR, word)
    while (braces := _BRACES.sub(STAR, word)) != word:
        word = braces
    return word.replace(_TILDE, os.path.expanduser("~")).translate(_LITERAL)  # noqa: PTH111 - text


def _render(node: Node, shell: Shell, *, quoted: bool) -> str:
    text, value = text_of(node), ""
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return unescaped(text[2:-1])
        case "string" | "translated_string":
            return _render_parts(node, shell, quoted=True)
        case "simple_expansion":
            value = shell.variable(text[1:])
        case "expansion":
            for inner in descendants(node, "command_substitution"):
                shell.substitute(inner)
            match = _PARAMETER.fullmatch(text)
            value = shell.variable(match[1]) if match else STAR if text.startswith("${#") else UNKNOWN
            if match and match[2] in ("%", "%%"):
                value = value.removesuffix(match[3]) if known(value) and "*" not in match[3] else UNKNOWN
            elif match and match[2] and not known(value):
                value = match[3].strip("'\"")
        case "command_substitution":
            value = shell.substitute(node).rstrip("\n")
        case "process_substitution":
            shell.substitute(node)
            return f"/dev/fd/{UNKNOWN}"
        case "array":
            return " ".join(word for child in node.named_children for word in expand(child, shell))
        case "arithmetic_expansion" | "brace_expression":
            for inner in descendants(node, "command_substitution"):
                shell.substitute(inner)
            return STAR
        case _ if node.child_count:
            return _render_parts(node, shell, quoted=quoted)
        case _:
            return _literal(text, quoted=quoted)
    return value if quoted and "@" not in text else re.sub(r"\s+", _SPLIT, value)


def _render_parts(node: Node, shell: Shell, *, quoted: bool) -> str:
    """Render the children of a node and the text between them, which has no nodes."""
    source, at = node.text or b"", 0
    parts: list[str] = []
    for child in node.children:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        parts.append(_literal(source[at:start].decode("utf-8", "replace"), quoted=quoted))
        if not (quoted and child.type in ('"', '$"')):
            parts.append(_render(child, shell, quoted=quoted))
        at = max(at, end)
    parts.append(_literal(source[at:].decode("utf-8", "replace"), quoted=quoted))
    if sum(map(len, parts)) > MAX_EXPANDED:
        raise TooComplex("a part of the command expands to too much text")
    return "".join(parts)


def _literal(text: str, *, quoted: bool) -> str:
    """Return literal text, with markers for the characters that the shell would interpret in it."""
    if quoted:
        return re.sub(r"\\([$`\"\\])|\\\n", lambda match: match[1] or "", text)
    parts = re.split(r"\\(\n|.)", text, flags=re.DOTALL)
    live = [part.translate(_LIVE) if not n % 2 else part.strip("\n") for n, part in enumerate(parts)]
    if live[0].startswith("~"):
        live[0] = _TILDE + live[0][1:]
    return "".join(live)
