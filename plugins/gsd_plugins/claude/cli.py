"""The Claude Code CLI: its settings, where it is, its command line and its environment."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

import attrs

from gsd_core import AgentTask, Permanent, Place, at_most, find_program, setting

from .proxy import API, Access

INSTALL_HINT = "reinstall claude-agent-sdk, which includes the CLI, or set claude.cli_path"
MCP_SERVER = "gsd"
MAX_METADATA = 100_000


@attrs.frozen(kw_only=True)
class ClaudeSettings:
    """Settings of the agent: the section ``claude`` of ``gsd.toml``.

    *cli_path*: a Claude Code CLI to use instead of the bundled one.
    *max_retries*: how often the CLI itself retries a failed request, before the step is retried.
    *environment*: names of additional variables passed to the agent and its commands
    (``JAVA_HOME``); ``NAME_*`` matches a prefix. If one of the variables with the agent's own credentials is
    listed, such as ``ANTHROPIC_API_KEY``, all of them are passed as they are, without the proxy.
    """

    cli_path: str = setting("", help="a Claude Code CLI to use instead of the bundled one")
    max_retries: int = setting(2, help="how often the CLI retries a failed request", harmless=at_most(10))
    environment: tuple[str, ...] = setting((), help="additional environment variables passed to agents")


def find_cli(configured: str = "", tree: Path | None = None) -> Path:
    """Return the *configured* CLI; without one, the CLI in the SDK's wheel, else the one on ``PATH``.

    A CLI in the project's *tree* is used only if it is configured.

    Raises :class:`~gsd_core.Permanent` if there is none. Does not import the SDK.
    """
    spec = None if configured else find_spec("claude_agent_sdk")
    folders = (spec.submodule_search_locations if spec else None) or ()
    for command in [configured] if configured else [f"{folder}/_bundled/claude" for folder in folders]:
        if found := shutil.which(Path(command).expanduser()):
            return Path(found)
    if not configured and (path := find_program("claude", tree or Path.cwd())):
        return path
    which = f"Claude Code CLI {configured!r}" if configured else "Claude Code CLI"
    raise Permanent(f"{which} not found", hint=INSTALL_HINT)


def cli_version(cli: Path) -> str:
    """Return the version of *cli* as its installation states it, without starting it; empty if unknown.

    The SDK's wheel has it in ``_cli_version.py``, a package of npm in ``package.json``, and the native
    installer names the program after its version.
    """
    program = cli.resolve()
    for path, pattern in (
        (program.parents[1] / "_cli_version.py", r'__cli_version__ = "([\w.+-]+)"'),
        (program.parent / "package.json", r'"version": *"([\w.+-]+)"'),
    ):
        with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as file:
            if found := re.search(pattern, file.read(MAX_METADATA)):
                return found[1]
    return program.name if re.fullmatch(r"\d+\.\d+\.[\w.+-]+", program.name) else ""


def program_places(cli: Path) -> tuple[Place, ...]:
    """Return what a sandbox has to show of *cli*: the program, and for a script the folder of its modules."""
    program = cli.resolve()
    path = program.parent if program.suffix in (".js", ".cjs", ".mjs") else program
    return (Place(path=path, source=path),)


def command_line(cli: Path, task: AgentTask, *, resume: bool) -> list[str]:
    """Return the command line for *task*; the prompt follows on standard input."""
    command = [
        # Where it really is: a sandbox shows it there, and a link to it perhaps not.
        *(str(cli.resolve()), "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--permission-prompt-tool", "stdio", "--strict-mcp-config"),
        # Not "dontAsk": the CLI would refuse AskUserQuestion instead of passing it on to us.
        *("--permission-mode", "acceptEdits" if task.writable else "default"),
    ]
    if task.user_settings:
        # The user's commands are written for Claude Code's own system prompt.
        command += ["--setting-sources=user,project"]
        command += ["--append-system-prompt", task.system] if task.system else []
    else:
        command += ["--system-prompt", task.system]
        # The core makes the commits: without this, every request explains how to sign them.
        attribution = json.dumps({"attribution": {"commit": "", "pr": ""}})
        command += ["--setting-sources=", "--settings", attribution]
    if task.tools is not None:
        # The default tools are 36.6 KB of a 46.6 KB request: send only those that the task needs.
        command += ["--tools", ",".join(task.tools)]
    if task.functions:
        servers = {"mcpServers": {MCP_SERVER: {"type": "sdk", "name": MCP_SERVER}}}
        names = ",".join(f"mcp__{MCP_SERVER}__{function.name}" for function in task.functions)
        command += ["--mcp-config", json.dumps(servers), "--allowedTools", names]
    if task.limits.turns is not None:
        command += ["--max-turns", str(task.limits.turns)]
    if task.limits.dollars is not None:
        command += ["--max-budget-usd", f"{task.limits.dollars:f}"]
    if task.conversation:
        # --resume fails for an id that was never used, --session-id for one that was.
        command += [f"--{'resume' if resume else 'session-id'}={task.conversation.id}"]
    if task.model:
        command += ["--model", task.model]
    if task.schema:
        command += ["--json-schema", json.dumps(task.schema)]
    return command


_SYSTEM_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_*"),
    *("XDG_*", "VIRTUAL_ENV", "SSL_CERT_*", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY"),
    *("ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
)

_MODEL_VARIABLES = (
    *("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_*", "ANTHROPIC_SMALL_FAST_MODEL*", "ANTHROPIC_BETAS"),
    *("ANTHROPIC_LOG", "CLAUDE_CONFIG_DIR"),
)

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_API_VARIABLES = (*KEY_VARIABLES, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS")

CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_*", "ANTHROPIC_BEDROCK_*", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"),
    "CLAUDE_CODE_USE_VERTEX": (
        *("GOOGLE_*", "CLOUD_ML_REGION", "VERTEX_REGION_*", "ANTHROPIC_VERTEX_*"),
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    ),
}
"""The variables that choose a cloud instead of Anthropic's API, and those that are for it only."""


