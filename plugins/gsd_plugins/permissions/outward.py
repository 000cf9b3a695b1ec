"""Programs that publish, deploy, or reach other machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import urlsplit

from gsd_core import Ask, Deny

from .paths import Verdict
from .programs import (
    ASKED,
    ASKED_WORDS,
    DENIED,
    DOWNLOADERS,
    OUTWARD,
    READING_VERBS,
    READING_WORDS,
    SQL_CLIENTS,
    TALKATIVE,
)
from .words import Word

LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost")
SENDING = re.compile(
    r"-[a-zA-Z]*[dFT]$|-[dFT].|--(?:data|form|upload|json|post|body)|"
    r"(?:-X=?|--request=?|--method=?)(?i:POST|PUT|PATCH|DELETE)$"
)
METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
DESTROYING = re.compile(
    r"\b(?:drop\s+(?:database|schema|table)|truncate|flushall|flushdb|dropdatabase)\b", re.I
)
VALUE_OPTIONS = frozenset(
    {"-n", "--namespace", "-C", "--prefix", "-w", "--workspace", "-f", "--profile", "--region"}
)


def judge_outward(program: str, words: Sequence[Word]) -> Iterator[Verdict]:
    """Judge whether a program reaches outward, or does what no agent may."""
    if program in DENIED:
        yield Deny(reason=f"{program}: {DENIED[program]}")
    if program in ASKED and not _only_help(words):
        yield Ask(reason=f"{program}: {ASKED[program]}")
    said = _first_words(words)
    if asked := _asked(program, said, words):
        yield Ask(reason=f"{program} {asked}: it reaches outward or cannot be undone")
    if program in READING_WORDS and not _reads(program, said):
        yield Ask(reason=f"{program} {' '.join(said)}: it may change things outside".replace("  ", " "))
    if program in DOWNLOADERS:
        yield _sends(words)
    if program in SQL_CLIENTS:
        yield _queries(words)
    if program == "kill":
        yield _kills(words)
    if program == "gsd" and said[:1] not in (["status"], ["log"], ["questions"]) and not _only_help(words):
        yield Deny(reason="the run is not for agents to steer")
    if program == "pre-commit" and said[:1] in (["install"], ["uninstall"], ["init-templatedir"]):
        yield Deny(reason="git hooks are not for agents to change")
    if program == "fuser" and any(word.text.startswith("-k") for word in words):
        yield Deny(reason="end only processes of your own, by their id")


def _asked(program: str, said: Sequence[str], words: Sequence[Word]) -> str:
    named = ASKED_WORDS.get(program, frozenset())
    if program in TALKATIVE:
        scripts = [re.split(r"[:_-]", word)[0] for word in said]
        named |= {word for word, script in zip(said, scripts, strict=True) if script in OUTWARD}
    if program in ("npm", "pnpm", "bun") and any(word.text in ("-g", "--global") for word in words):
        return "-g"
    if program in ("docker", "podman", "buildx") and any(word.text == "--push" for word in words):
        return "--push"
    if program in ("pip", "pip3") and any(
        word.text in ("--user", "--break-system-packages") for word in words
    ):
        return "--user"
    if program in ("docker", "podman") and any(word.text in ("--privileged", "--pid=host") for word in words):
        return "--privileged"
    return next((word for word in said if word in named), "")


def _first_words(words: Sequence[Word]) -> list[str]:
    """Return the first two words that are neither options nor their values."""
    said: list[str] = []
    before = ""
    for word in words:
        if not word.text.startswith("-") and before not in VALUE_OPTIONS:
            said.append(word.text)
        before = word.text
    return said[:2]


def _reads(program: str, said: Sequence[str]) -> bool:
    if not said or said[0] in READING_WORDS[program]:
        return True
    verbs = [re.split(r"-", word)[0] for word in said[1:]]
    return program != "kubectl" and bool(verbs) and verbs[0] in READING_VERBS


def _only_help(words: Sequence[Word]) -> bool:
    return len(words) == 1 and words[0].text in ("--help", "-h", "--version", "-V", "help", "version")


def _sends(words: Sequence[Word]) -> Verdict:
    sends = any(SENDING.match(word.text) or word.text.upper() in METHODS for word in words)
    remote = [word for word in words if not _is_local(word)]
    return Ask(reason="it sends data to another machine") if sends and remote else None


def _is_local(word: Word) -> bool:
    """Whether a word is no address, or one of this machine."""
    text = word.text
    if "://" in text:
        host = urlsplit(text).hostname if word.known else None
        return bool(host and LOOPBACK.fullmatch(host))
    if LOOPBACK.match(text) or text.startswith(("-", "/", ":", "@", "{", "[")):
        return True
    return word.known and not re.match(r"[\w-]+(?:\.[\w-]+)+(?:[:/]|$)", text)


def _queries(words: Sequence[Word]) -> Verdict:
    if any(DESTROYING.search(word.text) for word in words):
        return Ask(reason="it deletes data")
    hosts = [f.text for w, f in pairwise(words) if w.text in ("-h", "--host")]
    hosts += [word.text.split("=", 1)[1] for word in words if word.text.startswith("--host=")]
    hosts += [urlsplit(word.text).hostname or "" for word in words if "://" in word.text and word.known]
    if any(host and not host.startswith("/") and not LOOPBACK.fullmatch(host) for host in hosts):
        return Ask(reason="it reaches another machine")
    return None


def _kills(words: Sequence[Word]) -> Verdict:
    """A job (``%1``) or what a variable names is one's own; a number may be anybody's."""
    signal = r"-(?:[A-Z]+\d?|SIG[A-Z]+|[1-9]\d?|s|n|0)$"
    first = words[0].text if words else ""
    named = list(words[1:] if re.match(signal, first, re.I) and len(words) > 1 else words)
    if any(re.fullmatch(r"-\d+|[01]", word.text) for word in named):
        return Deny(reason="end only processes of your own, by their id")
    if any(word.text.isdigit() for word in named):
        return Ask(reason="whose process that is cannot be seen")
    return None
