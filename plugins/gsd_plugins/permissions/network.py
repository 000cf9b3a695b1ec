"""git, and programs that publish, deploy, or send something to other machines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gsd_core import Ask, Deny

from .programs import programs
from .words import CONTENT, is_pattern, known, shown

if TYPE_CHECKING:
    from .shell import Shell

_LOOPBACK = re.compile(
    r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost|host\.docker\.internal"
)
_SENDING = re.compile(
    r"-[a-zA-Z]*[dFT]$|-[dFT].|--(?:data|form|upload|json|post|body|url-query)|"
    r"(?:-X=?|--request=?|--method=?)(?i:POST|PUT|PATCH|DELETE)$"
)
_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_DESTROYING = re.compile(
    r"\b(?:drop\s+(?:database|schema|table)|truncate|flushall|flushdb|dropdatabase)\b", re.I
)
_PUBLISHING = frozenset({"publish", "deploy", "release", "unpublish", "push", "ship"})


def check_network(shell: Shell, program: str, words: Sequence[str]) -> None:
    """Collect effects outside the project, and what no agent may do."""
    table, findings = programs(), shell.findings
    reason = table.outward.get(program.removesuffix("-cli"), "")
    here = program in ("nc", "ncat", "socat", "telnet") and _local_only(words)
    if reason and not here and not _only_help(words):
        findings.outward(f"{program}: {reason}")
    subcommands = _subcommands(words)
    if asked := _outward_argument(program, subcommands, words):
        findings.outward(f"{program} {asked}: it has effects on other machines")
    if asked := _local_argument(program, subcommands, words):
        findings.add(
            Ask(reason=f"{program} {asked}: it changes something outside the project, or cannot be undone")
        )
    if program in table.harmless and program != "verbs" and not _is_harmless(program, subcommands):
        findings.outward(
            f"{' '.join([program, *map(shown, subcommands)])}: it may change something on other machines"
        )
    if table.is_a(program, "downloaders"):
        _check_sending(shell, program, words)
    if program in ("nslookup", "dig", "host", "ping") and any(CONTENT in word for word in words):
        findings.outward("it sends the content of a file to another machine")
    if table.is_a(program, "sql"):
        _check_query(shell, words)
    if program == "rsync" and any(_is_remote(word) for word in words if not word.startswith("-")):
        findings.outward("it connects to another machine")
    if program == "openssl" and "s_client" in words and not _local_only(words):
        findings.outward("it connects to another machine")
    if program == "kill":
        _check_kill(shell, words)
    if (
        program == "gsd"
        and subcommands[:1] not in (["status"], ["log"], ["questions"])
        and not _only_help(words)
    ):
        findings.add(Deny(reason="agents may not control the run"))
    if program == "pre-commit" and subcommands[:1] in (["install"], ["uninstall"], ["init-templatedir"]):
        findings.add(Deny(reason="agents may not change git hooks"))
    if program == "fuser" and any(word.startswith("-k") for word in words):
        findings.add(Deny(reason="end only your own processes, by process id"))


def _outward_argument(program: str, subcommands: Sequence[str], words: Sequence[str]) -> str:
    named = set(programs().subcommands.get(program, ()))
    if programs().is_a(program, "runs_scripts"):
        for word in [
            *subcommands,
            *(w for w in words if program in ("make", "gmake", "mvn", "mvnw", "gradle", "gradlew")),
        ]:
            parts = re.split(r"[:_/-]", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).lower())
            if parts[0] in _PUBLISHING and not word.startswith("-"):
                named.add(word)
    if program in ("docker", "podman", "buildx", "docker-compose") and {"--push"} & set(words):
        return "--push"
    if program == "cargo" and "--dry-run" in words and "publish" in words:
        return "publish"
    candidates = [
        *subcommands,
        *(
            words
            if program
            in (
                "mvn",
                "mvnw",
                "mvnd",
                "setup.py",
                "gradle",
                "gradlew",
                "helm",
                "terraform",
                "npm",
                "pnpm",
                "yarn",
                "kubectl",
            )
            else ()
        ),
    ]
    if (
        program in ("npm", "pnpm", "yarn")
        and subcommands[:1]
        and subcommands[0] in ("install", "i", "add", "ls", "view", "info", "why", "uninstall", "remove")
    ):
        return ""
    if "run" in subcommands[:1]:
        candidates = list(subcommands)
    return next((word for word in candidates if word in named), "")


def _local_argument(program: str, subcommands: Sequence[str], words: Sequence[str]) -> str:
    options = {
        "npm": ("-g", "--global"),
        "pnpm": ("-g", "--global"),
        "bun": ("-g", "--global"),
        "pip": ("--user", "--break-system-packages"),
        "pip3": ("--user", "--break-system-packages"),
        "docker": ("--privileged", "--pid=host", "--net=host", "--volume=/:/host"),
        "podman": ("--privileged", "--pid=host"),
        "direnv": ("allow",),
        "go": ("-w",) if "env" in subcommands[:1] else (),
    }
    if found := next((word for word in words if word in options.get(program, ())), ""):
        return found
    named = programs().local.get(program, frozenset())
    if program in ("npm", "pnpm") and subcommands[1:2] and subcommands[1] in ("get", "list", "ls"):
        return ""
    if program in ("gem", "pipx", "rustup", "go", "dotnet", "cargo", "composer", "poetry") and subcommands[
        1:2
    ] == ["list"]:
        return ""
    return next((word for word in subcommands[:1] if word in named), "")


def _subcommands(words: Sequence[str]) -> list[str]:
    """Return the first two arguments that are neither options nor their values."""
    valued = programs().options["value"]
    found = [
        word
        for before, word in pairwise(["", *words])
        if not word.startswith(("-", "+")) and before not in valued
    ]
    return found[:2]


def _is_harmless(program: str, subcommands: Sequence[str]) -> bool:
    harmless = programs().harmless
    if not subcommands or subcommands[0] in harmless[program]:
        return True
    verbs = [word.split("-")[0] for word in subcommands[1:]]
    return program != "kubectl" and bool(verbs) and verbs[0] in harmless["verbs"]


def _only_help(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0] in ("--help", "-h", "--version", "-V", "help", "version", "-v")


def _local_only(words: Sequence[str]) -> bool:
    hosts = [word for word in words if not word.startswith("-") and not word.isdigit()]
    return bool(hosts) and all(
        _LOOPBACK.match(re.sub(r"^\w+:", "", host)) for host in hosts if host != "s_client"
    )


def _check_sending(shell: Shell, program: str, words: Sequence[str]) -> None:
    sends = any(_SENDING.match(word) or word.upper() in _METHODS for word in words)
    if program in ("http", "https", "xh"):
        sends = sends or any(re.match(r"[\w-]+(?::?=|@)[^=]", word) for word in words)
    if program == "wget":
        sends = any(re.match(r"--(?:post|body|method)", word) for word in words)
    remote = [word for word in _addresses(words) if not _is_local(word)]
    if sends and remote:
        shell.findings.outward("it sends data to another machine")
    if remote and any(CONTENT in word for word in words):
        shell.findings.outward("it sends the content of a file or of the environment to another machine")
    for word in words:
        if match := re.match(r"(?:[\w-]*=)?@(.+)", word):
            shell.findings.add(shell.paths.check_read(match[1]))


def _addresses(words: Sequence[str]) -> list[str]:
    """Return the arguments without the values of options that are never an address."""
    valued = (
        "-H",
        "--header",
        "-o",
        "--output",
        "-w",
        "--write-out",
        "-A",
        "-u",
        "--user",
        "-b",
        "-c",
        "-d",
        "--data",
        "-X",
        "--request",
        "--data-raw",
        "--data-binary",
        "--json",
        "-F",
        "--form",
        "-T",
        "--retry",
        "-m",
        "--max-time",
        "-e",
        "-D",
        "--retry-delay",
        "--connect-timeout",
        "--cacert",
        "--cert",
        "--key",
        "-O",
        "--output-document",
        "-P",
        "--data-urlencode",
        "--cookie",
        "--upload-file",
        "-K",
        "--resolve",
    )
    kept = [
        word
        for before, word in pairwise(["", *words])
        if before not in valued
        or ("://" in word and before not in ("-H", "--header", "-d", "--data", "--data-raw", "-w", "--json"))
    ]
    return [word for word in kept if not re.match(r"--(?:header|data|json|write-out|form)\b", word)]


def _is_local(word: str) -> bool:
    """Whether a word is not an address, or an address of this machine."""
    if "://" in word:
        try:
            host = urlsplit(
                re.split(r"[\x00-\x05/?#]", word.partition("://")[2])[0].join(["//", ""])
            ).hostname
        except ValueError:
            return False
        rest = word.partition("://")[2]
        cut = bool(re.match(r"[^/?#:]*[\x00-\x05]", rest)) or bool(
            re.match(r"[^/?#]*[\x00-\x05][^/?#]*@", rest)
        )
        return bool(host and _LOOPBACK.fullmatch(host)) and not cut
    if _LOOPBACK.match(word) and re.fullmatch(rf"(?:{_LOOPBACK.pattern})(?:[:/?].*)?", word, re.DOTALL):
        return True
    if word.startswith(("-", "/", ":", "@", "{", "[", "%")) or not word or word.isdigit():
        return True
    if not known(word):
        return False
    return not re.match(r"[\w-]+(?:\.[\w-]+)+(?:[:/?]|$)", word)


def _check_query(shell: Shell, words: Sequence[str]) -> None:
    if any(_DESTROYING.search(word) for word in words):
        shell.findings.add(Ask(reason="it deletes data"))
    hosts = [following for word, following in pairwise(words) if word in ("-h", "--host")]
    hosts += [word.split("=", 1)[1] for word in words if word.startswith("--host=")]
    hosts += [urlsplit(word).hostname or "" for word in words if "://" in word and known(word)]
    if any(host and not host.startswith("/") and not _LOOPBACK.fullmatch(host) for host in hosts):
        shell.findings.outward("it connects to another machine")


def _check_kill(shell: Shell, words: Sequence[str]) -> None:
    """Check ``kill``: a job (``%1``) or a variable is the agent's own, a number may be any process."""
    signal = r"-(?:[A-Z]+\d?|SIG[A-Z]+|[1-9]\d?|s|n|0|l|L)$"
    first = words[0] if words else ""
    named = list(words[1:] if re.match(signal, first, re.I) and len(words) > 1 else words)
    if any(re.fullmatch(r"-\d+|[01]", word) for word in named):
        shell.findings.add(Deny(reason="end only your own processes, by process id: `kill $!`"))
    if any(word.isdigit() for word in named):
        shell.findings.add(Ask(reason="it is unknown whose process that is: use `kill $!` or `kill %1`"))


