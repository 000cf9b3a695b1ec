"""What the route table is made of, and how a request finds its route.

The gate and the dispatch use the same lookup. A second router could read a path in another way.
A path that is not in the table cannot be reached.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from .site import Site

Policy: TypeAlias = Literal["public", "read", "control"]
"""Who may use a route: everybody who reaches the server, or who has a token of that scope."""
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE", "WEBSOCKET", "*"]
Schema: TypeAlias = Mapping[str, Any]
Handler: TypeAlias = "Callable[[Site, Request], Awaitable[ASGIApp]]"

PARAMETER = re.compile(r"\{(\w+)\}")
ONE_SEGMENT = r"[A-Za-z0-9._~:@+-]{1,128}"
ANY_PATH = r"[A-Za-z0-9._/-]{0,512}"


@attrs.frozen(kw_only=True)
class Parameter:
    """A parameter of the query."""

    name: str
    schema: Schema
    about: str
    required: bool = False
    repeated: bool = False


@attrs.frozen(kw_only=True)
class Route:
    """One row of the table: *path* has ``{names}`` of one segment; ``{path}`` is any number of them.

    *handle* returns the response, which is called with the scope of the request, as for a WebSocket. *answer*
    and *body* are JSON schemas; *body* is checked before *handle* is called.
    """

    method: Method
    path: str
    policy: Policy
    handle: Handler
    name: str
    answer: Schema | None = None
    body: Schema | None = None
    query: tuple[Parameter, ...] = ()
    status: int = 200
    pattern: re.Pattern[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        segments = (
            f"(?P<{part}>{ANY_PATH if part == 'path' else ONE_SEGMENT})" if number % 2 else re.escape(part)
            for number, part in enumerate(PARAMETER.split(self.path))
        )
        object.__setattr__(self, "pattern", re.compile("".join(segments)))

    @property
    def about(self) -> str:
        """What the route does, as its handler says it."""
        return (self.handle.__doc__ or "").partition("\n")[0]

    @property
    def parameters(self) -> Sequence[str]:
        """The names in the path."""
        return PARAMETER.findall(self.path)


@attrs.frozen(kw_only=True)
class Found:
    """The route of a request; ``None`` if no path matches, with the methods that the path knows."""

    route: Route | None
    parameters: Mapping[str, str] = attrs.field(factory=dict[str, str])
    methods: frozenset[str] = frozenset()


def find_route(table: Sequence[Route], method: str, path: str) -> Found:
    """Return the first route for *path* and *method*; HEAD is answered as GET is."""
    wanted = "GET" if method == "HEAD" else method
    methods: set[str] = set()
    for route in table:
        if not (match := route.pattern.fullmatch(path)):
            continue
        if route.method in (wanted, "*"):
            return Found(route=route, parameters=match.groupdict())
        methods.add(route.method)
    return Found(route=None, methods=frozenset(methods))


def is_plain_path(raw: bytes) -> bool:
    """Whether a path is one that means the same to everybody: no escapes, no ``..``, no empty segments."""
    if not re.fullmatch(rb"/[A-Za-z0-9._~:@+/-]*", raw) or b"//" in raw:
        return False
    return not any(segment in (b".", b"..") for segment in raw.split(b"/"))
