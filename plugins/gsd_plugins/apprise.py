"""Notifications through more than a hundred services: ``--notify URL``, repeatable.

The URLs are those of the apprise library (``ntfy://…``, ``tgram://…``, ``mailto://…``). They may
contain passwords, so no message or error shows a whole URL.
"""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Iterable
from typing import Any

import attrs

from gsd_core import ConfigError, Finding, Notice, implements, setting, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_notify, gsd_settings


@attrs.frozen(kw_only=True)
class AppriseSettings:
    """Where to send notifications."""

    urls: tuple[str, ...] = setting(
        (), flag="--notify", help="send notifications to this apprise URL (repeatable)", secret=True
    )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the URLs."""
    yield AppriseSettings


@implements(gsd_doctor)
def check_urls() -> Iterable[Finding]:
    """Report whether apprise supports each URL."""
    findings: list[Finding] = []
    for number, url in enumerate(settings_of(AppriseSettings).urls, start=1):
        ok = _load_service(url) is not None
        findings.append(
            Finding(
                name=_name(number, url),
                ok=ok,
                message="apprise supports this URL" if ok else "apprise does not support this URL",
                fix="" if ok else "see https://github.com/caronc/apprise/wiki for the supported URLs",
            )
        )
    return findings


@implements(gsd_notify)
async def send(notice: Notice) -> None:
    """Send the notification to every URL; raise ``ConnectionError`` naming the services that failed."""
    urls = settings_of(AppriseSettings).urls
    if not urls:
        return
    # One failing service must not keep the others from being notified.
    results = await asyncio.gather(
        *(_send(number, url, notice) for number, url in enumerate(urls, start=1)), return_exceptions=True
    )
    if errors := [str(result) for result in results if isinstance(result, BaseException)]:
        raise ConnectionError("; ".join(errors))


async def _send(number: int, url: str, notice: Notice) -> None:
    service = _load_service(url)
    if service is None:
        raise ConfigError(f"{_name(number, url)}: apprise does not support this URL")

    import apprise

    name = f"{_name(number, url)} ({service.service_name})"
    answer = f"Answer with: {notice.answer_with}" if notice.answer_with else ""
    types = {
        "info": apprise.NotifyType.INFO,
        "warning": apprise.NotifyType.WARNING,
        "error": apprise.NotifyType.FAILURE,
    }
    is_success = notice.type == "complete" and notice.level == "info"
    sender: Any = apprise.Apprise()
    sender.add(service)
    try:
        accepted = await sender.async_notify(
            title=notice.title,
            body="\n\n".join(part for part in (notice.body, answer) if part),
            notify_type=apprise.NotifyType.SUCCESS if is_success else types[notice.level],
            body_format=apprise.NotifyFormat.TEXT,
        )
    except Exception as exc:
        # `from None` and without the error's text, because both may contain the URL.
        raise ConnectionError(f"{name}: {type(exc).__name__}") from None
    if not accepted:
        raise ConnectionError(f"{name} did not accept the notification")


def _load_service(url: str) -> Any:
    """Return apprise's service for *url*, or ``None`` if it is not supported."""
    # Apprise logs unsupported URLs in full. Without a handler, that would go to stderr.
    logger = logging.getLogger("apprise")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = False
    with warnings.catch_warnings():
        # The first URL makes apprise import all its services, some of which use deprecated modules.
        warnings.simplefilter("ignore", DeprecationWarning)
        import apprise

        factory: Any = apprise.Apprise
        try:
            return factory.instantiate(url)
        except Exception:
            return None


def _name(number: int, url: str) -> str:
    """Return a name with the URL's position and scheme; everything after the scheme may be secret."""
    scheme = re.match(r"[a-z][a-z0-9+]{0,19}(?=://)", url)
    return f"--notify {number}, {scheme[0]}://…" if scheme else f"--notify {number}"
