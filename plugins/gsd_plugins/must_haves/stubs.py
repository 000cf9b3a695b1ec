"""Is a file, or a function of it, a stub: something in place of the real code?

Only files that a plan promises are judged, and only for what they contain *instead* of real code: a remark
"TODO: implement caching" in code that works does not make it a stub. Neither does code that is empty by
design: abstract methods, null objects, hooks of a base class, default callbacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath

from .remarks import ALL_ALIKE, BY_DESIGN, CLAIMS, FOR_NOW, INVENTED, MISSING_EFFECT, TODO
from .source import BY_SUBCLASS, UNFINISHED, Function, Source, word_set, words_of

MODULES_WITHOUT_CODE = word_set("__init__.py conftest.py __main__.py doc.go generate.go tools.go py.typed")

MAX_LINES_OF_UNFINISHED = 12
_QUIET = word_set(
    "noop nop null nil nothing ignore ignored dummy fake mock silent default defaults disabled never "
    "always allow deny fallback identity unlimited anonymous discard swallow void no none free flat "
    "fixed constant static health healthz healthcheck ping version deadline ready readyz liveness "
    "status stub empty blank unknown unused nobody skip migration passthrough simple readonly "
    "immutable frozen"
)
_OPTIONAL_METHODS = word_set(
    "on before after pre post visit will did setup teardown close dispose destroy cleanup flush "
    "shutdown hook callback release unmount connected disconnected constructor drop finalize ngon "
    "stop sync begin end up down"
)
_LIFECYCLE = re.compile(
    r"(?:setup|teardown|setUp|tearDown|set_up|tear_down|pytest_)\w*|main|init|__\w+__|constructor|drop"
    r"|down|downgrade|deactivate|unload|unregister"
)
_PREDICATES = ("is", "has", "can", "should", "supports", "allows", "accepts", "may", "needs", "wants", "must")
_EFFECTS = word_set(
    "save submit create delete update send export write upload persist store publish sync add remove "
    "insert register login logout charge pay download fetch load import process migrate refund "
    "checkout subscribe connect"
)
_ACCESS = _EFFECTS | word_set("get find lookup search query list read put set push pop")
"""First words of methods that are what a store, a queue or a client is for."""
_PRINTERS = word_set(
    "console stdout stderr terminal log logger logging print printer debug dry usage help report show "
    "display banner trace echo verbose reporter warn"
)
_LABELS = word_set("error string str message description describe label title name text help")
_OUTCOMES = word_set("error errors failure failed success start end done cancel")
_NULL_LIKE = re.compile(
    r"(?:None|null|undefined|nil|false|False|0(?:\.0)?|\"\"|''|``|\[\]|\{\}|\(\)"
    r"|new (?:Map|Set)\(\))(?:\s*,\s*nil)?"
)


def find_stubs(source: Source) -> Iterator[str]:
    """Yield what is unfinished in a file of code."""
    for function in source.functions:
        if problem := judge(function):
            yield f"it is a stub: line {function.line}: {problem}"


def judge(function: Function) -> str:
    """Return why the function is a stub; empty if it is complete, or empty by design."""
    if function.declared:
        return ""
    if function.body == "code":
        return _judge_code(function)
    name, words = f"{function.name}()", words_of(function.name)
    short = function.name.split(".")[-1]
    own = words_of(short)
    if function.body == "unfinished":
        excused = BY_SUBCLASS.search(f"{function.value} {function.doc} {function.comment}")
        if excused and not re.search(r"(?i)\byet\b", function.value):
            return ""
        if function.callback or {"implemented", "unimplemented", "unsupported"} & set(own):
            return ""  # a handler for what is not implemented
        return f"{name} is not implemented: {function.value[:80]}"
    # A comment in a body without code says what is missing, or that nothing is.
    designed = BY_DESIGN.search(f"{function.doc}\n{function.comment}")
    todo = TODO.search(function.comment)
    if todo and (FOR_NOW.search(function.comment) or not designed):
        return f"{name} has only a remark in place of its code: {todo[0]!r}"
    quiet = {"null", "noop", "nothing"} if function.component else _QUIET
    is_quiet = quiet & {*words, *map("".join, pairwise(words))} or _LIFECYCLE.fullmatch(short)
    if function.nested or designed or is_quiet:
        return ""
    match function.body:
        case "empty":
            return _judge_empty(function, name, own)
        case "constant":
            return _judge_constant(function, name, own)
        case "print":
            if CLAIMS.search(function.value) and not set(words) & (_PRINTERS | _OUTCOMES):
                return f"{name} only prints that it is done: {function.value[:60]}"
            uses = function.parameters and not function.unused and not set(own) & _EFFECTS
            acts = function.parameters or set(own[:1]) & _EFFECTS
            return f"{name} only prints" if acts and not uses and not set(words) & _PRINTERS else ""
        case _:
            return ""


def _judge_code(function: Function) -> str:
    """Judge a short function that has code, and a remark that says what is missing.

    Most remarks are about improvements. Work is missing if the remark names an effect ("TODO: send the
    mail"), or if it says that the result is invented.
    """
    remark = MISSING_EFFECT.search(function.comment) or INVENTED.search(function.comment)
    if remark is None or function.nested or function.length > MAX_LINES_OF_UNFINISHED:
        return ""
    return f"{function.name}() has a remark in place of its work: {' '.join(remark[0].split())[:60]!r}"


def _judge_empty(function: Function, name: str, own: list[str]) -> str:
    if function.callback:
        return ""  # it only has to fit a signature
    if function.returns:
        return f"{name} has an empty body, although it returns a value"
    if function.method:
        works = function.peers and function.parameters and set(own[:1]) & _EFFECTS
        optional = _OPTIONAL_METHODS & set(own[:1])
        if (function.inherits and not works) or optional:
            return ""
    return f"{name} has an empty body"


def _judge_constant(function: Function, name: str, own: list[str]) -> str:
    if function.component:
        is_null = _NULL_LIKE.fullmatch(function.value) and not function.callback
        return f"{name} renders nothing" if is_null else ""
    if UNFINISHED.search(function.value.strip("\"'`({[ ")) and not set(own) & _LABELS:
        return f"{name} only says that it is not implemented: {function.value[:60]}"
    if own[:1] and own[0] in _PREDICATES and ALL_ALIKE.search(function.doc):
        return ""  # the documentation says why the answer is the same for each of them
    values = function.parameters + (function.ignored if not function.method else ())
    if not (values or function.name in ("POST", "PUT", "PATCH", "DELETE")):
        # `get(_key)` has to fit an interface, but the rest of the class works, and this would be its purpose.
        lost = function.ignored and function.peers and not function.callback and set(own[:1]) & _ACCESS
        if not (lost and _NULL_LIKE.fullmatch(function.value)):
            return ""
    elif function.inherits or function.callback:
        predicate = own[:1] and own[0] in _PREDICATES
        if function.callback or predicate or not function.peers or not _NULL_LIKE.fullmatch(function.value):
            return ""
    return f"{name} ignores its parameters and always returns {function.value[:60]}"


# Text that is not code: pages, style sheets, documents, and languages without a reader

MAX_CODE_LINES_PER_MARKER = 10
MAX_STUB_LENGTH = 20_000

_MARKERS = re.compile(
    r"""
    (?:\#(?!\[)|(?<!/)//(?![/!])|/\*|<!--|--|^\s*\*|%|;;)[^\n]*?(?:
        \b(?:TODO|FIXME|XXX)\b[\s:(-]*(?:\w+\)?[\s:]+)?(?:implement|write|add|fill|finish|complete)\b
      | \bplaceholder\b(?!\s*[=:{.(])
      | \bnot\s+(?:yet\s+)?implemented\b
      | \bimplementation\s+goes\s+here\b | \bcoming\s+soon\b | \bstub\s+(?:for|implementation)\b )
  | ^\s*(?-i:TODO|TBD)\b[^\n]*$
  | (?<!\#\[)\b(?:throw\s+(?:new\s+)?\w*(?:Error|Exception)|panic|die|fail|raise|error)
    \b[^\n]*not\s+(?:yet\s+)?implemented
  | \bTODO\(\s*(?:"[^"\n]*")?\s*\)
  | \blorem\s+ipsum\b
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_COMMENTS = re.compile(r"/\*.*?\*/|<!--.*?-->|^\s*(?:\#|//|--|;;)[^\n]*$", re.DOTALL | re.MULTILINE)
_TRIVIAL_LINE = re.compile(
    r"[\s{}()\[\];,]*|\s*(?:import|from|use|using|package|require|export \*)\b.*|\s*</?\w+>\s*"
    r"|\s*exit 0\s*"
)
_FILLER = re.compile(
    r"(?i)\W*(?:todo|tbd|fixme|placeholder|coming soon|under construction|lorem ipsum|work in progress|wip"
    r"|not (?:yet )?implemented|to be (?:written|done|defined|added))\b.*"
)
_PAGE_CONTENT = re.compile(
    r"(?i)<(?:input|form|button|select|textarea|canvas|img|svg|video|audio|iframe|table|a\s|ul|ol|dialog)\b"
    r"|\{[{%]|<%|\bid=[\"']?(?:root|app|__next|main|svelte)\b"
)
_SOON = re.compile(r"(?i)coming soon|lorem ipsum")
MAX_LINES_OF_EMPTY_PAGE = 6
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc")
_PAGES = (".html", ".htm", ".vue", ".svelte", ".ejs", ".hbs", ".njk", ".jinja", ".j2", ".erb")


def find_text_stub(path: str, text: str) -> str:
    """Return why a file that is not parsed is a stub; empty if it is not."""
    if not text.strip():
        return "it is empty"
    suffix = PurePosixPath(path).suffix.lower()
    if len(text) > MAX_STUB_LENGTH or suffix in (".json", ".yaml", ".yml", ".toml", ".lock", ".csv", ".svg"):
        return ""
    if suffix in _PROSE:
        return _find_unwritten_prose(text)
    if suffix in _PAGES:
        return _find_unwritten_page(text)
    bare = _COMMENTS.sub("", text)
    if suffix in (".css", ".scss", ".less") and not re.search(r"[\w-]\s*:\s*[^\s;{}]|@\w", bare):
        return "it is a stub: it has no declarations"
    if suffix in (".css", ".scss", ".less", ".sql", ".graphql", ".proto", ".prisma") or not suffix:
        return "" if re.search(r"\w", bare) else "it is a stub: it contains only comments"
    count = sum(1 for line in bare.splitlines() if not _TRIVIAL_LINE.fullmatch(line))
    markers = [match[0].strip() for match in _MARKERS.finditer(text)]
    if markers and count - len(markers) <= MAX_CODE_LINES_PER_MARKER * len(markers):
        return f"it is a stub: {markers[0][:80]!r}"
    return ""


def _find_unwritten_prose(text: str) -> str:
    """A document is unwritten if each of its lines is a heading or filler."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    lines = [line.strip() for line in re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL).splitlines()]
    content = [line for line in lines if line and not re.match(r"#|[=~^-]{3,}$", line)]
    filler = [line for line in content if _FILLER.fullmatch(line) or "lorem ipsum" in line.lower()]
    return f"it is a stub: {filler[0][:80]!r}" if filler and len(filler) == len(content) else ""


def _find_unwritten_page(text: str) -> str:
    body = re.sub(r"(?s)<!--.*?-->|<head\b.*?</head>|<style\b.*?</style>|<title\b.*?</title>", "", text)
    if _PAGE_CONTENT.search(body):
        return ""
    visible = [line.strip() for line in re.sub(r"(?s)<script\b.*?</script>|<[^>]*>", "\n", body).splitlines()]
    visible = [line for line in visible if line]
    filler = [line for line in visible if _FILLER.fullmatch(line) or _SOON.search(line)]
    if filler and len(visible) <= MAX_LINES_OF_EMPTY_PAGE:
        return f"it is a stub: {' '.join(visible)[:80]!r}"
    return ""
