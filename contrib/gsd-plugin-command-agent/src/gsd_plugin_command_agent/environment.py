"""What of our environment the command sees: what a program needs, and what the settings name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

NEEDED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_*", "XDG_*",
    "VIRTUAL_ENV", "SSL_CERT_*", "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
)  # fmt: skip


def allowed(environment: Mapping[str, str], further: Iterable[str]) -> dict[str, str]:
    """Return the part of *environment* that the command may see; *further* are names or patterns."""
    patterns = (*NEEDED, *further)
    return {
        name: value
        for name, value in environment.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
