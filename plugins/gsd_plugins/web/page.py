"""The page: the files of the folder ``static``, and the placeholder as long as there are none."""

from __future__ import annotations

import asyncio
import gzip
import re
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import Refused
from .site import Site

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

NONCE = "__GSD_NONCE__"
"""What index.html has in place of the nonce, which is another one in each response."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}
"""The types of files that are served; no other file is."""
HASHED = re.compile(r"assets/.*-[\w-]{8,}\.\w+")
FOREVER = "public, max-age=31536000, immutable"

POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}' 'strict-dynamic'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types gsd"
)

PLACEHOLDER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gsd</title>
<meta name="viewport" content="width=device-width"></head>
<body><h1>gsd serve</h1><p>The page is not built; the interface below /api/v1 works.</p></body></html>
"""


async def show_page(site: Site, request: Request) -> Response:
    """Return the page."""
    from starlette.responses import Response

    nonce: str = request.scope["gsd"]["nonce"]
    try:
        text = await asyncio.to_thread((site.static / "index.html").read_text, "utf-8")
    except FileNotFoundError:
        text = PLACEHOLDER
    headers = {"content-security-policy": POLICY.format(nonce=nonce), "cache-control": "no-store"}
    return Response(text.replace(NONCE, nonce), media_type=TYPES[".html"], headers=headers)


async def show_file(site: Site, request: Request) -> Response:
    """Return a file of the page."""
    from starlette.responses import Response

    path = str(request.path_params["path"])
    data, media_type = await asyncio.to_thread(_read, site.static, path)
    is_fixed = HASHED.fullmatch(path) is not None
    headers = {"cache-control": FOREVER if is_fixed else "no-cache"}
    # Only what everybody may have: compressing an answer with secrets would tell their length.
    if is_fixed:
        headers["vary"] = "accept-encoding"
        if "gzip" in request.headers.get("accept-encoding", ""):
            data = await asyncio.to_thread(_compressed, data)
            headers["content-encoding"] = "gzip"
    return Response(data, media_type=media_type, headers=headers)


_compressed = lru_cache(maxsize=16)(partial(gzip.compress, mtime=0))


def _read(folder: Path, path: str) -> tuple[bytes, str]:
    """Return a file below *folder*: the gate let no ``..`` pass, and links that lead out are not followed."""
    missing = Refused(404, "there is nothing at this path")
    top = folder.resolve()
    try:
        file = (top / path).resolve(strict=True)
        if not file.is_relative_to(top) or file.suffix not in TYPES:
            raise missing
        return file.read_bytes(), TYPES[file.suffix]
    except (OSError, ValueError):
        raise missing from None
