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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

    from .shell import Shell

UNKNOWN = "\x00"
CONTENT = "\x01"
"""The unknown content of a file or of the environment: it may be secret."""
DOWNLOAD = "\x02"
"""Unknown text from another machine."""
STAR, QUERY, BRACKET = "\x03", "\x04", "\x05"
"""Interpreted ``*``, ``?`` and ``[``. A star also stands for any single file name or number."""
_LEFT, _COMMA, _RIGHT, _TILDE, _SPLIT = "\x06", "\x0e", "\x0f", "\x10", "\x11"
_BODY = "\x12"
_MARKERS = re.compile(r"[\x00-\x06\x0e-\x12]")
_LIVE = str.maketrans("*?[{,}", STAR + QUERY + BRACKET + _LEFT + _COMMA + _RIGHT)
_LITERAL = str.maketrans(_LEFT + _COMMA + _RIGHT + _TILDE, "{,}~")
LITERAL = str.maketrans(STAR + QUERY + BRACKET, "*?[")
"""Turns a pattern into text for a shell, which interprets it again."""
_SHOWN = str.maketrans({UNKNOWN: "$…", CONTENT: "$…", DOWNLOAD: "$…", STAR: "*", QUERY: "?", BRACKET: "["})
PATTERN = str.maketrans({STAR: "*", QUERY: "?", BRACKET: "[", UNKNOWN: "*", CONTENT: "*", DOWNLOAD: "*"})
"""Turns a word into a pattern for ``fnmatch``; an unknown part may be anything."""
_HERE_DOCUMENT = re.compile(
    r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)(?P<rest>(?![\w'\"])[^\n]*)\n"
    r"(?P<body>.*?)(?P<last>^\t*(?P=end)$)",
    re.DOTALL | re.MULTILINE,
)
_ESCAPES = re.compile(r"\\(?:[xuU]([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)

# The parser's time and memory grow with the square of some of these counts (measured: 100 kB of `a|` need
# more than 10 GB, 8 kB of them 0.9 s).
MAX_LENGTH = 20_000
MAX_STRUCTURE = 1500
MAX_PIPES = 300
MAX_DOCUMENTS = 20
MAX_EXPANDED = 100_000
MAX_WORDS = 1000


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
        found = [node for node in descendants(root, "heredoc_body") if _BODY in text_of(node)]
        if len(found) == len(bodies) or source is text:
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


def unescaped(text: str) -> str:
    r"""Return text with ``\n``, ``\x41``, ``\101`` and the like replaced, as ``printf`` and ``$'…'`` do."""

    def character(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 16) if found[1] else int(found[2], 8) & 0xFF)
        return {"n": "\n", "t": "\t", "r": "\r"}.get(found[3], found[3])

    return _ESCAPES.sub(character, text)


def expand(node: Node, shell: Shell) -> list[str]:
    """Return the words that a node expands to."""
    text = _render(node, shell, quoted=False)
    if not text and node.type in ("string", "raw_string", "concatenation", "ansi_c_string"):
        return [""]
    words = [word for part in text.split(_SPLIT) if part for word in _braces(part, 0)]
    if len(words) > MAX_WORDS:
        raise TooComplex("the command has too many words")
    return [_finished(word) for word in words]


def expand_text(node: Node, shell: Shell) -> str:
    """Return what a node expands to where the shell splits no words: a value or a here-document."""
    return _finished(_render(node, shell, quoted=False).replace(_SPLIT, " "))


def body_of(node: Node, bodies: list[str], shell: Shell) -> str:
    """Return the text of a here-document."""
    for body in descendants(node, "heredoc_body"):
        if match := re.match(rf"[ \t\n]*{_BODY}(\d+)", text_of(body)):
            return bodies[int(match[1])]
        quoted = any(re.match(r"['\"\\]", text_of(start)) for start in descendants(node, "heredoc_start"))
        return text_of(body) if quoted else _render_parts(body, shell, quoted=True)
    return ""


def _finished(word: str) -> str:
    if word.startswith(_TILDE):
        word = os.path.expanduser("~" + word[1:])  # noqa: PTH111 - text, not a path yet
    return word.translate(_LITERAL)


def _render(node: Node, shell: Shell, *, quoted: bool) -> str:
    text = text_of(node)
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return unescaped(text[2:-1])
        case "string" | "translated_string":
            return _render_parts(node, shell, quoted=True)
        case "simple_expansion":
            return _value(shell.variable(text[1:]), quoted=quoted and text != "$@")
        case "expansion":
            return _value(_parameter(node, shell), quoted=quoted and not re.search(r"[\[@]", text))
        case "command_substitution":
            return _value(shell.substitute(node).rstrip("\n"), quoted=quoted)
        case "process_substitution":
            return f"/dev/fd/{shell.substitute(node)}"
        case "arithmetic_expansion" | "brace_expression":
            for inner in descendants(node, "command_substitution"):
                shell.substitute(inner)
            return STAR
        case _ if node.child_count:
            return _render_parts(node, shell, quoted=quoted)
        case _:
            return _literal(text, quoted=quoted)


def _render_parts(node: Node, shell: Shell, *, quoted: bool) -> str:
    """Render the children of a node and the text between them, which has no nodes."""
    source = node.text or b""
    parts: list[str] = []
    at = 0
    for child in node.children:
        start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
        parts.append(_literal(source[at:start].decode("utf-8", "replace"), quoted=quoted))
        if not (quoted and child.type in ('"', '$"')):
            parts.append(_render(child, shell, quoted=quoted))
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


def _parameter(node: Node, shell: Shell) -> str:
    """Return the value of ``${…}``: a default, a prefix or suffix taken away, otherwise unknown."""
    match = re.match(
        r"\$\{(#?)(\w+|[@*?$!#-])(?:\[[^\]]*\])?(##|%%|:?[-=+]|.?)(.*)\}$", text_of(node), re.DOTALL
    )
    for child in descendants(node, "command_substitution"):
        shell.substitute(child)
    if not match:
        return UNKNOWN
    length, name, operator, argument = match.groups()
    value = shell.variable(name)
    others = [child for child in node.named_children[1:] if child.type != "variable_name"]
    if "$" in argument or "`" in argument:
        argument = _render_parts(others[0], shell, quoted=True) if len(others) == 1 else UNKNOWN
    argument = argument.strip("'\"")
    match operator.lstrip(":"):
        case "" if not operator:
            return STAR if length else value
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
