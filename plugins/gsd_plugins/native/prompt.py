"""Prompts: our own words from data files, everybody else's behind a fence."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files


@cache
def words(name: str) -> str:
    """Return the text of ``prompts/NAME.md``."""
    return files("gsd_plugins.native").joinpath("prompts", f"{name}.md").read_text("utf-8").strip()


def system(name: str) -> str:
    """Return the system prompt of a role: what it does, and the rules for all."""
    return joined(words(name), words("rules"))


def joined(*parts: str) -> str:
    """Return the parts that are not empty, with a blank line between them."""
    return "\n\n".join(part for part in parts if part.strip())


def titled(title: str, body: str) -> str:
    """Return *body* under a title; empty if there is no body."""
    return f"# {title}\n{body}" if body.strip() else ""


def bullets(items: Iterable[str]) -> str:
    """Return a list, one line each."""
    return "\n".join(f"- {item}" for item in items)


def fenced(name: str, text: str) -> str:
    """Return *text* as material: between tags that it cannot close, since it does not contain them.

    The tag depends on the text alone, so that the same material gives the same prompt.
    """
    if not text.strip():
        return ""
    tag = _tag(text)
    return f'<{tag} name="{_plain(name)}">\n{text.strip()}\n</{tag}>'


def _tag(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    sizes = range(8, len(digest) + 1)
    return next(tag for size in sizes if (tag := f"data-{digest[:size]}") not in text)


def _plain(name: str) -> str:
    return re.sub(r"[^\w. -]+", "_", name)[:100]
