"""What one command does: the command inside a wrapper, code in its arguments, writes, unknown programs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from gsd_core import Ask, Deny

from .code import check_awk, check_code, check_sed
from .network import check_git, check_network
from .paths import PathContext, without_excluded
from .programs import programs
from .words import STAR, UNKNOWN, known, shown

if TYPE_CHECKING:
    from .shell import Shell

ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)


def check_program(
    shell: Shell, path: str, program: str, words: list[str], stdin: str, *, installs: bool
) -> str | None:
    """Check a program, given as *path*; return its output if it is that of a command which it runs."""
    findings, table = shell.findings, programs()
    if reason := table.denied.get(program):
        findings.add(None if _only_help(words) else Deny(reason=f"{program}: {reason}"))
    if reason := table.asked.get(program):
        findings.add(None if _only_help(words) else Ask(reason=f"{program}: {reason}"))
    wrapped = _unwrapped(program, words, shell)
    if wrapped is not None:
        inner, inner_installs = wrapped
        return shell.nested(inner, stdin, installs=installs or inner_installs) if inner else ""
    if program == "env":
        return _check_env(shell, words, stdin)
    if program in ("xargs", "parallel"):
        return _check_xargs(shell, program, words, stdin)
    if program in ("find", "fd", "fdfind"):
        _check_find(shell, program, words)
    _check_code_arguments(shell, program, words, stdin)
    if program == "git" or program.startswith("git-"):
        check_git(shell, [program[4:], *words] if program != "git" else words)
        return None
    check_network(shell, program, words)
    _check_known(shell, path, program, installs=installs)
    _check_writes(shell, program, words)
    _check_arguments(shell, program, words)
    if not shell.writable and not _only_reads(program, words):
        findings.read_only(f"{program} may change something")
    return None


def _check_known(shell: Shell, path: str, program: str, *, installs: bool) -> None:
    """Ask about unknown programs; a program in the project is the project's own, like its tests."""
    if path in shell.downloaded or path.removeprefix("./") in shell.downloaded:
        shell.findings.add(Deny(reason="downloaded code may not be run unseen: read it first"))
    if "/" in path and known(path):
        real = shell.paths.policy.resolved(path, next(iter(shell.paths.folders), None))
        if real.is_relative_to(shell.paths.policy.tree) and not shell.paths.policy.protected(real):
            return
        if shell.paths.policy.is_scratch(real):
            return
        shell.findings.add(shell.paths.check_read(path))
    for folder in (".venv/bin", "venv/bin", "node_modules/.bin"):
        installs = installs or (shell.paths.policy.tree / folder / program).exists()
    base = re.sub(r"(?<=.)@.*$", "", program)
    allowed = programs().known | shell.allowed
    if not installs and base not in allowed and re.sub(r"-?[\d.]+$", "", base) not in allowed:
        found = shutil.which(program) or "/" in path
        why = "is not a program known to this policy" if found else "is not installed"
        shell.findings.add(Ask(reason=f"`{shown(program)}` {why}"))


def _unwrapped(program: str, words: list[str], shell: Shell) -> tuple[list[str], bool] | None:
    """Return the command inside a wrapper like ``timeout 5 …``; ``None`` if it is not a wrapper."""
    table = programs()
    for count in (2, 1, 0):
        key = " ".join([program, *words[:count]])
        if key in table.installs and len(words) >= count:
            rest = words[count:]
            if key in ("npx", "npm exec", "npm x") and (text := _option(rest, ("-c", "--call"))):
                shell.run_text(text)
                return [], True
            if "-m" in rest and key in ("uv run", "coverage run") and rest[rest.index("-m") + 1 :]:
                return rest[rest.index("-m") + 1 :], True
            return _after_options(rest, *table.installs[key]), True
        if count == 0 and program in table.wrappers:
            if program == "command" and {"-v", "-V"} & set(words):
                return None
            if program in ("strace", "ltrace", "time", "flock"):
                for word in (_option(words, ("-o",)), words[0] if program == "flock" and words else ""):
                    shell.findings.add(shell.paths.check_write(word) if word and word[0] != "-" else None)
            return _after_options(words, *table.wrappers[program]), False
    if program in ("pnpm", "yarn") and words and words[0] in table.known - {"node", "install", "test", "add"}:
        return words, True
    interpreter = re.sub(r"[\d.]+$", "", program)
    if interpreter in ("python", "pypy"):
        place = 0
        while place < len(words) and words[place].startswith("-") and words[place] not in ("-m", "-c", "-"):
            place += 2 if words[place] in ("-W", "-X") else 1
        if words[place : place + 1] == ["-m"] and words[place + 1 :]:
            return words[place + 1 :], True
    return None


