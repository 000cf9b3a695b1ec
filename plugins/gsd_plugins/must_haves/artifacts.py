"""One artifact: does the file satisfy everything that plans require of it?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from gsd_core import Artifact, BadArtifact, Evidence, Gap

from .files import FileContent, Tree, read
from .stubs import find_stub, parse_python

MAY_BE_EMPTY = ("__init__.py", "py.typed", ".gitkeep", ".keep", ".nojekyll")
INCOMPLETE = "the file is too large to search completely"

_NAME = re.compile(r"[\w$]+(?:(?:\.|::|#|->)[\w$]+)*")


def check_artifact(tree: Tree, path: str, artifacts: Sequence[Artifact]) -> Gap | Evidence:
    """Return what is wrong with the file at *path*, or the proof that nothing is.

    *artifacts* are the must-haves of all plans that name this path.
    """
    provides = next((artifact.provides for artifact in artifacts if artifact.provides), "")
    truth = f"{path} provides {provides}" if provides else f"{path} exists and is complete"
    found = tree.find(path)
    if isinstance(found, str):
        missing = (BadArtifact(path=path, issue=found),)
        return Gap(truth=truth, reason=found, about=path, artifacts=missing, missing=(path,))
    if found.is_dir():
        return Evidence(about=path, holds=True, proof="a folder that contains files")
    content = read(found)
    problems = list(dict.fromkeys(_problems(found, content, artifacts)))
    if not problems:
        proof = f"{content.size} bytes" if content.binary else f"{content.lines} lines, nothing missing"
        return Evidence(about=path, holds=True, proof=proof)
    reason = "; ".join(problems)
    if all(problem.startswith(INCOMPLETE) for problem in problems):
        return Gap(truth=truth, reason=reason, about=path, status="unverified")
    bad = tuple(BadArtifact(path=path, issue=problem) for problem in problems)
    return Gap(truth=truth, reason=reason, about=path, artifacts=bad)


def _problems(path: Path, content: FileContent, artifacts: Sequence[Artifact]) -> Iterator[str]:
    if content.size == 0 and path.name not in MAY_BE_EMPTY:
        yield "it is empty"
        return
    if content.binary:
        return
    unseen = "" if content.complete else f"{INCOMPLETE}: "
    for artifact in artifacts:
        if content.complete and content.lines < artifact.min_lines:
            yield f"it has {content.lines} lines, expected at least {artifact.min_lines}"
        if artifact.contains and not _contains(content.text, artifact.contains):
            yield f"{unseen}it does not contain {artifact.contains!r}"
        for name in missing_exports(path, content.text, artifact.exports):
            yield f"{unseen}it does not define {name!r}"
    exports = tuple(name for artifact in artifacts for name in artifact.exports)
    if content.size and (problem := find_stub(path, content.text, exports)):
        yield problem


def _contains(text: str, wanted: str) -> bool:
    """Whether *wanted* occurs, ignoring the kind of quotes and the amount of white space.

    A plan is written before the code, so it cannot know how a formatter will write it.
    """

    def normalized(text: str) -> str:
        return re.sub(r"\s+", " ", text.replace("'", '"')).strip()

    return wanted in text or normalized(wanted) in normalized(text)


def missing_exports(path: Path, text: str, exports: Sequence[str]) -> list[str]:
    """Return the names among *exports* that the file does not define; prose is not judged.

    In Python a name has to be bound by the module; in other languages it has to occur as a word.
    """
    names = [name for name in map(_bare_name, exports) if _NAME.fullmatch(name)]
    module = parse_python(text) if path.suffix == ".py" else None
    if module is None:
        return [name for name in names if not _occurs(name, text)]
    bound = set(_bound_names(module.body))
    if bound & {"*", "__getattr__"}:  # a star import, or names made on demand: it may define any name
        return []
    return [name for name in names if name not in bound]


def _bare_name(export: str) -> str:
    """``greet()``, ``def greet`` and ``greet(name: str)`` all mean ``greet``."""
    return re.sub(
        r"^(?:async |export |default |def |class |function |const |type |interface )+|[(<:=].*$",
        "",
        export.strip().replace("::", "."),
    ).strip()


def _occurs(name: str, text: str) -> bool:
    parts = re.split(r"\.|#|->", name)
    return all(re.search(rf"(?<![\w$]){re.escape(part)}(?![\w$])", text) for part in parts)


def _bound_names(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield the names that statements bind, those in classes with the class's name as *prefix*."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _bound_names(statement.body, f"{prefix}{name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield prefix + (alias.asname or alias.name.split(".")[0])
            case _:
                if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
                    for node in ast.walk(statement):
                        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                            yield prefix + node.id
                elif type(statement).__name__ == "TypeAlias":  # ``type X = …``: ast has it from Python 3.12
                    yield prefix + ast.unparse(statement).split()[1].split("[")[0]
                # Branches of ``if``, ``try`` and ``with`` bind names of the module, too.
                for block in ("body", "orelse", "finalbody"):
                    yield from _bound_names(getattr(statement, block, []), prefix)
                for handler in getattr(statement, "handlers", []):
                    yield from _bound_names(handler.body, prefix)
