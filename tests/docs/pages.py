"""The pages that people wrote, and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

from tests.package.source import ROOT

WRITTEN = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/index.md",
    "docs/tutorial",
    "docs/how-to",
    "docs/explanation",
)
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


@frozen(kw_only=True)
class Block:
    """A fenced block: its page and line, its language and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every page."""
    for name in WRITTEN:
        path = ROOT / name
        for page in [path] if path.is_file() else sorted(path.glob("*.md")):
            yield page.relative_to(ROOT).as_posix(), page.read_text("utf-8")


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of these languages."""
    return [
        Block(page=page, line=text[: found.start()].count("\n") + 1, language=found[1], text=found[2])
        for page, text in pages()
        for found in _FENCE.finditer(text)
        if found[1] in languages
    ]
