"""One artifact: does the file keep every promise that plans made of it?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gsd_core import Artifact, BadArtifact, Evidence, Gap

from .exports import missing_exports
from .files import Content, Tree, read
from .stubs import stub

EMPTY_IS_FINE = ("__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll")
UNREAD = "too large to be searched as a whole"


def judge_artifact(tree: Tree, path: str, promises: Sequence[Artifact]) -> Gap | Evidence:
    """Return what is wrong with the file at *path*, or the proof that nothing is."""
    provides = next((promise.provides for promise in promises if promise.provides), "")
    truth = f"{path} provides {provides}" if provides else f"{path} is there and complete"
    found = tree.find(path)
    if isinstance(found, str):
        return Gap(truth=truth, reason=found, about=path, artifacts=_bad(path, [found]), missing=(path,))
    if found.is_dir():
        return Evidence(about=path, holds=True, proof="a folder with files in it")
    content = read(found)
    problems = list(dict.fromkeys(_problems(found, content, promises)))
    if not problems:
        return Evidence(about=path, holds=True, proof=_proof(content))
    if all(problem.startswith(UNREAD) for problem in problems):
        return Gap(truth=truth, reason="; ".join(problems), about=path, status="unverified")
    reason = "; ".join(problems)
    return Gap(truth=truth, reason=reason, about=path, artifacts=_bad(path, problems))


def _problems(path: Path, content: Content, promises: Sequence[Artifact]) -> Iterator[str]:
    if content.size == 0 and path.name not in EMPTY_IS_FINE:
        yield "it is empty"
        return
    if content.binary:
        return
    for promise in promises:
        yield from _broken(path, content, promise)
    exports = tuple(name for promise in promises for name in promise.exports)
    if content.size and (problem := stub(path, content.text, exports)):
        yield problem


def _broken(path: Path, content: Content, promise: Artifact) -> Iterator[str]:
    if content.whole and content.lines < promise.min_lines:
        yield f"{content.lines} lines, at least {promise.min_lines} were promised"
    if promise.contains and not _contains(content.text, promise.contains):
        yield _absent(content, f"it does not contain {promise.contains!r}")
    for name in missing_exports(path, content.text, promise.exports):
        yield _absent(content, f"it does not define {name!r}")


def _absent(content: Content, problem: str) -> str:
    return problem if content.whole else f"{UNREAD}: {problem}"


def _contains(text: str, wanted: str) -> bool:
    """Whether the text is there, however it is spaced and quoted."""
    return wanted in text or _even(wanted) in _even(text)


def _even(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("'", '"')).strip()


def _bad(path: str, problems: Sequence[str]) -> tuple[BadArtifact, ...]:
    return tuple(BadArtifact(path=path, issue=problem) for problem in problems)


def _proof(content: Content) -> str:
    return f"{content.size} bytes" if content.binary else f"{content.lines} lines, nothing missing"
