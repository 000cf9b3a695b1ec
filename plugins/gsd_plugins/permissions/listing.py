"""What a command prints, as far as that is known: names of files for ``xargs``, text for a shell."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from itertools import takewhile
from typing import TYPE_CHECKING

from .table import is_in, table
from .words import CONTENT, DOWNLOAD, PATTERN, STAR, UNKNOWN, is_pattern, known, live

if TYPE_CHECKING:
    from .shell import Shell

FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
_LISTS = re.compile(r"-\w*[lL]\w*|--files.*|--name-only")


def found_files(shell: Shell, program: str, words: Sequence[str]) -> list[str]:
    """Return patterns for the paths that ``find``, ``fd``, ``grep -l`` or ``git ls-files`` prints.

    Below a folder that contains ``.git`` or ``.planning``, that is a path in them, unless a filter excludes
    them or chooses other names.
    """
    words = list(takewhile(lambda word: word not in FIND_RUNS, words))
    options = table()["listing"]
    chosen: list[str] = []
    left_out: list[str] = []
    bare: list[str] = []
    pruned = words.index("-prune") if "-prune" in words and {"-o", "-or"} & set(words) else -1
    for place, word in enumerate(words):
        option, given = words[place - 1] if place else "", word
        if re.match(r"--\w[\w-]*=", word):
            option, _, given = word.partition("=")
        if option in options["filters"]:
            pattern = f"*.{given}" if option in options["extensions"] else given
            excluded = place < pruned or option.startswith("--exclude") or given[:1] == "!"
            excluded = excluded or bool({"!", "-not"} & set(words[max(place - 2, 0) : place - 1]))
            (left_out if excluded else chosen).append(pattern.translate(PATTERN))
        elif option not in options["valued"] and not word.startswith(("-", "(", ")", "!")):
            bare.append(word)
    if program == "find":
        rest = [word for word in words if word not in ("-L", "-H", "-P")]
        bare = list(takewhile(lambda word: not word.startswith(("-", "(", "!")), rest))
    elif program == "git":
        chosen += [word.translate(PATTERN) for word in bare if "*" in word.translate(PATTERN)]
        start = words.index("--") if "--" in words else 1 if words[0] == "ls-files" else len(words)
        bare = [word for word in words[start:] if word in bare and "*" not in word.translate(PATTERN)]
    elif not {"--files", "-e", "-f"} & set(words) or program in ("fd", "fdfind"):
        bare = bare[1:]
    if is_in("hides_hidden", program) and not {"-H", "-u", "-uu", "--hidden"} & set(words):
        left_out += [".git", ".planning"]
    return [_found_below(shell, root, chosen, left_out) for root in bare or ["."]]


def _found_below(shell: Shell, root: str, chosen: list[str], left_out: list[str]) -> str:
    paths = shell.paths
    if not known(root) or not any(paths.policy.contains_tree(root, cwd) for cwd in paths.folders):
        return f"{root}/{STAR}{STAR}"
    excluded = {paths.protected_name(live(each.replace("*", "").strip("/")) or "x") for each in left_out}
    narrow = bool(chosen) and not any(
        fnmatch(file, each) or fnmatch(file.rpartition("/")[2], each) or paths.protected_name(live(each))
        for each in chosen
        for file in table()["listing"]["protected"]
    )
    if narrow or {".git", ".planning"} <= excluded:
        return f"{root}/{STAR}{live(chosen[0].rpartition('/')[2] if chosen else '*')}"
    return f"{root}/.git/{STAR}{STAR}"


def output_of(shell: Shell, program: str, words: Sequence[str], stdin: str) -> str:
    """Return the output of a command, given its input; :data:`UNKNOWN` if it cannot be known."""
    bare = [word for word in words if not word.startswith("-")]
    flags = set(words)
    match program:
        case "echo" | "printf":
            return _printed(program, words)
        case "tee":
            return stdin
        case "cat" if not bare:
            return stdin
        case "pwd" if len(shell.paths.folders) == 1:
            return str(shell.paths.folders[0])
        case "git" if bare[:1] == ["rev-parse"]:
            git = re.search(r"--(?:git-(?:common-)?dir|absolute-git-dir|git-path)", " ".join(words))
            return ".git" if git else str(shell.paths.policy.tree) if "--show-toplevel" in flags else STAR
        case "mktemp":
            return bare[-1].replace("X", STAR) if bare and "/" in bare[-1] else f"/tmp/tmp.{STAR}"
        case "dirname" if bare and known(bare[0]):
            return bare[0].rpartition("/")[0] or "."
        case "basename" if bare and known(bare[0]):
            return bare[0].rpartition("/")[2].removesuffix(bare[-1] if bare[1:] else "")
        case "realpath" | "readlink" | "which" | "command" if bare:
            return bare[-1]
        case "ls" if bare and all(is_pattern(word) for word in bare):
            return "\n".join(bare)
        case "pgrep" | "pidof" | "lsof":
            return "12345"  # any process
        case "base64" | "xxd" | "openssl" if (
            stdin and known(stdin) and flags & {"-d", "-r", "--decode", "-D"}
        ):
            return _decoded(program, stdin)
        case "find" | "fd" | "fdfind" if "-printf" not in words:
            return "\n".join(found_files(shell, program, words))
        case "git" | "grep" | "egrep" | "rg" | "ag" if any(_LISTS.fullmatch(word) for word in words):
            return "\n".join(found_files(shell, program, words))
        case "git" if bare[:1] == ["ls-files"]:
            return "\n".join(found_files(shell, program, words))
        case _:
            pass
    if is_in("downloaders", program) or DOWNLOAD in stdin:
        return DOWNLOAD
    if is_in("prints_word", program):
        return STAR
    if is_in("filters", program) and (is_pattern(stdin) or not known(stdin)):
        return stdin
    return CONTENT if CONTENT in stdin or is_in("prints_content", program) else UNKNOWN


def _printed(program: str, words: Sequence[str]) -> str:
    kept = list(words)
    while program == "echo" and kept and re.fullmatch(r"-[neE]+", kept[0]):
        kept.pop(0)
    text = " ".join(kept)
    if program == "printf" and kept:
        arguments = iter(kept[1:])
        text = re.sub(r"%[-\d.]*[a-zA-Z]", lambda _: next(arguments, ""), kept[0])
        text = "\n".join([text, *arguments])
    plain = {"n": "\n", "t": "\t", "\\": "\\"}
    return re.sub(
        r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{3})|([nt\\]))",
        lambda m: chr(int(m[1], 16)) if m[1] else chr(int(m[2], 8)) if m[2] else plain[m[3]],
        text,
    )


def _decoded(program: str, text: str) -> str:
    try:
        compact = "".join(text.split())
        found = bytes.fromhex(compact) if program == "xxd" else base64.b64decode(compact)
    except ValueError:
        return UNKNOWN
    return found.decode("utf-8", "replace")