def _check_env(shell: Shell, words: list[str], stdin: str) -> str | None:
    rest = list(words)
    while rest:
        word = rest[0]
        if word in ("-i", "-", "--ignore-environment"):
            shell.findings.add(Deny(reason="the environment must be kept: it identifies the run's processes"))
        elif word.startswith(("-C", "--chdir")):
            shell.findings.add(Ask(reason="use cd instead of env -C, so that paths can be checked"))
            rest = rest[1:] if word in ("-C", "--chdir") else rest
        elif word.startswith(("-S", "--split-string", "-vS")):
            text = re.sub(r"^(?:-v?S|--split-string)=?", "", word)
            return shell.run_text(" ".join([text, *rest[1:]]), stdin)
        elif word in ("-u", "--unset") or word.startswith("--unset="):
            if any(each.removeprefix("--unset=").startswith("GSD_") for each in rest[:2]):
                shell.findings.add(Deny(reason="GSD_RUN must stay set: it identifies the run's processes"))
            rest = rest[1:] if "=" not in word else rest
        elif match := ASSIGNMENT.fullmatch(word):
            shell.assign(match[1], match[2], kept=False)
        elif not word.startswith("-"):
            return shell.nested(rest, stdin)
        rest = rest[1:]
    return None


def _check_xargs(shell: Shell, program: str, words: list[str], stdin: str) -> str:
    found = _after_options(
        words,
        frozenset(
            [
                "-I",
                "-n",
                "-P",
                "-L",
                "-d",
                "-s",
                "-a",
                "-E",
                "--max-args",
                "--max-procs",
                "--delimiter",
                "--arg-file",
                "-j",
                "--jobs",
                "--replace",
            ]
        ),
        0,
    )
    token = _option(words[: len(words) - len(found)], ("-I", "-i", "--replace")) or (
        "{}" if program == "parallel" else ""
    )
    names = stdin.split() if known(stdin) and stdin.strip() else [UNKNOWN]
    for marker in (":::", "::::"):
        if marker in found:
            place = found.index(marker)
            names, found = found[place + 1 :] if marker == ":::" else [UNKNOWN], found[:place]
    if not found:
        return stdin
    if token and any(token in word for word in found):
        return "\n".join(
            shell.nested([word.replace(token, name) for word in found], "") for name in names[:12]
        )
    return shell.nested([*found, *names], "")


def _after_options(words: Sequence[str], valued: frozenset[str], skipped: int) -> list[str]:
    """Return the command after a wrapper's options and arguments."""
    rest = list(words)
    while rest and (rest[0].startswith("-") or ASSIGNMENT.fullmatch(rest[0])):
        option = rest.pop(0)
        if option == "--":
            break
        if option in valued and rest:
            rest.pop(0)
    return rest[skipped:]


def _option(words: Sequence[str], names: Sequence[str]) -> str:
    """Return the value of an option: ``-o X``, ``-oX`` or ``--out=X``; empty without it."""
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if word in names:
            return following
        if equals and name in names:
            return value
        if not word.startswith("--") and word[:2] in names and len(word) > 2:
            return word[2:]
    return ""


# Code that is given as an argument or as input.


