"""PROJECT.md: read the project's name and core value, and write a new one.

The sections are those of v1.20.5's template. Agents read the rest of the file as text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .markdown import document, inline, paragraphs, prose, title
from .model import Requirement

_NAME = re.compile(r"^#[ \t]+(\S.*)$", re.MULTILINE)
_PARAGRAPH = r"^##[ \t]+{}[ \t]*\n+([^\n]*(?:\n(?!#|\n)[^\n]*)*)"


def project_name(text: str) -> str:
    """Return the project's name, empty if the text has no title."""
    match = _NAME.search(text)
    return prose(match[1]) if match else ""


def core_value(text: str) -> str:
    """Return the first paragraph under ``## Core Value``, as one line."""
    return _first_paragraph(text, "Core Value")


def project_summary(text: str) -> str:
    """Return the first paragraph under ``## What This Is``, as one line."""
    return _first_paragraph(text, "What This Is")


def _first_paragraph(text: str, heading: str) -> str:
    match = re.search(_PARAGRAPH.format(heading), text.replace("\r\n", "\n"), re.MULTILINE)
    return prose(" ".join(match[1].split())) if match and not match[1].startswith("#") else ""


def render_project(
    name: str,
    summary: str,
    core_value: str,
    requirements: Sequence[Requirement],
    later: Sequence[Requirement],
    out_of_scope: Sequence[tuple[str, str]],
    constraints: Sequence[tuple[str, str, str]],
    date: str,
) -> str:
    """Return PROJECT.md; *out_of_scope* is (feature, reason), *constraints* (type, what, why)."""
    active = [f"- [ ] {inline(requirement.text)}" for requirement in requirements]
    excluded = [f"- {inline(feature)} — {inline(reason)}" for feature, reason in out_of_scope]
    deferred = [f"- {inline(requirement.text)} — deferred to v2" for requirement in later]
    limits = [f"- **{title(kind)}**: {inline(what)} — {inline(why)}" for kind, what, why in constraints]
    parts = [
        f"# {title(name)}",
        "## What This Is",
        paragraphs(summary),
        "## Core Value",
        paragraphs(inline(core_value)),
        "## Requirements",
        "### Validated",
        "(None yet — ship to validate)",
        "### Active",
        "\n".join(active),
        "### Out of Scope",
        "\n".join([*excluded, *deferred]) or "(Nothing excluded yet)",
        "## Context",
        "(None recorded)",
        "## Constraints",
        "\n".join(limits) or "(None)",
        "## Key Decisions",
        "| Decision | Rationale | Outcome |\n|----------|-----------|---------|",
        f"---\n*Last updated: {inline(date)} after initialization*",
    ]
    return document(parts)
