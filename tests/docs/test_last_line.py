"""What exit code 0 leaves open is on the page about it: everything that the last line of a run may add."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from gsd_core.run import notes

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "exit-code-0.md"


def texts() -> Iterator[str]:
    """Yield the fixed parts of the notes, without the words that depend on a number."""
    for node in ast.walk(ast.parse(inspect.getsource(notes))):
        if isinstance(node, ast.Yield) and node.value:
            parts = [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
            fixed = [part.strip(" ();s") for part in parts if isinstance(part, str)]
            yield from (part for part in fixed if len(part) > 3 and part != "in part")


def test_the_page_has_every_text_of_the_last_line() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert len([*texts()]) >= 8
    assert [text for text in texts() if text not in page] == []
