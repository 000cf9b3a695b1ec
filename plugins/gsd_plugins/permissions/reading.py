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
_TILDE, _SPLIT, _BODY = "\x10", "\x11", "\x12"
_MARKERS = re.compile(r"[\x00-\x06\x0e-\x12]")
# Characters that the shell interprets where they are not quoted, and what stands for them until a word is
# complete.
_LIVE = str.maketrans("*?{,}[]", STAR + STAR + "\x06\x0e\x0f\x04\x05")
_LITERAL = str.maketrans("\x06\x0e\x0f\x04\x05", "{,}[]")
_CHOICES = re.compile("\x06[^\x06\x0f]*\x0e[^\x06\x0f]*\x0f|\x04[^\x05/]+\x05")
_HERE_DOCUMENT = re.compile(
    r"(?<!<)<<-?[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)(?P<rest>(?![\w'\"])[^\n]*\n)"
    r"(?P<body>.*?)^\t*(?P=end)$\n?",
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
    """Return the syntax tree of shell text, and the here-documents, which are ``< BODY`` in it.

    Raises:
        TooComplex: it is too long or too complex.
    """
    if _MARKERS.search(text):
        raise TooComplex("the command contains control characters")
    documents: list[str] = []

    def take(found: re.Match[str]) -> str:
        documents.append(("'" if found["quote"] else "") + found["body"].removesuffix("\n"))
        return f"< {_BODY}{len(documents) - 1} {found['rest']}"

    # Files are written with long here-documents, which the parser is too slow for.
    root = _tree(_HERE_DOCUMENT.sub(take, text) if text.count("<<") <= MAX_DOCUMENTS else text)
    if sum(_BODY in text_of(node) for node in descendants(root, "file_redirect")) == len(documents):
        return root, documents
    # If `<<` was in quotes or a comment, what was taken out is not the body of a here-document.
    return _tree(text), []


def _tree(text: str) -> Node:
    structure = len(re.findall(r"[|&;<>(){}$`\[]", text))
    if len(text) > MAX_LENGTH or text.count("|") > MAX_PIPES or structure > MAX_STRUCTURE:
        raise TooComplex("the command is too long or too complex to be checked")
    return _parser().parse(text.encode("utf-8", "replace")).root_node


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
    words = [_finished(part) for part in text.split(_SPLIT) if part]
    if len(words) > MAX_WORDS:
        raise TooComplex("the command has too many words")
    return words


def expand_text(node: Node, shell: Shell) -> str:
    """Return what a node expands to where the shell splits no words: a value or a here-document."""
    return _finished(_render(node, shell, quoted=False).replace(_SPLIT, " "))


def document_of(word: str, shell: Shell) -> str | None:
    """Return the text of the here-document that a word stands for, if it does."""
    if not (match := re.fullmatch(rf"{_BODY}(\d+)", word)):
        return None
    text = shell.documents[int(match[1])]
    if text[:1] == "'" or not re.search(r"[$`\\]", text):
        return text.removeprefix("'")
    body = next(descendants(_tree(f"cat <<{_BODY}\n{text}\n{_BODY}\n"), "heredoc_body"), None)
    return _render_parts(body, shell, quoted=True) if body else UNKNOWN


def _finished(word: str) -> str:
    while (chosen := _CHOICES.sub(STAR, word)) != word:
        word = chosen
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
            _render_parts(node, shell, quoted=True)  # follows the commands in it
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
            _render_parts(node, shell, quoted=True)
            return STAR
        case _:
            return _render_parts(node, shell, quoted=quoted)
    return value if quoted and "@" not in text else re.sub(r"\s+", _SPLIT, value)


def _render_parts(node: Node, shell: Shell, *, quoted: bool) -> str:
    """Render the children of a node and the text between them, which has no nodes."""
    source, at = node.text or b"", 0
    parts: list[str] = []
    for child in [*node.children, None]:
        end = child.start_byte - node.start_byte if child else len(source)
        text = source[at:end].decode("utf-8", "replace")
        if quoted:
            parts.append(re.sub(r"\\([$`\"\\])|\\\n", lambda match: match[1] or "", text))
        elif text:
            pieces = re.split(r"\\(\n|.)", text, flags=re.DOTALL)
            pieces[::2] = [piece.translate(_LIVE) for piece in pieces[::2]]
            pieces[0] = re.sub("^~", _TILDE, pieces[0])
            parts.append(
                "".join(piece if n % 2 == 0 else piece.strip("\n") for n, piece in enumerate(pieces))
            )
        if child:
            if not (quoted and child.type in ('"', '$"')):
                parts.append(_render(child, shell, quoted=quoted))
            at = max(at, child.end_byte - node.start_byte)
    if sum(map(len, parts)) > MAX_EXPANDED:
        raise TooComplex("a part of the command expands to too much text")
    return "".join(parts)
