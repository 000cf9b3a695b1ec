"""Small faults in a source file, to see whether a test notices them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import attrs

MutantKind: TypeAlias = Literal["function", "value", "condition"]


@attrs.frozen(kw_only=True)
class SourceFile:
    """A file of the product: its *path* relative to the project's *root*, and its *text*."""

    root: Path
    path: str
    text: str


@attrs.frozen(kw_only=True)
class Mutant:
    """One fault: the text from *start* to *end* (characters, counted from 0) is replaced by *text*.

    *name* is what changes: the qualified name of a ``function`` that ends as soon as it is called, a literal
    ``value``, or the operator of a ``condition``. *first* and *last* are its lines, counted from 1.
    """

    kind: MutantKind
    name: str
    first: int
    last: int
    start: int
    end: int
    text: str

    def apply(self, text: str) -> str:
        """Return the file's *text* with the fault."""
        return text[: self.start] + self.text + text[self.end :]

    @property
    def says(self) -> str:
        """The fault as a clause: ```total` does not work`` or ```30` is replaced by `31```."""
        change = "does not work" if self.kind == "function" else f"is replaced by `{self.text}`"
        return f"`{self.name}` {change}"


@attrs.frozen(kw_only=True)
class Unnoticed:
    """A *mutant* of the file *path* that none of a phase's checks noticed.

    *promised*: its plan promises the function, or its value stands in the words of a requirement, success
    criterion or truth.
    """

    path: str
    mutant: Mutant
    promised: bool = False

    def __str__(self) -> str:
        """Return it as a line for people: ``no test notices if `total` does not work (src/cart.py:3)``."""
        return f"no test notices if {self.mutant.says} ({self.path}:{self.mutant.first})"
