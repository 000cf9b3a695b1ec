"""``.planning/codebase/``: what is known about code that existed before the project was planned.

Source: the templates of GSD's codebase mapper (v1.20.5 and gsd-core 1.14), which have no frontmatter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gsd_core.files import read_start

FOLDER = ".planning/codebase"
READ_LIMIT = 200_000
"""Bytes of a document that are read."""

_DOCUMENTS = {
    "STACK.md": (
        "Technology Stack",
        "Stack analysis",
        "Languages, Runtime, Frameworks, Key Dependencies, Configuration, Platform Requirements",
    ),
    "INTEGRATIONS.md": (
        "External Integrations",
        "Integration audit",
        "APIs & External Services, Data Storage, Authentication & Identity, Monitoring & Observability, "
        "CI/CD & Deployment, Environment Configuration, Webhooks & Callbacks",
    ),
    "ARCHITECTURE.md": (
        "Architecture",
        "Architecture analysis",
        "Pattern Overview, Layers, Data Flow, Key Abstractions, Entry Points, Error Handling, "
        "Cross-Cutting Concerns",
    ),
    "STRUCTURE.md": (
        "Codebase Structure",
        "Structure analysis",
        "Directory Layout, Directory Purposes, Key File Locations, Naming Conventions, "
        "Where to Add New Code, Special Directories",
    ),
    "CONVENTIONS.md": (
        "Coding Conventions",
        "Convention analysis",
        "Naming Patterns, Code Style, Import Organization, Error Handling, Logging, Comments, "
        "Function Design, Module Design",
    ),
    "TESTING.md": (
        "Testing Patterns",
        "Testing analysis",
        "Test Framework, Test File Organization, Test Structure, Mocking, Fixtures and Factories, Coverage, "
        "Test Types, Common Patterns",
    ),
    "CONCERNS.md": (
        "Codebase Concerns",
        "Concerns audit",
        "Tech Debt, Known Bugs, Security Considerations, Performance Bottlenecks, Fragile Areas, "
        "Scaling Limits, Dependencies at Risk, Missing Critical Features, Test Coverage Gaps",
    ),
}
"""The title, the beginning of the footer, and the sections of each document, in GSD's order."""
SECTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    name: (title, tuple(sections.split(", "))) for name, (title, _, sections) in _DOCUMENTS.items()
}
"""The title and the sections of each document."""

_DATE_LINE = re.compile(r"^\*\*Analysis Date:\*\*.*\n+", re.MULTILINE)


def render_codebase(name: str, text: str, date: str) -> str:
    """Return a mapper's *text* as a document, with its title, its date and its footer."""
    body = _DATE_LINE.sub("", text.replace("\r\n", "\n")).strip()
    body = re.sub(r"\A# [^\n]*\n*", "", body)
    title, footer, _ = _DOCUMENTS[name]
    body = re.sub(rf"\n+(?:---\n+)?\*{footer}:[^\n]*\*\Z", "", body).rstrip()
    return f"# {title}\n\n**Analysis Date:** {date}\n\n{body}\n\n---\n\n*{footer}: {date}*\n"


def missing_sections(name: str, text: str) -> tuple[str, ...]:
    """Return the sections that a document lacks."""
    found = {heading.strip().lower() for heading in re.findall(r"^##[ \t]+(.+?)[ \t]*$", text, re.MULTILINE)}
    return tuple(section for section in SECTIONS[name][1] if section.lower() not in found)


def sections_of(text: str, *names: str) -> str:
    """Return those sections of a document, in the order of *names*, with their headings."""
    found: list[str] = []
    for name in names:
        pattern = rf"^##[ \t]+{re.escape(name)}[ \t]*\n.*?(?=^##[ \t]|^---[ \t]*$|\Z)"
        if match := re.search(pattern, text, re.MULTILINE | re.DOTALL | re.IGNORECASE):
            found.append(match[0].strip())
    return "\n\n".join(found)


def read_codebase(root: Path) -> dict[str, str]:
    """Return the documents that exist, by name; one that cannot be read as text is left out."""
    found: dict[str, str] = {}
    for name in SECTIONS:
        with suppress(OSError):
            data = read_start(root, f"{FOLDER}/{name}", READ_LIMIT)
            found[name] = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return found
