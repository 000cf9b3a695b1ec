"""Call a blocking function in a daemon thread, which does not keep the process from exiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress


async def in_daemon_thread(function: Callable[[], str]) -> str:
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
