"""Who may do what: the two tokens of a server, and the hosts and origins that it answers to."""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import attrs

from gsd_core import ConfigError, process_start, state_folder
from gsd_plugins.sessions import write_private

Scope: TypeAlias = Literal["read", "control"]
TOKEN_BYTES = 32
IS_TOKEN = attrs.validators.matches_re(r"[\w-]{43}")
"""So many bytes in base64: what is kept in a file may have been edited."""
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@attrs.frozen(kw_only=True, repr=False)
class Tokens:
    """The tokens of a server: *control* may do everything, *read* only watch.

    They have no ``repr``, so that no traceback or log shows them.
    """

    control: str = attrs.field(factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), validator=IS_TOKEN)
    read: str = attrs.field(factory=lambda: secrets.token_urlsafe(TOKEN_BYTES), validator=IS_TOKEN)

    def scope_of(self, token: str) -> Scope | None:
        """Return what *token* allows, ``None`` if it is neither; both comparisons take the same time."""
        given = token.encode("utf-8", "replace")
        controls = hmac.compare_digest(given, self.control.encode())
        reads = hmac.compare_digest(given, self.read.encode())
        return "control" if controls else "read" if reads else None


@attrs.frozen(kw_only=True)
class Addresses:
    """The ``Host`` headers that the server answers to, and the origins whose pages may call it.

    Both are exact: a page on another port of this machine is another origin, because agents start web
    servers on it. A name that only resolves to this machine (DNS rebinding) is another host.
    """

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def of(cls, host: str, port: int, public_urls: Iterable[str] = ()) -> Addresses:
        """Return those of a server that listens on *host*, and of the tunnels with *public_urls*."""
        names = [*LOOPBACK_NAMES]
        if not is_any_address(host) and host not in names:
            names.append(f"[{host}]" if ":" in host else host)
        hosts = {f"{name}:{port}" for name in names}
        if port == 80:
            hosts |= set(names)
        origins = {f"http://{name}" for name in hosts}
        for url in public_urls:
            scheme, name = public_parts(url)
            hosts.add(name)
            origins.add(f"{scheme}://{name}")
        return cls(hosts=frozenset(hosts), origins=frozenset(origins))


def public_parts(url: str) -> tuple[str, str]:
    """Return the scheme and the host of the public *url*; raise ``ConfigError`` if it has more parts."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"invalid public URL {url!r}: {error}") from error
    is_bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_bare or "@" in parts.netloc:
        problem = f"invalid public URL {url!r}: it has to be a scheme and a host"
        raise ConfigError(problem, hint="write it like https://gsd.example.net")
    # Browsers leave the usual port out of Host and Origin.
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    is_usual = port in (None, {"http": 80, "https": 443}[parts.scheme])
    return parts.scheme, name if is_usual else f"{name}:{port}"


def is_any_address(host: str) -> bool:
    """Whether *host* means every address of this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return not host


def server_folder() -> Path:
    """Return the folder with the token files of the servers that run."""
    return state_folder() / "serve"


def write_token_file(tokens: Tokens, url: str, port: int) -> Path:
    """Write the tokens where only this user can read them, and return the path.

    The file is replaced at once: another program never sees half of it, nor one that others may read.
    """
    path = server_folder() / f"{port}.json"
    data: dict[str, object] = {"url": url, "control": tokens.control, "read": tokens.read, "pid": os.getpid()}
    data["started"] = process_start(os.getpid())
    _write_private(path, data)
    return path


def tokens_for(port: int, *, keep: bool) -> Tokens:
    """Return new tokens, or with *keep* those of the last server on *port* that kept them.

    A server that does not keep its tokens makes those that were kept before invalid for good.
    """
    path = server_folder() / "kept" / f"{port}.json"
    if not keep:
        path.unlink(missing_ok=True)
        return Tokens()
    try:
        return Tokens(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        tokens = Tokens()
        _write_private(path, attrs.asdict(tokens))
        return tokens
    except (OSError, ValueError, TypeError) as error:
        hint = "remove it: the server makes new ones"
        raise ConfigError(f"{path} has no valid tokens", hint=hint) from error


def _write_private(path: Path, data: Mapping[str, object]) -> None:
    for folder in (server_folder(), path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    write_private(path, f"{json.dumps(data, indent=2)}\n".encode())


def remove_token_file(path: Path) -> None:
    """Remove the file of a server that stops, unless another one has taken its place."""
    with suppress(OSError, ValueError, AttributeError):
        if json.loads(path.read_text("utf-8")).get("pid") == os.getpid():
            path.unlink()


def pages_of_servers() -> list[tuple[int, str]]:
    """Return the servers of this user that run now: the process, and the URL of the page without the token.

    The one in this process comes first.
    """
    found: list[tuple[int, str]] = []
    for path in sorted(server_folder().glob("*.json")):
        try:
            data: dict[str, Any] = json.loads(path.read_text("utf-8"))
            pid, page, started = int(data["pid"]), str(data["url"]).partition("/#")[0], str(data["started"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
        # A server that was killed leaves its file behind.
        if started and process_start(pid) == started:
            found.append((pid, page))
    return sorted(found, key=lambda server: server[0] != os.getpid())
