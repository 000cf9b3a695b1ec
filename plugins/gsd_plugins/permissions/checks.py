"""Programs whose arguments matter: git, the network, and programs that write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from urllib.parse import urlsplit

from gsd_core import Ask, Deny

from .lexer import UNKNOWN, Word, with_next
from .paths import Objection, PathContext
from .programs import (
    ASKED_PROGRAMS,
    ASKED_SUBCOMMANDS,
    DENIED_PROGRAMS,
    DESCRIPTIVE_PROGRAMS,
    DOWNLOADERS,
    HARMLESS_SUBCOMMANDS,
    HARMLESS_VERBS,
    OUTPUT_OPTIONS,
    PUBLISHING_WORDS,
    SQL_CLIENTS,
    WRITES_ALL_ARGUMENTS,
    WRITES_LAST_ARGUMENT,
    names,
)

# git: what reads is allowed, what writes history or configuration is not.

GIT_READING = names(
    """
    status log diff show blame annotate grep ls-files ls-tree rev-parse describe shortlog cat-file
    rev-list diff-tree diff-index diff-files name-rev merge-base for-each-ref show-ref show-branch
    check-ignore check-attr version help whatchanged cherry count-objects range-diff verify-commit
    verify-tag var check-ref-format check-mailmap merge-tree diff-pairs patch-id stripspace
    """
)
GIT_STAGING = frozenset({"add", "mv", "rm"})
GIT_REMOTE = frozenset({"clone", "ls-remote"})
# Subcommands that only read if they have one of these arguments first, or none.
GIT_READING_OPTIONS = {
    "branch": ("-a", "-r", "-v", "-vv", "--list", "-l", "--show-current", "--contains", "--merged", "--all"),
    "tag": ("-l", "--list", "-n", "--contains", "--points-at"),
    "remote": ("-v", "--verbose", "show", "get-url"),
    "reflog": ("show",),
}
# Subcommands that only read with one of these first arguments.
GIT_READING_SUBCOMMANDS = {
    "stash": ("list", "show"),
    "config": ("--get", "--get-all", "--list", "-l", "list", "get", "--get-regexp"),
    "worktree": ("list",),
    "submodule": ("status", "summary"),
    "notes": ("list", "show"),
    "bisect": ("log", "view"),
    "bundle": ("verify", "list-heads"),
    "lfs": ("ls-files", "status", "env"),
}
GIT_VALUE_OPTIONS = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}
)
GIT_HARMLESS_CONFIG = ("color.", "core.quotepath=", "advice.", "log.date=", "diff.renames=", "core.abbrev=")
GIT_RUNNING_OPTIONS = ("--open-files-in-pager", "--ext-diff", "--upload-pack", "--exec", "--textconv")


def check_git(words: Sequence[Word], context: PathContext, *, writable: bool) -> Iterator[Objection]:
    """Check the arguments of ``git``."""
    rest = list(words)
    while rest and rest[0].text.startswith("-"):
        option, equals, value = rest.pop(0).text.partition("=")
        if option in GIT_VALUE_OPTIONS and not equals and rest:
            value = rest.pop(0).text
        yield _check_git_global_option(option, value, context)
    if not rest:
        return
    name, arguments = rest[0], rest[1:]
    if not name.known:
        yield Ask(reason="the git command is known only at run time")
        return
    yield _check_git_subcommand(name.text, [word.text for word in arguments])
    yield from _check_git_options(name.text, arguments, context)
    if not writable and name.text in GIT_STAGING:
        yield Deny(reason="this step is read-only")


def _check_git_global_option(option: str, value: str, context: PathContext) -> Objection:
    match option:
        case "-C":
            return context.check_read(Word(value))
        case "-c" if value.lower().startswith(GIT_HARMLESS_CONFIG):
            return None
        case "-c" | "--config-env" | "--exec-path":
            return Deny(reason=f"git {option} {value} can run arbitrary commands")
        case "--git-dir" | "--work-tree":
            return Deny(reason="only the project's own repository may be used")
        case _ if option.startswith("-c"):
            return Deny(reason=f"git {option} can run arbitrary commands")
        case _:
            return None


def _check_git_subcommand(name: str, arguments: Sequence[str]) -> Objection:
    denied = Deny(reason=f"agents may not run git {name}: only the run makes commits and changes history")
    if name in GIT_READING or name in GIT_STAGING:
        return None
    if name in GIT_REMOTE:
        return Ask(reason=f"git {name} connects to another machine")
    if name == "symbolic-ref":
        return None if len(arguments) == 1 else denied
    if name in GIT_READING_OPTIONS:
        reads = not arguments or arguments[0].startswith(GIT_READING_OPTIONS[name])
        return None if reads and not _git_changes(arguments) else denied
    if arguments and arguments[0] in GIT_READING_SUBCOMMANDS.get(name, ()):
        return None
    return denied


def _git_changes(arguments: Sequence[str]) -> bool:
    changing = tuple(names("-d -D -m -M -c -C -f --delete --move --copy --force -u --set"))
    return any(word.startswith(changing) and word not in ("--contains", "--merged") for word in arguments)


def _check_git_options(name: str, arguments: Sequence[Word], context: PathContext) -> Iterator[Objection]:
    for word, following in with_next(arguments):
        option, equals, value = word.text.partition("=")
        if option in GIT_RUNNING_OPTIONS or (name == "grep" and option.startswith("-O")):
            yield Deny(reason=f"git {name} {option} can run arbitrary commands")
        elif option == "--output" or (option == "-o" and name in ("archive", "format-patch", "diff")):
            yield context.check_write(Word(value) if equals else following)
        elif not option.startswith("-"):
            check: Callable[[Word], Objection] = (
                context.check_write if name in ("mv", "rm") else context.check_read
            )
            yield check(word)


# Network: programs that publish, deploy, or connect to other machines.

LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost")
SENDING = re.compile(
    r"-[a-zA-Z]*[dFT]$|-[dFT].|--(?:data|form|upload|json|post|body)|"
    r"(?:-X=?|--request=?|--method=?)(?i:POST|PUT|PATCH|DELETE)$"
)
METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
DESTROYING = re.compile(
    r"\b(?:drop\s+(?:database|schema|table)|truncate|flushall|flushdb|dropdatabase)\b", re.I
)
VALUE_OPTIONS = names(
    """
    -n --namespace -C --prefix -w --workspace -f --profile --region
    """
)


def check_network(program: str, words: Sequence[Word]) -> Iterator[Objection]:
    """Check whether a program has effects outside the project, or does what no agent may."""
    if program in DENIED_PROGRAMS:
        yield Deny(reason=f"{program}: {DENIED_PROGRAMS[program]}")
    if program in ASKED_PROGRAMS and not _only_help(words):
        yield Ask(reason=f"{program}: {ASKED_PROGRAMS[program]}")
    subcommands = _subcommands(words)
    if asked := _asked_argument(program, subcommands, words):
        yield Ask(reason=f"{program} {asked}: it has effects outside the project or cannot be undone")
    if program in HARMLESS_SUBCOMMANDS and not _is_harmless(program, subcommands):
        command = " ".join([program, *subcommands])
        yield Ask(reason=f"{command}: it may change something outside the project")
    if program in DOWNLOADERS:
        yield _check_sending(words)
    if program in SQL_CLIENTS:
        yield _check_query(words)
    if program == "kill":
        yield _check_kill(words)
    if (
        program == "gsd"
        and subcommands[:1] not in (["status"], ["log"], ["questions"])
        and not _only_help(words)
    ):
        yield Deny(reason="agents may not control the run")
    if program == "pre-commit" and subcommands[:1] in (["install"], ["uninstall"], ["init-templatedir"]):
        yield Deny(reason="agents may not change git hooks")
    if program == "fuser" and any(word.text.startswith("-k") for word in words):
        yield Deny(reason="end only your own processes, by process id")


def _asked_argument(program: str, subcommands: Sequence[str], words: Sequence[Word]) -> str:
    named = ASKED_SUBCOMMANDS.get(program, frozenset())
    if program in DESCRIPTIVE_PROGRAMS:
        scripts = [re.split(r"[:_-]", word)[0] for word in subcommands]
        named |= {
            word for word, script in zip(subcommands, scripts, strict=True) if script in PUBLISHING_WORDS
        }
    if program in ("npm", "pnpm", "bun") and any(word.text in ("-g", "--global") for word in words):
        return "-g"
    if program in ("docker", "podman", "buildx") and any(word.text == "--push" for word in words):
        return "--push"
    if program in ("pip", "pip3") and any(
        word.text in ("--user", "--break-system-packages") for word in words
    ):
        return "--user"
    if program in ("docker", "podman") and any(word.text in ("--privileged", "--pid=host") for word in words):
        return "--privileged"
    return next((word for word in subcommands if word in named), "")


def _subcommands(words: Sequence[Word]) -> list[str]:
    """Return the first two arguments that are neither options nor their values."""
    subcommands: list[str] = []
    before = ""
    for word in words:
        if not word.text.startswith("-") and before not in VALUE_OPTIONS:
            subcommands.append(word.text)
        before = word.text
    return subcommands[:2]


def _is_harmless(program: str, subcommands: Sequence[str]) -> bool:
    if not subcommands or subcommands[0] in HARMLESS_SUBCOMMANDS[program]:
        return True
    verbs = [re.split(r"-", word)[0] for word in subcommands[1:]]
    return program != "kubectl" and bool(verbs) and verbs[0] in HARMLESS_VERBS


def _only_help(words: Sequence[Word]) -> bool:
    return len(words) == 1 and words[0].text in ("--help", "-h", "--version", "-V", "help", "version")


def _check_sending(words: Sequence[Word]) -> Objection:
    sends = any(SENDING.match(word.text) or word.text.upper() in METHODS for word in words)
    remote = [word for word in words if not _is_local(word)]
    return Ask(reason="it sends data to another machine") if sends and remote else None


def _is_local(word: Word) -> bool:
    """Whether a word is not an address, or an address of this machine."""
    text = word.text
    if "://" in text:
        host = urlsplit(text).hostname if word.known else None
        return bool(host and LOOPBACK.fullmatch(host))
    if LOOPBACK.match(text) or text.startswith(("-", "/", ":", "@", "{", "[")):
        return True
    return word.known and not re.match(r"[\w-]+(?:\.[\w-]+)+(?:[:/]|$)", text)


def _check_query(words: Sequence[Word]) -> Objection:
    if any(DESTROYING.search(word.text) for word in words):
        return Ask(reason="it deletes data")
    hosts = [f.text for w, f in pairwise(words) if w.text in ("-h", "--host")]
    hosts += [word.text.split("=", 1)[1] for word in words if word.text.startswith("--host=")]
    hosts += [urlsplit(word.text).hostname or "" for word in words if "://" in word.text and word.known]
    if any(host and not host.startswith("/") and not LOOPBACK.fullmatch(host) for host in hosts):
        return Ask(reason="it connects to another machine")
    return None


def _check_kill(words: Sequence[Word]) -> Objection:
    """Check ``kill``: a job (``%1``) or a variable is the agent's own, a number may be any process."""
    signal = r"-(?:[A-Z]+\d?|SIG[A-Z]+|[1-9]\d?|s|n|0)$"
    first = words[0].text if words else ""
    named = list(words[1:] if re.match(signal, first, re.I) and len(words) > 1 else words)
    if any(re.fullmatch(r"-\d+|[01]", word.text) for word in named):
        return Deny(reason="end only your own processes, by process id")
    if any(word.text.isdigit() for word in named):
        return Ask(reason="it is unknown whose process that is")
    return None