def _is_remote(word: str) -> bool:
    return re.match(r"[\w.@-]{2,}:(?!\\)|rsync://", re.sub(r"[\x00-\x05]", "x", word)) is not None


# git: what reads is allowed, what writes history or configuration is not.


ADDING: Mapping[str, frozenset[str]] = {
    "commit": frozenset({"--amend", "--no-verify", "-n"}),
    "branch": frozenset({"-d", "-D", "--delete", "-f", "--force", "-m", "-M", "--move"}),
    "tag": frozenset({"-d", "--delete", "-f", "--force"}),
}
"""What an agent that owns the planning may do, without the options that change what is there already or
leave out the repository's hooks."""


def check_git(shell: Shell, words: Sequence[str]) -> None:
    """Check the arguments of ``git``."""
    table, findings = programs().git, shell.findings
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option in table["value"] and not equals and rest:
            value = rest.pop(0)
        elif option.startswith("-c") and len(option) > 2:
            option, value = "-c", f"{option[2:]}={value}"
        _check_global_option(shell, option, value)
    if not rest:
        return
    name, arguments = rest[0], rest[1:]
    if not known(name) or is_pattern(name):
        findings.add(Ask(reason="the git command is known only at run time: write it out"))
        return
    local = name == "push" and any(re.match(r"(?:/|\./|\.\./|file://)", word) for word in arguments)
    if (name in table["outward"] and not local) or (name == "lfs" and "push" in arguments):
        findings.outward(f"git {name} sends data to another machine")
    if name == "archive" and any(word.startswith("--remote") for word in arguments):
        findings.outward("git archive --remote connects to another machine")
    _check_subcommand(shell, name, arguments)
    _check_git_options(shell, name, arguments)
    if not shell.writable and name in table["stage"]:
        findings.read_only(f"git {name} changes the index")


