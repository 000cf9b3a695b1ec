"""What one command does: its program's kind, its paths, and the commands and code in its arguments.

The table lists programs by kind: ``text`` ignores paths, ``read`` reads them, ``write`` changes all that it
names, ``copy`` the last, ``edit`` reads unless ``-i`` is given, ``build`` runs or changes the project's code.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from .code import check_code, check_sed
from .findings import Findings
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
    if base_name(program) in ("python", "pypy") and words and words[0][:1] == "-" and "-c" not in words:
        module = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*m", word)), None)
        words = words if module is None else ["-m", *words[module + 1 :]]
    for count in (2, 1, 0):
        key = " ".join([base_name(program), *words[:count]])
        section = next((name for name in ("wrappers", "installs") if key in table()[name]), "")
        if section and len(words) >= count and not (program == "command" and words[0] in ("-v", "-V")):
            inner = _after_options(words[count:], table()[section][key])
            _check_wrapper(shell, program, words[: len(words) - len(inner)])
            if len(inner) == 1 and " " in inner[0]:
                return shell.run_text(inner[0], stdin)
            if program == "env" and not inner:
                return CONTENT
            return shell.nested(inner, stdin, installs=installs or section == "installs")
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
    paths = shell.paths
    kind = entry_of("kinds", base_name(program)) or "build"
    if "/" in path and known(path):
        _check_script(shell, path)
        real = paths.resolved(path, next(iter(paths.folders), None))
        if paths.is_scratch(real) or (real.is_relative_to(paths.tree) and not paths.protected(real)):
            return kind
        shell.findings.add(paths.check_read(path))
    own = [paths.tree / folder / program for folder in (".venv/bin", "venv/bin", "node_modules/.bin")]
    if not (is_listed(program) or installs or program in shell.allowed or any(file.exists() for file in own)):
        found = shutil.which(program) or "/" in path
        why = "is not a program known to this policy" if found else "is not installed"
        shell.findings.ask(f"`{shown(program)}` {why}")
    return kind


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


def _check_wrapper(shell: Shell, program: str, options: list[str]) -> None:
    for word in options:
        if match := _ASSIGNMENT.fullmatch(word):
            shell.assign(match[1], match[2], kept=False)
        elif program == "env" and re.match(r"-i$|-$|--ignore|(?:--unset=)?GSD_", word):
            shell.findings.deny("GSD_RUN must stay set: it identifies the run's processes")
        elif program == "env" and re.match(r"-C|--chdir|-v?S|--split", word):
            shell.findings.ask("use cd instead of env -C, and a plain command instead of env -S")
    _check_quoted(shell, program, options)


def _check_xargs(shell: Shell, words: list[str], stdin: str) -> str:
    command = _after_options(words, table()["options"]["xargs"])
    options = words[: len(words) - len(command)]
    lines = any(re.match(r"-\w*[0d]|--(?:null|delim)", word) for word in options)
    names = [name for name in re.split(r"\\0|\n" if lines else r"\s+", stdin) if name]
    names = names if known(stdin) and names and "-a" not in options else [UNKNOWN]
    if command[:1] == ["kill"] and names == [UNKNOWN]:
        names = ["12345"]  # any process
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
    literal = base_name(program) in table()["interpreters"] or entry_of("kinds", program) == "text"
    if literal or any(
        is_in(each, program) for each in ("containers", "pattern_first", "shells", "lists_files")
    ):
        return
    for word in words:
        text = re.sub(r"^(?:-{0,2}[\w.-]+=|exec=|sh:|[!|+])*", "", word)
        first = re.match(r"(?:\S*/)?([\w.-]+)\s+\S", text)
        if first and known(text) and is_listed(first[1]):
            found = Findings(commands=shell.findings.commands)
            shell.subshell(findings=found).run_text(text)
            shell.findings.outwards += found.outwards
            shell.findings.asked += found.denied + found.asked


def _check_code(shell: Shell, program: str, words: list[str], stdin: str) -> bool:
    """Check code for a shell or an interpreter; return whether it may change something."""
    bare = [word for word in words if not word.startswith(("-", "+"))]
    if program == "eval":
        shell.run_text(" ".join(words))
    elif program in ("trap", "alias"):
        for text in bare[:1]:
            shell.run_text(text.partition("=")[2] if program == "alias" else text)
    elif program in (".", "source"):
        _check_script(shell, words[0] if words else "", stdin)
    elif is_in("shells", program):
        if any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word) for word in words):
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
            codes = bare
        elif not codes and script != "-":
            _check_script(shell, script, stdin)
            check_network(shell, Path(script).name, words[words.index(script) + 1 :])
        elif not codes and stdin:
            codes = [stdin]
        for code in codes:
            if known(code) or re.search(r"[^\s\x00-\x02]", code):
                check_code(shell, code, base_name(program))
            else:
                shell.unknown_code(code)
    elif program in ("make", "gmake") and re.search(r"-f(?: -| /dev/|$)", " ".join(words)):
        shell.findings.unparsed(" ".join([stdin, *words]), "the makefile is not in a file")
    elif is_in("sql", program) and _SQL.search(" ".join([*words, stdin])):
        shell.findings.ask(f"{program} can write files, run programs, delete data: use it for queries only")
    return False


def _check_script(shell: Shell, word: str, stdin: str = "") -> None:
    """Check the file of a script: its content is not read."""
    if word in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        shell.run_text(stdin)
    elif word.startswith("/dev/fd/"):
        shell.run_text(word.removeprefix("/dev/fd/"))
    elif not known(word) and not word.endswith("/bin/activate"):
        shell.unknown_code(word)
    elif word.rpartition("/")[2] in shell.downloaded:
        shell.findings.deny("downloaded code may not be run unseen: read it first")


# Paths


def _check_paths(shell: Shell, program: str, kind: str, words: list[str]) -> bool:
    """Check the arguments as paths that are read or written; return whether anything may be changed."""
    findings, paths = shell.findings, shell.paths

    def has(options: str) -> bool:
        return any(re.match(options, word) for word in words)

    if kind == "text" or (is_in("shells", program) and has(r"-[a-zA-Z]*c")):
        return False
    if is_in("downloaders", program):
        shell.downloaded |= {re.sub(r"^.*/|\?.*", "", word) for word in words}
    if is_in("containers", program):
        for word in words:
            if match := re.match(r"(?:-v|--volume=|.*\b(?:source|src)=)?([/\x00-\x02][^:,]*)[:,]", word):
                findings.add(paths.check_write(match[1]))
        if words[:1] not in (["cp"], ["load"], ["save"], ["export"]):
            return True
    if kind == "edit":
        kind = "write" if has(r"-[A-Za-z0-9]*i|--in-?place") else "read"
    excluded = table()["options"]["exclude"]
    kept: list[str] = []
    for before, word in pairwise(["", *words]):
        option = word if word.startswith("-") else "" if "=" in before else before
        if not (option.startswith("-") and any(each in option.partition("=")[0] for each in excluded)):
            kept.append(word)
    outputs = _outputs(program, kind, kept)
    positional = [word for word in kept if not word.startswith("-")]
    if is_in("pattern_first", program):
        codes = [word for before, word in pairwise(kept) if before == "-e"]
        positional = [word for word in positional if word not in codes]
    if is_in("pattern_first", program) and not has(r"-\w*[ef]$|--(?:exp|file)"):
        positional = positional[1:]
    written = positional if kind == "write" else []
    if kind == "copy" and not has(r"-t|--target"):
        written = positional[-1:]
    if program == "ln" or (program == "cp" and has(r"-\w*[sl]|--(?:symbolic-)?link")):
        # What is written through a link is written where it leads, seen from its own folder.
        link = positional[-1] if positional[1:] else "."
        leads = [
            word if word[:1] == "/" or not known(word) else f"{link.rpartition('/')[0] or '.'}/{word}"
            for word in positional[:-1] or positional
        ]
        written = [*leads, link]
    elif is_in("moves_to", program) and written and paths.resolved(written[-1]) in paths.scratch:
        written = [*written[:-1], f"{written[-1]}/x"]
    if program == "uniq":
        outputs += positional[1:]
    for path in [*outputs, *written]:
        if not re.match(r"[\w.@-]{2,}:(?!\\)|\w+://", path):
            findings.add(paths.check_write(path))
    if kind == "write" and (is_in("moves", program) or has(r"-[a-zA-Z]*[rR]|--recursive")):
        for word in written[:-1] if program == "mv" else written:
            if paths.contains_tree(word):
                findings.deny(f"{shown(word)} is the project itself or contains it: name a folder in it")
    all_files = any(word.startswith("--delete") or re.search(r"/\.?$", word) for word in words[:-1])
    if kind == "copy" and written and all_files and paths.contains_tree(written[-1]):
        findings.ask(f"{program} may replace the run's own files: name the files or a subfolder")
    if program == "patch" and not positional:
        findings.ask("a patch may change any file: name the file: `patch FILE x.patch`")
    if program == "tar" and has(r"-?\w*P|--absolute-names"):
        findings.ask("tar -P writes outside the project")
    for word in kept:
        if word in positional and kind in ("read", "copy", "write"):
            findings.add(paths.check_read(word))
        elif kind == "build" and (STAR + STAR not in word or has("--write|--fix|-w$")):
            findings.add(paths.check_argument(word))
    return kind != "read" or bool(outputs)


def _outputs(program: str, kind: str, words: Sequence[str]) -> list[str]:
    """Return the values of options that name what is written: ``-o FILE``, ``-oFILE``, ``--output=FILE``."""
    options = table()["outputs"].get(program, frozenset())
    found: list[str] = []
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if not equals:
            value = following
            if name not in options and re.match(r"-\w[./~\w]", word):
                grouped = re.fullmatch(r"-[a-zA-Z]+", word) and f"-{word[-1]}" in options
                name, value = (f"-{word[-1]}", following) if grouped else (word[:2], word[2:])
        if name in options or (
            kind in ("build", "write", "copy") and _OUTPUT.fullmatch(name) and known(value)
        ):
            found.append(value)
    return [path for path in found if path]