# Writes: programs that write, replace or delete what their arguments name.

# Names of files in .git/ and .planning/: a filter that matches them protects nothing.
PROTECTED_FILES = ("HEAD", "config", "index", "STATE.md", "ROADMAP.md", "config.json")
DELETING_PROGRAMS = frozenset({"rm", "rmdir", "unlink", "shred", "mv", "trash"})
FIND_FILTERS = frozenset({"-name", "-iname", "-path", "-wholename", "-regex"})
FIND_WRITES = frozenset({"-fprint", "-fprintf", "-fls", "-fprint0"})


def check_writes(program: str, words: Sequence[Word], context: PathContext) -> Iterator[Objection]:
    """Check the paths that *program* writes to, for programs that are known to write."""
    positional = _positional(words)
    yield from _check_output_options(program, words, context)
    if program in DELETING_PROGRAMS:
        yield from _check_deletion(program, words, positional, context)
    if program in WRITES_ALL_ARGUMENTS:
        yield from (context.check_write(word) for word in _targets(program, positional))
    if program in WRITES_LAST_ARGUMENT and positional and not _is_remote(positional[-1]):
        yield context.check_write(positional[-1])
    if program in ("cp", "mv", "ln"):
        yield from (context.check_read(word) for word in positional[:-1])
    if program == "rsync" and any(_is_remote(word) for word in positional):
        yield Ask(reason="it connects to another machine")
    if program in ("sed", "perl", "ruby", "yq", "gawk") and _in_place(words):
        yield from (context.check_write(word) for word in positional[0 if _has_script(words) else 1 :])
    if program == "dd":
        yield from (context.check_write(Word(w.text[3:], "")) for w in words if w.text.startswith("of="))
    if program in ("docker", "podman"):
        yield from (context.check_write(Word(host)) for word in words if (host := _mounted_folder(word.text)))
    if program == "patch":
        yield Ask(reason="the files that a patch changes cannot be checked")


