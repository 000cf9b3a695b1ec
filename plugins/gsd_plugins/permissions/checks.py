"""What one command may do without a sandbox: a flat list of programs and kinds, and a question for the rest.

The table lists programs by kind: ``text`` ignores paths, ``read`` reads them, ``write`` changes all that it
names, ``copy`` the last, ``edit`` reads unless ``-i`` is given, ``build`` runs or changes the project's code.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise, product, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .effects import check_outward, check_runner, joined, sends, sign_of, unescaped
from .paths import STAR, UNKNOWN, known, shown
from .table import base_name, entry_of, is_in, is_listed, table

if TYPE_CHECKING:
    from .shell import Shell

_OUTPUT = re.compile(
    r"-[oOdDPC]|--(?:out\w*|output-\w+|dest\w*|prefix|root|target|target-dir|directory|report\w*|cwd)"
)
_LEFT_OUT = re.compile(r"-[^=]*(?:exclude|ignore|prune|not|skip|omit|except)")
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")


def check_command(
    shell: Shell, path: str, program: str, words: list[str], stdin: str, *, installs: bool
) -> None:
    """Check a program, given as *path*, with its arguments; *installs*: it may come from the project."""
    findings, paths = shell.findings, shell.paths
    if program.startswith("git-"):
        program, words = "git", [program[4:], *words]
    findings.apply_rules(program, words)
    modules = [n for n, word in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*m", word)]
    if program in ("python", "pypy") and modules and words[0][:1] == "-" and "-c" not in words:
        words = ["-m", *words[modules[0] + 1 :]]
    for count in (2, 1, 0):
        key = " ".join([program, *words[:count]])
        if key in table()["wrappers"] or key in table()["installs"]:
            _check_wrapper(shell, program, key, words[count:], stdin)
            return
    if program == "git":
        _check_git(shell, words)
        return
    check_outward(findings, program, words)
    if "/" in path and known(path):
        _check_script(shell, path)
        real = paths.places(path)[1]
        installs = paths.is_scratch(real) or (real.is_relative_to(paths.tree) and not paths.protected(real))
        findings.object(None if installs else paths.check_read(path))
    own = [paths.tree / folder / program for folder in (".venv/bin", "venv/bin", "node_modules/.bin")]
    if not (installs or is_listed(program) or program in shell.allowed or any(file.exists() for file in own)):
        there = shutil.which(program) or "/" in path
        why = "is not a program known to this policy" if there else "is not installed"
        findings.add("ask", f"`{shown(program)}` {why}")
    _check_code(shell, program, words, stdin)
    if is_in("lists_files", program):
        found = _found(shell, words) if program == "find" else [UNKNOWN]
        commands = [["rm", "{}"]] if "-delete" in words else []
        for place, word in enumerate(words):
            if word in _FIND_RUNS:
                inner = [*takewhile(lambda each: each not in (";", "+"), words[place + 1 :])]
                commands.append(inner if "{}" in inner else [*inner, "{}"])
        for inner, name in product(commands, found):
            shell.subshell().run([each.replace("{}", name) for each in inner])
    _check_paths(shell, program, entry_of("kinds", program) or "build", words)


def output_of(shell: Shell, program: str, words: Sequence[str], stdin: str) -> str:
    """Return what a command prints, as far as that is literal, or names of files below some folder."""
    bare = [word for word in words if not word.startswith("-")]
    lists = any(re.match(r"-\w*l|--files", word) for word in words)
    if program == "echo":
        return " ".join(word for word in words if not re.fullmatch("-[neE]+", word))
    if program == "tee" or (program == "cat" and not bare):
        return stdin
    if program == "find" or (program in ("grep", "rg") and lists and bare[1:]):
        return " ".join(_found(shell, words if program == "find" else bare[1:]))
    # The number stands for that of any process.
    place = {"pwd": str(shell.paths.folder or UNKNOWN), "mktemp": f"/tmp/tmp.{STAR}"}
    some = {**place, **dict.fromkeys(("pgrep", "pidof", "lsof"), "12345")}
    return some.get(program, STAR if is_in("prints_word", program) else UNKNOWN)


def _found(shell: Shell, words: Sequence[str]) -> list[str]:
    """Return patterns for what ``find`` prints: below its folders, or anywhere with a certain name."""
    roots = [*takewhile(lambda word: word[:1] not in "-(!", words)]
    if roots and not any(shell.paths.contains_tree(root) for root in roots):
        return [f"{root}/{STAR}{STAR}" for root in roots]
    names = [value for option, value in pairwise(words) if option in ("-name", "-iname")]
    wide = {"-o", "!", "-not", "-regex"} & set(words) or any(sign_of("any_file", name) for name in names)
    return [UNKNOWN] if wide or not names else [f"{STAR}{names[0].replace('*', STAR)}"]


# Commands and code in arguments


def _check_wrapper(shell: Shell, program: str, key: str, words: list[str], stdin: str) -> None:
    """Check the command after a wrapper's options and arguments; a number in its entry counts the latter."""
    installs, inner = key in table()["installs"], list(words)
    valued = table()["installs" if installs else "wrappers"][key]
    while inner and (inner[0].startswith("-") or re.match(r"\w+=", inner[0])):
        option = inner.pop(0)
        shell.assign(option, kept=False)
        if option in valued and inner:
            inner.pop(0)
    inner = inner[sum(int(word) for word in valued if word.isdigit()) :]
    options = words[: len(words) - len(inner)]
    check_outward(shell.findings, program, options)
    check_runner(shell.findings, [*options, *inner[:1]] if is_in("installers", program) else ())
    if program == "xargs" and inner:
        names = stdin.split()
        split = any(re.match(r"-\w*d|--delim", option) for option in options)
        if not names or not known(stdin) or split or is_in("shells", inner[0]):
            names = [UNKNOWN]
        token = next((value for option, value in pairwise(options) if option == "-I"), "{}")
        replaced = [word.replace(token, names[0] if len(names) == 1 else UNKNOWN) for word in inner]
        inner, stdin = replaced if replaced != inner else [*inner, *names], ""
    if len(inner) == 1 and " " in inner[0]:
        shell.run_text(inner[0], stdin)
    elif inner:
        shell.subshell().run(inner, stdin, installs=installs)