def chosen_cloud(environment: Mapping[str, str]) -> str:
    """Return the variable that chooses a cloud; empty for Anthropic's API."""
    off = ("", "0", "false", "no", "off")
    return next((name for name in CLOUDS if environment.get(name, "").strip().lower() not in off), "")


def allowed_variables(environment: Mapping[str, str], additional: Iterable[str] = ()) -> dict[str, str]:
    """Return the part of *environment* that the CLI gets; *additional* holds more names or patterns.

    The CLI needs variables to run, to log in and to reach its model. Everything else is withheld,
    because the commands that the model runs inherit the CLI's environment.
    """
    cloud = chosen_cloud(environment)
    model = (cloud, *CLOUDS[cloud]) if cloud else _API_VARIABLES
    patterns = (*_SYSTEM_VARIABLES, *_MODEL_VARIABLES, *model, *additional)
    return {name: value for name, value in environment.items() if _matches(name, patterns)}


def without_cloud_secrets(environment: Mapping[str, str], exposed: Iterable[str]) -> dict[str, str]:
    """Return the variable that keeps the credentials of a cloud from the commands that the CLI runs.

    The CLI puts its value before each command; what is in it after the last space and hyphen is not quoted.
    Names that match *exposed* are kept.
    """
    cloud = chosen_cloud(environment)
    names = [name for name in environment if cloud and _matches(name, CLOUDS[cloud])]
    unset = "".join(rf"-u{name}\_" for name in names if not _matches(name, exposed))
    return {"CLAUDE_CODE_SHELL_PREFIX": rf"/usr/bin/env -S'{unset}bash\_-c'"} if unset else {}


@attrs.frozen(kw_only=True)
class Split:
    """The CLI's *environment* without credentials, and the *access* to the API with them.

    There is no access if the CLI reaches its model by itself. If *is_login* is set, the variables have no
    credentials, and the access has none yet: there may be a login.
    """

    environment: Mapping[str, str]
    access: Access | None = None
    is_login: bool = False


def split_credentials(environment: Mapping[str, str], exposed: Iterable[str] = ()) -> Split:
    """Take the credentials out of *environment*.

    If names of them match *exposed*, they stay: a project may need a key for its own tests.
    """
    keys = {name: environment[name] for name in KEY_VARIABLES if environment.get(name)}
    rest = {name: value for name, value in environment.items() if name not in _API_VARIABLES}
    if chosen_cloud(environment):
        return Split(environment=rest)
    if any(_matches(name, exposed) for name in keys):
        return Split(environment=environment)
    key, token, oauth = (keys.get(name, "") for name in KEY_VARIABLES)
    sent = {"x-api-key": key} if key else {}
    if bearer := token or ("" if key else oauth):
        sent["authorization"] = f"Bearer {bearer}"
    lines = (line.partition(":") for line in environment.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines())
    access = Access(
        url=environment.get("ANTHROPIC_BASE_URL") or API,
        credentials=lambda renewed: sent,
        headers={name.strip(): value.strip() for name, colon, value in lines if colon and name.strip()},
        # The CLI sends what goes with a login only if it has been given the token of one.
        is_key=bool(key or token),
    )
    return Split(environment=rest, access=access, is_login=not keys)


def pipe_variable(access: Access) -> str:
    """Return the variable with the number of a pipe, from which the CLI reads a key or a login's token."""
    kind = "API_KEY" if access.is_key else "OAUTH_TOKEN"
    return f"CLAUDE_CODE_{kind}_FILE_DESCRIPTOR"


def proxy_variables(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """Return the variables that make the CLI send its requests to the proxy at *url*, and not by another."""
    found = {name: environment.get(name, "") for name in ("NO_PROXY", "no_proxy")}
    direct = {name: ",".join(part for part in (value, "127.0.0.1") if part) for name, value in found.items()}
    return {"ANTHROPIC_BASE_URL": url, **direct}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def unattended_variables(max_retries: int) -> dict[str, str]:
    """Return the variables for unattended use: few retries, no updates, no other traffic."""
    return {
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        # Policies read a command as bash does; by default the CLI runs it with the user's shell.
        **({"CLAUDE_CODE_SHELL": bash} if (bash := shutil.which("bash", path="/bin:/usr/bin")) else {}),
        # By default the CLI retries ten times, which can take minutes.
        "CLAUDE_CODE_MAX_RETRIES": str(max_retries),
        # The SDK's own transport sets this, so that the CLI reports when a run is over; ours must too.
        "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Policies resolve a command's paths against the project, so every command has to start there,
        # even if the previous one changed the directory.
        "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
    }
