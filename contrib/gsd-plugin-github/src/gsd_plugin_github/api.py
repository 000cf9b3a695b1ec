"""GitHub's REST API, as far as the plugin needs it.

A request that GitHub refuses because there were too many is made again when GitHub says so.
Source: https://docs.github.com/rest
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias, cast

import aiohttp
import attrs

from gsd_core import Permanent, Transient, redact_data

Data: TypeAlias = dict[str, Any]
Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]

TIMEOUT = 20
LONGEST_WAIT = 3600.0
MAX_PAGES = 20


@attrs.frozen(kw_only=True)
class GitHub:
    """A connection to the API at *url*."""

    url: str
    session: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, token: str) -> AsyncGenerator[GitHub]:
        """Provide a connection with *token*."""
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "gsd-plugin-github",
        }
        timeout = aiohttp.ClientTimeout(total=TIMEOUT)
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
            yield cls(url=url.rstrip("/"), session=session)

    async def call(self, method: Method, path: str, data: Mapping[str, Any] | None = None) -> Any:
        """Return the answer's JSON; *data* is redacted before it is sent.

        Raises ``Transient`` if GitHub cannot be reached or has a failure, and ``Permanent`` if it refuses.
        """
        return (await self._request(method, path, data))[0]

    async def pages(self, path: str) -> AsyncGenerator[Data]:
        """Yield the items of a list."""
        for page in range(1, MAX_PAGES + 1):
            joint = "&" if "?" in path else "?"
            items: list[Data] = await self.call("GET", f"{path}{joint}per_page=100&page={page}")
            for item in items:
                yield item
            if len(items) < 100:
                return

    async def _request(self, method: Method, path: str, data: Mapping[str, Any] | None) -> tuple[Any, int]:
        body = redact_data(dict(data)) if data is not None else None
        while True:
            try:
                # A redirect would send the token elsewhere.
                async with self.session.request(
                    method, f"{self.url}{path}", json=body, allow_redirects=False
                ) as response:
                    if (wait := _wait(response)) is not None:
                        await asyncio.sleep(wait)
                        continue
                    if response.status >= 500:
                        raise Transient(f"GitHub failed with status {response.status}")
                    answer: Any = await response.json() if response.status != 204 else None
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise Transient(f"GitHub cannot be reached: {type(error).__name__}") from None
            if response.status >= 300:
                about = cast("Data", answer) if isinstance(answer, dict) else {}
                message = str(about.get("message", ""))
                raise Refused(
                    f"GitHub refused {method} {path}: {response.status} {message}".strip(), response.status
                )
            return answer, response.status


def login_of(item: Data, key: str = "user") -> str:
    """Return the login of the person under *key*; empty if there is none, as after an account was deleted."""
    person: Data = item.get(key) or {}
    return str(person.get("login") or "")


class Refused(Permanent):
    """GitHub refused a request, with *status*."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def _wait(response: aiohttp.ClientResponse) -> float | None:
    """Return how long to wait before the request may be made again; ``None`` if it was not too early."""
    if response.status not in (403, 429):
        return None
    after, reset = response.headers.get("Retry-After", ""), response.headers.get("X-RateLimit-Reset", "")
    if after.isdecimal():
        return min(float(after), LONGEST_WAIT)
    if response.headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        return min(max(1.0, float(reset) - time.time()), LONGEST_WAIT)
    return 60.0 if response.status == 429 else None