def _check_global_option(shell: Shell, option: str, value: str) -> None:
    match option:
        case "-C":
            shell.findings.add(shell.paths.check_read(value))
        case "-c" if value.lower().startswith(tuple(programs().git["config"])):
            pass
        case "-c" | "--config-env" | "--exec-path":
            shell.findings.add(Deny(reason=f"git {option} {shown(value)} can run arbitrary commands"))
            text = value.partition("=")[2]
            shell.run_text(text.lstrip("!") if known(text) else "")
        case "--git-dir" | "--work-tree":
            shell.findings.add(Deny(reason="only the project's own repository may be used"))
        case _:
            pass


def _check_subcommand(shell: Shell, name: str, arguments: Sequence[str]) -> None:
    table, reading = programs().git, programs().git_reading
    if name in table["read"] or name in table["stage"]:
        return
    if shell.paths.policy.owns_planning and name in ADDING and ADDING[name].isdisjoint(arguments):
        return
    if name in table["remote"]:
        shell.findings.add(Ask(reason=f"git {name} connects to another machine"))
        return
    if name == "symbolic-ref" and len(arguments) == 1:
        return
    if name in reading:
        required, words = reading[name]
        if required and arguments and arguments[0] in words:
            return
        changes = any(
            re.match(r"-[dDmMcCfu](?!ontains)|--(?:delete|move|copy|force|set|unset|edit)", word)
            for word in arguments
        )
        if not required and not changes and (not arguments or arguments[0].startswith(words)):
            return
    shell.findings.add(
        Deny(reason=f"agents may not run git {name}: only the run makes commits and changes history")
    )
    if (name, *arguments[:1]) in (("bisect", "run"), ("submodule", "foreach")):
        shell.run_text(" ".join(word for word in arguments[1:] if not word.startswith("-")))


def _check_git_options(shell: Shell, name: str, arguments: Sequence[str]) -> None:
    for word, following in pairwise([*arguments, ""]):
        option, equals, value = word.partition("=")
        runs = option in programs().git["runs"] and (option != "-x" or name == "rebase")
        if runs or (name == "grep" and option.startswith("-O")):
            shell.findings.add(Deny(reason=f"git {name} {option} can run arbitrary commands"))
            shell.run_text(value or following)
        elif option == "--output" or (option == "-o" and name in ("archive", "format-patch", "diff")):
            shell.findings.add(shell.paths.check_write(value if equals else following))
        elif not option.startswith("-"):
            shell.findings.add(
                shell.paths.check_write(word) if name in ("mv", "rm") else shell.paths.check_read(word)
            )
