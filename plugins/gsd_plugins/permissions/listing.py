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
_LISTS = re.compile(r"-\w*[lL]\w*|--files.*|--name-only|ls-files")


def output_of(shell: Shell, program: str, words: Sequence[str], stdin: str) -> str:
    """Return the output of a command, given its input; :data:`UNKNOWN` if it cannot be known."""
    bare = [word for word in words if not word.startswith("-")]
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
            return ".git" if git else str(shell.paths.tree) if "--show-toplevel" in words else STAR
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
        case "base64" | "xxd" | "openssl" if known(stdin) and {"-d", "-r", "--decode", "-D"} & set(words):
            return _decoded(program, stdin)
        case "find" | "fd" | "fdfind" if "-printf" not in words:
            return "\n".join(found_files(shell, program, words))
        case "git" | "grep" | "egrep" | "rg" | "ag" if any(_LISTS.fullmatch(word) for word in words):
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
    """Return what ``echo`` or ``printf`` prints; unknown if it contains escapes for other characters."""
    text = " ".join(word for word in words if not re.fullmatch(r"-[neE]+", word))
    if program == "printf" and words:
        arguments = iter(words[1:])
        text = re.sub(r"%[-\d.]*[a-zA-Z]", lambda _: next(arguments, ""), words[0])
        text = "\n".join([text, *arguments])
    text = text.replace("\\n", "\n").replace("\\t", "\t")
    return UNKNOWN if re.search(r"\\[x0-7]", text) else text


def _decoded(program: str, text: str) -> str:
    try:
        compact = "".join(text.split())
        found = bytes.fromhex(compact) if program == "xxd" else base64.b64decode(compact)
    except ValueError:
        return UNKNOWN
    return found.decode("utf-8", "replace")


def found_files(shell: Shell, program: str, words: Sequence[str]) -> list[str]:
    """Return patterns for the paths that ``find``, ``fd``, ``grep -l`` or ``git ls-files`` prints.

    Below a folder that contains ``.git`` or ``.planning``, that is a path in them, unless a filter excludes
    them or chooses other names.
    """
    words = list(takewhile(lambda word: word not in FIND_RUNS, words))
    wanted: list[str] = []
    unwanted: list[str] = []
    bare: list[str] = []
    pruned = words.index("-prune") if {"-o", "-or"} & set(words) and "-prune" in words else 0
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if not (equals and option.startswith("--")):
            option, value = words[place - 1] if place else "", word
        if option in table()["listing"]["filters"]:
            negated = option.startswith("--exclude") or value[:1] == "!" or place < pruned
            negated = negated or bool({"!", "-not"} & set(words[max(place - 2, 0) : place - 1]))
            (unwanted if negated else wanted).append(value.lstrip("!").strip("/").translate(PATTERN))
        elif option not in table()["listing"]["valued"] and not word.startswith(("-", "(", ")", "!")):
            bare.append(word)
    if program == "find":
        given = [word for word in words if word not in ("-L", "-H", "-P")]
        bare = list(takewhile(lambda word: not word.startswith(("-", "(", "!")), given))
    elif program == "git":
        # Only words behind `--` or of `ls-files` are paths; a pattern among them is a filter.
        start = words.index("--") if "--" in words else 1 if words[0] == "ls-files" else len(words)
        paths = [word for word in words[start:] if word in bare]
        bare = [word for word in paths if "*" not in word.translate(PATTERN)]
        wanted += [word.translate(PATTERN) for word in paths if word not in bare]
    elif program in ("fd", "fdfind") or not {"--files", "-e", "-f"} & set(words):
        bare = bare[1:]
    if is_in("hides_hidden", program) and not {"-H", "-u", "-uu", "--hidden"} & set(words):
        unwanted += [".git", ".planning"]
    return [_found_below(shell, root, wanted, unwanted) for root in bare or ["."]]


def _found_below(shell: Shell, root: str, wanted: list[str], unwanted: list[str]) -> str:
    paths = shell.paths
    if not paths.contains_tree(root):
        return f"{root}/{STAR}{STAR}"

    def matches(file: str, patterns: list[str]) -> bool:
        return any(fnmatch(name, each) for name in (file, *file.split("/")) for each in patterns)

    for file in table()["listing"]["protected"]:
        chosen = matches(file, wanted) if wanted else file != "./gsd.toml"
        if chosen and not matches(file, unwanted):
            return f"{root}/.git/{STAR}{STAR}"
    return f"{root}/{STAR}{live(wanted[0].rpartition('/')[2] if wanted else '*')}"
