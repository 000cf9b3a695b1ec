"""``deferred-items.md``: what executors found in a phase, and left for later because it is not their plan's.

Source: the file of that name in the phase folders of GSD; its executors append to it in no fixed form. Here
each plan has a section, so that a step that is repeated writes the same file again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .markdown import bullets

NAME = "deferred-items.md"
_TITLE = "# Deferred Items"
_DEFERRED_TASK = re.compile(r"^- (Task \d+ was not done: )", re.MULTILINE)


def with_done(text: str) -> str:
    """Return the file's *text* with the tasks that were deferred ticked: the phase's verification passed.

    It has run their checks, so what they were to do is there. Other items stay open.
    """
    return _DEFERRED_TASK.sub(r"- [x] \1", text)


def with_deferred(text: str, plan: str, items: Sequence[str]) -> str:
    """Return the file's *text* with *items* as the section of *plan*, in place of what was there."""
    section = re.compile(rf"^## {re.escape(plan)}[ \t]*$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    others = section.sub("", text.replace("\r\n", "\n")).rstrip()
    listed = bullets(items)
    if not listed:
        return f"{others}\n" if others else ""
    return f"{others or _TITLE}\n\n## {plan}\n\n{listed}\n"
