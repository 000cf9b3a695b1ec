"""The effects of a command, and the decision about it.

Effects on other machines come from programs that publish, deploy, send, or use a foreign service or package
index, or the database that the project's settings name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import cache
from itertools import pairwise

import attrs

from gsd_core import Allow, Ask, Deny, Permission

from .paths import known, shown
from .table import entry_of, is_in, is_listed, rules, table

LOOPBACK = re.compile(
    r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost|host\.docker\.internal"
)

_ESCAPES = re.compile(r"\\(?:[xuU]([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)


@attrs.define
class Findings:
    """The first reason for each effect of the command *source*; *commands* counts the commands in it.

    Effects are ``change`` (in a read-only step), ``outward`` (on another machine, which a sandbox does not
    prevent), and without a sandbox ``deny`` and ``ask``.
    """

    source: str
    reasons: dict[str, str] = attrs.field(factory=dict[str, str])
    commands: int = 0

    def add(self, effect: str, reason: str) -> None:
        """Add a reason; what is ``hidden`` until run time may be anything that the command mentions."""
        if effect == "hidden":
            effect = "ask"
            if "outward" not in self.reasons and (found := mentioned(self.source)):
                self.add("outward", f"it may have effects on other machines ({found})")
        self.reasons.setdefault(effect, reason)

    def object(self, objection: Deny | Ask | None) -> None:
        """Add an objection to the use of a path."""
        if objection:
            self.add("deny" if isinstance(objection, Deny) else "ask", objection.reason)

    def apply_rules(self, program: str, words: Sequence[str]) -> Set[str]:
        """Add what the table's rules say about a program and its arguments; return the effects."""
        lines = joined(words)
        found = rules().get(program) or rules().get(program.removesuffix("-cli"), ())
        matching = [rule for rule in found if rule[2].search(lines)]
        for effect, reason, _ in matching:
            self.add(effect, f"{words[0].partition('=')[0] if program == '=' else program}: {reason}")
        return {effect for effect, *_ in matching}

    def decide(self, *, confined: bool, writable: bool) -> Permission:
        """Return the decision; with a sandbox, only effects on other machines are asked about."""
        found = self.reasons
        if "change" in found and not writable:
            return Deny(reason=f"this step is read-only: {found['change']}")
        if "deny" in found and not confined:
            return Deny(reason=found["deny"])
        reason = found.get("outward") or ("" if confined else found.get("ask"))
        return Ask(reason=reason) if reason else Allow()


def joined(words: Sequence[str]) -> str:
    """Return words for the table's patterns, one on each line."""
    return "\n".join(word.replace("\n", " ") for word in words)


def check_outward(findings: Findings, program: str, words: Sequence[str]) -> None:
    """Collect the effects of one command on other machines."""
    options, pairs = table()["options"], [*pairwise(["", *words])]
    bare = [word for before, word in pairs if word[:1] not in "-+" and before not in options["values"]]
    if verb := _publishes(program, bare, words):
        findings.add("outward", f"{program} {shown(verb)}: it has effects on other machines")
    if is_in("downloaders", program):
        remote = [word for before, word in pairs if before not in options["curl"] and not _is_local(word)]
        hidden = any(not known(word) for before, word in pairs if before not in options["unsent"])
        like = f"{program}_sends" if f"{program}_sends" in table()["code"] else "curl_sends"
        if remote and (hidden or any(sign_of(like, word) for word in words)):
            findings.add("outward", "it sends data to another machine")
    lines = joined(words)
    if is_in("databases", program) or program == "=":
        named = [match[1] for match in _signs("database_host").finditer(lines)]
        for host in [*named, *(word for word in bare if not known(word) and program != "=")]:
            check_address(findings, host)
    if not is_in("pattern_first", program) and entry_of("kinds", program) != "text":
        for match in _signs("service").finditer(lines):
            check_address(findings, match[0])
        if dropped := sign_of("drops", lines):
            what = " ".join(dropped.split())
            findings.add("outward", f"{what}: it deletes a database that may be on another machine")
    if is_in("installers", program) and {"install", "i", "add"} & {*bare[:2]}:
        check_runner(findings, bare)
    for sign in ("index", "short_index") if is_in("installers", program) else ("index",):
        for match in _signs(sign).finditer(lines):
            check_address(findings, match[1], index=True)


def check_runner(findings: Findings, words: Sequence[str]) -> None:
    """Ask about a package that is run, as by ``npx``, or installed, and not one of the default index."""
    for word in words:
        source = re.sub(r"^--[\w-]+=", "", word)
        if re.match(r"git\+|ssh:|git@|(?:github|gitlab|bitbucket|gist):|[\w.-]+/[\w.-]+#", source):
            findings.add("outward", f"{shown(source)} is not a package of the default index")
        elif "://" in source:
            check_address(findings, source, index=True)


