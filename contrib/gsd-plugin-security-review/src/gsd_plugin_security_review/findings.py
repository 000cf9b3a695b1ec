"""The reviewer's findings: their schema, and the check of what they cite against the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, get_args

import attrs

from gsd_core import ConfigError, History, convert_value, protected_part, read_below, safe_text

Severity: TypeAlias = Literal["critical", "high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
MAX_FILE_BYTES = 5_000_000
MAX_FINDINGS = 100
SHORTEST_QUOTE = 8
"""Characters: a shorter quote has to be the whole line, because ``)`` is somewhere in every file."""

_CWE = re.compile(r"CWE-[1-9]\d{0,4}")


@attrs.frozen(kw_only=True)
class Finding:
    """A defect that the agent reports; *property* is what should hold instead, *why* how it can be exploited.

    *line* counts from 1, *quote* is the text of that line. *cwe* is an id of the Common Weakness Enumeration
    (``CWE-22``), or empty.
    """

    severity: Severity
    file: str
    line: int
    quote: str
    what: str
    why: str
    property: str
    fix: str
    cwe: str = ""


@attrs.frozen(kw_only=True)
class Review:
    """The agent's answer."""

    findings: tuple[Finding, ...]


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "findings": {
            "type": "array",
            "maxItems": MAX_FINDINGS,
            "items": {
                "type": "object",
                "properties": {
                    "severity": {"type": "string", "enum": list(SEVERITIES)},
                    "cwe": {"type": "string", "description": "CWE-22, or empty"},
                    "file": _text("path from the root of the project"),
                    "line": {"type": "integer", "minimum": 1},
                    "quote": _text("the text of that line, exactly"),
                    "what": _text("the defect, in one sentence"),
                    "why": _text("who can exploit it, with which input, and what happens"),
                    "property": _text("what should hold instead, in one sentence that can be verified"),
                    "fix": _text("what to change"),
                },
                "required": ["severity", "file", "line", "quote", "what", "why", "property", "fix"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["findings"],
    "additionalProperties": False,
}


def read_review(value: object) -> Review:
    """Return the agent's answer; raise ``ConfigError`` with everything that is wrong with its form."""
    return convert_value(value, Review, "the review")  # type: ignore[no-any-return]


def form_problems(value: object) -> tuple[str, ...]:
    """Return what is wrong with the form of an answer."""
    try:
        read_review(value)
    except ConfigError as error:
        return (str(error),)
    return ()


@attrs.frozen(kw_only=True)
class Sources:
    """The files that may be cited: those in *tree*, if *history* is known only the committed ones."""

    tree: Path
    history: History | None = None

    def located(self, finding: Finding) -> Finding:
        """Return *finding* with the path as git has it, if it means a file of the project."""
        path = PurePosixPath(finding.file)
        if path.is_relative_to(self.tree.as_posix()):
            path = path.relative_to(self.tree.as_posix())
        files = self.history.files if self.history else frozenset[str]()
        # The core removes invisible characters from an answer, and a name in git may have some.
        same = [name for name in files if safe_text(name, strict=True) == str(path)]
        return attrs.evolve(finding, file=same[0] if len(same) == 1 and str(path) not in files else str(path))

    def problem(self, finding: Finding) -> str:
        """Return why what *finding* cites proves nothing, and what to do; empty if it is correct."""
        name = finding.file
        missing = [
            key for key in ("what", "why", "property", "fix") if not str(getattr(finding, key)).strip()
        ]
        if missing:
            return f"{', '.join(missing)} must not be empty"
        if finding.cwe and not _CWE.fullmatch(finding.cwe):
            return f"{finding.cwe!r} is not an id like CWE-22: leave it empty if there is none"
        if protected_part(name):
            return f"{name} is not part of the product: cite the code"
        # Compared with git's own list, in which no path is absolute or has `..`.
        if self.history is not None and name not in self.history.files:
            return f"{name} is not a committed file of the project"
        try:
            lines = self._lines(name)
        except (OSError, ValueError) as error:
            return f"{name} cannot be read: {getattr(error, 'strerror', '') or error}"
        if not 1 <= finding.line <= len(lines):
            return f"{name} has lines 1 to {len(lines)}, not {finding.line}"
        if _quotes(finding.quote, lines[finding.line - 1]):
            return ""
        others = [number for number, line in enumerate(lines, 1) if _quotes(finding.quote, line)]
        if others:
            listed = ", ".join(map(str, others[:5]))
            return f"line {finding.line} of {name} is not what is quoted; that is in line {listed}"
        return f"line {finding.line} of {name} is not what is quoted: read it, and quote it exactly"

    def quoted(self, finding: Finding) -> str:
        """Return the cited line of a finding without a problem, as it is in the file."""
        return self._lines(finding.file)[finding.line - 1].strip()

    def _lines(self, path: str) -> list[str]:
        text = read_below(self.tree, path, limit=MAX_FILE_BYTES).decode("utf-8", "replace")
        # Not splitlines(), which also splits at form feeds and at U+2028: the agent's tools do not, so a file
        # with such characters could make every correct citation wrong.
        return text.removesuffix("\n").split("\n")


def _quotes(quote: str, line: str) -> bool:
    """Whether *quote* is *line* or a good part of it, not counting spaces.

    The core removes secrets and invisible characters from an agent's answer, so a line that has some can only
    be quoted without them.
    """
    wanted = "".join(quote.split())
    for text in (line, safe_text(line, strict=True)):
        there = "".join(text.split())
        if wanted and (wanted == there or (len(wanted) >= SHORTEST_QUOTE and wanted in there)):
            return True
    return False


def distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings with the most severe first, and each place and defect once."""
    ordered = sorted(findings, key=lambda one: (SEVERITIES.index(one.severity), one.file, one.line, one.cwe))
    return tuple({(one.file, one.line, one.cwe or one.what): one for one in reversed(ordered)}.values())[::-1]
