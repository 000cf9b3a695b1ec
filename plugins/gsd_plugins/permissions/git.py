"""git: what reads is allowed, what writes history or configuration is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from .table import table
from .words import is_pattern, known, shown

if TYPE_CHECKING:
    from .shell import Shell

_CHANGES = re.compile(r"-[dDmMcCfu](?!ontains)|--(?:delete|move|copy|force|set|unset|edit)")


def check_git(shell: Shell, words: Sequence[str]) -> None:
    """Check the arguments of ``git``."""
    git, findings = table()["git"], shell.findings
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option, equals, value = re.sub(r"^-c(?=.)", "-c=", rest.pop(0)).partition("=")
        if option in git["value"] and not equals and rest:
            value = rest.pop(0)
        if option == "-C":
            findings.add(shell.paths.check_read(value))
        elif option in ("--git-dir", "--work-tree"):
            findings.deny("only the project's own repository may be used")
        elif option in ("--config-env", "--exec-path") or (
            option == "-c" and not value.lower().startswith(tuple(git["config"]))
        ):
            findings.deny(f"git {option} {shown(value)} can run arbitrary commands")
            _run(shell, value.partition("=")[2])
    if not rest:
        return
    name, arguments = rest[0], rest[1:]
    if not known(name) or is_pattern(name):
        findings.ask("the git command is known only at run time: write it out")
        return
    local = name == "push" and any(re.match(r"(?:/|\./|\.\./|file://)", word) for word in arguments)
    remote = name == "archive" and any(word.startswith("--remote") for word in arguments)
    if (name in git["outward"] and not local) or (name == "lfs" and "push" in arguments) or remote:
        findings.outward(f"git {name} sends data to another machine")
    if name in git["remote"]:
        findings.ask(f"git {name} connects to another machine")
    elif not _reads(name, arguments) and not (shell.paths.owns_planning and _only_adds(name, arguments)):
        findings.deny(f"agents may not run git {name}: only the run makes commits and changes history")
    if (name, *arguments[:1]) in (("bisect", "run"), ("submodule", "foreach")):
        _run(shell, " ".join(word for word in arguments[1:] if not word.startswith("-")))
    if name in git["stage"] and not shell.writable:
        findings.written.append(f"git {name} changes the index")
    for word, following in pairwise([*arguments, ""]):
        option, equals, value = word.partition("=")
        if (option in git["runs"] and (option != "-x" or name != "clean")) or (
            name == "grep" and option[:2] == "-O"
        ):
            findings.deny(f"git {name} {option} can run arbitrary commands")
            _run(shell, value or following)
        elif option == "--output" or (option == "-o" and name in ("archive", "format-patch", "diff")):
            findings.add(shell.paths.check_write(value if equals else following))
        elif not option.startswith("-"):
            check = shell.paths.check_write if name in ("mv", "rm") else shell.paths.check_read
            findings.add(check(word))


def _only_adds(name: str, arguments: Sequence[str]) -> bool:
    """Whether a subcommand changes nothing that exists, and runs the hooks of the repository."""
    excluded = table()["git_adding"].get(name)
    return excluded is not None and excluded.isdisjoint(arguments)


def _run(shell: Shell, text: str) -> None:
    if known(text):
        shell.run_text(text.lstrip("!"))


def _reads(name: str, arguments: Sequence[str]) -> bool:
    """Whether a subcommand changes neither history nor configuration."""
    git, reading = table()["git"], table()["git_reading"].get(name, frozenset())
    if name in git["read"] or name in git["stage"] or (name == "symbolic-ref" and len(arguments) == 1):
        return True
    if not arguments:
        return "alone" in reading
    return arguments[0].startswith(tuple(reading)) and not any(_CHANGES.match(word) for word in arguments)
