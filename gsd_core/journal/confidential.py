"""Facts without secrets: what the journal redacts before it stores a fact, and what it keeps verbatim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from gsd_core.sanitize import redact_data, safe_data

FOR_PEOPLE = frozenset(
    {
        *("agent.activity", "log.line", "run.closed", "attempt.lost", "attempt.failed", "landing.failed"),
        *("step.failed", "step.skipped", "plugin.failed", "timer.set", "recovered", "guard.found"),
        *("step.queued", "guard.undone", "notice.begun", "notice.sent"),
    }
)
"""Kinds of facts whose texts only people read. Others are redacted strictly: a run continues from them."""

VERBATIM = frozenset(
    {
        *("path", "paths", "found", "created", "deleted", "left", "written", "dirty_before"),
        *("plans", "directory"),
        *("ref", "kept", "commit", "base_commit", "base", "head", "parent", "branch", "sha256"),
        *("prompt_sha256",),
        *("id", "key", "conversation", "run", "step", "at", "until", "usage", "idle"),
    }
)
"""Fields that identify something: git, the file system or an agent has to find it again."""


def without_secrets(kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a fact's *data* with secrets redacted.

    The planning files of a step's result are redacted. Its other files belong to the user's project, and are
    written as the executor returned them. The digest of the planning files is kept, because it is compared
    with them, and they are redacted themselves.
    """
    if kind == "project.observed":
        return data
    if kind in FOR_PEOPLE:
        return cast("Mapping[str, Any]", safe_data(data, verbatim=VERBATIM))
    redacted: dict[str, Any] = redact_data(data, strict=True, verbatim=VERBATIM)
    if kind == "step.result":
        for number, file in enumerate(data["result"].get("files", ())):
            if not file["path"].startswith(".planning/"):
                redacted["result"]["files"][number] = file
    return redacted
