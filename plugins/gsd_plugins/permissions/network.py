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
# Options and words that make a program send data: by name, and for all others, which are like curl.
_SENDING = {
    "wget": re.compile(r"--(?:post|body|method)"),
    **dict.fromkeys(("http", "https", "xh"), re.compile(r"[\w-]+(?::?=|@)[^=]|POST|PUT|PATCH|DELETE")),
}
_SENDING_LIKE_CURL = re.compile(
    r"-[a-zA-Z]*[dFT]$|-[dFT].|--(?:data|form|upload|json|post|body|url-query)|"
    r"(?:-X=?|--request=?|--method=?)?(?:POST|PUT|PATCH|DELETE)$"
)
_TEXT = re.compile(r"-[Hdw]$|--(?:header|data|json|write-out|form)\b")


def check_network(shell: Shell, program: str, words: list[str]) -> None:
    """Collect effects on other machines, and what reaches beyond the project on this one."""
    if only_help(words):
        return
    findings = shell.findings
    valued = table()["options"]["values"]
    bare = [word for before, word in pairwise(["", *words]) if word[:1] not in "-+" and before not in valued]
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
        if not all(_is_local(host if re.search("://|^/", host) else f"x://{host}") for host in hosts):
            findings.outward("it connects to another machine")
    if program == "rsync" and any(re.match(r"[\w.@\x00-\x05-]{2,}:|rsync://", word) for word in words):
        findings.outward("it connects to another machine")
    if program == "kill":
        signal = re.match(r"-(?:[A-Z]+\d?|[1-9]\d?|s|n|0|l|L)$", words[0] if words else "", re.I)
        for word in words[1:] if signal and words[1:] else words:
            if re.fullmatch(r"-\d+|[01]", word):
                findings.deny("end only your own processes, by process id: `kill $!`")
            elif word.isdigit():
                findings.ask("it is unknown whose process that is: use `kill $!` or `kill %1`")
    if program == "gsd" and bare[:1] not in (["status"], ["log"], ["questions"]):
        findings.deny("agents may not control the run")


def _publishes(program: str, bare: list[str], words: Sequence[str]) -> str:
    """Return the argument that makes a command publish or deploy something; empty without one."""
    cloud = table()["cloud"]
    if program in cloud["programs"]:
        reads = any(
            {word, word.split("-")[0]} & cloud["verbs"] for word in bare[: 1 if program == "kubectl" else 3]
        )
        return "" if reads else " ".join(bare[:2])
    named = table()["subcommands"].get(program, frozenset())
    if bare and bare[0] in cloud["harmless"] - named:
        return ""
    for word in bare if is_in("targets", program) else bare[:2]:
        first, *rest = re.split(r"[:_/-]", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).lower())
        script = is_in("scripts", program) and first in cloud["publishing"]
        if word in named or (script and not cloud["checks"] & set(rest)):
            return word
    return "--push" if is_in("containers", program) and "--push" in words else ""


def _check_sending(shell: Shell, program: str, words: Sequence[str]) -> None:
    sending = _SENDING.get(program, _SENDING_LIKE_CURL)
    remote = [
        word
        for before, word in pairwise(["", *words])
        if not _TEXT.match(word)
        and (before not in table()["options"]["curl"] or ("://" in word and not _TEXT.match(before)))
        and not _is_local(word)
    ]
    if remote and any(sending.match(word) or CONTENT in word for word in words):
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
        cut = re.match(r"[^/?#:]*[\x00-\x05]|[^/?#]*[\x00-\x05][^/?#]*@", rest)
        return bool(LOOPBACK.fullmatch(host)) and not cut
    if re.fullmatch(rf"(?:{LOOPBACK.pattern})(?:[:/?].*)?|[-/:@{{\[%].*|\d*", word, re.DOTALL):
        return True
    return known(word) and not re.match(r"[\w-]+(?:\.[\w-]+)+(?:[:/?]|$)", word)
