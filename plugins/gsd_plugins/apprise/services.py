"""Send a notification with the apprise library, and say in safe words why that failed.

Apprise logs the reason of a failure, in texts that contain addresses. Of these, only what is known to be no
secret is used: the status code, and that there was no connection.
"""

from __future__ import annotations

import logging
import re
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from gsd_core import Notice

HELP = "see https://github.com/caronc/apprise/wiki for the supported URLs"
UNSUPPORTED = "apprise does not support this URL: the service is unknown, or its address is incomplete"

_STATUS = re.compile(r"\berror=(\d{3})\b")
_MENTION = re.compile(r"@(?=everyone\b|here\b|channel\b|all\b)|(?<=<)(?=[@#!&])", re.IGNORECASE)


def load() -> str:
    """Import apprise and all its services; return an error, or an empty string. It takes half a second."""
    with warnings.catch_warnings():
        # Some services use deprecated modules.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            _service("json://localhost")
        except Exception as exc:
            return f"apprise cannot be imported: {type(exc).__name__}"
    return ""


def problem(url: str) -> str:
    """Return why notifications cannot be sent to *url*; empty if they can, as far as the URL shows."""
    with _apprise_log():
        return load() or ("" if _service(url) is not None else UNSUPPORTED)


def message(notice: Notice) -> str:
    """Return the text of a notification, with the command that answers its question, and its links."""
    answer = f"Answer with: {notice.answer_with}" if notice.answer_with else ""
    parts = (notice.body, answer, "\n".join(notice.links))
    # Apprise sends nothing without a body.
    return "\n\n".join(part for part in parts if part) or notice.title


def send(url: str, notice: Notice) -> str:
    """Send to one service; return why that failed, without secrets. It blocks."""
    with _apprise_log() as lines:
        try:
            service = _service(url)
            if service is None:
                return UNSUPPORTED
            return "" if _send(service, notice) else _reason(lines)
        except Exception as exc:  # its text may contain the URL
            return type(exc).__name__


def _send(service: Any, notice: Notice) -> bool:
    import apprise

    types = {
        "info": apprise.NotifyType.INFO,
        "warning": apprise.NotifyType.WARNING,
        "error": apprise.NotifyType.FAILURE,
    }
    is_success = notice.type == "complete" and notice.level == "info"
    sender: Any = apprise.Apprise()
    sender.add(service)
    return bool(
        sender.notify(
            title=_without_mentions(notice.title),
            body=_without_mentions(message(notice)),
            notify_type=apprise.NotifyType.SUCCESS if is_success else types[notice.level],
            body_format=apprise.NotifyFormat.TEXT,
        )
    )


def _without_mentions(text: str) -> str:
    """Break what chat services take as a mention: a model wrote the text, and must not call everyone."""
    return _MENTION.sub(lambda match: f"{match[0]}\u200b", text)


def _service(url: str) -> Any:
    """Return apprise's service for *url*, or ``None`` if it is not supported."""
    import apprise

    factory: Any = apprise.Apprise
    # Otherwise apprise sends in a thread of its own pool. Python waits for that thread before it exits, and
    # what the thread logs cannot be told from the log of another service.
    has_limit = hasattr(apprise.AppriseAsset, "_service_timeout")
    no_limit: dict[str, Any] = {"service_timeout": 0} if has_limit else {}
    asset: Any = apprise.AppriseAsset(async_mode=False, **no_limit)
    try:
        return factory.instantiate(url, asset=asset)
    except Exception:
        return None


def _reason(lines: list[str]) -> str:
    text = "\n".join(lines)
    if status := _STATUS.search(text):
        return f"HTTP {status[1]}"
    return "no connection" if "onnection error" in text.casefold() else "not accepted"


class _ThreadLog(logging.Handler):
    """Keeps what the current thread logs; others may be sending at the same time."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the text of *record*."""
        if record.thread == self._thread:
            self.lines.append(record.getMessage())


@contextmanager
def _apprise_log() -> Generator[list[str]]:
    """Yield what apprise logs in this thread meanwhile; nothing of it, such as a whole URL, is printed."""
    logger = logging.getLogger("apprise")
    logger.propagate = False
    handler = _ThreadLog()
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
