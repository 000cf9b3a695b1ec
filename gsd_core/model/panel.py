"""Panels: what a plugin shows about a project. They are data, so that every place can show them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Panel:
    """What one plugin shows about a project; *name* tells its panels apart.

    *text* is markdown without HTML. *figures* are single values, such as ``{"Coverage": "91 %"}``. Each of
    the *rows* of a table has a text for each of its *columns*. What is empty is not shown.
    """

    name: str
    title: str
    text: str = ""
    figures: Mapping[str, str] = attrs.field(factory=dict[str, str])
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
