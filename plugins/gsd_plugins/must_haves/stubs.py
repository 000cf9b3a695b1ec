"""Is a file a stub, with something in place of the real code?

Only files that a plan names as artifacts are judged, and only for what they contain *instead* of
real code: a remark "TODO: implement caching" in a long file that works does not make it a stub.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

MAX_CODE_LINES_PER_MARKER = 10
MAX_CODE_LINES_OF_EMPTY_COMPONENT = 15
MAX_STUB_LENGTH = 20_000

_MARKERS = re.compile(
    r"""
    (?:\#|//|/\*|<!--|--|^\s*\*|%|;;)[^\n]*?(?:
        \b(?:TODO|FIXME|XXX)\b[\s:(-]*(?:\w+\)?[\s:]+)?(?:implement|write|add|fill|finish|complete)\b
      | \bplaceholder\b(?!\s*[=:{.(])
      | \bnot\s+(?:yet\s+)?implemented\b
      | \bimplementation\s+goes\s+here\b | \bcoming\s+soon\b | \bstub\s+(?:for|implementation)\b )
  | ^\s*(?:TODO|TBD)\b[^\n]*$
  | \b(?:todo|unimplemented)!\s*\(
  | \b(?:throw\s+(?:new\s+)?\w*(?:Error|Exception)|panic|die|fail|raise|error|errors\.New)
    \b[^\n]*not\s+(?:yet\s+)?implemented
  | \bTODO\(\s*(?:"[^"\n]*")?\s*\)
  | >\s*(?:placeholder|coming\s+soon|todo|lorem\s+ipsum)\b[^<\n]*<
  | ["'`](?:placeholder|coming\s+soon|not\s+implemented|todo)[.!…]*["'`]\s*[;,)}\]]*\s*$
  | ^\s*(?:placeholder|coming\s+soon|not\s+(?:yet\s+)?implemented)[.!…:]*\s*$
  | \blorem\s+ipsum\b
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_COMMENTS = re.compile(r"/\*.*?\*/|<!--.*?-->|^\s*(?:\#|//|--|;;)[^\n]*$", re.DOTALL | re.MULTILINE)
_RETURNED = re.compile(r"(?:\breturn\b|=>)[ \t]*(\(?[^;{}\n]*)")
_NOTHING = re.compile(r"\(?\s*(?:null|undefined|<>\s*</>|<(\w+)[^<>]*(?:/>|>[\w ]{0,40}</\1>))\s*\)?\s*")
_TRIVIAL_LINE = re.compile(
    r"[\s{}()\[\];,]*|\s*(?:import|from|use|using|package|require|export \*)\b.*|\s*</?\w+>\s*"
)
_COMPONENTS = (".jsx", ".tsx", ".js", ".ts", ".mjs")


def find_stub(path: Path, text: str, exports: Sequence[str] = ()) -> str:
    """Return the reason why the file is a stub; empty if it is not."""
    if path.suffix == ".py":
        return _find_python_stub(path.name, text, exports)
    if not text.strip():
        return "it is empty"
    if len(text) > MAX_STUB_LENGTH:
        return ""
    code_lines = _count_lines(_COMMENTS.sub("", text), _TRIVIAL_LINE)
    markers = [match[0].strip() for match in _MARKERS.finditer(text)]
    if markers and code_lines - len(markers) <= MAX_CODE_LINES_PER_MARKER * len(markers):
        marker = markers[0] if len(markers[0]) <= 80 else f"{markers[0][:77]}…"
        return f"it is a stub: {marker!r}"
    if path.suffix in _COMPONENTS and code_lines <= MAX_CODE_LINES_OF_EMPTY_COMPONENT:
        # Join ``return (`` with the lines up to its ``)``, so that each return is one line.
        joined = re.sub(r"\(\s*\n\s*|\n\s*\)", lambda match: match[0].strip(), _COMMENTS.sub("", text))
        returned = [match[1] for match in _RETURNED.finditer(joined) if match[1].strip()]
        if returned and all(_NOTHING.fullmatch(value) for value in returned):
            return "it is a stub: it returns only an empty element"
    return ""


def _count_lines(text: str, trivial: re.Pattern[str]) -> int:
    return sum(1 for line in text.splitlines() if not trivial.fullmatch(line))


def parse_python(text: str) -> ast.Module | None:
    """Return the syntax tree; ``None`` if the text is invalid, too deep, or newer than our Python."""
    with warnings.catch_warnings():
        # A doubtful escape in a project's file is not our warning to show.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


# Python, by its syntax tree: functions that do nothing. Code that is empty by design is not a stub:
# abstract methods, protocols, overloads, exceptions, hooks of a base class that are overridden to
# do nothing, decorated functions (a click group).

MODULES_WITHOUT_CODE = ("__init__.py", "conftest.py", "__main__.py")
MAX_CODE_LINES_OF_PYTHON_STUB = 10

PartKind: TypeAlias = Literal["code", "empty", "raises"]

_BASE_NAMES = re.compile(
    r"(?:Abstract|Base|Null|No|Dummy|Fake)(?=[A-Z]|$)|(?:Base|Interface|Protocol|Mixin|ABC)$"
)
_PYTHON_MARKERS = re.compile(r"#.*\b(?:TODO|FIXME)\b.*\b(?:implement|write|fill)|lorem ipsum", re.IGNORECASE)
_TRIVIAL_PYTHON_LINE = re.compile(
    r"\s*(?:#.*|import\b.*|from\b.*|\"\"\".*\"\"\"|pass|return None|return|\.\.\.)?\s*"
)


@attrs.frozen(kw_only=True)
class Part:
    """A function, method or class that could be a stub."""

    name: str
    kind: PartKind


def _find_python_stub(name: str, text: str, exports: Sequence[str]) -> str:
    module = parse_python(text)
    if module is None:
        return ""
    if all(_does_nothing(statement) for statement in _without_docstring(module.body)):
        return "" if name in MODULES_WITHOUT_CODE else "it is a stub: it contains no code"
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    bases = {base.id for node in classes for base in node.bases if isinstance(base, ast.Name)}
    parts = list(_parts(module.body, bases))
    raising = [part.name for part in parts if part.kind == "raises"]
    empty = [part.name for part in parts if part.kind == "empty"]
    exported = [part for part in empty if part in exports or part.split(".")[-1] in exports]
    if raising:
        return f"it is a stub: not implemented: {_listed(raising)}"
    if exported or (empty and len(empty) * 2 > len(parts)):
        return f"it is a stub: empty body: {_listed(exported or empty)}"
    short = _count_lines(text, _TRIVIAL_PYTHON_LINE) <= MAX_CODE_LINES_OF_PYTHON_STUB
    if short and (marker := _PYTHON_MARKERS.search(text)):
        return f"it is a stub: {marker[0].strip()[:80]!r}"
    return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _parts(body: Sequence[ast.stmt], bases: set[str]) -> Iterator[Part]:
    """Yield the functions and methods of a module; *bases* are the classes that it subclasses."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if not statement.decorator_list:
                yield Part(name=statement.name, kind=_kind(statement))
        elif isinstance(statement, ast.ClassDef):
            yield from _class_parts(statement, bases)


def _class_parts(statement: ast.ClassDef, bases: set[str]) -> Iterator[Part]:
    if statement.bases and all(_does_nothing(inner) for inner in statement.body):
        return
    if all(_does_nothing(inner) for inner in _without_docstring(statement.body)):
        yield Part(name=statement.name, kind="empty")
        return
    base_names = {ast.unparse(base).split("[")[0].rpartition(".")[2] for base in statement.bases}
    metaclasses = {ast.unparse(keyword.value).rpartition(".")[2] for keyword in statement.keywords}
    abstract = bool(base_names & {"ABC", "Protocol"}) or "ABCMeta" in metaclasses
    to_subclass = abstract or statement.name in bases or _BASE_NAMES.search(statement.name) is not None
    for inner in statement.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.decorator_list:
            kind = _kind(inner)
            is_special = inner.name.startswith("__") and inner.name.endswith("__")
            by_design = to_subclass or (kind == "empty" and (statement.bases or is_special))
            yield Part(name=f"{statement.name}.{inner.name}", kind="code" if by_design else kind)


def _kind(function: ast.FunctionDef | ast.AsyncFunctionDef) -> PartKind:
    body = _without_docstring(function.body)
    if len(body) == 1 and isinstance(body[0], ast.Raise) and body[0].exc is not None:
        raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
        return "raises" if ast.unparse(raised) == "NotImplementedError" else "code"
    return "empty" if all(_does_nothing(statement) for statement in body) else "code"


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None):
            return True
        case ast.Return(value=ast.Constant(value=None)):
            return True
        case _:
            return False


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return body
