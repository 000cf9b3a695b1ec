"""What a command prints, as far as that is known: names of files for ``xargs``, text for a shell."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from .effects import found_files
from .programs import programs
from .words import CONTENT, DOWNLOAD, STAR, UNKNOWN, is_pattern, known

if TYPE_CHECKING:
    from .shell import Shell


def output_of(shell: Shell, program: str, words: Sequence[str], stdin: str) -> str:
    """Return the output of a command, given its input; :data:`UNKNOWN` if it cannot be known."""
    bare = [word for word in words if not word.startswith("-")]
    match program:
        case "echo" | "printf":
            return _printed(program, words)
        case "cat" | "tee" if program == "tee" or not bare:
            return stdin
        case "pwd" if len(shell.paths.folders) == 1:
            return str(shell.paths.folders[0])
        case "git":
            return _git_output(words, shell)
        case "mktemp":
            return bare[-1].replace("X", STAR) if bare and "/" in bare[-1] else f"/tmp/{STAR}"
        case "dirname" if bare and known(bare[0]):
            return bare[0].rpartition("/")[0] or "."
        case "basename" if bare and known(bare[0]):
            return bare[0].rpartition("/")[2]
        case "realpath" | "readlink" if bare:
            return bare[-1]
        case "find" | "fd" | "fdfind":
            return "\n".join(found_files(program, words, shell.paths)) if "-printf" not in words else UNKNOWN
        case "ls" if bare and all(is_pattern(word) for word in bare):
            return "\n".join(bare)
        case "pgrep" | "pidof":
            return "12345"  # any process
        case "which" | "command" if bare:
            return bare[-1]
        case "go" if bare == ["env", "GOPATH"]:
            return str(shell.paths.policy.home / "go")
        case "npm" if bare in (["bin"], ["root"]):
            return "node_modules/.bin" if bare == ["bin"] else "node_modules"
        case "base64" | "xxd" | "rev" | "openssl" if not [
            word for word in bare if word not in ("enc", "base64")
        ]:
            return (
                _decoded(program, words, stdin) if known(stdin) and stdin else CONTENT if stdin else UNKNOWN
            )
        case "grep" | "egrep" | "rg" | "ag" if _lists_files(words):
            return _matching(program, words, shell)
        case _:
            pass
    if programs().is_a(program, "downloaders"):
        return DOWNLOAD
    if programs().is_a(program, "prints_word"):
        return STAR
    if program in programs().classes["filters"] and len(bare) <= (1 if program in ("grep", "egrep") else 0):
        return stdin if is_pattern(stdin) or not known(stdin) else UNKNOWN
    if program in ("head", "tail") and all(word.isdigit() for word in bare):
        return stdin if is_pattern(stdin) else UNKNOWN
    if program == "tr" and all(re.fullmatch(r"(?:\\[nrt0]|[ \n\t])+", word) for word in bare):
        return stdin
    if DOWNLOAD in stdin:
        return DOWNLOAD
    return CONTENT if programs().is_a(program, "prints_content") else UNKNOWN


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
    hexes = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{3})|([nt\\]))")
    return hexes.sub(
        lambda m: chr(int(m[1], 16)) if m[1] else chr(int(m[2], 8)) if m[2] else plain[m[3]], text
    )


def _decoded(program: str, words: Sequence[str], stdin: str) -> str:
    try:
        if program == "rev":
            return "\n".join(line[::-1] for line in stdin.split("\n"))
        if program == "xxd":
            return bytes.fromhex(stdin.strip()).decode("utf-8", "replace") if "-r" in words else STAR
        if {"-d", "--decode", "-D", "-di"} & set(words):
            return base64.b64decode("".join(stdin.split())).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return UNKNOWN
    return STAR


def _git_output(words: Sequence[str], shell: Shell) -> str:
    match list(words):
        case ["rev-parse", "--show-toplevel"]:
            return str(shell.paths.policy.tree)
        case ["rev-parse", "--git-path", name]:
            return f".git/{name}"
        case ["rev-parse", *options] if {"--git-dir", "--git-common-dir", "--absolute-git-dir"} & set(
            options
        ):
            return ".git"
        case ["rev-parse" | "describe" | "merge-base" | "rev-list" | "symbolic-ref" | "branch", *_]:
            return STAR
        case ["ls-files" | "grep" | "diff", *rest] if words[0] == "ls-files" or {"-l", "--name-only"} & set(
            rest
        ):
            names = [word for word in rest if "*" in word or is_pattern(word)]
            filters = [part for name in names for part in ("-name", name)]
            folders = (
                [word for word in rest[rest.index("--") + 1 :] if word not in names] if "--" in rest else []
            )
            return "\n".join(found_files("find", [*(folders or ["."]), *filters], shell.paths))
        case _:
            return UNKNOWN


def _lists_files(words: Sequence[str]) -> bool:
    return any(
        re.fullmatch(r"-\w*[lL]\w*|--files-with-matches|--files-without-match|--files", word)
        for word in words
    )


def _matching(program: str, words: Sequence[str], shell: Shell) -> str:
    bare = [word for word in words if not word.startswith("-")]
    roots = bare if "--files" in words or {"-e", "-f"} & set(words) else bare[1:]
    names = [name for word in words for name in re.findall(r"^--include=(.+)", word)]
    for option, value in pairwise(words):
        if option in ("-g", "--glob", "--include"):
            names.append(value)
            roots = [root for root in roots if root != value]
        elif option in ("-t", "--type", "--exclude-dir", "-A", "-B", "-C", "-m"):
            names += [f"*.{value}"] if option in ("-t", "--type") else []
            roots = [root for root in roots if root != value]
    if all(is_pattern(root) for root in roots) and roots:
        return "\n".join(roots)
    filters = [part for name in names for part in ("-name", name)]
    if any(re.match(r"--exclude-dir", word) for word in words) or program in ("rg", "ag"):
        excluded = (
            re.findall(r"\.git\b|\.planning\b", " ".join(words))
            if program == "grep"
            else [".git", ".planning"]
        )
        filters += [part for name in excluded for part in ("-not", "-name", name)]
    return "\n".join(found_files("find", [*(roots or ["."]), *filters], shell.paths))
