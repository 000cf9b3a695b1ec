"""Ids of phases, steps, runs and questions.

Their format must not change: users' repositories contain them, in file names, in commit trailers
(``GSD-Step``) and in journals.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import attrs

INIT: Final = "init"
DISCUSS: Final = "discuss"
PLAN: Final = "plan"
EXECUTE: Final = "execute"
VERIFY: Final = "verify"
COMPLETE: Final = "complete"
CORE_KINDS: Final = (INIT, DISCUSS, PLAN, EXECUTE, VERIFY, COMPLETE)
"""The kinds of steps that the core schedules by itself; plugins add others with the hook ``gsd_steps``."""

# A phase number begins with a digit or a capital letter, so the two cannot be confused.
_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}")
_PHASE = re.compile(r"(\d{1,9})((?:-\d{1,4})*)([A-Za-z]?)((?:\.\d{1,9}[A-Za-z]?)*)")
_PART = re.compile(r"(\d{1,9})([A-Za-z]?)")
# Also splits "A10" after its letter, so that it comes after "A2".
_SEPARATOR = re.compile(r"[.-]|(?<=^[A-Za-z])(?=\d)")
_AFTER_NUMBERS = 10**9


def normal_phase(text: str) -> str:
    """Return a phase number without leading zeros: ``"02.1"`` → ``"2.1"``, ``"12a"`` → ``"12A"``.

    If the number includes the milestone (``"02-1"`` → ``"2-01"``), the part after the hyphen has two
    digits. Anything that is not a phase number is returned as it is.
    """
    match = _PHASE.fullmatch(text.strip())
    if not match:
        return text.strip()
    series = "".join(f"-{int(part):02d}" for part in match[2].split("-")[1:])
    below = (f".{int(m[1])}{m[2].upper()}" for m in _PART.finditer(match[4]))
    return "".join([str(int(match[1])), series, match[3].upper(), *below])


def phase_order(number: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that orders phases part by part: 2.1 < 2.2 < 2.10 < 3 < A1 < A10 < PROJ-42.

    Numbers that begin with letters come after all others, ordered by their letters first.
    """
    first, *rest = _SEPARATOR.split(normal_phase(number))
    if first[:1].isalpha():
        return ((_AFTER_NUMBERS, first), *map(_part_order, rest))
    return tuple(map(_part_order, [first, *rest]))


def _part_order(part: str) -> tuple[int, str]:
    match = _PART.fullmatch(part)
    return (int(match[1]), match[2]) if match else (0, part)


def padded(number: str) -> str:
    """Return a phase number as it is written in file names: ``"2.1"`` → ``"02.1"``."""
    normal = normal_phase(number)
    return f"0{normal}" if re.match(r"\d(?!\d)", normal) else normal


def slug(name: str) -> str:
    """Return *name* in the form used in folder names: lower case, digits, hyphens; at most 40 characters."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words[:40].rstrip("-") or "phase"


def is_kind(text: str) -> bool:
    """Whether *text* can name a kind of steps: lower-case letters, digits and hyphens, at most 40."""
    return _KIND.fullmatch(text) is not None


@attrs.frozen
class StepId:
    """The id of a step, written like ``2.1/execute/02.1-03``, ``2.1/verify/r2``, ``audit/v1.0`` or ``init``.

    *detail* is the id of a plan (execute), the version of a milestone (audit, close) or a name that the
    step's plugin chose. *round* counts how often the phase or milestone was planned, verified or audited.
    """

    kind: str
    phase: str = ""
    detail: str = ""
    round: int = 0

    def __str__(self) -> str:
        parts = [self.phase, self.kind, self.detail, f"r{self.round}" if self.round else ""]
        return "/".join(part for part in parts if part)

    @staticmethod
    @lru_cache(1 << 14)  # those of a long run: views group all that happened by phase and step
    def parse(text: str) -> StepId:
        """Return the step id that *text* is; raise ``ValueError`` if it is not one."""
        parts = text.split("/")
        phase = "" if is_kind(parts[0]) else parts.pop(0)
        if not 1 <= len(parts) <= 3 or not is_kind(parts[0]) or not all(parts):
            raise ValueError(f"not a step id: {text!r}")
        last = re.fullmatch(r"r(\d{1,9})", parts[-1]) if len(parts) > 1 else None
        detail = parts[1 : -1 if last else None]
        if len(detail) > 1:
            raise ValueError(f"not a step id: {text!r}")
        return StepId(kind=parts[0], phase=phase, detail="".join(detail), round=int(last[1]) if last else 0)


def new_run_id(now: datetime) -> str:
    """Return a run id that sorts by time: ``r-20260103T040506-1a2b3c``."""
    return f"r-{now.astimezone(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def question_id(run: str, step: str, key: str, text: str, options: Sequence[str]) -> str:
    """Return the id of a question; the same question, asked again after a crash, gets the same id.

    *key* tells apart questions with the same words that a step asks at different points.
    """
    digest = hashlib.sha256("\0".join([run, step, key, text, *options]).encode())
    return f"q-{digest.hexdigest()[:10]}"
