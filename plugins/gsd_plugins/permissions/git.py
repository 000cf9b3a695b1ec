"""git: what reads is allowed, what writes history or configuration is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gsd_core import Ask, Deny

from .paths import Verdict
from .site import Site
from .words import Word, followed

READING = frozenset(
    {
        *("status", "log", "diff", "show", "blame", "annotate", "grep", "ls-files", "ls-tree", "rev-parse"),
        *(
            "describe",
            "shortlog",
            "cat-file",
            "rev-list",
            "diff-tree",
            "diff-index",
            "diff-files",
            "name-rev",
        ),
        *("merge-base", "for-each-ref", "show-ref", "show-branch", "check-ignore", "check-attr", "version"),
        *(
            "help",
            "whatchanged",
            "cherry",
            "count-objects",
            "range-diff",
            "verify-commit",
            "verify-tag",
            "var",
        ),
        *("check-ref-format", "check-mailmap", "merge-tree", "diff-pairs", "patch-id", "stripspace"),
    }
)
STAGING = frozenset({"add", "mv", "rm"})
OUTWARD = frozenset({"clone", "ls-remote"})
# Subcommands that read only with one of these words, or with none at all.
SOMETIMES = {
    "branch": ("-a", "-r", "-v", "-vv", "--list", "-l", "--show-current", "--contains", "--merged", "--all"),
    "tag": ("-l", "--list", "-n", "--contains", "--points-at"),
    "remote": ("-v", "--verbose", "show", "get-url"),
    "reflog": ("show",),
}
# Subcommands that read only with this first word.
ONLY_WITH = {
    "stash": ("list", "show"),
    "config": ("--get", "--get-all", "--list", "-l", "list", "get", "--get-regexp"),
    "worktree": ("list",),
    "submodule": ("status", "summary"),
    "notes": ("list", "show"),
    "bisect": ("log", "view"),
    "bundle": ("verify", "list-heads"),
    "lfs": ("ls-files", "status", "env"),
}
WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
QUIET_CONFIG = ("color.", "core.quotepath=", "advice.", "log.date=", "diff.renames=", "core.abbrev=")
RUNNING = ("--open-files-in-pager", "--ext-diff", "--upload-pack", "--exec", "--textconv")


def judge_git(words: Sequence[Word], site: Site, *, writable: bool) -> Iterator[Verdict]:
    """Judge the words after ``git``."""
    rest = list(words)
    while rest and rest[0].text.startswith("-"):
        option, equals, value = rest.pop(0).text.partition("=")
        if option in WITH_VALUE and not equals and rest:
            value = rest.pop(0).text
        yield _global_option(option, value, site)
    if not rest:
        return
    name, arguments = rest[0], rest[1:]
    if not name.known:
        yield Ask(reason="which git command runs is known only when it runs")
        return
    yield _subcommand(name.text, [word.text for word in arguments])
    yield from _options(name.text, arguments, site)
    if not writable and name.text in STAGING:
        yield Deny(reason="this work only reads")


def _global_option(option: str, value: str, site: Site) -> Verdict:
    match option:
        case "-C":
            return site.read(Word(value))
        case "-c" if value.lower().startswith(QUIET_CONFIG):
            return None
        case "-c" | "--config-env" | "--exec-path":
            return Deny(reason=f"git {option} {value} may run anything")
        case "--git-dir" | "--work-tree":
            return Deny(reason="work with the project's own repository")
        case _ if option.startswith("-c"):
            return Deny(reason=f"git {option} may run anything")
        case _:
            return None


def _subcommand(name: str, arguments: Sequence[str]) -> Verdict:
    denied = Deny(reason=f"git {name} is not for agents: the run commits, and keeps the history as it is")
    if name in READING or name in STAGING:
        return None
    if name in OUTWARD:
        return Ask(reason=f"git {name} reaches another machine")
    if name == "symbolic-ref":
        return None if len(arguments) == 1 else denied
    if name in SOMETIMES:
        reads = not arguments or arguments[0].startswith(SOMETIMES[name])
        return None if reads and not _changes(arguments) else denied
    if arguments and arguments[0] in ONLY_WITH.get(name, ()):
        return None
    return denied


def _changes(arguments: Sequence[str]) -> bool:
    changing = (
        "-d",
        "-D",
        "-m",
        "-M",
        "-c",
        "-C",
        "-f",
        "--delete",
        "--move",
        "--copy",
        "--force",
        "-u",
        "--set",
    )
    return any(word.startswith(changing) and word not in ("--contains", "--merged") for word in arguments)


def _options(name: str, arguments: Sequence[Word], site: Site) -> Iterator[Verdict]:
    for word, following in followed(arguments):
        option, equals, value = word.text.partition("=")
        if option in RUNNING or (name == "grep" and option.startswith("-O")):
            yield Deny(reason=f"git {name} {option} may run anything")
        elif option == "--output" or (option == "-o" and name in ("archive", "format-patch", "diff")):
            yield site.write(Word(value) if equals else following)
        elif not option.startswith("-"):
            judge: Callable[[Word], Verdict] = site.write if name in ("mv", "rm") else site.read
            yield judge(word)
