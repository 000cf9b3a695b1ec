"""Parses shell text with tree-sitter-bash, and expands its words as far as possible without running it.

An expanded word is a string. A part that is not literal is a marker, a control character that no
command may contain: a part that is known only at run time, or a character that the shell interprets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN = "\x00"
CONTENT = "\x01"
"""The unknown content of a file or of the environment: it may be secret."""
DOWNLOAD = "\x02"
"""Unknown text from another machine."""
STAR, QUERY, BRACKET = "\x03", "\x04", "\x05"
"""Interpreted ``*``, ``?`` and ``[``. A star also stands for any single file name or number."""
_LEFT, _COMMA, _RIGHT, _TILDE, _SPLIT = "\x06", "\x0e", "\x0f", "\x10", "\x11"
_BODY = "\x12"
_ESCAPE = r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)"
MARKERS = re.compile(r"[\x00-\x06\x0e-\x12]")
_LIVE = str.maketrans("*?[{,}", STAR + QUERY + BRACKET + _LEFT + _COMMA + _RIGHT)
_LITERAL = str.maketrans(_LEFT + _COMMA + _RIGHT + _TILDE, "{,}~")
LITERAL = str.maketrans(STAR + QUERY + BRACKET, "*?[")
"""Turns a pattern into text for a shell, which interprets it again."""
_SHOWN = str.maketrans({UNKNOWN: "$…", CONTENT: "$…", DOWNLOAD: "$…", STAR: "*", QUERY: "?", BRACKET: "["})
PATTERN = str.maketrans({STAR: "*", QUERY: "?", BRACKET: "[", UNKNOWN: "*", CONTENT: "*", DOWNLOAD: "*"})
"""Turns a word into a pattern for ``fnmatch``; an unknown part may be anything."""

# The parser's time and memory grow with the square of some of these counts (measured: 100 kB of `a|` need
# more than 10 GB, 8 kB of them 0.9 s).
MAX_LENGTH = 20_000
MAX_STRUCTURE = 1500
MAX_PIPES = 300
MAX_EXPANDED = 100_000
MAX_WORDS = 1000


class TooComplex(Exception):
    """A command that is too long or too complex to be checked."""


class Scope(Protocol):
    """What the expansion of words needs from a shell."""

    def variable(self, name: str) -> str: ...  # its value
    def substitute(self, node: Node) -> str: ...  # the output of ``$(…)`` or ``<(…)``


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
    if MARKERS.search(text):
        raise TooComplex("the command contains control characters")
    bodies: list[str] = []
    short = _without_bodies(text, bodies)
    structure = len(re.findall(r"[|&;<>(){}$`\[]", short))
    if len(short) > MAX_LENGTH or short.count("|") > MAX_PIPES or structure > MAX_STRUCTURE:
        raise TooComplex("the command is too long or too complex to be checked")
    return _parser().parse(short.encode("utf-8", "replace")).root_node, bodies


def _without_bodies(text: str, bodies: list[str]) -> str:
    """Replace the bodies of literal here-documents by numbers.

    Only as long as each line before them is complete in itself: otherwise the operator may be in quotes.
    """
    if "<<" not in text:
        return text
    lines = text.split("\n")
    done: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        done.append(line)
        operators = re.findall(r"(?<!<)<<(-?)[ \t]*(['\"]?)([A-Za-z_]\w*)\2(?![\w'\"])", line)
        plain = re.sub(r"'[^']*'|\"[^\"\\`$]*\"", "", re.sub(r"<<-?[ \t]*(['\"]?)\w+\1", "", line))
        if re.search(r"['\"\\`#]|<<|\$\(\(", plain):
            return "\n".join(done + lines[place:])
        for dash, quote, end in operators:
            body: list[str] = []
            while place < len(lines) and (lines[place].lstrip("\t") if dash else lines[place]) != end:
                body.append(lines[place])
                place += 1
            joined = "\n".join(body)
            if not quote and re.search(r"[$`\\]", joined):
                done += body
            else:
                bodies.append(joined)
                done.append(f"{_BODY}{len(bodies) - 1}")
            done += lines[place : place + 1]
            place += 1
    return "\n".join(done)


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def known(word: str) -> bool:
    """Whether all of a word is known; a pattern of file names counts as known."""
    return not any(marker in word for marker in (UNKNOWN, CONTENT, DOWNLOAD))


def is_pattern(word: str) -> bool:
    """Whether a word is a pattern of file names."""
    return any(marker in word for marker in (STAR, QUERY, BRACKET))


def known_prefix(word: str) -> str:
    """Return the text up to the first part that is unknown, or a pattern."""
    return re.split(r"[\x00-\x05]", word, maxsplit=1)[0]


def live(pattern: str) -> str:
    """Return a word in which the special characters of a pattern are interpreted."""
    return pattern.replace("*", STAR).replace("?", QUERY).replace("[", BRACKET)


def shown(word: str) -> str:
    """Return a word for a message."""
    return word.translate(_SHOWN)


def expand(node: Node, scope: Scope) -> list[str]:
    """Return the words that a node expands to."""
    text = _render(node, scope, quoted=False)
    if not text and node.type in ("string", "raw_string", "concatenation", "ansi_c_string"):
        return [""]
    words = [word for part in text.split(_SPLIT) if part for word in _braces(part, 0)]
    if len(words) > MAX_WORDS:
        raise TooComplex("the command has too many words")
    return [_finished(word) for word in words]


def expand_text(node: Node, scope: Scope) -> str:
    """Return what a node expands to where the shell splits no words: a value or a here-document."""
    return _finished(_render(node, scope, quoted=False).replace(_SPLIT, " "))


def _finished(word: str) -> str:
    if word.startswith(_TILDE):
        word = os.path.expanduser("~" + word[1:])  # noqa: PTH111 - text, not a path yet
    return word.translate(_LITERAL)


def _render(node: Node, scope: Scope, *, quoted: bool) -> str:
    match node.type:
        case "raw_string":
            return text_of(node)[1:-1]
        case "ansi_c_string":
            return re.sub(_ESCAPE, _unescaped, text_of(node)[2:-1], flags=re.DOTALL)
        case "string" | "translated_string":
            return _render_parts(node, scope, quoted=True)
        case "simple_expansion":
            return _value(scope.variable(text_of(node)[1:]), quoted=quoted and text_of(node) != "$@")
        case "expansion":
            return _value(_parameter(node, scope), quoted=quoted and not re.search(r"[\[@]", text_of(node)))
        case "command_substitution":
            return _value(scope.substitute(node).rstrip("\n"), quoted=quoted)
        case "process_substitution":
            return f"/dev/fd/{scope.substitute(node)}"
        case "arithmetic_expansion":
            for inner in descendants(node, "command_substitution"):
                scope.substitute(inner)
            return STAR
        case "brace_expression":
            return STAR
        case _ if node.child_count:
            return _render_parts(node, scope, quoted=quoted)
        case _:
            return _literal(text_of(node), quoted=quoted)


def _render_parts(node: Node, scope: Scope, *, quoted: bool) -> str:
    """Render the children of a node and the text between them, which has no nodes."""
    source = node.text or b""
    parts: list[str] = []
    at = 0
    for child in node.children:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        parts.append(_literal(source[at:start].decode("utf-8", "replace"), quoted=quoted))
        if not (quoted and child.type in ('"', '$"')):
            parts.append(_render(child, scope, quoted=quoted))
        at = max(at, end)
    parts.append(_literal(source[at:].decode("utf-8", "replace"), quoted=quoted))
    text = "".join(parts)
    if len(text) > MAX_EXPANDED:
        raise TooComplex("a part of the command expands to too much text")
    return text


def _literal(text: str, *, quoted: bool) -> str:
    """Return literal text, with markers for the characters that the shell would interpret in it."""
    if quoted:
        return re.sub(r"\\([$`\"\\])|\\\n", lambda match: match[1] or "", text)
    parts = re.split(r"\\(\n|.)", text, flags=re.DOTALL)
    live = [part.translate(_LIVE) if not n % 2 else part.strip("\n") for n, part in enumerate(parts)]
    if live[0].startswith("~"):
        live[0] = _TILDE + live[0][1:]
    return "".join(live)


def _value(value: str, *, quoted: bool) -> str:
    return value if quoted else re.sub(r"\s+", _SPLIT, value)


def _parameter(node: Node, scope: Scope) -> str:
    """Return the value of ``${…}``: a default, a prefix or suffix taken away, otherwise unknown."""
    match = re.match(r"\$\{([!#]?)(\w+|[@*?$!#-])(?:\[[^\]]*\])?(.*)\}$", text_of(node), re.DOTALL)
    for child in descendants(node, "command_substitution"):
        scope.substitute(child)
    if not match or match[1] == "!":
        return UNKNOWN
    value, rest = scope.variable(match[2]), match[3]
    if not rest or match[1] == "#":
        return STAR if match[1] else value
    others = [child for child in node.named_children[1:] if child.type != "variable_name"]
    operator = rest[: 1 + (rest[:2] in ("##", "%%", ":-", ":=", ":+"))]
    if "$" in rest or "`" in rest:
        argument = _render_parts(others[0], scope, quoted=True) if len(others) == 1 else UNKNOWN
    else:
        argument = rest[len(operator) :].strip("'\"")
    match operator.lstrip(":"):
        case "-" | "=":
            return value if known(value) and value else argument
        case "+":
            return argument
        case "#" | "##" | "%" | "%%" if known(value + argument):
            ends = range(len(value) + 1)
            cuts = [(value[:n], value[n:]) if operator[0] == "#" else (value[n:], value[:n]) for n in ends]
            kept = [kept for cut, kept in cuts if fnmatchcase(cut, argument)]
            return (min if len(operator) == 2 else max)(kept, key=len, default=value)
        case _:
            return UNKNOWN


def descendants(node: Node, kind: str) -> Iterator[Node]:
    """Yield the outermost nodes of a kind below a node."""
    for child in node.named_children:
        if child.type == kind:
            yield child
        elif child.child_count:
            yield from descendants(child, kind)


def _braces(text: str, depth: int) -> Iterator[str]:
    """Expand the last ``{a,b}`` that contains no other, then those in the results."""
    if depth > 6:
        raise TooComplex("the command has too many braces")
    inner = f"{_LEFT}([^{_LEFT}{_RIGHT}]*){_RIGHT}"
    match = next((found for found in re.finditer(inner, text) if _COMMA in found[1]), None)
    if match is None:
        yield text
        return
    for part in match[1].split(_COMMA):
        yield from _braces(text[: match.start()] + part + text[match.end() :], depth + 1)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return (
        chr(int(code, 8) & 0xFF)
        if code[0] in "01234567"
        else {"n": "\n", "t": "\t", "r": "\r"}.get(code, code)
    )


def body_of(node: Node, bodies: list[str], scope: Scope) -> str:
    """Return the text of a here-document."""
    body = next((child for child in node.named_children if child.type == "heredoc_body"), None)
    if body is None:
        return ""
    text = text_of(body)
    if match := re.match(rf"[ \t\n]*{_BODY}(\d+)", text):
        return bodies[int(match[1])]
    start = next((text_of(child) for child in node.children if child.type == "heredoc_start"), "")
    if start.startswith(("'", '"', "\\")):
        return text
    return _render_parts(body, scope, quoted=True)
