"""Checkpoints in the final text of a command: where GSD's commands stop and wait for a person.

Source: ``references/checkpoints.md``, ``workflows/execute-phase.md`` and ``agents/gsd-executor.md`` of
get-shit-done-cc 1.42. A checkpoint is a box with ``CHECKPOINT: Verification Required`` (or ``Decision``,
``Action``), or a heading ``CHECKPOINT REACHED`` or ``Checkpoint: Type``. In a run that nobody watches, the
command ends there.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Literal

import attrs

from gsd_core import Inquiry, Option, Question

MAX_TEXT = 6_000
"""Characters of the command's text that the question shows, from the checkpoint on."""
MAX_OPTIONS = 8

APPROVED = Option(label="approved", description="It is as it should be.", recommended=True)
DONE = Option(label="done", description="I have done this.")

_BANNER = re.compile(
    r"^[ \t>]*(?:║[ \t]*CHECKPOINT:[ \t]*(?P<box>[^║\n]*?)[ \t]*║"
    r"|#{1,4}[ \t]*CHECKPOINT REACHED\b[^\n]*"
    r"|#{1,4}[ \t]*Checkpoint:[ \t]*(?P<heading>[^\n]+))",
    re.MULTILINE,
)
_TYPE = re.compile(r"^\W*Type:\W*(human-verify|decision|human-action)", re.MULTILINE | re.IGNORECASE)
_OPTION = re.compile(
    r"^[ \t]*(?:\d+[.)]|[-*])[ \t]+\**([\w][\w .+/-]{0,60}?)\**[ \t]+[-–—:][ \t]+(.+)$", re.MULTILINE
)

Kind = Literal["verify", "decision", "action"]


@attrs.frozen(kw_only=True)
class Checkpoint:
    """A checkpoint: what a person has to do, and the *text* that says so."""

    kind: Kind
    text: str

    def inquiry(self, step: str, command: str, earlier: int) -> Inquiry:
        """Return its question; *earlier* is how often the same text was asked in this step already."""
        # The text is part of a question's identity: unchanged, the earlier answer would be returned.
        text = f"{self.text}\n\n(Asked again, attempt {earlier + 1}.)" if earlier else self.text
        match self.kind:
            case "verify":
                question = Question(text=text, header="Please check", options=(APPROVED,), inspection=True)
            case "decision":
                # Lines such as `1. supabase - Built-in with our DB`.
                listed = self.text.partition("Options:")[2] or self.text
                found = islice(_OPTION.finditer(listed), MAX_OPTIONS)
                options = [Option(label=one[1].strip(), description=one[2].strip()[:200]) for one in found]
                question = Question(text=text, header="Please decide", options=tuple(options))
            case "action":
                question = Question(text=text, header="Please do", options=(DONE,), human_only=True)
        reason = f"{command} has reached a checkpoint"
        return Inquiry(kind="checkpoint", step=step, questions=(question,), reason=reason)


def find_checkpoint(text: str) -> Checkpoint | None:
    """Return the last checkpoint in the final *text* of a command, if it ends with one."""
    found = list(_BANNER.finditer(text))
    if not found:
        return None
    banner = found[-1]
    said = text[banner.end() :]
    typed = _TYPE.search(said)
    about = (banner["box"] or banner["heading"] or (typed[1] if typed else "")).lower()
    kind: Kind = "verify"
    if "decision" in about:
        kind = "decision"
    elif "action" in about or "auth" in about:
        kind = "action"
    lines = [line for line in said.splitlines() if line.strip(" ═─╔╗╚╝║━")]
    shown = "\n".join(lines).strip()[:MAX_TEXT]
    return Checkpoint(kind=kind, text=shown or (banner["box"] or banner["heading"] or "Checkpoint").strip())
