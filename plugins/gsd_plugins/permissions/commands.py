"""What one command does: its program's kind, its paths, and the commands and code in its arguments.

The table lists programs by kind: ``text`` ignores paths, ``read`` reads them, ``write`` changes all that it
names, ``copy`` the last, ``edit`` reads unless ``-i`` is given, ``build`` runs or changes the project's code.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from .code import check_code, check_sed
from .git import check_git
from .listing import FIND_RUNS, found_files, output_of
from .network import check_network
from .table import base_name, entry_of, is_in, is_listed, only_help, table
from .words import CONTENT, STAR, UNKNOWN, known, shown

if TYPE_CHECKING:
    from .shell import Shell

_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
_OUTPUT = re.compile(
    r"-[oOdDPC]|--(?:out\w*|output-\w+|dest\w*|prefix|root|target|target-dir|directory|report\w*|cwd)"
)
_SQL = re.compile(
    r"\\!|\\copy|\\o\b|\.(?:shell|system|output|once|backup|save|log|excel|import)\b|(?i:into\s+outfile|attach|"
    r"load_extension|program\b|drop\s+(?:database|schema|table)|truncate|flush(?:all|db)|dropdatabase)"
)


def check_command(
    shell: Shell, path: str, program: str, words: list[str], stdin: str, *, installs: bool
) -> str:
    """Check a program, given as *path*, and return what it prints, as far as that is known."""
    findings = shell.findings
    for section, add in (("denied", findings.deny), ("asked", findings.ask)):
        if (reason := entry_of(section, program)) and not only_help(words):
            add(f"{program}: {reason}")
    module = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*m", word)), 0)
    options = pairwise(["", *words[:module]])
    if base_name(program) in ("python", "pypy") and all(
        w[:1] == "-" or b in ("-W", "-X") for b, w in options
    ):
        words = ["-m", *words[module + 1 :]] if module else words
    for count in (2, 1, 0):
        key = " ".join([base_name(program), *words[:count]])
        section = next((name for name in ("wrappers", "installs") if key in table()[name]), "")
        if section and len(words) >= count and (program != "command" or not {"-v", "-V"} & set(words[:1])):
            inner = _after_options(words[count:], table()[section][key])
            _check_quoted(shell, program, words[: len(words) - len(inner)])
            if len(inner) == 1 and " " in inner[0]:
                return shell.run_text(inner[0], stdin)
            return shell.nested(inner, stdin, installs=installs or section == "installs")
    if program == "env":
        return _check_env(shell, words, stdin)
    if program == "xargs":
        return _check_xargs(shell, words, stdin)
    if program == "git" or program.startswith("git-"):
        check_git(shell, words if program == "git" else [program[4:], *words])
        return output_of(shell, program, words, stdin)
    check_network(shell, program, words)
    kind = _kind(shell, path, program, installs=installs)
    _check_quoted(shell, program, words)
    if is_in("lists_files", program):
        _check_find(shell, program, words)
    changes = _check_code(shell, program, words, stdin) | _check_paths(shell, program, kind, words)
    if changes and not shell.writable:
        findings.written.append(f"{program} may change something")
    return output_of(shell, program, words, stdin)


def _kind(shell: Shell, path: str, program: str, *, installs: bool) -> str:
    """Return the kind of a program; ask about one that is neither known nor the project's own."""
    policy = shell.paths.policy
    kind = entry_of("kinds", base_name(program))
    if "/" in path and known(path):
        if path.removeprefix("./") in shell.downloaded:
            shell.findings.deny("downloaded code may not be run unseen: read it first")
        real = policy.resolved(path, next(iter(shell.paths.folders), None))
        if policy.is_scratch(real) or (real.is_relative_to(policy.tree) and not policy.protected(real)):
            return kind or "build"
        shell.findings.add(shell.paths.check_read(path))
    own = [policy.tree / folder / program for folder in (".venv/bin", "venv/bin", "node_modules/.bin")]
    if not (is_listed(program) or installs or program in shell.allowed or any(file.exists() for file in own)):
        found = shutil.which(program) or "/" in path
        why = "is not a program known to this policy" if found else "is not installed"
        shell.findings.ask(f"`{shown(program)}` {why}")
    return kind or "build"


