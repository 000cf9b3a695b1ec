"""Notices to more than a hundred services: ``--notify URL``, as often as you like.

The addresses are those of the apprise library (``ntfy://…``, ``tgram://…``, ``mailto://…``).
They hold passwords, so no message of ours repeats one.
"""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from gsd_core import ConfigError, Finding, Notice, implements, setting, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_notify, gsd_settings


@frozen(kw_only=True)
class AppriseSettings:
    """Where to send notices."""

    urls: tuple[str, ...] = setting((), flag="--notify", help="send notices to this apprise URL (repeatable)")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the addresses."""
    yield AppriseSettings


@implements(gsd_doctor)
def addresses_are_known() -> Iterable[Finding]:
    """Find addresses that no service understands."""
    urls = settings_of(AppriseSettings).urls
    return [_finding(position, url) for position, url in enumerate(urls, 1)]


@implements(gsd_notify)
async def send(notice: Notice) -> None:
    """Send the notice to every address; raise ``ConnectionError`` naming the services that failed."""
    urls = settings_of(AppriseSettings).urls
    if not urls:
        return
    sent = await asyncio.gather(
        *(_send(position, url, notice) for position, url in enumerate(urls, 1)), return_exceptions=True
    )
    if failed := [str(outcome) for outcome in sent if isinstance(outcome, BaseException)]:
        raise ConnectionError("; ".join(failed))


async def _send(position: int, url: str, notice: Notice) -> None:
    service = _service(url)
    if service is None:
        raise ConfigError(f"{_name(position, url)} is no address that apprise knows")
    name = f"{_name(position, url)} ({service.service_name})"
    try:
        accepted = await _deliver(service, notice)
    except Exception as exc:
        raise ConnectionError(f"{name}: {type(exc).__name__}") from None
    if not accepted:
        raise ConnectionError(f"{name} did not take the notice")


async def _deliver(service: Any, notice: Notice) -> bool:
    import apprise

    sender: Any = apprise.Apprise()
    sender.add(service)
    accepted = await sender.async_notify(
        title=notice.title,
        body=_body(notice),
        notify_type=_type(notice),
        body_format=apprise.NotifyFormat.TEXT,
    )
    return bool(accepted)


def _service(url: str) -> Any:
    """Return the service of an address, ``None`` if there is none."""
    # The library logs addresses that it does not know as they are; without a handler that is stderr.
    library = logging.getLogger("apprise")
    if not library.handlers:
        library.addHandler(logging.NullHandler())
    library.propagate = False
    with warnings.catch_warnings():
        # It loads all its services at the first address, some of which use deprecated modules.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _instantiate(url)


def _instantiate(url: str) -> Any:
    import apprise

    maker: Any = apprise.Apprise
    try:
        return maker.instantiate(url)
    except Exception:
        return None


def _finding(position: int, url: str) -> Finding:
    name = _name(position, url)
    if _service(url) is None:
        fix = "see https://github.com/caronc/apprise/wiki for the form of addresses"
        return Finding(name=name, ok=False, message="no address that apprise knows", fix=fix)
    return Finding(name=name, ok=True, message="an address that apprise knows")


def _name(position: int, url: str) -> str:
    """Name an address by its place and scheme; everything behind those may be a secret."""
    scheme = re.match(r"[a-z][a-z0-9+]{0,19}(?=://)", url)
    return f"--notify {position}, {scheme[0]}://…" if scheme else f"--notify {position}"


def _body(notice: Notice) -> str:
    answer = f"Answer with: {notice.answer_with}" if notice.answer_with else ""
    return "\n\n".join(part for part in (notice.body, answer) if part)


def _type(notice: Notice) -> Any:
    from apprise import NotifyType

    if notice.type == "complete" and notice.level == "info":
        return NotifyType.SUCCESS
    levels = {"info": NotifyType.INFO, "warning": NotifyType.WARNING, "error": NotifyType.FAILURE}
    return levels[notice.level]