def check_find(words: Sequence[Word], context: PathContext) -> Iterator[Objection]:
    """Check ``find … -delete`` and the like; the caller checks the commands that it runs."""
    for word, following in with_next(words):
        if word.text in FIND_WRITES:
            yield context.check_write(following)
    if any(word.text == "-delete" for word in words):
        yield check_find_targets(words, context)


def check_find_targets(words: Sequence[Word], context: PathContext) -> Objection:
    """Check changing everything that ``find`` finds: a filter has to exclude .git and .planning."""
    roots = _find_roots(words)
    for root in roots:
        if objection := context.check_write(Word(f"{root.text}/x", root.pattern and f"{root.pattern}/x")):
            return objection
    if not any(context.contains_tree(root) or not root.known for root in roots):
        return None
    chosen, left_out = _find_filters(words)
    narrow = any(not any(fnmatch(name, text) for name in PROTECTED_FILES) for text in chosen)
    if narrow and not any(_protected_names(text, context) for text in chosen):
        return None
    if {".git", ".planning"} <= {name for text in left_out for name in _protected_names(text, context)}:
        return None
    return Deny(reason="it would also change .git or .planning; name the files or a subfolder")


def _find_filters(words: Sequence[Word]) -> tuple[list[str], list[str]]:
    """Return the patterns that files have to match, and those that they must not match."""
    chosen: list[str] = []
    left_out: list[str] = []
    before = ""
    for word, following in with_next(words):
        if word.text in FIND_FILTERS and following.known:
            (left_out if before in ("-not", "!") else chosen).append(following.text)
        before = word.text
    return chosen, left_out