# Commands and code in arguments


def _after_options(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    """Return the command after a wrapper's options and arguments; a number in *valued* counts the latter."""
    rest = list(words)
    while rest and (rest[0].startswith("-") or _ASSIGNMENT.fullmatch(rest[0])):
        option = rest.pop(0)
        if option == "--":
            break
        if option in valued and rest:
            rest.pop(0)
    return rest[sum(int(word) for word in valued if word.isdigit()) :]


def _check_env(shell: Shell, words: list[str], stdin: str) -> str:
    for before, (place, word) in zip(["", *words], enumerate(words), strict=False):
        if word in ("-i", "-", "--ignore-environment") or re.search(r"^(?:--unset=)?GSD_\w+$", word):
            shell.findings.deny("GSD_RUN must stay set: it identifies the run's processes")
        elif word.startswith(("-C", "--chdir")):
            shell.findings.ask("use cd instead of env -C, so that paths can be checked")
        elif match := re.match(r"(?:-v?S|--split-string)=?(.*)", word, re.DOTALL):
            return shell.run_text(" ".join([match[1], *words[place + 1 :]]), stdin)
        elif match := _ASSIGNMENT.fullmatch(word):
            shell.assign(match[1], match[2], kept=False)
        elif not word.startswith("-") and before not in ("-u", "--unset", "-C", "--chdir"):
            return shell.nested(words[place:], stdin)
    return CONTENT


def _check_xargs(shell: Shell, words: list[str], stdin: str) -> str:
    command = _after_options(words, table()["options"]["xargs"])
    options = words[: len(words) - len(command)]
    lines = any(re.match(r"-\w*[0d]|--(?:null|delim)", word) for word in options)
    names = [name for name in re.split(r"\\0|\n" if lines else r"\s+", stdin) if name]
    names = names if known(stdin) and names and "-a" not in options else [UNKNOWN]
    token = next((value for option, value in pairwise(options) if option == "-I"), "")
    token = token or next((word[2:] or "{}" for word in options if re.match(r"-I.|-i", word)), "")
    if not any(token and token in word for word in command):
        return shell.nested([*command, *names])
    return "\n".join(shell.nested([word.replace(token, name) for word in command]) for name in names[:12])


def _check_find(shell: Shell, program: str, words: list[str]) -> None:
    found = found_files(shell, program, words)
    if "-delete" in words:
        shell.nested(["rm", *found])
    for place, word in enumerate(words):
        if word in FIND_RUNS:
            ends = [n for n, end in enumerate(words) if n > place and end in (";", "+")]
            inner = words[place + 1 : ends[0] if ends else None]
            if program != "find" and not any("{}" in each for each in inner):
                inner = [*inner, "{}"]
            for path in found:
                shell.nested([each.replace("{}", path) for each in inner])


def _check_quoted(shell: Shell, program: str, words: Sequence[str]) -> None:
    """Follow arguments that are command lines, such as ``--exec "npm publish"``.

    Whether they run is not known, so what is denied in them is a question.
    """
    if is_in("shell_text", program):
        bare = [
            re.sub(r"^\w+=", "", word) if program == "alias" else word for word in words if word[:1] != "-"
        ]
        for text in [" ".join(words)] if program == "eval" else bare[:1] if program == "trap" else bare:
            shell.run_text(text)
    literal = base_name(program) in table()["interpreters"] or entry_of("kinds", program) == "text"
    if literal or any(
        is_in(each, program) for each in ("containers", "pattern_first", "shells", "lists_files")
    ):
        return
    for word in words:
        text = re.sub(r"^(?:-{0,2}[\w.-]+=|exec=|sh:|[!|+])*", "", word)
        first = re.match(r"(?:\S*/)?([\w.-]+)\s+\S", text)
        if first and known(text) and is_listed(first[1]):
            inner = shell.subshell(findings=type(shell.findings)(commands=shell.findings.commands))
            inner.run_text(text)
            shell.findings.outwards += inner.findings.outwards
            shell.findings.asked += inner.findings.denied + inner.findings.asked


def _check_code(shell: Shell, program: str, words: list[str], stdin: str) -> bool:
    """Check code for a shell or an interpreter; return whether it may change something."""
    if program in (".", "source"):
        _check_script(shell, words[0] if words else "", stdin)
    elif is_in("shells", program):
        place = next((n for n, w in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", w)), None)
        bare = [word for word in words[place or 0 :] if not word.startswith(("-", "+"))]
        if place is not None:
            inner = shell.subshell()
            inner.variables |= {str(n): w for n, w in enumerate(bare[1:])} | {"@": " ".join(bare[2:])}
            inner.run_text(bare[0] if bare else "", stdin)
        elif bare and "-s" not in words:
            _check_script(shell, bare[0], stdin)
        elif stdin:
            shell.run_text(stdin)
    elif program in ("sed", "gsed"):
        return check_sed(shell, words)
    elif letters := table()["interpreters"].get(base_name(program)):
        flag = rf"-\w*[{''.join(letters)}]|--eval|--print|eval"
        codes = [following for word, following in pairwise(words) if re.fullmatch(flag, word)]
        script = next((w for w in words if (w == "-" or not w.startswith("-")) and w not in codes), "-")
        if is_in("awk", program):
            codes = [word for word in words if not word.startswith("-")]
        elif not codes and script == "-":
            codes = [stdin] if stdin else []
        elif not codes:
            _check_script(shell, script, stdin)
            check_network(shell, Path(script).name, words[words.index(script) + 1 :])
        for code in codes:
            if known(code) or re.search(r"[^\s\x00-\x02]", code):
                check_code(shell, code, base_name(program))
            else:
                shell.unknown_code(code)
    elif program in ("make", "gmake") and {"-f", "-f-"} & set(words):
        given = [word.removeprefix("/dev/fd/") for word in words if word.startswith("/dev/fd/")]
        for line in "\n".join([stdin, *given]).splitlines():
            shell.run_text(line.rpartition(":")[2].strip("\t @-;"))
    elif is_in("sql", program) and _SQL.search(" ".join([*words, stdin])):
        shell.findings.ask(f"{program} can write files, run programs, delete data: use it for queries only")
    return False


def _check_script(shell: Shell, word: str, stdin: str) -> None:
    """Check the file of a script: its content is not read."""
    if word in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        shell.run_text(stdin)
    elif word.startswith("/dev/fd/"):
        shell.run_text(word.removeprefix("/dev/fd/"))
    elif not known(word) and not word.endswith("/bin/activate"):
        shell.unknown_code(word)
    elif word.removeprefix("./") in shell.downloaded:
        shell.findings.deny("downloaded code may not be run unseen: read it first")


# Paths


def _check_paths(shell: Shell, program: str, kind: str, words: list[str]) -> bool:
    """Check the arguments as paths that are read or written; return whether anything may be changed."""
    findings, paths = shell.findings, shell.paths
    flags = [word for word in words if word.startswith("-")]
    if kind == "text" or (is_in("shells", program) and any(re.match(r"-[a-zA-Z]*c", word) for word in flags)):
        return False
    if is_in("containers", program):
        for word in words:
            if match := re.match(r"(?:-v|--volume=|.*\b(?:source|src)=)?([/\x00-\x02][^:,]*)[:,]", word):
                findings.add(paths.check_write(match[1]))
        if not {"cp", "load", "save", "export"} & set(words[:1]):
            return True
    kept = _without_excluded(words)
    positional = [word for word in kept if word and (word == "-" or not word.startswith("-"))]
    outputs = list(_outputs(program, kind, kept))
    if is_in("downloaders", program):
        shell.downloaded |= {path.removeprefix("./") for path in outputs if known(path)}
        shell.downloaded |= {word.partition("?")[0].rpartition("/")[2] for word in positional}
    if is_in("pattern_first", program) and not any(
        re.match(r"-\w*[ef]$|--(?:exp|file)", word) for word in flags
    ):
        positional = positional[1:]
    if kind == "edit":
        kind = "write" if any(re.match(r"-[A-Za-z0-9]*i|--in-?place", word) for word in flags) else "read"
    elif kind == "copy" and any(re.match(r"-t|--target", word) for word in flags):
        kind = "read"
    elif program == "uniq":
        outputs += positional[1:]
    written = positional if kind == "write" else positional[-1:] if kind == "copy" else []
    if program == "ln" or (
        program == "cp" and any(re.match(r"-\w*[sl]|--(?:symbolic-)?link", w) for w in flags)
    ):
        # What is written through a link is written where it leads, seen from its own folder.
        folder = str(Path(positional[-1]).parent) if positional[1:] and known(positional[-1]) else "."
        leads = [
            word if word[:1] == "/" or not known(word) else f"{folder}/{word}" for word in positional[:-1]
        ]
        written = [*(leads or positional), positional[-1].rpartition("/")[2] if not leads else positional[-1]]
    elif (
        is_in("moves_to", program) and written and paths.policy.resolved(written[-1]) in paths.policy.scratch
    ):
        written = [*written[:-1], f"{written[-1]}/x"]
    for path in [*outputs, *written]:
        if not re.match(r"[\w.@-]{2,}:(?!\\)|\w+://", path):
            findings.add(paths.check_write(path))
    whole = is_in("moves", program) or any(re.match(r"-[a-zA-Z]*[rR]|--recursive", word) for word in flags)
    for word in written[:-1] if program in ("mv", "ln") else written if kind == "write" else ():
        if whole and paths.contains_tree(word):
            findings.deny(f"{shown(word)} is the project itself or contains it: name a folder in it")
    all_files = any(word.startswith("--delete") or re.search(r"/\.?$", word) for word in words[:-1])
    if kind == "copy" and written and all_files and paths.contains_tree(written[-1]):
        findings.ask(f"{program} may replace the run's own files: name the files or a subfolder")
    if program == "patch" and not positional:
        findings.ask("a patch may change any file: name the file: `patch FILE x.patch`")
    if program == "tar" and any(re.match(r"-?\w*P|--absolute-names", word) for word in words[:3]):
        findings.ask("tar -P writes outside the project")
    for word in kept:
        if word in positional and kind in ("read", "copy", "write"):
            findings.add(paths.check_read(word))
        elif kind == "build" and (STAR + STAR not in word or {"--write", "--fix", "-w"} & set(flags)):
            findings.add(paths.check_argument(word))
    return kind != "read" or bool(outputs)


def _outputs(program: str, kind: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the values of options that name what is written: ``-o FILE``, ``-oFILE``, ``--output=FILE``."""
    options = table()["outputs"].get(program, frozenset())

    def writes(name: str) -> bool:
        return name in options or (kind in ("build", "write", "copy") and bool(_OUTPUT.fullmatch(name)))

    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        grouped = f"-{word[-1:]}" in options and re.fullmatch(r"-[a-zA-Z]+", word)
        if program == "dd" and name == "of":
            yield value
        elif name.startswith("-") and (writes(name) or grouped):
            path = value if equals else following
            if path and (known(path) or name in options):
                yield path
        elif re.match(r"-\w[./~\w]", word) and writes(word[:2]):
            yield word[2:]


def _without_excluded(words: list[str]) -> list[str]:
    """Return the words without the values of ``--exclude`` and the like."""
    kept: list[str] = []
    before = ""
    for word in words:
        option, equals, _ = word.partition("=")
        is_option = option.startswith("-")
        if not any(name in (option if is_option else before) for name in table()["options"]["exclude"]):
            kept.append(word)
        before = option if is_option and not equals else ""
    return kept