def _check_code(shell: Shell, program: str, words: list[str], stdin: str) -> None:
    """Check code for a shell or an interpreter, and arguments that are command lines."""
    findings, bare = shell.findings, [word for word in words if not word.startswith(("-", "+"))]
    letters = table()["interpreters"].get(program)
    if program in ("eval", "trap", "alias"):
        text = " ".join(words if program == "eval" else bare[:1])
        shell.run_text(text.partition("=")[2] if program == "alias" else text)
    elif is_in("shells", program) and any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word) for word in words):
        inner = shell.subshell()
        inner.variables |= {str(n): word for n, word in enumerate(bare[1:])}
        inner.run_text(bare[0] if bare else "", stdin)
    elif is_in("shells", program) or program in (".", "source"):
        _check_script(shell, bare[0] if bare and "-s" not in words else "-", stdin)
    elif letters:
        flag = rf"-\w*[{''.join(letters)}]|--eval|--print|eval"
        codes = [following for word, following in pairwise(words) if re.fullmatch(flag, word)]
        named = (word for word in words if (word == "-" or word[:1] != "-") and word not in codes)
        script = next(named, "-")
        if is_in("awk", program):
            codes = bare
        elif not codes and script != "-":
            _check_script(shell, script, stdin)
            check_outward(findings, Path(script).name, words[words.index(script) + 1 :])
        for code in codes or ([stdin] if stdin and script == "-" else []):
            _check_inline(shell, program, code)
    elif not any(is_in(each, program) for each in ("containers", "pattern_first", "lists_files")):
        _check_arguments(shell, words if entry_of("kinds", program) != "text" else ())


def _check_arguments(shell: Shell, words: Sequence[str]) -> None:
    """Check arguments that are command lines, ``-c alias.x='!rm x'``, ``concurrently 'npm test'``."""
    for word in words:
        text = re.sub(r"^(?:-{0,2}[\w.-]+=|exec=|sh:|[!|+])*", "", word)
        first = re.match(r"(?:\S*/)?([\w.-]+)\s+\S", text)
        if first and known(text) and is_listed(base_name(first[1])):
            # Whether it runs is not known, so what is denied in it is a question.
            found = attrs.evolve(shell.findings, reasons={})
            shell.subshell(findings=found).run_text(text)
            for effect, reason in found.reasons.items():
                shell.findings.add("ask" if effect == "deny" else effect, reason)


def _check_inline(shell: Shell, language: str, code: str) -> None:
    """Check code of Python, JavaScript, Perl, awk and the like by the signs of what it does.

    This reads literals, not programs: it finds what a careless model writes and not what a hostile one hides.
    """
    findings, plain = shell.findings, unescaped(code) if "\\x" in code or "\\u" in code else code
    plain = re.sub(rf"(['\"])\s*[{'.' if language in ('perl', 'php') else '+'}]\s*\1", "", plain)
    if sends(plain):
        findings.add("outward", "the code sends data to another machine")
    starts = sign_of("starts", plain) or (language in ("perl", "ruby", "php") and "`" in plain)
    writes = sign_of("writes", plain) or (language == "awk" and sign_of("awk", plain))
    if starts or not known(code) or sign_of("hides", plain):
        reason = "the code starts a program, or cannot be checked: use plain paths and commands"
        findings.add("hidden", reason)
    elif writes and (sign_of("outside", plain) or language == "awk"):
        findings.add("ask", "the code may change something outside the project, or a file of the run")
    elif found := sign_of("secret", plain) or sign_of("network", plain):
        findings.add("ask", f"the code has {found!r}")
    if starts or writes:
        findings.add("change", "the code may change something")