def _check_code_arguments(shell: Shell, program: str, words: list[str], stdin: str) -> None:
    table = programs()
    for option in table.commands.get(program, ()):
        if text := _option(words, (option,)):
            shell.run_text(re.sub(r"^(?:sh:|exec=|!)", "", text))
    if table.is_a(program, "shells"):
        _check_shell(shell, words, stdin)
    elif table.is_a(program, "shell_arguments"):
        texts = (
            [" ".join(words)] if program in ("eval", "watch", "entr") else [w for w in words if w[:1] != "-"]
        )
        for text in texts:
            shell.run_text(re.sub(r"^(?:-\S+ +(?:[\d.]+ +)?)*", "", text))
    elif program in (".", "source"):
        _check_script(shell, words[:1], stdin)
    elif program == "trap" or program == "alias":
        for word in words if program == "alias" else words[:1]:
            if text := word.partition("=")[2] if program == "alias" else word.strip("-"):
                shell.run_text(text)
    elif (
        re.sub(r"[\d.]+$", "", program) in table.classes["interpreters"]
        or program in table.classes["interpreters"]
    ):
        _check_interpreter(shell, program, words, stdin)
    elif program in ("awk", "gawk", "mawk", "nawk"):
        check_awk(shell, words)
    elif program in ("sed", "gsed"):
        check_sed(shell, words)
    elif program in ("less", "more") and any(word.startswith("+") for word in words):
        shell.findings.add(Ask(reason=f"{program} + runs commands"))
    elif program in ("make", "gmake") and (values := [w[6:] for w in words if w.startswith("SHELL=")]):
        shell.run_text(values[0])
    elif program in ("make", "gmake") and {"-f", "-f-"} & set(words) and stdin:
        for line in stdin.splitlines():
            shell.run_text(line.rpartition(":")[2].strip("\t @-;"))
    elif table.is_a(program, "sql") and re.search(
        r"\\!|\\copy|\\o\b|\.(?:shell|system|output|once|backup|save|log|excel|import)\b|(?i:into\s+outfile|attach|"
        r"writefile|load_extension|program\b|xp_cmdshell|vacuum\s+into)",
        " ".join([*words, stdin]),
    ):
        shell.findings.add(Ask(reason=f"{program} can write files and run programs: use it for queries only"))


