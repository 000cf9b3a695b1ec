"""Python source as a syntax tree, if it is Python that we can read."""

from __future__ import annotations

import ast
import warnings


def parsed(text: str) -> ast.Module | None:
    """Return the tree, ``None`` for what is broken, too deep, or newer than our own Python."""
    with warnings.catch_warnings():
        # A doubtful escape in the file is the file's own matter.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
