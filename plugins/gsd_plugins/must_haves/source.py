"""A source file as the detectors see it: its functions, exports and references, in any language.

The readers of the languages (``python``, ``javascript``, ``go``) fill these values from syntax
trees; everything that judges them is independent of the language.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

import attrs

Language: TypeAlias = Literal["python", "javascript", "go"]
BodyKind: TypeAlias = Literal["code", "empty", "constant", "identity", "print", "unfinished"]
"""``constant``: returns a literal; ``identity``: returns a parameter unchanged; ``print``: only prints;
``unfinished``: fails with "not implemented"."""

MAX_PARSED = 400_000
"""Characters; a longer file is generated or data, and takes seconds to parse."""
MAX_LINE = 5_000
"""Characters; a longer line is minified code."""

LANGUAGES: dict[str, Language] = {
    ".py": "python",
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), "javascript"),
    ".go": "go",
}
_GENERATED = re.compile(
    r"^\W*(?:code generated\b|.{0,60}@generated\b|.{0,80}\bdo not (?:edit|modify)\b"
    r"|.{0,20}auto-?generated\b|(?:this )?file (?:is |was )?generated\b)",
    re.IGNORECASE | re.MULTILINE,
)
_GENERATED_PATHS = re.compile(
    r"(?:^|/)(?:node_modules|vendor|third_party|dist|build|target|migrations|__generated__|generated)/"
    r"|\.min\.|_pb2(?:_grpc)?\.py$|\.pb\.go$|\.(?:gen|generated)\.\w+$|\.d\.[cm]?ts$|\.pyi$"
)


IN_TESTS = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|e2e|cypress)/|(?:^|/)(?:test_|conftest\.)[^/]*$|[._-](?:test|spec|cy)\.\w+$"
)
"""Tests and their helpers: fakes in them are empty on purpose."""
IN_DATA_FOLDER = re.compile(r"(?:^|/)(?:testdata|__fixtures__|fixtures|__snapshots__|snapshots)/")
"""Files there are input of tests: whether they are complete or connected is not for code to say."""


@attrs.frozen(kw_only=True)
class Function:
    """A named function or method; *name* is qualified (``Cart.total``).

    *parameters* are those that carry a value: without the receiver, and without names such as ``request``.
    *comment* is text in the body, *doc* the text before or at its top. *declared*: it is meant to have no
    body (abstract, overload, protocol). *inherits*: a base class or interface may prescribe it.
    *callback*: it is the default value of a parameter. *peers*: other methods of its type have real code.
    *nested*: it is inside of another function or an object, where being empty is normal; only a remark shows
    that it is unfinished.
    """

    name: str
    line: int = 0
    span: tuple[int, int] = (0, 0)
    """Where its body is, in bytes, without braces."""
    body: BodyKind = "code"
    value: str = ""
    parameters: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    length: int = 0
    """The number of its lines."""
    unused: tuple[str, ...] = ()
    """Those of *parameters* that occur nowhere in the body."""
    returns: bool = False
    """Whether it is declared to return a value."""
    comment: str = ""
    doc: str = ""
    declared: bool = False
    inherits: bool = False
    method: bool = False
    callback: bool = False
    component: bool = False
    peers: bool = False
    nested: bool = False


@attrs.frozen(kw_only=True)
class Reference:
    """Another module that the source imports: as it is written, and the names that are taken from it."""

    module: str
    names: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Source:
    """What the syntax tree of one file contains.

    *exports* are the names that other modules can use (``Cart``, ``Cart.total``), *defined* all names;
    *star* are modules whose exports it passes on. *open*: it may export names that the tree does not show.
    *strings* are literals in places where they can refer to a file. *code* is the text without comments,
    *bare* also without the content of strings; both keep the lines, and the template of a component.
    """

    language: Language
    code: str
    bare: str
    functions: tuple[Function, ...] = ()
    exports: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    overrides: frozenset[str] = frozenset()
    """Methods with code by the name of their class's base: ``Plugin.read`` for ``class Csv(Plugin)``."""
    star: tuple[str, ...] = ()
    open: bool = False
    listed: frozenset[str] | None = None
    """The names in ``__all__``; ``None`` without one."""
    references: tuple[Reference, ...] = ()
    strings: tuple[str, ...] = ()
    identifiers: frozenset[str] = frozenset()
    empty: bool = False
    """Whether there is nothing but comments, imports and the like."""
    faulty: bool = False
    """Whether parts could not be parsed."""

    @property
    def code_lines(self) -> int:
        """The number of lines with code."""
        return sum(1 for line in self.code.splitlines() if line.strip())


def overrides(functions: Iterable[Function], bases: Mapping[str, Collection[str]]) -> frozenset[str]:
    """Return the methods with code by the names of their class's *bases*."""
    return frozenset(
        f"{base}.{short}"
        for owner, _, short in (f.name.rpartition(".") for f in functions if f.body != "unfinished")
        for base in bases.get(owner, ())
    )