def _check_shell(shell: Shell, words: list[str], stdin: str) -> None:
    place = next((n for n, w in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", w)), None)
    script = next((word for word in words if not word.startswith(("-", "+"))), None)
    if place is not None:
        rest = [word for word in words[place + 1 :] if not word.startswith("-")]
        inner = shell._copy()
        inner.variables |= {str(n): word for n, word in enumerate(rest[1:])} | {"@": " ".join(rest[2:])}
        inner.run_text(rest[0] if rest else "", stdin)
    elif script is not None and "-s" not in words:
        _check_script(shell, [script], stdin)
    elif not {"--version", "--help"} & set(words):
        shell.run_text(stdin) if stdin else None


def _check_script(shell: Shell, words: Sequence[str], stdin: str = "") -> None:
    """Check the file of a script: its content is not read."""
    for word in words:
        if word in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
            shell.run_text(stdin)
        elif word.startswith("/dev/fd/"):
            shell.run_text(word.removeprefix("/dev/fd/"))
        elif not known(word) and not word.endswith("/bin/activate"):
            shell.unknown_code(word)
        elif word in shell.downloaded:
            shell.findings.add(Deny(reason="downloaded code may not be run unseen: read it first"))


def _check_interpreter(shell: Shell, program: str, words: list[str], stdin: str) -> None:
    language = re.sub(r"[\d.]+$", "", program)
    flags = {"node": r"-\w*[ep]|--eval|--print", "perl": r"-\w*[eE]", "deno": r"eval", "php": r"-r"}
    pattern = flags.get(language, r"-\w*[ce]|--eval")
    codes = [following for word, following in pairwise(words) if re.fullmatch(pattern, word)]
    script = next((w for w in words if (w == "-" or not w.startswith("-")) and w not in codes), None)
    if script not in (None, "-") and not codes:
        _check_script(shell, [script], stdin)
    if not codes and (script is None or script == "-") and stdin:
        codes = [stdin]
    for code in codes:
        if not known(code) and not re.search(r"\S", re.sub(r"[\x00-\x02]", "", code)):
            shell.unknown_code(code)
        else:
            check_code(shell, code, language)


# find.

# Names of files in .git/ and .planning/: a filter that matches them protects nothing.
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_PROTECTED_FILES = (
    *(
        "./.git/HEAD",
        "./.git/config",
        "./.git/index",
        "./.git/hooks",
        "./.git/refs/heads",
        "./.git/objects/pack",
        "./.git/info",
        "./.git/logs",
        "./.planning/phases",
        "./.git/hooks/pre-commit",
        "./.git/hooks/pre-commit.sample",
        "./.git/refs/heads/main",
    ),
    *(
        "./.git/objects/ab/cdef0",
        "./.git/objects/pack/pack-a.idx",
        "./.git/info/exclude",
        "./.git/logs/HEAD",
        "./.git/packed-refs",
        "./.git/description",
    ),
    *("./.planning/STATE.md", "./.planning/config.json", "./.planning/phases/01-x/01-PLAN.md", "./gsd.toml"),
)


def _check_find(shell: Shell, program: str, words: list[str]) -> None:
    found = found_files(program, words, shell.paths)
    for place, word in enumerate(words):
        if word == "-delete":
            shell.findings.add(check_found(found, shell.paths))
        if word not in _FIND_RUNS:
            continue
        ends = [n for n, end in enumerate(words) if n > place and end in (";", "+")] or [len(words)]
        inner = [
            found[0] if each == "{}" else each.replace("{}", found[0]) for each in words[place + 1 : ends[0]]
        ]
        if len(found) > 1:
            inner += found[1:]
        if program != "find" and "{}" not in words:
            inner += found
        shell.nested(inner, "", installs=False)


def check_found(found: Sequence[str], paths: PathContext) -> Deny | Ask | None:
    """Return the objection to changing what ``find`` finds."""
    return next((one for path in found if (one := paths.check_write(path))), None)


def found_files(program: str, words: Sequence[str], paths: PathContext) -> list[str]:
    """Return patterns for the paths that ``find`` or ``fd`` prints.

    Below a folder that contains ``.git`` or ``.planning``, that is a path in them, unless a filter excludes
    them or chooses other names.
    """
    roots: list[str] = []
    if program == "find":
        for word in words:
            if word.startswith(("-", "(", "!")) and word not in ("-L", "-H", "-P"):
                break
            if not word.startswith("-"):
                roots.append(word)
    else:
        end = next((n for n, word in enumerate(words) if word in _FIND_RUNS), len(words))
        valued = ("-e", "-t", "-d", "-E", "--extension", "--type")
        bare = [word for before, word in pairwise(["", *words[:end]]) if before not in valued]
        roots = _positional(bare)[1:]
    chosen, left_out = _find_filters(words)
    if program != "find":
        chosen += [f"*.{following}" for word, following in pairwise(words) if word in ("-e", "--extension")]
        if not {"-H", "-u", "--hidden", "-uu", "-I", "--unrestricted"} & set(words):
            left_out += [".git", ".planning"]
    return [_found_below(root, chosen, left_out, paths) for root in roots or ["."]]


def _found_below(root: str, chosen: list[str], left_out: list[str], paths: PathContext) -> str:
    if not known(root):
        return f"{root}/{STAR}{STAR}"
    if not any(paths.policy.contains_tree(root, cwd) for cwd in paths.folders):
        return f"{root}/{STAR}{STAR}"
    name = chosen[0].rpartition("/")[2] if chosen else STAR
    narrow = bool(chosen) and all(
        not any(fnmatch(file, each) or fnmatch(file.rpartition("/")[2], each) for file in _PROTECTED_FILES)
        and not paths.protected_name(_live(each))
        for each in chosen
    )
    excluded = {paths.protected_name(_live(each.replace("*", "").strip("/")) or "x") for each in left_out}
    if narrow or {".git", ".planning"} <= excluded:
        return f"{root}/{STAR}{_live(name)}"
    return f"{root}/.git/{STAR}{STAR}"


def _live(pattern: str) -> str:
    return pattern.replace("*", STAR).replace("?", "\x04").replace("[", "\x05")


def _find_filters(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the patterns that files have to match, and those that they must not match."""
    chosen: list[str] = []
    left_out: list[str] = []
    before = ""
    pruned = next(
        (n for n, pair in enumerate(pairwise(words)) if pair[0] == "-prune" and pair[1] in ("-o", "-or")), -1
    )
    for place, (word, following) in enumerate(pairwise([*words, ""])):
        if word in ("-name", "-iname", "-path", "-wholename", "-regex", "-ipath") and known(following):
            excluded = before in ("-not", "!") or place < pruned
            (left_out if excluded else chosen).append(following.replace(STAR, "*"))
        before = word
    return chosen, left_out


# Writes.


def _check_writes(shell: Shell, program: str, words: list[str]) -> None:
    """Check the paths that a program writes to, for programs that are known to write."""
    table, findings, paths = programs(), shell.findings, shell.paths
    positional = _positional(words)
    for path in _output_options(program, words):
        findings.add(paths.check_write(path))
        if table.is_a(program, "downloaders") and known(path):
            shell.downloaded.add(path.removeprefix("./"))
    if program == "wget" or (
        program == "curl" and any(re.match(r"-\w*O|--remote-name", word) for word in words)
    ):
        shell.downloaded |= {word.partition("?")[0].rpartition("/")[2] for word in positional}
    if table.is_a(program, "delete") or program == "mv":
        _check_deletion(shell, program, words, positional)
    if table.is_a(program, "write_all"):
        targets = positional[1:] if program in ("chmod", "chown", "chgrp") else positional
        for word in targets:
            findings.add(paths.check_write(word))
        if program in ("mkdir", "mkdirp"):
            for cwd in paths.folders:
                shell.created |= {paths.policy.resolved(word, cwd) for word in positional if known(word)}
    if table.is_a(program, "write_last") and positional and not _is_remote(positional[-1]):
        alone = program == "ln" and len(positional) == 1
        findings.add(paths.check_write(positional[-1].rpartition("/")[2] if alone else positional[-1]))
    if program == "ln" or (
        program == "cp" and any(re.fullmatch(r"-\w*[sl]\w*|--link|--symbolic-link", w) for w in words)
    ):
        symbolic = any(re.fullmatch(r"-\w*s\w*|--symbolic(?:-link)?", word) for word in words)
        for word in positional[:-1] or positional:
            folder = str(Path(positional[-1]).parent) if len(positional) > 1 and known(positional[-1]) else ""
            # A symbolic link leads from its own folder, and what is written through it is written there.
            target = (
                f"{folder}/{word}"
                if symbolic and folder and known(word) and not word.startswith("/")
                else word
            )
            findings.add(paths.check_write(target))
            if paths.contains_tree(target):
                findings.add(Deny(reason=f"{shown(word)} contains the project"))
    if program in ("cp", "rsync") and positional and paths.contains_tree(positional[-1]):
        whole = [word for word in positional[:-1] if re.search(r"/\.?$", word)]
        if whole or any(word.startswith("--delete") for word in words):
            findings.add(
                Ask(reason=f"{program} may replace the run's own files: name the files or a subfolder")
            )
    if program in ("cp", "mv", "ln", "install", "rsync"):
        for word in positional[:-1]:
            findings.add(paths.check_read(word))
    if program in ("sed", "gsed", "perl", "ruby", "yq", "gawk") and _in_place(words):
        has_script = any(re.match(r"-[A-Za-z]*[ef]$|--expression|--file|-pi?e$", word) for word in words)
        skipped = 0 if has_script and program not in ("perl", "ruby") else 1
        for word in positional[skipped:]:
            findings.add(paths.check_write(word))
    if program == "dd":
        for word in words:
            findings.add(paths.check_write(word[3:]) if word.startswith("of=") else None)
    if program in ("docker", "podman"):
        for word in words:
            match = re.match(r"(?:-v|--volume=|.*\bsource=|.*\bsrc=)?([/\x00-\x02][^:,]*)[:,]", word)
            findings.add(paths.check_write(match[1]) if match else None)
    if program == "patch":
        if positional:
            findings.add(paths.check_write(positional[0]))
        else:
            findings.add(Ask(reason="a patch may change any file: name the file: `patch FILE x.patch`"))
    if program == "tar" and any(re.match(r"-\w*P|--absolute-names", word) for word in words):
        findings.add(Ask(reason="tar -P writes outside the project"))
    if program == "tar" and words and re.match(r"-?\w*[cru](?!\w*-)", words[0]) and words[0][:2] != "--":
        second = words[1] if re.match(r"-?\w+f$", words[0]) and len(words) > 1 else ""
        target = _option(words, ("-f", "--file")) or second
        findings.add(paths.check_write(target) if target not in ("", "-") else None)


def _check_deletion(shell: Shell, program: str, words: Sequence[str], positional: Sequence[str]) -> None:
    whole = program in ("mv", "rimraf") or any(re.match(r"-\w*[rR]|--recursive", word) for word in words)
    for word in positional[:-1] if program == "mv" else positional:
        if shell.paths.contains_tree(word) and (whole or program == "rmdir"):
            shell.findings.add(
                Deny(reason=f"{shown(word)} is the project itself or contains it: name a folder in it")
            )
        if not known(word):
            shell.findings.add(
                Ask(reason=f"{program} of an unknown path: use `rm -rf build/x`, the path has to be visible")
            )


def _output_options(program: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the values of options that name what is written: ``-o FILE``, ``-oFILE``, ``--output=FILE``."""
    options = programs().outputs.get(program, frozenset())
    if program == "tar" and words and re.match(r"-?\w*x", words[0]):
        options |= {"-C", "--directory"}
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        attached = len(word) > 2 and word[:2] in options and not word.startswith("--")
        grouped = re.fullmatch(r"-[a-zA-Z]+([a-zA-Z])", word)
        if name in options:
            if path := value if equals else following:
                yield path
        elif attached:
            yield word[2:]
        elif grouped and f"-{grouped[1]}" in options and program in ("curl", "wget", "sort", "unzip", "tar"):
            yield following


def _positional(words: Sequence[str]) -> list[str]:
    end = list(words).index("--") if "--" in words else len(words)
    return [word for word in words[:end] if not word.startswith("-") or word == "-"] + list(words[end + 1 :])


def _in_place(words: Sequence[str]) -> bool:
    return any(re.match(r"-[A-Za-z]*i|--in-?place", word) for word in words)


def _is_remote(word: str) -> bool:
    return re.match(r"[\w.@-]{2,}:(?!\\)|rsync://|\w+://", word) is not None


def _check_arguments(shell: Shell, program: str, words: list[str]) -> None:
    """Check the arguments of any program as the paths that they may be."""
    table, findings = programs(), shell.findings
    if table.is_a(program, "print"):
        return
    skip = 1 if table.is_a(program, "pattern_first") and not {"-e", "-f"} & set(words) else 0
    kept = without_excluded(words)
    bare = [word for word in kept if not word.startswith("-")]
    reads = table.is_a(program, "read") or program == "find"
    written = table.is_a(program, "write_all") or table.is_a(program, "write_last")
    changing = {"--write", "--fix", "-w", "-i", "--in-place", "format", "fmt"} & set(words)
    if program in ("docker", "podman") and not {"cp", "load", "save", "export"} & set(words[:1]):
        return  # the paths are those of a container, except for its mounts
    for word in bare[skip:]:
        if STAR + STAR in word and not (reads or written or changing):
            continue  # a list of files that a check gets
        findings.add(shell.paths.check_read(word) if reads or written else shell.paths.check_argument(word))
    for word in kept:
        if word.startswith("-") and not reads:
            findings.add(shell.paths.check_argument(word))


def _only_help(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0] in ("--help", "-h", "--version", "-V", "help", "version")


def _only_reads(program: str, words: Sequence[str]) -> bool:
    """Whether *program* changes nothing when it is called with *words*."""
    if program == "sed":
        printing = [word for word in words if re.fullmatch(r"[\d,$;p ]+", word)]
        return len(words) > 1 and words[0] == "-n" and bool(printing) and words[1] == printing[0]
    if program == "find":
        return not {"-delete", "-fprint", "-fprintf", "-fls", "-ok", "-okdir"} & set(words)
    writing = {"sort": ("-o", "--output"), "tree": ("-o",), "rg": ("--pre",), "fd": ("-x", "-X", "--exec")}
    if any(word.startswith(writing[program]) for word in words if program in writing):
        return False
    if program in ("curl", "xargs") or (program in ("uniq", "xxd") and len(_positional(words)) > 1):
        return False
    return programs().is_a(program, "read")
