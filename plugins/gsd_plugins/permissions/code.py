"""Code that is given to an interpreter as text, for signs of effects that no agent may have.

This reads literals, not programs: it finds what a careless model writes and not what a hostile one
hides. Code that hides what it writes, starts or sends is asked about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gsd_core import Ask, Deny

from .words import CONTENT, DOWNLOAD, STAR, UNKNOWN, known

if TYPE_CHECKING:
    from .shell import Shell

MAX_CODE = 20_000

_PROTECTED = re.compile(
    r"(?<![\w.])\.(?:git|planning|gsd|claude|ssh|bashrc|bash_profile|zshrc|profile|gitconfig|envrc|netrc)"
    r"(?=[/\\\"'`\s)]|$)|(?<![\w.])(?:gsd\.toml|\.mcp\.json|\.claude\.json)\b"
)
_WRITES = re.compile(
    r"open\s*\(?[^\n]{0,120}?,\s*(?:mode\s*=\s*)?['\"][rwaxb]*[wax+]|write_text|write_bytes|\.write\b|[wW]riteFile|appendFile|unlink|"
    r"rmtree|\brmdir|\bremove\s*\(|rename|\breplace\s*\(\s*(?:['\"][./~]|Path)|shutil\.|copyfile|copyFile|cpSync|rmSync|\brm\s*\(|"
    r"makedirs|mkdir|touch|symlink|chmod|chown|truncate|createWriteStream|file_put_contents|fopen|File\.(?:write|open|delete)|FileUtils|"
    r"open\s*\(?\s*(?:my\s*)?\$?\w+\s*,\s*['\"]\s*\+?>|IO\.write|extractall|sqlite3\.connect|os\.link|savefig|to_csv|dump\s*\("
)
_STARTS = re.compile(
    r"os\.(?:system|popen|exec\w*|spawn\w*|posix_spawn\w*)|subprocess|\bPopen|check_(?:call|output)|child_process|"
    r"exec(?:Sync|File|FileSync)?\s*\(|spawn(?:Sync)?\s*\(|\bsystem\s*[\(\s'\"]|\bqx\b|%x[\[{(]|shell_exec|passthru|proc_open|"
    r"popen|pty\.|Deno\.(?:run|Command)|Bun\.spawn|Kernel\.|Open3|IO\.popen"
)
_HIDES = re.compile(
    r"b(?:64|32|85)decode|unhexlify|fromhex|\batob\b|fromCharCode|\bchr\s*\(|__import__|\beval\b|(?<!\.)\bexec\s*\(|\bgetattr\s*\(|globals\(\)|"
    r"marshal|codecs|rot13|\[::-1\]|\breverse\b|\bpack\s*\(|base64|zlib|fromCodePoint|['\"]\.join\s*\(|"
    r"\bexpanduser|\bPath\.home|homedir|(?:environ|getenv|\benv|ENV)\b[^\n]{0,9}HOME|\.parent\.parent|\bos\.pardir|\bpwd\.getpw|\bchdir|dir_fd"
)
_SENDS = re.compile(
    r"\b(?:requests|httpx|axios|session|urllib3|got|superagent|ky|needle)\.(?:post|put|patch|delete|request)\b|urlopen\s*\([^)]*data\s*=|"
    r"Request\s*\([^)]*(?:data|method)\s*=|fetch\s*\(.{0,200}?method['\"]?\s*:\s*['\"](?i:post|put|patch|delete)|"
    r"smtplib|nodemailer|ftplib|paramiko|fabric|telnetlib|net\.(?:connect|createConnection|Socket)|tls\.connect|"
    r"socket\.(?:create_connection|socket)|\.connect\s*\(\s*\(|http\.client|HTTPS?Connection|https?\.request|"
    r"Net::(?:HTTP|SMTP|FTP)|HTTP::|LWP|IO::Socket|TCPSocket|boto3|file_get_contents\s*\(\s*['\"]http|curl_exec|xmlrpc|websockets?\.connect",
    re.DOTALL,
)
_FETCHES = re.compile(
    r"urlopen|urlretrieve|\bfetch\s*\(|(?:requests|httpx|axios|got|https?['\"]?\)?)\.get\b|URI\.open|open-uri"
)
_READS_SECRETS = re.compile(
    r"\.read\b|read_text|readFile|File\.read|environ|process\.env|\bENV\b|getenv|open\s*\("
)
_COMPARED = re.compile(
    r"(?:\bin\b|[!=]=|ignore|exclude|skip|startswith|filter)[^\n]{0,40}['\"/]\.(?:git|planning|gsd|claude)|"
    r"\.(?:git|planning|gsd|claude)['\"] (?:not )?in\b"
)
_HOST = re.compile(
    r"(?:https?|ftps?|wss?)://([^/\s'\":\]]+|\[[^\]]*\])|['\"]([\w-]+(?:\.[\w-]+)+|localhost|::1)['\"]\s*,\s*\d+"
)
_LOCAL = re.compile(
    r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost|testserver|test|example"
)
_GIT = re.compile(
    r"\bgit\b\W{1,12}(?:-\w+\W+\S+\W+)?(?:commit|push|reset|clean|stash|checkout|rebase|config|update-ref|branch|tag|merge)\b"
)
_STRING = re.compile(
    r"'''(.*?)'''|\"\"\"(.*?)\"\"\"|'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`([^`]*)`|%x?[\[{(]([^\]})]*)[\]})]",
    re.DOTALL,
)
_STARTING_CALL = re.compile(
    r"\b(?:system|popen\d?|exec\w*|spawn\w*|Popen|(?:check_)?call|check_output|run|getoutput|getstatusoutput|shell_exec|passthru|"
    rf"proc_open|qx|capture2e?|Command)[\s(]\s*(?:f|r|b)?({_STRING.pattern})",
    re.DOTALL,
)
_CALL_LISTS = re.compile(r"\[\s*((?:(?:sys\.executable|process\.execPath|['\"][^'\"\n]*['\"])\s*,?\s*)+)\]")


def check_code(shell: Shell, code: str, language: str) -> None:
    """Check code of Python, JavaScript, Perl, Ruby and the like."""
    findings, paths = shell.findings, shell.paths
    if len(code) > MAX_CODE:
        findings.add(Ask(reason="the code is too long to be checked: write it to a file and run that"))
        code = code[:MAX_CODE]
    partly_unknown = not known(code)
    plain = re.sub(r"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2}))", lambda m: chr(int(m[1] or m[2], 16)), code)
    plain = re.sub(rf"(['\"])\s*{'[.]' if language in ('perl', 'php') else '[+]'}\s*\1", "", plain)
    writes, starts = bool(_WRITES.search(plain)), bool(_STARTS.search(plain))
    if language in ("perl", "ruby", "php") and "`" in plain:
        starts = True
    if match := _GIT.search(plain):
        findings.add(Deny(reason=f"agents may not run code that mentions {match[0]!r}"))
    named = _PROTECTED.search(plain)
    if named and (writes or starts or _HIDES.search(plain)):
        findings.add(Deny(reason=f"agents may not run code that mentions {named[0]!r} and changes something"))
    if (writes or starts) and (match := _HIDES.search(plain)):
        findings.add(
            Ask(reason=f"code that uses {match[0].strip()!r} hides what it changes: use plain paths")
        )
    if (
        (writes or starts)
        and partly_unknown
        and any(marker in code for marker in (UNKNOWN, CONTENT, DOWNLOAD))
    ):
        findings.add(Ask(reason="a part of the code is known only at run time: write it out"))
    if re.search(r"(?<![\w.])(?:exec|eval)\s*\(", plain) and re.search(
        r"decode|fromhex|atob|chr\(|read|input|codecs", plain
    ):
        findings.add(Ask(reason="the code runs code that is not visible"))
    _check_hosts(shell, plain)
    if named and not (writes or starts) and not _COMPARED.search(plain):
        findings.add(Ask(reason=f"the code mentions {named[0]!r}: use `cat` or `grep` to read it"))
    if re.search(r"\bkill\w*\s*\(?\s*-?\d", plain):
        findings.add(Ask(reason="it is unknown whose process the code ends"))
    if re.search(r"(?:%s|\{\w*\})(?:git|planning|gsd|claude|ssh)\b", plain):
        findings.add(Ask(reason="the code builds a path of the run's own files"))
    for text in _strings(plain):
        if (
            (writes or starts)
            and "*" in text
            and len(text) < 100
            and (name := paths.protected_name(text.replace("*", STAR)))
        ):
            findings.add(Ask(reason=f"{text!r} matches {name}"))
        if not text or len(text) > 300 or "\n" in text:
            continue
        if re.match(r"(?:/|~|\.\.(?:/|$))", text):
            _check_path(shell, os.path.expanduser(text), writes=writes or starts)  # noqa: PTH111
        elif re.search(r"/\.\.(?:/|$)", text) and writes:
            findings.add(paths.check_write(text))
        elif re.search(r"(?:^|/)(?:\.env(?:\.\w+)?|id_(?:rsa|ed25519)|credentials)$", text):
            findings.add(paths.check_read(text) or (paths.check_write(text) if writes else None))
    if starts:
        _check_started(shell, plain, language)


def _strings(code: str) -> Iterator[str]:
    for match in _STRING.finditer(code):
        yield next((group for group in match.groups() if group is not None), "")


def _check_path(shell: Shell, path: str, *, writes: bool) -> None:
    top = "/" + path.lstrip("/").partition("/")[0]
    if path.startswith("/") and (path.count("/") < 2 or not os.path.isdir(top)):  # noqa: PTH112
        return
    shell.findings.add(shell.paths.check_read(path))
    if writes and (objection := shell.paths.check_write(path)):
        # A program that reads there and writes elsewhere is as likely.
        shell.findings.add(Ask(reason=f"the code may write there: {objection.reason}"))


def _check_hosts(shell: Shell, code: str) -> None:
    hosts = [match[1] or match[2] for match in _HOST.finditer(code)]
    remote = [host for host in hosts if not _LOCAL.fullmatch(host.rpartition("@")[2])]
    sends = _SENDS.search(code)
    if sends and (remote or not hosts):
        shell.findings.outward("the code sends data to another machine")
        return
    reads = _READS_SECRETS.search(re.sub(r"urlopen\s*\([^()]*\)\s*\.read", "", code))
    builds = re.search(r"\+|\{|%|\.format|,\s*params", code)
    if remote and reads and builds and _FETCHES.search(code):
        shell.findings.outward("the code may send data to another machine in an address")


def _check_started(shell: Shell, code: str, language: str) -> None:
    """Check the programs that code starts, as far as they are literal."""
    seen = False
    rest = code
    for match in re.finditer(r"\b\w*(?:spawn|exec)\w*\(\s*['\"]([^'\"]+)['\"]\s*,\s*\[([^\]]*)\]", code):
        seen = True
        rest = rest.replace(match[0], "")
        shell.nested([match[1], *re.findall(r"['\"]([^'\"]*)['\"]", match[2])])
    for match in _CALL_LISTS.finditer(rest):
        words = re.findall(r"sys\.executable|process\.execPath|'[^']*'|\"[^\"]*\"", match[1])
        plain = [
            "python" if w == "sys.executable" else "node" if w == "process.execPath" else w[1:-1]
            for w in words
        ]
        if plain:
            seen = True
            rest = rest.replace(match[0], "")
            shell.nested(plain)
    for match in _STARTING_CALL.finditer(rest):
        text = next((group for group in match.groups()[1:] if group is not None), "")
        if not text:
            continue
        seen = True
        shell.run_text(re.sub(r"\$?\{[^}]*\}", "$unknown", text))
    if language in ("perl", "ruby", "php"):
        for text in re.findall(r"`([^`]*)`|qx[/{(]([^/})]*)", rest):
            seen = True
            shell.run_text("".join(text))
    if not seen:
        shell.findings.add(Ask(reason="the code starts a program that is not visible: run it directly"))


def check_awk(shell: Shell, words: list[str]) -> None:
    """Check an awk program: it can write files and run commands."""
    code = "\n".join(word for word in words if not word.startswith("-"))
    if not re.search(r"system\s*\(|\|\s*(?:getline|\"|&)|\"\s*\||>|close\s*\(|getline\s*<|@load|-i\b", code):
        return
    for text in re.findall(
        r"system\s*\(\s*\"((?:[^\"\\]|\\.)*)\"|\|\s*\"([^\"]*)\"|\"([^\"]*)\"\s*\|\s*getline", code
    ):
        command = "".join(text)
        shell.run_text(command)
    if re.search(r"system\s*\((?!\s*\"[^\"]*\"\s*\))|\|\s*[a-z(]|@load", code):
        shell.findings.add(Ask(reason="awk runs a command that is not visible: use xargs or a loop"))
    for target in re.findall(r"print[^;}\n|]*?>>?\s*(\"[^\"]*\"|[\w$(][^;}\n]*)", code):
        if target.startswith('"'):
            shell.findings.add(shell.paths.check_write(target.strip('"')))
        elif not re.search(r"[?:&|)]|\d", target) or target.startswith("$"):
            shell.findings.add(
                Ask(reason="awk writes to a file that is not visible: redirect its output instead")
            )
    if not shell.writable:
        shell.findings.read_only("awk may change something")


def check_sed(shell: Shell, words: list[str]) -> None:
    """Check a sed script: ``w`` writes files, ``e`` runs commands."""
    code = "\n".join(word for word in words if not re.match(r"-[a-zA-Z]$|--", word))
    scripts = [word for word in words if not word.startswith("-")][:1]
    scripts += [
        words[n + 1] for n, word in enumerate(words[:-1]) if re.fullmatch(r"-\w*e|--expression", word)
    ]
    scripts += [word.partition("=")[2] for word in words if word.startswith("--expression=")]
    for script in scripts:
        flags = re.findall(
            r"s([^\w\s\\])(?:(?!\1)(?:\\.|[^\\]))*\1(?:(?!\1)(?:\\.|[^\\]))*\1([gpiIm0-9]*)([we])([^;\n}]*)",
            script,
        )
        lines = re.findall(
            r"(?:^|[;{\n]|\d|\$|/|\s)\s*([wWe])(?:(?<=e)\s+([^;\n}]*)|(?<=[wW])\s*([^;\n}]+)|$)",
            re.sub(
                r"s([^\w\s\\])(?:(?!\1)(?:\\.|[^\\]))*\1(?:(?!\1)(?:\\.|[^\\]))*\1[gpiIm0-9]*", "", script
            ),
        )
        found = [(kind, target) for _, _, kind, target in flags] + [
            (kind, one or two) for kind, one, two in lines
        ]
        for kind, target in found:
            if kind == "e":
                shell.findings.add(Ask(reason="the e of sed runs commands: run them directly"))
                shell.run_text(target.strip())
            else:
                shell.findings.add(shell.paths.check_write(target.strip() or STAR))
    if "\x00" in code and not shell.writable:
        shell.findings.read_only("sed may change something")