def is_generated(path: str, text: str) -> bool:
    """Whether a tool wrote the file, or it only declares: nothing in it is a person's unfinished work."""
    return bool(_GENERATED_PATHS.search(path) or _GENERATED.search(text[:600]))


def read_source(path: str, text: str) -> Source | None:
    """Parse a file; ``None`` if its language is unknown, or it is too long, minified or invalid."""
    pure = PurePosixPath(path)
    language = LANGUAGES.get(pure.suffix)
    markup = ""
    if pure.suffix in (".vue", ".svelte"):
        text, markup, language = _script(text), _markup(text), "javascript"
    if language is None or len(text) > MAX_PARSED or any(len(line) > MAX_LINE for line in text.splitlines()):
        return None
    # Imported when the first file of its language is read.
    reader = import_module(f".{language}", __package__)
    try:
        source: Source | None = reader.read(text, typed=pure.suffix in (".ts", ".mts", ".cts"))
        if source is None or not markup:
            return source
        return attrs.evolve(source, code=_merged(source.code, markup), bare=_merged(source.bare, markup))
    except RecursionError:  # deeply nested data
        return None


def _script(text: str) -> str:
    """Return the scripts of a single-file component, everything else blank, with the same lines."""
    kept = [match.span(1) for match in re.finditer(r"<script\b[^>]*>(.*?)</script>", text, re.DOTALL)]
    bounds = [0, *(bound for span in kept for bound in span), len(text)]
    return blank(text, zip(bounds[::2], bounds[1::2], strict=True))


def _markup(text: str) -> str:
    """Return the template and the styles of a single-file component, without comments and scripts."""
    spans = [
        match.span(1) if match[1] is not None else match.span()
        for match in re.finditer(r"<script\b[^>]*>(.*?)</script>|<!--.*?-->", text, re.DOTALL)
    ]
    return blank(text, spans)


def _merged(script: str, markup: str) -> str:
    return "".join(a if b == " " else b for a, b in zip(script, markup, strict=True))


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return *text* with the characters in *spans* replaced by spaces; line breaks stay."""
    result: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start < at:
            continue
        result += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
        at = end
    return "".join([*result, text[at:]])


# Words


def word_set(text: str) -> frozenset[str]:
    """Return the words of *text*: how the tables of names are written here."""
    return frozenset(text.split())


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
NEUTRAL = word_set(
    "request req res response reply ctx context args kwargs w r next props event e evt self cls this "
    "_ apps error err exc exception schema_editor options argv"
)
"""Parameters that a framework passes, which a complete function may ignore."""
UNFINISHED = re.compile(
    r"\bnot[\s_-]*(?:yet[\s_-]*)?implemented\b|\bunimplemented\b|\b(?:\w+?_?)?Not_?Implemented(?:Error|Exception)?\b"
    r"|^\W*(?:todo|tbd|fixme)\b|\bimplement\s+me\b|\bto\s+be\s+implemented\b|\bcoming\s+soon\b"
    r"|\bnot\s+(?:yet\s+)?(?:supported|available|wired(?:\s+up)?|hooked\s+up|connected)\s+yet\b"
    r"|(?-i:\bTODO\b)(?=[\"'`)\]}.;\s]*$)"
    r"|\bnot\s+yet\s+(?:supported|available|wired|hooked)\b",
    re.IGNORECASE,
)
UNFINISHED_STATUS = re.compile(
    r"\b501\b|\b(?:HTTP_501_)?NOT_IMPLEMENTED\b|\bStatusNotImplemented\b|\bUNIMPLEMENTED\b|\bcodes\.Unimplemented\b"
    r"|\bNotImplementedException\b"
)
"""How protocols say it: HTTP's status 501, and the code of gRPC."""
BY_SUBCLASS = re.compile(
    r"\bsub-?class|\boverrid|\babstract\b|\bderived\b|\bimplementers?\b|\bchild class"
    r"|\bmust (?:be )?implement"
    r"|\bnot support\w*\b|\bunsupported\b|\bnot available\b|\bcannot\b|\bcan't\b|\bonly\b"
    r"|\b(?:on|under) (?:windows|linux|mac\s?os|darwin|unix|wasm|android|ios)\b"
    r"|\bimplemented in (?:the |a )?(?:browser|node|python|pypy|cpython|wasm)"
    r"|\bimplemented (?:on|for) (?:this (?:platform|system|os|target|architecture)|windows|linux"
    r"|mac\s?os|darwin|unix|\w*bsd|wasm\w*|android|ios)\b",
    re.IGNORECASE,
)


def words_of(name: str) -> list[str]:
    """Return the words of an identifier in lower case: ``NullStore.load_all`` → null, store, load, all."""
    return [word.lower() for word in _WORDS.findall(name)]
