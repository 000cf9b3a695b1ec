"""One promised file: does it satisfy everything that plans require of it?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gsd_core import Artifact, BadArtifact, Evidence, Gap, Observation, some_of
from gsd_core.planning.plan_tasks import is_test_file

from .files import FileContent, read
from .modules import Sources, javascript_candidates, module_files
from .source import IN_DATA_FOLDER, IN_TESTS, Source, is_generated, read_source
from .stubs import MODULES_WITHOUT_CODE, find_stubs, find_text_stub
from .variants import without_variants

MAY_BE_EMPTY = ("__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll")
INCOMPLETE = "the file is too large to search completely"
MIN_CODE_SHARE = 0.4
"""The share of a promised length that has to be code; in heavily documented modules it is about half."""
MAX_REASONS = 4
MAX_FILES_SEARCHED = 2_000
"""In a project with more of them, it takes too long to look for the uses of a name."""

_PATTERN = re.compile(r"\.\*|\w\|\w|\\+\W")
_CHOICE = re.compile(r"[^\s|]{3,}(?:\|[^\s|]{3,}){1,9}")
_AROUND_NAME = re.compile(
    r"^(?:(?:async|export|default|def|class|function|func|fn|pub|const|type|interface|struct|enum|trait) +)+"
    r"|[(<=].*$|:(?!:).*$| as .*$"
)
"""What an export may have beside its name: ``greet()``, ``def greet``, ``greet(name: str)``."""
_WORD = re.compile(r"[\w$]+")
_NAME = re.compile(r"[\w$]+(?:(?:\.|::|#|->)[\w$]+)*")
_PASSES_ON = re.compile(r"(?m)^\s*(?:pub use [^;]*\*|export ['\"])|#\[macro_use\]")
"""How languages without a reader pass on the names of other files: Rust, Dart."""
_PROSE = (".md", ".mdx", ".rst", ".txt", ".adoc", ".csv", ".json")


def check_file(sources: Sources, path: str, artifacts: Sequence[Artifact]) -> Gap | Evidence | None:
    """Return what is wrong with the file at *path*, or the proof that nothing is.

    *artifacts* are the must-haves of all plans that name this path; without any, the path is only listed
    among the files of a plan, and nothing is returned unless the file is a stub.
    """
    provides = next((artifact.provides for artifact in artifacts if artifact.provides), "")
    truth = f"{path} provides {provides}" if provides else f"{path} exists and is complete"
    found = sources.tree.find(path)
    if isinstance(found, str):
        if not artifacts:
            return None
        if commit := sources.removed.get(path):
            return Evidence(about=path, holds=True, proof=f"another phase removed it since: {commit}")
        missing = (BadArtifact(path=path, issue=found),)
        return Gap(truth=truth, reason=found, about=path, artifacts=missing, missing=(path,))
    if found.is_dir():
        return Evidence(about=path, holds=True, proof="a folder that contains files") if artifacts else None
    content = read(sources.tree, found)
    problems = list(dict.fromkeys(_problems(sources, path, found, content, artifacts)))
    if not problems:
        proof = f"{content.size} bytes" if content.binary else f"{content.lines} lines, nothing missing"
        return Evidence(about=path, holds=True, proof=proof) if artifacts else None
    reason = "; ".join(problems[:MAX_REASONS])
    if all(problem.startswith(INCOMPLETE) for problem in problems):
        return Gap(truth=truth, reason=reason, about=path, status="unverified")
    bad = tuple(BadArtifact(path=path, issue=problem) for problem in problems)
    return Gap(truth=truth, reason=reason, about=path, artifacts=bad)


def unused_parameters(sources: Sources, path: str, artifacts: Sequence[Artifact]) -> Iterator[Observation]:
    """Yield the promised functions of a file that never use one of their parameters."""
    promised = {name for artifact in artifacts for name in artifact.exports}
    source = sources.source(path) if promised else None
    for function in source.functions if source else ():
        free = not (function.inherits or function.declared or function.callback or function.component)
        names = [name for name in function.unused if not name.startswith("_")]
        if function.name in promised and free and names:
            text = f"{function.name}() never uses its parameter {some_of(names)}"
            yield Observation(text=text, severity="minor", where=f"{path}:{function.line}")


def only_tested(sources: Sources, paths: Iterable[str]) -> Iterator[Observation]:
    """Yield the functions in files that no code but tests names.

    If other code names none of the public ones, they are those of a library, whose users are elsewhere.
    """
    homes: dict[str, str] = {}
    public = set[str]()
    for path in paths:
        if not is_test_file(path) and (source := sources.source(path)):
            homes |= {one.name: path for one in source.functions if "." not in one.name}
            is_go = source.language == "go"
            hidden = {one for one in source.exports if one.startswith("_") or (is_go and one[:1].islower())}
            public |= source.exports - hidden
    if not homes or len(sources.files) > MAX_FILES_SEARCHED:
        return
    inside, outside, tested = set[str](), set[str](), set[str]()
    for path in sources.files:
        source = sources.source(path)
        words = Counter(_WORD.findall(source.bare if source else sources.text(path) or ""))
        if is_test_file(path):
            tested |= homes.keys() & words.keys()
        elif not path.endswith(_PROSE):
            inside |= {name for name, home in homes.items() if path == home and words[name] > 1}
            outside |= {name for name, home in homes.items() if path != home and words[name]}
    for name in sorted(tested - inside - outside):
        if name not in public or outside & public:
            yield Observation(text=f"no code but tests names {name}()", severity="minor", where=homes[name])


def _problems(
    sources: Sources, path: str, file: Path, content: FileContent, artifacts: Sequence[Artifact]
) -> Iterator[str]:
    if content.size == 0:
        if file.name not in MAY_BE_EMPTY:
            yield "it is empty"
        return
    if content.binary:
        return
    # The promised path may be a pattern or a link; the file that was found decides about the language.
    own = file.relative_to(sources.tree.root).as_posix()
    generated = is_generated(own, content.text)
    source = sources.source(own) if content.complete else None
    unseen = "" if content.complete else f"{INCOMPLETE}: "
    for artifact in artifacts:
        if content.complete:
            yield from _missing_length(own, content, source, artifact.min_lines)
        if artifact.contains:
            yield from (unseen + problem for problem in _missing_text(content, source, artifact.contains))
        missing = missing_exports(sources, own, content.text, artifact.exports)
        yield from (unseen + problem for problem in missing)
    if generated or not content.complete or IN_DATA_FOLDER.search(own):
        return
    before = sources.before.get(own, "")
    if source is None:
        if (problem := find_text_stub(own, content.text)) and problem != find_text_stub(own, before):
            yield problem
        return
    if source.empty and file.name not in MODULES_WITHOUT_CODE:
        yield "it is a stub: it contains no code" if content.text.strip() else "it is empty"
        return
    if file.suffix in (".vue", ".svelte") and (problem := find_text_stub(own, content.text)):
        yield problem
    if not IN_TESTS.search(own):
        earlier = read_source(own, before) if before else None
        known = {_stub(problem)[1] for problem in find_stubs(earlier)} if earlier else set[str]()
        for problem in find_stubs(without_variants(sources, own, source)):
            name, what = _stub(problem)
            # A stub from before the phase is its business only if a plan speaks of it.
            if what not in known or _occurs(name.rpartition(".")[2], sources.promises):
                yield problem


def _stub(problem: str) -> tuple[str, str]:
    """Return the function that a problem is about, and the problem without its line."""
    what = re.sub(r"^.*?line \d+: ", "", problem)
    return what.partition("(")[0], what


def _missing_length(path: str, content: FileContent, source: Source | None, promised: int) -> Iterator[str]:
    """A promised length is one of code: neither blank lines nor comments alone make a file complete."""
    if content.lines < promised:
        yield f"it has {content.lines} lines, expected at least {promised}"
        return
    if path.endswith(_PROSE) or promised < 5:
        return
    if source and source.code_lines < promised * MIN_CODE_SHARE:
        yield f"only {source.code_lines} of its {content.lines} lines are code, expected at least {promised}"


def _missing_text(content: FileContent, source: Source | None, wanted: str) -> Iterator[str]:
    if not _contains(content.text, wanted):
        yield f"it does not contain {wanted!r}"
        return
    is_code = re.search(r"[(=.]|\b(?:def|class|function|func|fn|import|export|const|struct)\b", wanted)
    is_comment = re.search(r"^\W*(?:#|//|/\*|\*)|@", wanted)
    if source and is_code and not is_comment and not _contains(source.code, wanted):
        yield f"it contains {wanted!r} only in a comment"


def _contains(text: str, wanted: str) -> bool:
    """Whether *wanted* occurs, ignoring the kind of quotes and the amount of white space.

    A plan is written before the code, so it cannot know how a formatter will write it.
    """

    def normalized(text: str) -> str:
        return re.sub(r"\s+", " ", text.replace("'", '"')).strip()

    if wanted in text or normalized(wanted) in normalized(text):
        return True
    # GSD looks for the text itself, but planners also write patterns: `GRANT.*pseudo`, `TestA|TestB`.
    if not _PATTERN.search(wanted) or ("|" in wanted and not _CHOICE.fullmatch(wanted)):
        return False
    return any(
        re.search(
            r"[^\n]*".join(re.escape(re.sub(r"\\+(?=\W)", "", one)) for one in part.split(".*", 3)), text
        )
        for part in wanted.split("|")
    )


def missing_exports(sources: Sources, path: str, text: str, exports: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the promised *exports* of a file; prose is not judged.

    In a language that is not parsed, a name has to occur as a word.
    """
    source = sources.source(path)
    for name in dict.fromkeys(_AROUND_NAME.sub("", export.strip()).strip() for export in exports):
        if not _NAME.fullmatch(name):
            continue
        if source is None:
            if not _PASSES_ON.search(text) and not _occurs(name, text):
                yield f"it does not define {name!r}"
            continue
        dotted = re.sub(r"::|#|->", ".", name)
        if _is_exported(sources, path, source, dotted, 0):
            is_public = "." not in dotted and not dotted.startswith("_")
            if source.listed is not None and is_public and dotted not in source.listed:
                yield f"it defines {name!r}, but `__all__` does not list it"
            continue
        is_component = path.endswith((".vue", ".svelte"))
        if source.open or is_component or (source.faulty and _occurs(name, source.bare)):
            continue
        if dotted in source.defined:
            how = "it does not export it" if source.language == "javascript" else "it is not public"
            yield f"it defines {name!r}, but {how}"
        else:
            yield f"it does not define {name!r}"


def _is_exported(sources: Sources, path: str, source: Source, name: str, depth: int) -> bool:
    if name in source.exports:
        return True
    if source.language == "javascript" and "." in name and name.split(".")[0] in source.exports:
        # A member of something that is imported or made by a call cannot be seen here.
        return name in source.identifiers or name.rpartition(".")[2] in source.identifiers
    if depth < 4:
        for file in _passed_on(sources, path, source):
            other = sources.source(file)
            if other and _is_exported(sources, file, other, name, depth + 1):
                return True
        if source.language == "javascript" and not all(module.startswith(".") for module in source.star):
            return True  # a package of someone else may have it
    return name == "default" and path.endswith((".vue", ".svelte"))


def _passed_on(sources: Sources, path: str, source: Source) -> Iterator[str]:
    """Yield the files whose exports a module passes on: ``export * from "./inner"``."""
    for module in source.star:
        for candidate in javascript_candidates(sources, path, module):
            yield from module_files(candidate)


def _occurs(name: str, text: str) -> bool:
    parts = re.split(r"\.|#|->|::", name)
    return all(re.search(rf"(?<![\w$]){re.escape(part)}(?![\w$])", text) for part in parts)
