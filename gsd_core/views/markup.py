"""HTML that is escaped by construction: only elements are markup, and all other text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from gsd_core.sanitize import safe_text

Child: TypeAlias = "str | Html | Iterable[str | Html]"

VOID = frozenset({"meta", "rect", "br", "hr"})
"""Elements without an end tag."""


class Html:
    """Markup that is ready to be written; not a ``str``, so that the two cannot be confused."""

    __slots__ = ("markup",)

    def __init__(self, markup: str) -> None:
        self.markup = markup


def el(name: str, /, *children: Child, **attributes: str | int | None) -> Html:
    """Return the element *name*; an attribute's ``_`` is a hyphen, one at its end is dropped.

    Text in *children* and *attributes* is sanitized, redacted and escaped. An attribute that is ``None`` is
    left out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(safe_text(str(value), multiline=False))}"'
        for key, value in attributes.items()
        if value is not None
    )
    end = "" if name in VOID else f"</{name}>"
    return Html(f"<{name}{given}>{''.join(_markup(children))}{end}")


def text(value: str) -> Html:
    """Return *value* as an element of its own, so that right-to-left text does not reorder what is around."""
    return el("bdi", value)


def prose(value: str) -> Html:
    """Return *value* like :func:`text`, with what is between backticks as code."""
    parts = value.split("`")
    if len(parts) % 2 == 0:
        return text(value)
    return el("bdi", [el("code", part) if at % 2 else part for at, part in enumerate(parts)])


def style(sheet: str) -> Html:
    """Return a style sheet of our own, unchanged, because a hash of it is in the page's policy."""
    if "</" in sheet:
        raise ValueError("a style sheet cannot contain an end tag")
    return Html(f"<style>{sheet}</style>")


def join(parts: Iterable[Html], separator: str = " ") -> list[str | Html]:
    """Return *parts* with *separator* between them."""
    found: list[str | Html] = []
    for part in parts:
        found += [separator, part] if found else [part]
    return found


def _markup(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child.markup
        elif isinstance(child, str):
            yield html.escape(safe_text(child))
        else:
            yield from _markup(child)
