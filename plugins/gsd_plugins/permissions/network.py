"""Programs that publish, deploy, or send something to other machines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .table import entry_of, is_in, only_help, table
from .words import CONTENT, known, shown

if TYPE_CHECKING:
    from .shell import Shell

LOOPBACK = re.compile(
    r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost|host\.docker\.internal"
)
_SENDING = re.compile(
    r"-[a-zA-Z]*[dFT]$|-[dFT].|--(?:data|form|upload|json|post|body|url-query)|"
    r"(?:-X=?|--request=?|--method=?)?(?:POST|PUT|PATCH|DELETE)$"
)


def check_network(shell: Shell, program: str, words: list[str]) -> None:
    """Collect effects on other machines, and what reaches beyond the project on this one."""
    if only_help(words):
        return
    findings = shell.findings
    bare = _arguments(words, "values")
    here = any(LOOPBACK.match(word) for word in bare) and is_in("connects", program)
    if (reason := entry_of("outward", program.removesuffix("-cli"))) and not here:
        findings.outward(f"{program}: {reason}")
    if verb := _publishes(program, bare, words):
        findings.outward(f"{program} {shown(verb)}: it has effects on other machines")
    local = table()["local"].get(program, frozenset())
    found = [word for word in [*bare[:1], *words] if word in local and (word[0] == "-" or word == bare[0])]
    if found and not (bare[1:] and bare[1] in table()["cloud"]["verbs"]):
        findings.ask(f"{program} {found[0]}: it changes something outside the project, or cannot be undone")
    if is_in("downloaders", program):
        _check_sending(shell, program, words)
    elif is_in("sends", program) and any(CONTENT in word for word in words):
        findings.outward("it sends the content of a file to another machine")
    if is_in("sql", program) or (program == "openssl" and "s_client" in words):
        hosts = [after for word, after in pairwise(words) if word in ("-h", "--host", "-connect")]
        hosts += [word.removeprefix("--host=") for word in words if re.match(r"--host=|\w+://", word)]
        if not all(_is_local(host if "://" in host or host[:1] == "/" else f"x://{host}") for host in hosts):
            findings.outward("it connects to another machine")
    if program == "rsync" and any(re.match(r"[\w.@\x00-\x05-]{2,}:|rsync://", word) for word in words):
        findings.outward("it connects to another machine")
    if program == "kill":
        _check_kill(shell, words)
    if program == "gsd" and bare[:1] not in (["status"], ["log"], ["questions"]):
        findings.deny("agents may not control the run")
    if program == "pre-commit" and bare[:1] and bare[0] in ("install", "uninstall", "init-templatedir"):
        findings.deny("agents may not change git hooks")
    if program == "fuser" and any(word.startswith("-k") for word in words):
        findings.deny("end only your own processes, by process id")


def _arguments(words: Sequence[str], options: str) -> list[str]:
    """Return the arguments that are neither options nor the values of those listed as *options*."""
    valued = table()["options"][options]
    return [
        word
        for before, word in pairwise(["", *words])
        if not word.startswith(("-", "+")) and before not in valued
    ]


def _publishes(program: str, bare: list[str], words: Sequence[str]) -> str:
    """Return the argument that makes a command publish or deploy something; empty without one."""
    cloud = table()["cloud"]
    if program in cloud["programs"]:
        position = 1 if program == "kubectl" else 3
        read = any({word, word.split("-")[0]} & cloud["verbs"] for word in bare[:position])
        return " ".join(bare[:2]) if bare and not read else ""
    named = table()["subcommands"].get(program, frozenset())
    if bare and bare[0] in cloud["harmless"] - named:
        return ""
    candidates = bare if is_in("targets", program) else bare[:2]
    for word in candidates:
        first, *rest = re.split(r"[:_/-]", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).lower())
        script = is_in("scripts", program) and first in cloud["publishing"]
        if word in named or (script and not cloud["checks"] & set(rest)):
            return word
    return "--push" if is_in("containers", program) and "--push" in words else ""


def _check_sending(shell: Shell, program: str, words: Sequence[str]) -> None:
    sends = any(_SENDING.match(word) for word in words)
    if program in ("http", "https", "xh", "wget"):
        form = (
            r"--(?:post|body|method)" if program == "wget" else r"[\w-]+(?::?=|@)[^=]|POST|PUT|PATCH|DELETE"
        )
        sends = any(re.match(form, word) for word in words)
    valued = table()["options"]["curl"]
    texts = ("-H", "--header", "-d", "--data", "--data-raw", "-w", "--json", "--data-binary")
    remote = [
        word
        for before, word in pairwise(["", *words])
        if (before not in valued or ("://" in word and before not in texts))
        and not re.match(r"--(?:header|data|json|write-out|form)\b", word)
        and not _is_local(word)
    ]
    if remote and (sends or any(CONTENT in word for word in words)):
        shell.findings.outward("it sends data to another machine")
    for word in words:
        if match := re.match(r"(?:[\w-]*=)?@(.+)", word):
            shell.findings.add(shell.paths.check_read(match[1]))


def _is_local(word: str) -> bool:
    """Whether a word is not an address, or an address of this machine."""
    if "://" in word:
        rest = word.partition("://")[2]
        try:
            host = urlsplit("//" + re.split(r"[\x00-\x05/?#]", rest)[0]).hostname or ""
        except ValueError:
            return False
        # `localhost$X` may be another host, and so may `localhost:$X@host`.
        cut = re.match(r"[^/?#:]*[\x00-\x05]", rest) or re.match(r"[^/?#]*[\x00-\x05][^/?#]*@", rest)
        return bool(LOOPBACK.fullmatch(host)) and not cut
    if re.fullmatch(rf"(?:{LOOPBACK.pattern})(?:[:/?].*)?", word, re.DOTALL):
        return True
    if not word or word.startswith(("-", "/", ":", "@", "{", "[", "%")) or word.isdigit():
        return True
    return known(word) and not re.match(r"[\w-]+(?:\.[\w-]+)+(?:[:/?]|$)", word)


def _check_kill(shell: Shell, words: Sequence[str]) -> None:
    """Check ``kill``: a job (``%1``) or a variable is the agent's own, a number may be any process."""
    signal = re.match(r"-(?:[A-Z]+\d?|[1-9]\d?|s|n|0|l|L)$", words[0] if words else "", re.I)
    named = list(words[1:] if signal and len(words) > 1 else words)
    if any(re.fullmatch(r"-\d+|[01]", word) for word in named):
        shell.findings.deny("end only your own processes, by process id: `kill $!`")
    if any(word.isdigit() for word in named):
        shell.findings.ask("it is unknown whose process that is: use `kill $!` or `kill %1`")