def check_address(findings: Findings, address: str, *, index: bool = False) -> None:
    """Ask about an address unless it is one of this machine, or with *index*, of a default package index."""
    if index:
        host = re.sub(r"^\w*:?//|[/:?#\\].*$", "", address)
        if not sign_of("default_index", host) and not _is_local(address):
            findings.add("outward", f"packages from {shown(host)} are not those of the default index")
    elif not _is_local(address if re.search("://|^/", address) else f"x://{address}"):
        findings.add("outward", "it connects to another machine")


def _publishes(program: str, bare: Sequence[str], words: Sequence[str]) -> str:
    """Return the argument that makes a command publish or deploy something; empty without one."""
    cloud = table()["cloud"]
    if program in cloud["programs"]:
        chosen = bare[: 1 if program == "kubectl" else 3]
        reads = any({word, word.split("-")[0]} & cloud["verbs"] for word in chosen)
        return "" if reads else " ".join(bare[:2])
    named = table()["subcommands"].get(program, frozenset())
    option = next((word for word in words if word[:2] == "--" and word in named), "")
    if option or (bare and bare[0] in cloud["harmless"] - named):
        return option
    named |= frozenset() if is_listed(program) else cloud["pushing"]
    for word in bare if is_in("targets", program) else bare[:3]:
        first, *rest = re.split(r"[:_/-]", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).lower())
        script = is_in("scripts", program) and first in cloud["publishing"]
        if word in named or (script and not cloud["checks"] & set(rest)):
            return word
    return ""


def _is_local(word: str) -> bool:
    """Whether a word is not an address, or an address of this machine."""
    if "://" in word:
        rest = word.partition("://")[2]
        # `localhost$X` may be another host, and so may `localhost:$X@host`.
        user = r"(?![^/?#]*[\x00-\x05][^/?#]*@)(?:[^/?#]*@)?+"
        here = re.match(rf"{user}(?:{LOOPBACK.pattern})(?:[:/?#]|$)", rest, re.IGNORECASE)
        return bool(here) or not rest.strip("/") or rest[0] == "/"
    here = re.fullmatch(rf"(?:{LOOPBACK.pattern})(?:[:/?].*)?|[-/:@{{\[%].*|\d*", word, re.DOTALL)
    return bool(here) or (known(word) and not re.match(r"[\w-]+(?:\.[\w-]+)+(?:[:/?]|$)", word))


@cache
def _programs() -> re.Pattern[str]:
    """Return a pattern for a program that reaches other machines with whatever arguments it has."""
    named = [*table()["outward"].values(), table()["groups"]["connects"]]
    names = "|".join(re.escape(name) for names in named for name in sorted(names))
    return re.compile(rf"(?:^|[;&|(`'\"\n>]|\b(?:then|do|else)\s)\s*(?:{names})\s+[\w'\"$-]")


def mentioned(text: str) -> str:
    """Return an effect on other machines that a text with hidden commands mentions, in whatever order.

    Quotes and escapes between the words do not hide them; what is decoded may be anything.
    """
    plain = unescaped(text)
    if match := _programs().search(plain):
        return match[0].strip(" ;&|(`'\"\n")
    tokens = set(re.findall(r"[\w.@:-]+", re.sub(r"['\"]", "", plain))) | set(re.findall(r"\w[\w-]*", plain))
    if found := sign_of("decodes", plain) or sign_of("drops", plain):
        return found
    cloud = table()["cloud"]
    publishes = frozenset(word for word in tokens if re.split(r"[:_-]", word)[0] in cloud["publishing"])
    pairs = [(frozenset([program]), named) for program, named in table()["subcommands"].items()]
    pairs += [(table()["groups"]["scripts"], publishes), (cloud["programs"], cloud["changes"])]
    for programs, words in pairs:
        if programs & tokens and words & tokens:
            return f"{min(programs & tokens)} {min(words & tokens)}"
    return ""


@cache
def _signs(name: str) -> re.Pattern[str]:
    return re.compile("|".join(sorted(table()["code"][name])), re.DOTALL | re.MULTILINE)


def sends(code: str) -> bool:
    """Whether the code of a program, of any language, sends something to another machine."""
    hosts = re.findall(r"(?:https?|ftps?|wss?)://([^/\s'\":\]]+|\[[^\]]*\])", code)
    hosts += re.findall(r"['\"]([\w-]+(?:\.[\w-]+)+|localhost|::1)['\"]\s*,\s*\d+", code)
    local = re.compile(rf"(?:{LOOPBACK.pattern})|testserver|test|example")
    remote = [host for host in hosts if not local.fullmatch(host.rpartition("@")[2])]
    return bool(_signs("sends" if hosts else "mails").search(code)) and bool(remote or not hosts)


def sign_of(kind: str, code: str) -> str:
    """Return the first sign of a kind of effect in code, from the table; empty without one."""
    match = _signs(kind).search(code)
    return match[0][:30] if match else ""


def unescaped(text: str) -> str:
    r"""Return text with ``\n``, ``\x41``, ``\101`` and the like replaced, as ``printf`` and ``$'…'`` do."""

    def character(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 16) & 0xFFFF if found[1] else int(found[2], 8) & 0xFF)
        return {"n": "\n", "t": "\t", "r": "\r"}.get(found[3], found[3])

    return _ESCAPES.sub(character, text)
