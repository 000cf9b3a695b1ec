"""The messages of errors, collected from the ``raise`` statements of the core and of the built-in plugins."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from attrs import frozen

from gsd_core import errors
from gsd_core.errors import GsdError

ROOT = Path(__file__).parents[1]
SOURCES = ("gsd_core", "plugins/gsd_plugins")
NOT_FOR_USERS = ("gsd_core/testing", "plugins/gsd_plugins/rehearsal/fake")
VARIES = "…"
"""What stands for a part that differs from time to time."""


@frozen(order=True)
class Message:
    """The text of an error of the class *kind*, and its *hint*, which may be empty."""

    kind: str
    text: str
    hint: str


def error_names() -> tuple[str, ...]:
    """Return the names of all classes of errors, in the order of their definition."""
    return tuple(
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, GsdError)
    )


@cache
def messages() -> tuple[Message, ...]:
    """Return every message with a text of its own, sorted by class and text."""
    found: set[Message] = set()
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith(NOT_FOR_USERS):
                found |= {*_messages_in(ast.parse(path.read_text("utf-8")))}
    return tuple(sorted(found))


def _messages_in(tree: ast.Module) -> Iterator[Message]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        assigned = _assigned(function)
        for node in ast.walk(function):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
                continue
            kind = ast.unparse(node.exc.func).rpartition(".")[2]
            if kind not in error_names():
                continue
            hint = next((word.value for word in node.exc.keywords if word.arg == "hint"), None)
            hints = _texts(hint, assigned) if hint else [""]
            for text in _texts(node.exc.args[0], assigned):
                if text.replace(VARIES, "").strip(" .:;,'\""):
                    yield Message(kind, text, hints[0] if hints and hints[0] != VARIES else "")


def _assigned(function: ast.AST) -> Mapping[str, list[ast.expr]]:
    """Return what is assigned to each name in a function."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return found


def _texts(value: ast.expr, assigned: Mapping[str, list[ast.expr]]) -> list[str]:
    """Return the texts that an expression may have."""
    match value:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr():
            parts = (part.value if isinstance(part, ast.Constant) else VARIES for part in value.values)
            return ["".join(map(str, parts))]
        case ast.IfExp():
            return [*_texts(value.body, assigned), *_texts(value.orelse, assigned)]
        case ast.Name(id=name) if name in assigned:
            rest = {key: values for key, values in assigned.items() if key != name}
            return [text for found in assigned[name] for text in _texts(found, rest)]
        case _:
            return [VARIES]
