"""One key link: does the source refer to the target, in code rather than in a comment or in prose?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from gsd_core import BadArtifact, Evidence, Gap, KeyLink

from .modules import Sources, is_dotted_reference, refers, refers_through
from .patterns import Found, search
from .source import IN_DATA_FOLDER, LANGUAGES, Source, word_set

# Generic file names: other files refer to the folder instead.
GENERIC_NAMES = ("index", "__init__", "__main__", "mod", "main", "lib", "route", "page", "layout", "server")
# Languages without a reader here, whose files refer to each other by name: a missing name is a missing link.
REFER_BY_NAME = word_set(".astro .dart .c .h .cc .cpp .hpp .html .css .scss .lua .php .rb .ex .exs .sh .bash")
KNOWN_SUFFIXES = word_set(
    ".vue .svelte .json .yaml .yml .toml .sql .rs .java .kt .swift .cs .md .prisma .graphql .proto"
).union(LANGUAGES, REFER_BY_NAME)
_COMMENTS = {
    **dict.fromkeys(
        (".html", ".htm", ".vue", ".svelte", ".md", ".xml"), r"<!--.*?-->|\{#.*?#\}|\{/\*.*?\*/\}"
    ),
    **dict.fromkeys((".css", ".scss", ".less"), r"/\*.*?\*/|(?m:^\s*//[^\n]*$)"),
    **dict.fromkeys(
        (".yaml", ".yml", ".toml", ".sh", ".bash", ".rb", ".ex", ".exs"), r"(?m:(?:^|\s)#[^\n]*$)"
    ),
    **dict.fromkeys(
        (".c", ".h", ".cc", ".cpp", ".hpp", ".php", ".dart", ".java", ".kt", ".rs"),
        r"/\*.*?\*/|(?m://[^\n]*$)",
    ),
}
_QUOTED = re.compile(
    r"(?s)\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`"
)
_INDIRECT = re.compile(
    r"(?i)\b(?:fetch|https?|api|requests?|url|routes?|endpoint|websocket|socket|events?|emits?|queue|sql|quer(?:y|ies)"
    r"|database|env(?:ironment)?|cli|sub-?process|spawns?|exec|command|render|template|static|config|convention"
    r"|file-based|di|inject|middleware|proxy|rpc|ipc|webhook|cron|storage|localstorage|cookie|navigat\w*)\b"
)


_BY_FOLDER = re.compile(
    r"(?i)\b(?:auto-?(?:load|discover|wir|import)\w*|scans?|glob|director\w+|folder|discover\w*|convention)\b"
)
"""What a plan says if a program finds its modules in a folder."""
_BY_TOOL = re.compile(r"(?i)\b(?:sqlc|code-?gen\w*|generat\w+|protoc|compile[drs]?|transpil\w+|build)\b")
"""What a plan says if a tool connects two files, which neither of them shows."""
_THROUGH = re.compile(
    r"(?i)\b(?:fixtures?|containers?|registr\w+|providers?|context|plugins?|hooks?|factor(?:y|ies)|re-?export\w*|barrel"
    r"|through|indirect\w*|depend\w*|inject\w*|facade|wrapper|decorators?|signals?|bus|dispatch\w*|di)\b"
)
"""What a plan says of a link that another module makes."""
_CODE = re.compile(r"\b(?:import|from|require|use|include|new|await|mod|extends|fetch)\b|\\\(|::|\w\\?\.\w")
"""A pattern that is about a statement or a call, rather than about a value such as a URL."""


async def check_link(sources: Sources, link: KeyLink) -> Gap | Evidence | None:
    """Return a gap, the proof that the link exists, or ``None`` if code cannot tell."""
    path = sources.resolved(bare_path(link.source))
    if not sources.exists(path):
        return _gap(link, f"{path}: {sources.tree.find(path)}") if _is_file_name(path) else None
    text = sources.text(path)
    if text is None:
        return None
    target = sources.resolved(bare_path(link.target))
    if link.pattern:
        return await _check_pattern(sources, link, path, target, text)
    return _check_reference(sources, link, path, target, text)


def _check_reference(
    sources: Sources, link: KeyLink, path: str, target: str, text: str
) -> Gap | Evidence | None:
    source = sources.source(path)
    code = source.code if source else without_comments(path, text)
    named = _mention(target, code)
    missing = _gap(link, f"{link.source} does not refer to {target}")
    in_comment = _gap(link, f"{link.source} mentions {target} only in a comment")
    if not sources.exists(target):
        if named:
            return _evidence(link, f"mentions {named!r}")
        package = PurePosixPath(target).parent.name
        if not _is_file_name(target) or (package and _mention(package, code)):
            return None  # a route, a table or prose, or a package: for the verifier
        by_name = source.language != "go" if source else PurePosixPath(path).suffix in REFER_BY_NAME
        return missing if by_name else None
    if refers(sources, path, target):
        return _evidence(link, f"imports {target}")
    if found := _file_reference(source, code, path, target):
        return _evidence(link, f"refers to {found!r}")
    folders = [name for name in PurePosixPath(target).parent.parts if name not in ("src", "lib", "app")]
    if _BY_FOLDER.search(link.via) and (found := next((n for n in folders if _mention(n, code)), "")):
        return _evidence(link, f"names the folder {found!r}")
    same_language = source is not None and LANGUAGES.get(PurePosixPath(target).suffix) == source.language
    is_indirect = _INDIRECT.search(link.via) is not None
    if source is None or not same_language or is_indirect:
        # Another language, or no import by its nature: a name in the code or its strings has to do.
        if name := named if source is None or is_indirect else _mention(target, _without_prose(source)):
            return _evidence(link, f"mentions {name!r}")
        if named:
            return _gap(link, f"{link.source} mentions {target} only in text")
        if _BY_TOOL.search(link.via) and not same_language:
            return None
        if _mention(target, text):
            return in_comment
        return missing if same_language or PurePosixPath(path).suffix in REFER_BY_NAME else None
    if (source.faulty and _mention(target, source.bare)) or IN_DATA_FOLDER.search(target):
        return None
    if _THROUGH.search(link.via) and refers_through(sources, path, target):
        return _evidence(link, f"reaches {target} through another module")
    mentioned = "; it is mentioned only in a comment or a string" if _mention(target, text) else ""
    return _gap(link, f"{link.source} does not import {target}{mentioned}")


async def _check_pattern(
    sources: Sources, link: KeyLink, path: str, target: str, text: str
) -> Gap | Evidence | None:
    source = sources.source(path)
    code = source.code if source else without_comments(path, text)
    matches = _evidence(link, f"matches /{link.pattern}/")
    match await search(link.pattern, code):
        case Found.YES:
            pass
        case Found.NO if source and await search(link.pattern, _joined(_without_prose(source))) is Found.YES:
            return matches
        case Found.NO:
            if code != text and await search(link.pattern, text) is Found.YES:
                if re.search(r"^\W*(?:#|//|/\*|<!--|\"\"\")", link.pattern):  # the pattern is a comment
                    return matches
                return _gap(link, f"{link.source} matches /{link.pattern}/ only in a comment")
            return _gap(link, f"nothing in {link.source} matches /{link.pattern}/")
        case Found.TIMEOUT:
            return _gap(link, f"the search for /{link.pattern}/ timed out", unverified=True)
        case Found.INVALID if link.pattern in code:
            return _evidence(link, f"contains {link.pattern!r}")
        case Found.INVALID:
            reason = f"{link.pattern!r} is not a valid regular expression, nor does {link.source} contain it"
            return _gap(link, reason, unverified=True)
    other = sources.source(target)
    # The name of a function is in the code that calls it; that of a table may be only in a statement of SQL.
    is_name = other is not None and link.pattern in other.defined and not _INDIRECT.search(link.via)
    if source is None or not (is_name or _CODE.search(link.pattern)):
        return matches
    # The match needs the content of a string: of an import, a path or a URL, or only of prose?
    for searched in (source.bare, _without_prose(source)):
        if await search(link.pattern, searched) is Found.YES:
            return matches
    return _gap(link, f"{link.source} matches /{link.pattern}/ only in a string")


def _joined(code: str) -> str:
    """Return the code with each bracketed list on one line, as before a formatter broke it."""
    return re.sub(r"(?<=[(\[{,])\s*\n\s*|,?\s*\n\s*(?=[)\]}])", " ", code)


def _without_prose(source: Source) -> str:
    """Return the code without strings that contain statements or sentences: paths and URLs remain."""

    def replaced(match: re.Match[str]) -> str:
        is_prose = re.search(r"\s|[\w)]\(|::", match[0].strip("\"'`"))
        return match[0][0] + match[0][-1] if is_prose else match[0]

    return _QUOTED.sub(replaced, source.code)


def _file_reference(source: Source | None, code: str, path: str, target: str) -> str:
    """Return the string that refers to *target* as a file or a module; empty if there is none."""
    if source is None:
        return ""
    name = posixpath.basename(target)
    for text in source.strings:
        bare = re.sub(r"[?#].*$", "", text).strip()
        if not bare or re.search(r"\s", bare):
            continue
        last = bare.rstrip("/").rpartition("/")[2]
        is_meant = last == name and "." in name
        is_meant |= source.language == "python" and is_dotted_reference(bare, target)
        if source.language != "javascript":
            relative = posixpath.normpath(posixpath.join(posixpath.dirname(path), bare))
            is_meant |= "*" in bare and PurePosixPath(target).match(relative)
        if is_meant:
            return text
    return ""


def without_comments(path: str, text: str) -> str:
    """Return the text without its comments, for languages that are not parsed."""
    comment = _COMMENTS.get(PurePosixPath(path).suffix)
    return re.sub(comment, " ", text, flags=re.DOTALL) if comment else text


def _mention(target: str, text: str) -> str:
    for name in _reference_names(target):
        if name and re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text):
            return name
    return ""


def _reference_names(target: str) -> Iterator[str]:
    """Yield the names that a file may use to refer to *target*."""
    bare = target.removesuffix("()")
    yield from dict.fromkeys([target, bare])
    path = PurePosixPath(bare)
    if " " in bare or bare.startswith("/") or not ("/" in bare or path.suffix):
        return
    stem = path.name.split(".")[0] or path.name
    if stem.lstrip("+").lower() in GENERIC_NAMES and path.parent.name:
        yield path.parent.name
    else:
        # user_service.rb defines UserService.
        yield from (stem, re.sub(r"(?:^|[_-])([A-Za-z0-9])", lambda match: match[1].upper(), stem))
    yield path.name
    yield path.with_suffix("").name


def bare_path(text: str) -> str:
    """``src/page.tsx (header)`` and ``src/page.tsx:Header`` mean ``src/page.tsx``."""
    text = re.sub(r"\s+\(.*\)$", "", text.strip().strip("`")).removeprefix("./")
    return re.sub(r"(\.\w{1,6})(?:::?|#)[\w.()]+$", r"\1", text)


def _is_file_name(text: str) -> bool:
    """Whether the text can only mean the path of a file."""
    return (
        re.search(r"[\s*{}<>|,@$]|^/|://", text) is None
        and PurePosixPath(text).suffix in KNOWN_SUFFIXES
        and text.lower()
        not in ("node.js", "next.js", "vue.js", "express.js", "three.js", "d3.js", "chart.js")
    )


def _evidence(link: KeyLink, proof: str) -> Evidence:
    return Evidence(about=f"{link.source} -> {link.target}", holds=True, proof=f"{link.source} {proof}")


def _gap(link: KeyLink, reason: str, *, unverified: bool = False) -> Gap:
    return Gap(
        truth=f"{link.source} is connected to {link.target}" + (f" ({link.via})" if link.via else ""),
        reason=reason,
        about=f"{link.source} -> {link.target}",
        status="unverified" if unverified else "failed",
        artifacts=(BadArtifact(path=bare_path(link.source), issue=reason),),
    )
