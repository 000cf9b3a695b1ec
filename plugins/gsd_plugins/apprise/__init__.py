"""Notifications through more than a hundred services: ``--notify URL``, repeatable.

The URLs are those of the apprise library (``ntfy://…``, ``tgram://…``, ``mailto://…``); ``desktop`` is
the desktop of this machine. A URL may contain passwords, so no message or error shows more than its scheme.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

import attrs

from gsd_core import Delivery, Finding, Notice, implements, setting, settings_of
from gsd_core.hookspecs import gsd_doctor, gsd_notify, gsd_settings

DESKTOP = "desktop"
LIMIT_SECONDS = 8.0
"""How long one service may take in all. The core ends a notifier after 10 seconds, and then nothing would be
known about the other services."""
RETRY_SECONDS = 2.0
"""The pause before the only further try, after a service refused: it may be restarting or limit the rate."""


@attrs.frozen(kw_only=True)
class AppriseSettings:
    """Where to send notifications."""

    urls: tuple[str, ...] = setting(
        (),
        flag="--notify",
        help="send notifications to this apprise URL, or to the desktop (repeatable)",
        secret=True,
    )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute the URLs."""
    yield AppriseSettings


@implements(gsd_doctor)
def check_urls() -> Iterable[Finding]:
    """Report whether notifications can be sent to each URL."""
    for number, url in enumerate(settings_of(AppriseSettings).urls, start=1):
        # The library takes half a second to import, and most commands do not need it.
        from . import desktop, services

        problem = desktop.problem() if url == DESKTOP else services.problem(url)
        fix = "" if not problem else "leave it out" if url == DESKTOP else services.HELP
        yield Finding(name=_name(number, url), ok=not problem, message=problem or "can be used", fix=fix)


@implements(gsd_notify)
async def send(notice: Notice) -> Sequence[Delivery]:
    """Send the notification to all URLs at once; no service affects another."""
    urls = settings_of(AppriseSettings).urls
    if not urls:
        return ()
    from . import services

    # Once, before several threads import the same modules.
    await _in_daemon_thread(services.load)
    return await asyncio.gather(*(_deliver(number, url, notice) for number, url in enumerate(urls, start=1)))


async def _deliver(number: int, url: str, notice: Notice) -> Delivery:
    """Send to one service, once more if it refuses; never raise."""
    from . import desktop, services

    send_once = partial(desktop.send, notice) if url == DESKTOP else partial(services.send, url, notice)
    reason, tries = "", 0
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while tries < 2:
                if tries:
                    await asyncio.sleep(RETRY_SECONDS)
                tries += 1
                reason = await _in_daemon_thread(send_once)
                if not reason:
                    break
    except TimeoutError:
        # It may have been received. Another try could deliver it twice.
        reason = reason or f"no answer within {LIMIT_SECONDS:g} seconds"
    return Delivery(service=_name(number, url), ok=not reason, reason=reason, tries=tries)


def _name(number: int, url: str) -> str:
    """Return a name with the URL's position and scheme; everything after the scheme may be secret."""
    if url == DESKTOP:
        return f"--notify {number} ({DESKTOP})"
    scheme = re.match(r"[a-z][a-z0-9+]{0,19}(?=://)", url)
    return f"--notify {number} ({scheme[0]})" if scheme else f"--notify {number}"


async def _in_daemon_thread(function: Callable[[], str]) -> str:
    """Return what *function* returns; it must not raise. If this is cancelled, the thread is left behind.

    asyncio's own threads are waited for at the end of the process: a service that accepts a connection and
    sends one byte a second would keep a finished run from exiting for minutes.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def deliver(result: str) -> None:
        if not done.done():
            done.set_result(result)

    def work() -> None:
        result = function()
        with suppress(RuntimeError):  # the loop is closed: nobody waits for the result
            loop.call_soon_threadsafe(deliver, result)

    threading.Thread(target=work, name="gsd:notify", daemon=True).start()
    return await done
