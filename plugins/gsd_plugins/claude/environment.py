"""What of our environment an agent sees: what it needs to run, to log in and to reach its model.

Everything else stays here, since whatever the CLI has, the commands that a model runs have too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

_NEEDED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LC_*",
    "XDG_*",
    "VIRTUAL_ENV",
    "SSL_CERT_*",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)

_MODEL = (
    "ANTHROPIC_*",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    "AWS_*",
    "GOOGLE_*",
    "CLOUD_ML_REGION",
    "VERTEX_REGION_*",
)


def allowed(environment: Mapping[str, str], further: Iterable[str] = ()) -> dict[str, str]:
    """Return the part of *environment* that an agent may see; *further* names or patterns are allowed too."""
    patterns = (*_NEEDED, *_MODEL, *further)
    return {name: value for name, value in environment.items() if _fits(name, patterns)}


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_BY_PIPE = {
    "ANTHROPIC_API_KEY": "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
    "CLAUDE_CODE_OAUTH_TOKEN": "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
}


def apart(
    environment: Mapping[str, str], further: Iterable[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Return *environment* without its keys, and the keys by the variables that name their pipes.

    A key that the CLI reads from a pipe is not seen by the commands that a model runs.
    What *further* names stays in sight: a project may need a key for its own tests.
    """
    hidden = {name for name in _BY_PIPE if environment.get(name) and not _fits(name, further)}
    seen = {name: value for name, value in environment.items() if name not in hidden}
    return seen, {_BY_PIPE[name]: environment[name] for name in hidden}


def unattended(max_retries: int) -> dict[str, str]:
    """Return what makes the CLI behave as part of something else: no updates, no long waits."""
    return {
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "CLAUDE_CODE_MAX_RETRIES": str(max_retries),
        # The SDK asks for the frames that tell it when a run is over; with a transport of our own, we do.
        "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # A command begins in the project, where the policies judge its paths, wherever the last one went.
        "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
    }
