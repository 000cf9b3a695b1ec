"""Errors as the interface shows them: a status, a code, a message and a hint."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from gsd_core import Conflict, GsdError, NotFound, PlanningError, UserError, safe_text

CODES = {
    400: "invalid",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "content_type",
    421: "host",
    500: "internal",
}


class Refused(Exception):
    """A request that is not served; *status* is that of HTTP."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint

    def as_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return error_json(CODES[self.status], str(self), self.hint)


async def require_folder(project: Path) -> None:
    """Refuse what is asked about a project whose folder is gone: without it, everything would seem empty."""
    if not await asyncio.to_thread(project.is_dir):
        hint = "move the folder back, or remove the run from the list"
        raise Refused(409, f"the folder of the project is gone: {str(project)!r}", hint)


def error_json(code: str, message: str, hint: str = "") -> dict[str, Any]:
    """Return an error as JSON data; what it quotes may come from a repository."""
    return {"error": {"code": code, "message": safe_text(message), "hint": safe_text(hint)}}


def refused_by(error: GsdError) -> Refused:
    """Return the answer to an error of the core or of sessions; its class decides, not its words."""
    match error:
        case NotFound():
            status = 404
        case UserError() if not isinstance(error, Conflict | PlanningError):
            status = 400
        case _:
            status = 409
    return Refused(status, str(error), error.hint or "")