def _check_script(shell: Shell, path: str, stdin: str = "") -> None:
    if path in ("-", "/dev/stdin") or not known(path):
        shell.run_text(stdin if known(path) else path)
    elif path.rpartition("/")[2] in shell.downloaded:
        shell.findings.add("deny", f"{path} was downloaded: read it before you run it")


# Paths


def _check_paths(shell: Shell, program: str, kind: str, words: list[str]) -> None:
    """Check the arguments as paths that are read or written."""
    findings, paths = shell.findings, shell.paths

    def has(options: str) -> bool:
        return any(re.match(options, word) for word in words)

    if kind == "text" or (is_in("shells", program) and has(r"-[a-zA-Z]*c")):
        return
    if kind == "edit":
        kind = "write" if has(r"-[A-Za-z0-9]*i|--in-?place") else "read"
    if kind != "read":
        findings.add("change", f"{program} may change something")
    if is_in("downloaders", program):
        shell.downloaded |= {re.sub(r"^.*/|\?.*", "", word) for word in words}
    if is_in("containers", program):
        for word in words:
            if match := re.match(r"(?:-v|--volume=|.*\b(?:source|src)=)?([/\x00-\x02][^:,]*)[:,]", word):
                findings.object(paths.check_write(match[1]))
        if words[:1] not in (["cp"], ["load"], ["save"], ["export"]):
            return
    kept = [
        word
        for before, word in pairwise(["", *words])
        if not _LEFT_OUT.match(word if word[:1] == "-" else "" if "=" in before else before)
    ]
    positional = [word for word in kept if word[:1] != "-"]
    if is_in("pattern_first", program):
        coded = has(r"-\w*[ef]$|--(?:exp|file)")
        positional = [word for word in positional[not coded :] if ("-e", word) not in pairwise(words)]
    written = positional[1:] if program == "uniq" else []
    written = {"write": positional, "copy": positional[-1:]}.get(kind, written)
    if is_in("moves_to", program) and written and paths.places(written[-1])[1] in paths.scratch:
        written = [*written[:-1], f"{written[-1]}/x"]
    if program == "ln" or (program == "cp" and has(r"-\w*[sl]|--(?:symbolic-)?link")):
        # What is written through a link is written where it leads, seen from its own folder.
        *leads, link = positional if positional[1:] else [*positional, "."]
        folder = link.rpartition("/")[0] or "."
        written = [link, *(word if word[:1] == "/" else f"{folder}/{word}" for word in leads)]
        positional = []
    for path in [*_outputs(program, kind, kept), *written]:
        findings.add("change", f"{program} may write {shown(path)!r}")
        findings.object(paths.check_write(path))
    of_copy = any(re.search(r"^--delete|/[.\x03]?$", word) for word in words[:-1])
    if is_in("moves", program) or (of_copy if kind == "copy" else has(r"-[a-zA-Z]*[rR]|--recursive")):
        for word in written[:-1] if program == "mv" else written:
            if paths.contains_tree(word):
                what = f"{shown(word)} is the project itself or contains it"
                findings.add("ask" if kind == "copy" else "deny", f"{what}: name a folder in it")
    for word in kept if kind == "build" else positional:
        findings.object((paths.check_argument if kind == "build" else paths.check_read)(word))


def _outputs(program: str, kind: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the values of options that name what is written: ``-o FILE``, ``-oFILE``, ``--output=FILE``."""
    options = table()["outputs"].get(program, frozenset())
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if not equals:
            value = following
            if name not in options and re.match(r"-\w[./~\w]", word):
                grouped = re.fullmatch(r"-[a-zA-Z]+", word) and f"-{word[-1]}" in options
                name, value = (f"-{word[-1]}", following) if grouped else (word[:2], word[2:])
        likely = kind not in ("text", "read") and _OUTPUT.fullmatch(name) and known(value)
        if value and (likely or name in options):
            yield value


def _check_git(shell: Shell, words: list[str]) -> None:
    """Check ``git``: what reads is allowed, what writes history or configuration is not."""
    findings, own = shell.findings, shell.paths.owns_planning
    line = re.sub(r"\A(?:-[cC]\n.*(?:\n|\Z)|-.*(?:\n|\Z))*+", "", joined(words))
    name, *_ = called = line.split("\n")
    _check_arguments(shell, words[: len(words) - len(called)])
    if not known(name) or STAR in name:
        findings.add("hidden", "the git command is known only at run time: write it out")
    elif name:
        findings.apply_rules("git", called)
        if not (sign_of("git_reads", line) or (own and sign_of("git_adds", line))):
            reason = f"agents may not run git {name}: only the run makes commits and changes history"
            findings.add("deny", reason)
        _check_paths(shell, "git", "write" if name in ("mv", "rm") else "read", words)
