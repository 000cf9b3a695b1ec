"""Code that is given to an interpreter as text: allowed if it shows what it changes, starts and sends.

This reads literals, not programs: it finds what a careless model writes and not what a hostile one hides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .network import LOOPBACK
from .table import table
from .words import STAR, known, unescaped

if TYPE_CHECKING:
    from .shell import Shell

MAX_CODE = 20_000
_STRING = re.compile(
    r"'''(.*?)'''|\"\"\"(.*?)\"\"\"|'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`([^`]*)`", re.DOTALL
)
_ITEM = r"(?:sys\.executable|process\.execPath|'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`)"
_CALL = re.compile(rf"[\s({{\[]*[bf]?{_ITEM}(?:\s*,\s*\[?\s*{_ITEM})*")
_HOST = re.compile(
    r"(?:https?|ftps?|wss?)://([^/\s'\":\]]+|\[[^\]]*\])|['\"]([\w-]+(?:\.[\w-]+)+|localhost|::1)['\"]\s*,\s*\d+"
)


@cache
def _signs(name: str) -> re.Pattern[str]:
    """Return a pattern that finds the signs of one kind of effect, from the table."""
    return re.compile("|".join(sorted(table()["code"][name])), re.DOTALL)


def check_code(shell: Shell, code: str, language: str) -> None:
    """Check code of Python, JavaScript, Perl, Ruby, awk and the like."""
    findings, paths = shell.findings, shell.paths
    if len(code) > MAX_CODE:
        findings.ask("the code is too long to be checked: write it to a file and run that")
        code = code[:MAX_CODE]
    plain = re.sub(r"\\(?:x[0-9a-fA-F]{2}|u00[0-9a-fA-F]{2})", lambda match: unescaped(match[0]), code)
    plain = re.sub(rf"(['\"])\s*[{'.' if language in ('perl', 'php') else '+'}]\s*\1", "", plain)
    if language == "awk":
        plain = re.sub(r"/(?:[^/\\\n]|\\.)+/", "", plain)
    starts = _signs("starts").search(plain) or (language in ("perl", "ruby", "php") and "`" in plain)
    changes = bool(starts or _signs("writes").search(plain))
    _check_hosts(shell, plain)
    if changes and not shell.writable:
        findings.written.append("the code may change something")
    hides = _signs("hides" if changes else "runs_hidden").search(plain)
    if match := _signs("protected").search(plain):
        if changes or _signs("hides").search(plain):
            findings.deny(f"agents may not run code that mentions {match[0]!r} and changes something")
        elif not _signs("compared").search(plain):
            findings.ask(f"the code mentions {match[0]!r}: use `cat` or `grep` to read it")
    if hides or (changes and not known(code)):
        what = f"uses {hides[0][:30]!r}" if hides else "is known only at run time"
        findings.ask(
            f"code that changes something and {what} cannot be checked: use plain paths and commands"
        )
    if re.search(r"\bkill\w*\s*\(?\s*-?\d", plain):
        findings.ask("it is unknown whose process the code ends")
    if language == "awk" and changes:
        findings.ask("awk writes a file or runs a command: redirect its output, or use xargs or a loop")
    strings = ["".join(found) for found in _STRING.findall(plain)]
    for text in strings if len(strings) < 500 else []:
        if not text or len(text) > 300 or "\n" in text:
            continue
        path = os.path.expanduser(text)  # noqa: PTH111 - text, not a path yet
        if re.match(r"/|\.\.(?:/|$)", path) and (path[0] == "." or Path("/", path.split("/")[1]).is_dir()):
            findings.add(paths.check_read(path))
            if changes and path.count("/") > 1 and (objection := paths.check_write(path)):
                # A program that reads there and writes elsewhere is as likely.
                findings.ask(f"the code may write there: {objection.reason}")
        elif changes and ("/../" in text or "*" in text):
            findings.add(paths.check_write(text.replace("*", STAR)))
        elif re.search(r"(?:^|/)(?:\.env(?:\.\w+)?|id_\w+|credentials)$", text):
            findings.add(paths.check_read(text) or (paths.check_write(text) if changes else None))
    if starts:
        _check_started(shell, plain)


def _check_hosts(shell: Shell, code: str) -> None:
    hosts = [match[1] or match[2] for match in _HOST.finditer(code)]
    local = re.compile(rf"(?:{LOOPBACK.pattern})|testserver|test|example")
    remote = [host for host in hosts if not local.fullmatch(host.rpartition("@")[2])]
    reads = _signs("reads").search(re.sub(r"urlopen\s*\([^()]*\)\s*\.read", "", code))
    sends = _signs("sends" if hosts else "mails").search(code)
    if sends and (remote or not hosts):
        shell.findings.outward("the code sends data to another machine")
    elif (
        remote
        and reads
        and re.search(r"\+|\{|%|\.format|,\s*params", code)
        and _signs("fetches").search(code)
    ):
        shell.findings.outward("the code may send data to another machine in an address")


def _check_started(shell: Shell, code: str) -> None:
    """Check the commands that code starts, which have to be literal."""
    for match in _signs("starts").finditer(code):
        call = _CALL.match(code, match.end())
        if "import" in match[0] or not call:
            shell.findings.unparsed(
                re.sub(r"\W+", " ", code), "the code starts a program that is not visible"
            )
            continue
        items = [item[1:-1] if item[0] in "'\"`" else "python3" for item in re.findall(_ITEM, call[0])]
        _ = shell.nested(items) if items[1:] else shell.run_text(items[0])


def check_sed(shell: Shell, words: Sequence[str]) -> bool:
    """Check a sed script: ``w`` writes files, ``e`` runs commands; return whether it has one of them."""
    script = "\n".join(
        word.removeprefix("--expression=") for word in words if re.match("[^-]|--exp.*=", word)
    )
    part = r"(?:\\.|(?!\1)[^\\])*"
    left = re.sub(rf"s([^\w\s\\]){part}\1{part}\1[gpiIm0-9]*|\b[aic](?:[\\ ]|$).*", "", script)
    left = re.sub(r"/(?:\\.|[^/\\])*/", "/", left)
    found = re.findall(r"(?:^|[;{}\n\d$/\s])\s*(?:[wW]\s*([^;\n}\w][^;\n}]*|$)|e(?:\s+[^;\n}]+|\s*$))", left)
    for file in found:
        if file:
            shell.findings.add(shell.paths.check_write(file.strip()))
        else:
            shell.findings.unparsed(script, "sed writes a file or runs a command that is not visible")
    return bool(found)
