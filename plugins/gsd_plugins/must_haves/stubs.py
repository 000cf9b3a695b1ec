"""Is a file, or a function of it, a stub: something in place of the real code?

Only files that a plan promises are judged, and only for what they contain *instead* of real code: a remark
"TODO: implement caching" in code that works does not make it a stub. Neither does code that is empty by
design: abstract methods, null objects, hooks of a base class, default callbacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import PurePosixPath

from .remarks import ALL_ALIKE, BY_DESIGN, CLAIMS, FOR_NOW, INSTEAD, INVENTED, MISSING_EFFECT, TODO
from .source import BY_SUBCLASS, UNFINISHED, Function, Source, word_set, words_of

MIN_FAMILY = 4
MODULES_WITHOUT_CODE = word_set("__init__.py conftest.py __main__.py doc.go generate.go tools.go py.typed")

MAX_LINES_OF_UNFINISHED = 12
MAX_LINES_OF_INVENTED = 8
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
_FIRST_WORDS = frozenset(("on", "before", "after", "pre", "post", "will", "did", "up", "down"))
"""Words that make a hook only at the beginning of its name: `before_save`, not `cancel_before`."""
_MAKES = ("make", "create", "build", "new", "default", "get")
_LIFECYCLE = re.compile(
    r"(?:setup|teardown|setUp|tearDown|set_up|tear_down|pytest_)\w*|main|init|__\w+__|constructor|drop"
    r"|down|downgrade|deactivate|unload|unregister"
)
_PREDICATES = ("is", "has", "can", "should", "supports", "allows", "accepts", "may", "needs", "wants", "must")
_CAPABILITIES = ("supports", "accepts", "wants", "needs", "may", "handles")
"""First words of methods that say what a class can do, which is often the same for all arguments."""
_EFFECTS = word_set(
    "save submit create delete update send export write upload persist store publish sync add remove "
    "insert register login logout charge pay download fetch load import process migrate refund "
    "checkout subscribe connect"
)
_VERBS = ("post", "put", "patch", "delete")
"""Methods of HTTP, as classes of handlers name them."""
_PRINTERS = word_set(
    "console stdout stderr terminal log logger logging print printer debug dry usage help report show "
    "display banner trace echo verbose reporter warn"
)
_LABELS = word_set("error string str message description describe label title name text help")
_OUTCOMES = word_set("error errors failure failed success start end done cancel")
_RESPONDS = re.compile(r"\.(?:json|send|end|render|text|body|write)\(")
_NULL_LIKE = re.compile(
    r"(?:None|null|undefined|nil|false|False|0(?:\.0)?|\"\"|''|``|\[\]|\{\}|\(\)"
    r"|new (?:Map|Set)\(\))(?:\s*,\s*nil)?"
)


def find_stubs(source: Source, promised: Collection[str] = ()) -> Iterator[str]:
    """Yield what is unfinished in a file of code; *promised* are the names that plans list as its exports."""
    endings = Counter(
        (f.name.rpartition(".")[0], tuple(words_of(f.name)[-1:])) for f in source.functions if f.method
    )
    for function in source.functions:
        # One of many alike (`bool_schema`, `float_schema` …) that are called by name: some are constant.
        alike = endings[function.name.rpartition(".")[0], tuple(words_of(function.name)[-1:])]
        if function.body == "constant" and alike >= MIN_FAMILY and not _NULL_LIKE.fullmatch(function.value):
            continue
        if problem := judge(function, promised):
            yield f"it is a stub: line {function.line}: {problem}"


def judge(function: Function, promised: Collection[str] = ()) -> str:
    """Return why the function is a stub; empty if it is complete, or empty by design."""
    if function.declared:
        return ""
    if function.body == "code":
        return _judge_code(function)
    name, words = f"{function.name}()", words_of(function.name)
    short = function.name.split(".")[-1]
    own = words_of(short)
    if function.body == "unfinished":
        if function.nested and function.callback:
            return ""
        excused = BY_SUBCLASS.search(f"{function.value} {function.doc} {function.comment}")
        if excused and not re.search(r"(?i)\byet\b", function.value):
            return ""
        if {"implemented", "unimplemented", "unsupported"} & set(own):
            return ""  # a handler for what is not implemented
        if {"none", "null", "noop"} & set(words_of(function.name.rpartition(".")[0])):
            return ""
        return f"{name} is not implemented: {function.value[:80]}"
    # Documentation may speak of now and later; a comment in a body without code says what is missing.
    if function.component and function.value.startswith("<>"):
        remark = TODO.search(function.value) or INSTEAD.search(function.comment)
        if remark and not function.callback and len(function.unused) == len(function.parameters) > 0:
            return f"{name} ignores its parameters and only shows {function.value[2:-3][:60]!r}"
        return ""
    todo = TODO.search(function.comment) or (
        (found := TODO.search(function.doc)) and not FOR_NOW.fullmatch(found[0]) and found
    )
    designed = BY_DESIGN.search(f"{function.doc}\n{function.comment}")
    invented = FOR_NOW.search(function.comment)
    marked = invented or re.search(r"\b(?:TODO|FIXME)\b", f"{function.doc}{function.comment}")
    if todo and (marked or not designed):
        return f"{name} has only a remark in place of its code: {todo[0]!r}"
    if function.nested:
        return _judge_nested(function, name, own)
    quiet = {"null", "noop", "nothing"} if function.component else _QUIET
    if designed or quiet & {*words, *map("".join, pairwise(words))} or _LIFECYCLE.fullmatch(short):
        return ""
    match function.body:
        case "empty":
            takes_nothing = not function.parameters and not function.method
            if function.callback or (takes_nothing and len(function.ignored) > 1):
                return ""  # it only has to fit a signature
            if takes_nothing and short.startswith("_") and function.doc.strip():
                return ""  # a private command or marker that says what it is
            if function.returns:
                return f"{name} has an empty body, although it returns a value"
            is_promised = short in promised or function.name in promised
            if function.method and not is_promised:
                works = function.peers and function.parameters and set(own[:1]) & _EFFECTS
                handles = function.peers and function.parameters and short in _VERBS
                optional = _OPTIONAL_METHODS & {*own[:1], *(set(own[-1:]) - _FIRST_WORDS)}
                if not handles and ((function.inherits and not works) or optional):
                    return ""
            return f"{name} has an empty body"
        case "constant":
            return _judge_constant(function, name, own)
        case "print":
            if CLAIMS.search(function.value) and not set(words) & (_PRINTERS | _OUTCOMES):
                return f"{name} only prints that it is done: {function.value[:60]}"
            ignores = function.unused and (function.peers or not function.inherits)
            if set(words) & _PRINTERS or (
                function.uses_parameters and not ignores and not set(own) & _ACTIONS
            ):
                return ""
            if function.parameters or set(own[:1]) & _EFFECTS:
                return f"{name} only prints"
            return ""
        case _:
            return ""


def _judge_code(function: Function) -> str:
    """Judge a short function that has code, and a remark that says what is missing.

    Most remarks are about improvements. Work is missing if what would do it has been passed and is not used,
    if the remark names an effect ("TODO: send the mail"), or if it says that the result is invented.
    """
    if function.length > MAX_LINES_OF_UNFINISHED or BY_DESIGN.search(function.comment):
        return ""
    own = words_of(function.name.rpartition(".")[2])
    if function.nested:
        remark = INSTEAD.search(function.comment)
        if remark and own[:1] and own[0] in ("handle", *_ACTIONS):
            return f"{function.name}() has a remark in place of its work: {remark[0]!r}"
        return ""
    if function.announces and function.idle and function.unused and not set(own) & (_PRINTERS | _OUTCOMES):
        return f"{function.name}() only prints, and does not use {', '.join(function.unused)}"
    todo = MISSING_EFFECT.search(function.comment)
    invented = INVENTED.search(function.comment) if function.length <= MAX_LINES_OF_INVENTED else None
    if remark := todo or invented:
        return f"{function.name}() has a remark in place of its work: {' '.join(remark[0].split())[:60]!r}"
    # `sort()` with "TODO: sort the rows" says itself what is missing.
    named = re.search(rf"\b(?:TODO|FIXME)\b.*\b{re.escape(own[0])}", function.comment) if own else None
    remark = INSTEAD.search(function.comment) or named
    if remark and function.unused:
        unused = ", ".join(function.unused)
        return f"{function.name}() has a remark in place of the code that uses {unused}: {remark[0]!r}"
    return ""


def _judge_nested(function: Function, name: str, own: list[str]) -> str:
    """Judge a function in another one, where only two kinds are unfinished for certain.

    A handler whose whole answer is that it is not implemented, and a named handler of an action
    (``handleSubmit``) that prints instead. An inline function that is empty is mostly meant so.
    """
    value = function.value
    if function.answers and not function.callback:
        return f"{name} only answers {value[:60]}"
    if (
        function.body == "constant"
        and function.peers
        and function.parameters
        and not function.uses_parameters
        and set(own[:1]) & _ACCESS
        and _NULL_LIKE.fullmatch(value)
        and not BY_DESIGN.search(function.comment)
    ):
        return f"{name} ignores its parameters and always returns {value[:60]}"
    said = re.search(r"(?s)[\"'`].*", value)
    if function.body == "constant" and _RESPONDS.search(value) and said and UNFINISHED.search(said[0]):
        return "" if function.callback else f"{name} only says that it is not implemented: {value[:60]}"
    if function.body == "print" or (function.body == "empty" and function.parameters == ()):
        acts = own[:1] == ["handle"] and set(own[1:2]) & (_EFFECTS - {"load", "connect"})
        reports = set(own) & (_PRINTERS | _OUTCOMES) or re.search(r"\.(?:error|warn)\(", value)
        if acts and not reports and not BY_DESIGN.search(function.comment + function.doc):
            return f"{name} only prints" if function.body == "print" else f"{name} has an empty body"
    return ""


_ACCESS = _EFFECTS | word_set("get find lookup search query list read put set push pop")
"""First words of methods that are what a store, a queue or a client is for."""
_ACTIONS = _EFFECTS | word_set(
    "destroy cancel place archive rename reserve release schedule approve reset apply transfer "
    "enqueue edit generate put patch post assign invite book notify deliver dispatch mail email"
)
"""Words in the names of handlers that change something; an answer made of literals alone changes nothing."""


def _judge_constant(function: Function, name: str, own: list[str]) -> str:
    if set(own) & _LABELS and not function.parameters:
        return ""
    if function.component:
        if function.callback:
            return ""
        return f"{name} renders nothing" if _NULL_LIKE.fullmatch(function.value) else ""
    if UNFINISHED.search(function.value.strip("\"'`({[ ")) and not set(own) & _LABELS:
        return f"{name} only says that it is not implemented: {function.value[:60]}"
    handles_data = function.name in ("POST", "PUT", "PATCH", "DELETE")
    acts = set(own) & _ACTIONS and own[0] not in _PREDICATES
    if function.answers and not function.callback and acts:
        return f"{name} only answers {function.value[:60]}"
    values = function.parameters + (function.ignored if not function.method else ())
    says = re.search(r"(?i)\bstatus_?code\W+2\d\d", function.value) or CLAIMS.search(function.value)
    if function.announces and says and not set(own) & (_PRINTERS | _OUTCOMES):
        return f"{name} only prints, and answers {function.value[:60]}"
    if re.fullmatch(r"[\w.]+\(\)", function.value) and set(own[:1]) & set(_MAKES):
        return ""  # it chooses what to make
    if function.uses_parameters and not set(own[:1]) & _EFFECTS:
        return ""
    if own[:1] and own[0] in _PREDICATES and ALL_ALIKE.search(function.doc):
        return ""  # the documentation says why the answer is the same for each of them
    if not (values or handles_data):
        # `get(_key)` has to fit an interface, but the rest of the class works, and this would be its purpose.
        lost = function.ignored and function.peers and not function.callback and set(own[:1]) & _ACCESS
        if not (lost and _NULL_LIKE.fullmatch(function.value)):
            return ""
        return f"{name} ignores its parameters and always returns {function.value[:60]}"
    if own[:1] == ["visit"] and function.method and _NULL_LIKE.fullmatch(function.value):
        return ""
    if function.method and own[:1] and (own[0] in _CAPABILITIES or own[:2] == ["can", "handle"]):
        return ""
    if function.inherits or function.callback:
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
    if filler and len(filler) == len(content):
        return f"it is a stub: {filler[0][:80]!r}"
    return ""


def _find_unwritten_page(text: str) -> str:
    body = re.sub(r"(?s)<!--.*?-->|<head\b.*?</head>|<style\b.*?</style>|<title\b.*?</title>", "", text)
    if _PAGE_CONTENT.search(body):
        return ""
    visible = [line.strip() for line in re.sub(r"(?s)<script\b.*?</script>|<[^>]*>", "\n", body).splitlines()]
    visible = [line for line in visible if line]
    filler = [line for line in visible if _FILLER.fullmatch(line) or _SOON.search(line)]
    if filler and len(visible) <= MAX_LINES_OF_EMPTY_PAGE:
        return f"it is a stub: {' '.join(visible)[:80]!r}"
    if not visible and not re.search(r"<script\b|<link\b|<template\b|<slot\b|<router", text):
        return "it is a stub: the page is blank"
    return ""