def _protected_names(pattern: str, context: PathContext) -> list[str]:
    return [name for part in pattern.split("/") if (name := context.protected_name(Word(part)))]


def _find_roots(words: Sequence[Word]) -> list[Word]:
    """Return the folders that ``find`` searches; the current folder by default."""
    roots: list[Word] = []
    for word in words:
        if word.text.startswith(("-", "(", "!")) and word.text not in ("-L", "-H", "-P"):
            break
        if not word.text.startswith("-"):
            roots.append(word)
    return roots or [Word(".")]


def _check_deletion(
    program: str, words: Sequence[Word], positional: Sequence[Word], context: PathContext
) -> Iterator[Objection]:
    whole = program == "mv" or any(re.match(r"-\w*[rR]|--recursive", word.text) for word in words)
    for word in positional[:-1] if program == "mv" else positional:
        if context.contains_tree(word) and (whole or program == "rmdir"):
            yield Deny(reason=f"{word.text} is the project itself or contains it")
        if whole and (not word.known or (context.cwd is None and not word.text.startswith("/"))):
            yield Ask(reason=f"what {program} deletes is known only at run time")


def _targets(program: str, positional: Sequence[Word]) -> Sequence[Word]:
    return positional[1:] if program in ("chmod", "chown", "chgrp") else positional


def _check_output_options(program: str, words: Sequence[Word], context: PathContext) -> Iterator[Objection]:
    """Check the values of options that name what is written: ``-o FILE``, ``-oFILE``, ``--output=FILE``."""
    options = OUTPUT_OPTIONS.get(program, "").split()
    for word, following in with_next(words):
        name, equals, value = word.text.partition("=")
        if name in options:
            yield context.check_write(Word(value) if equals else following)
        elif len(word.text) > 2 and word.text[:2] in options and not word.text.startswith("--"):
            yield context.check_write(Word(word.text[2:]))


def _positional(words: Sequence[Word]) -> list[Word]:
    ends = [place for place, word in enumerate(words) if word.text == "--"]
    end = ends[0] if ends else len(words)
    return [word for word in words[:end] if not _is_option(word)] + list(words[end + 1 :])


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and word.text != "-"


def _in_place(words: Sequence[Word]) -> bool:
    return any(re.match(r"-[A-Za-z]*i|--in-?place", word.text) for word in words)


def _has_script(words: Sequence[Word]) -> bool:
    return any(re.match(r"-[A-Za-z]*[ef]$|--expression|--file", word.text) for word in words)


def _mounted_folder(text: str) -> str:
    """Return the folder of this machine that an option mounts into a container."""
    match = re.match(r"(?:-v|--volume=|.*\bsource=|.*\bsrc=)?(/[^:,]*)[:,]", text)
    return match[1] if match else ""


def _is_remote(word: Word) -> bool:
    return re.match(r"[\w.@-]{2,}:(?!\\)|rsync://", word.text.replace(UNKNOWN, "x")) is not None
