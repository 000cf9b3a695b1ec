"""Reads PROJECT.md: the project's name and what matters most in it."""

from __future__ import annotations

import re

from gsd_core.planning.inline import prose

_NAME = re.compile(r"^#[ \t]+(\S.*)$", re.MULTILINE)
_CORE_VALUE = re.compile(r"^##[ \t]+Core Value[ \t]*\n+([^\n]*(?:\n(?!#|\n)[^\n]*)*)", re.MULTILINE)


def project_name(text: str) -> str:
    """Return the project's name, empty if the text has no title."""
    match = _NAME.search(text)
    return prose(match[1]) if match else ""


def core_value(text: str) -> str:
    """Return the first paragraph under ``## Core Value``, as one line."""
    match = _CORE_VALUE.search(text.replace("\r\n", "\n"))
    return prose(" ".join(match[1].split())) if match and not match[1].startswith("#") else ""
