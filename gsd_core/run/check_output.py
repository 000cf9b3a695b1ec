"""What the output of a check says that its exit code does not.

Many test runners succeed when they ran no test, and a wrapper can turn failed tests into exit code 0. A
command that cannot run (a missing program, a syntax error) fails no matter what the executor does. All of
this can only be read from the text, so the patterns are strict: each matches a whole line (or the beginning
of one) in the exact form that a runner prints, never a mere mention of tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import dropwhile
from pathlib import PurePosixPath

import attrs

NO_TESTS = "ran no tests"
HIDDEN_FAILURE = "exited with 0 although its tests failed"

_COUNTS = r"(?P<counts>(?:\d+ (?:{words})(?: \(\d+\))?(?:, | \| |; )?)+)"
_PYTEST = (
    "passed|failed|skipped|deselected|xfailed|xpassed|warnings?|errors?|reruns?|subtests (?:passed|failed)"
)
_JEST = "passed|failed|skipped|todos?|total|pending|incomplete|risky|warnings?|deprecated|notices?"

_SUMMARIES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # Python: unittest, Django, nose2; pytest, also with -q; Robot Framework
        r"^Ran (?P<ran>\d+) tests? in [\d.]+s(?:\s+(?:OK|FAILED|NO TESTS RAN)(?: \((?P<counts>[^)\n]*)\))?)?",
        rf"^(?:=+ )?{_COUNTS.format(words=_PYTEST)} in [\d.]+s(?: \([\d:]+\))?(?: =+)?$",
        r"^(?:=+ )?(?:no tests (?:ran|collected)|[\d/]+ tests? collected)(?: \(.*\))? in [\d.]+s(?: =+)?$",
        r"^(?P<ran>\d+) tests?, (?P<counts>\d+ passed, \d+ failed.*)$",
        # JavaScript: jest (and Pest), vitest, mocha, ava, node:test and tape, bun, deno, jasmine, karma
        rf"^[ \t]*Tests:[ \t]+{_COUNTS.format(words=_JEST)}(?: \(\d+ assertions\))?$",
        r"^[ \t]*Tests  +(?:(?P<counts>\d+ (?:passed|failed|skipped|todo)[^(\n]*) \(\d+\)|no tests)$",
        r"^ {2,}(?P<counts>\d+ (?:passing|failing))(?: \([\d.]+m?s\))?$",
        r"^[ \t]*(?P<counts>\d+ tests? (?:passed|failed|skipped|todo))$",
        r"^(?:#|ℹ) (?P<counts>(?:tests|pass|fail|cancelled) +\d+)$",
        r"^[ \t]*(?P<counts>\d+ (?:pass|fail|skip))$",
        r"^(?:ok|FAILED) \| (?P<counts>.*) \([\d.]+m?s\)$",
        r"^(?P<ran>\d+) specs?, (?P<counts>\d+ failures?.*)$",
        r"Executed (?P<ran>\d+) of \d+\b(?: \((?P<counts>skipped \d+)\))?",
        r"^Running \d+ tests? using \d+ workers?$|^ {2}(?P<counts>\d+ (?:passed|failed|flaky))(?: \(.*\))?$",
        # Go, gotestsum and Ginkgo; `ok PACKAGE` and `--- PASS` are in _go
        r"^DONE (?P<ran>\d+) tests?(?:, (?P<counts>.*?))? in [\d.]+s$",
        r"^Ran (?P<ran>\d+) of \d+ Specs? in",
        # Rust: cargo test, nextest
        r"^test result: \w+\. (?P<counts>\d+ passed; \d+ failed; \d+ ignored; \d+ measured)",
        r"^[ \t]*Summary \[.*\][ \t]+[\d/]+ tests? run: (?P<counts>.*)$",
        # .NET and the JVM: dotnet, Maven, Gradle, sbt, Leiningen
        r"^(?:Passed|Failed|Skipped)!\s+- (?P<counts>Failed:.*?Skipped:\s+\d+)",
        r"^Total tests: \d+$|^ {2,}(?P<counts>(?:Passed|Failed): \d+)$",
        r"^Test summary: (?P<counts>total: \d+, failed: \d+, succeeded: \d+)",
        r"Tests run: (?P<ran>\d+), (?P<counts>Failures: \d+, Errors: \d+, Skipped: \d+)",
        r"^> Task (?:\S*:)(?!testClasses)(?:test\w*|\w+Test)(?P<idle> NO-SOURCE| SKIPPED)?(?: [A-Z-]+)?$",
        r"^\[info\] (?:Passed|Failed): Total (?P<ran>\d+), (?P<counts>Failed \d+, Errors \d+)",
        r"^Ran (?P<ran>\d+) tests? containing \d+ assertions?\.",
        # PHPUnit; RSpec and Hspec, minitest, test-unit; ExUnit and bats; prove
        r"^OK \((?P<ran>\d+) tests?, ",
        r"^Tests: (?P<ran>\d+), (?P<counts>Assertions: .*)\.$",
        r"^(?P<ran>\d+) examples?, (?P<counts>\d+ failures?.*)$",
        r"^(?P<ran>\d+) runs, \d+ assertions, (?P<counts>\d+ failures, .*)$",
        r"^(?P<ran>\d+) tests, \d+ assertions, (?P<counts>\d+ failures, .*)$",
        r"^(?P<ran>(?:\d+ (?:doctests?|propert(?:y|ies)|tests?), )+)(?P<counts>\d+ failures?.*)$",
        r"^Files=\d+, Tests=(?P<ran>\d+),",
        # C and C++: ctest, GoogleTest, Catch2, doctest; Swift; Zig and tasty; Dart; busted; testthat
        r"^\d+% tests passed, (?P<counts>\d+ tests? failed) out of (?P<ran>\d+)$",
        r"^[ \t]+\d+ - .* \((?P<minus>Skipped)\)$",
        r"^\[=+\] (?P<ran>\d+) tests? from .* ran\.|^\[  SKIPPED \] (?P<minus>\d+) tests?, listed below",
        r"^All tests passed \((?P<ran>\d+) assertions? in \d+ test cases?\)",
        r"^\[doctest\] test cases:\s*\d+ \| (?P<counts>.*)$",
        r"^[ \t]*Executed (?P<ran>\d+) tests?, with (?:(?P<counts>\d+ tests? skipped) and )?\d+ failures?",
        r"Test run with (?P<ran>\d+) tests?(?: in \d+ suites?)? (?:passed|failed)",
        r"^All (?P<ran>\d+) tests passed\b",
        r"^\d+:\d+ \+(?P<ran>\d+)(?: ~\d+)?(?: -\d+)?: (?:All tests|Some tests) \w+[.!]$",
        r"^(?P<counts>\d+ success(?:es)? / \d+ failures? / \d+ errors? / \d+ pending)",
        r"^\[ (?P<counts>FAIL \d+ \| WARN \d+ \| SKIP \d+ \| PASS \d+) \]",
    )
)
"""The summaries of runners. *ran* are the tests that were started, which includes those in *counts* that
were skipped; without *ran*, the counts of passed and failed tests are added. *minus* are skipped tests that
another line counts as run. A match without numbers is a summary of no tests."""

_NOTHING_RAN = re.compile(
    r"""^[ \t]*(?:\[\w+\]\ |[✖✘]\ |\*\*\*\ )?(?:error:\ |Error:\ |INFO\ +|ERROR:\ )?(?:
    NO\ TESTS\ RAN | Result:\ NOTESTS | 1\.\.0(?:\ \#.*)?
    | No\ tests?\ (?:found|ran|executed|match|matched|files?\ found|modules?\ found|to\ run|were\ \w+)\b.*
    | No\ (?:specs|examples)\ found.* | There\ are\ no\ tests\ to\ run.*
    | No\ test\ (?:is\ available\ in|matches\ the\ given\ testcase\ filter).*
    | no\ tests?\ to\ run.* | Tests\ are\ skipped\. | Couldn.t\ find\ any\ files\ to\ test.*
    | testing:\ warning:\ no\ tests\ to\ run | Could\ not\ find\ '/[^'\n]*(?:test|spec)[^'\n]*'
    | \S+\t\tcoverage:\ 0\.0%\ of\ statements
    # A folder of that name, or a target without a recipe
    | make(?:\[\d+\])?:\ (?:
        Nothing\ to\ be\ done\ for\ .(?:test|check)[^']*'\. | .(?:test|check)[^']*'\ is\ up\ to\ date\.)
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_TAP = re.compile(r"^(?P<failed>not )?ok \d+\b(?P<skip>.*# (?:skip|todo)\b)?", re.MULTILINE | re.IGNORECASE)
_GO_PACKAGE = re.compile(
    r"^(?P<state>ok|FAIL|\?)\s+\S+\s+(?P<rest>[\d.]+s\b.*|\(cached\).*|\[no test files\])$", re.M
)
_GO_TEST = re.compile(r"^[ \t]*--- (PASS|FAIL|SKIP): ", re.MULTILINE)
# What npm prints before it runs a script: the package, then the script itself.
_NPM_SCRIPT = re.compile(r"^> \S+(?:@\S+)? (?:test|check)\S*(?: \S+)?\n> (?P<script>.*)$", re.MULTILINE)

_COUNT = re.compile(
    r"(?P<before>\d+) (?P<what>[a-z][a-z ]*)|(?P<name>[a-z][a-z ]*)[=: ]+(?P<after>\d+)", re.I
)
# "expected failures" before "failures", "xfailed" before "failed"
_LABELS = {
    "passed": ("pass", "xfail", "xpass", "expected", "success", "succeeded", "measured", "flaky"),
    "failed": ("fail", "error", "unexpected", "cancelled"),
    "skipped": ("skip", "ignored", "pending", "todo", "disabled", "omission", "incomplete"),
}


@attrs.frozen
class Tests:
    """How many tests a summary reports: those that really *ran*, and those of them that *failed*."""

    ran: int = 0
    failed: int = 0


def flaw_in(command: str, code: int | None, output: str) -> str:
    """Return why *command* proves nothing although it may have succeeded; empty if nothing is wrong."""
    found = list(summaries(output))
    if sum(tests.ran for tests in found) <= 0:
        return NO_TESTS if found else ""
    return hidden_failure(command, code) if any(tests.failed > 0 for tests in found) else ""


def hidden_failure(command: str, code: int | None) -> str:
    """Return what is wrong with a *command* in which tests failed, if it succeeded all the same."""
    # A command may expect a failure on purpose: `! pytest tests/broken`, `pytest || pytest --last-failed`.
    expects_failure = re.search(r"(?:^|\s)(?:!|if|until)\s|\|\||-ne\b", command)
    return HIDDEN_FAILURE if code == 0 and not expects_failure else ""


def summaries(output: str) -> Iterator[Tests]:
    """Yield what each summary of a test runner in *output* reports; nothing if there is none."""
    for pattern in _SUMMARIES:
        for match in pattern.finditer(output):
            groups = match.groupdict()
            counts = _counts(groups.get("counts") or "")
            if minus := groups.get("minus"):
                yield Tests(-int(minus) if minus.isdecimal() else -1)
            elif "idle" in groups:
                yield Tests(0 if groups["idle"] else 1)
            elif (started := groups.get("ran")) is not None:
                yield Tests(sum(map(int, re.findall(r"\d+", started))) - counts["skipped"], counts["failed"])
            else:
                yield Tests(counts["passed"] + counts["failed"], counts["failed"])
    yield from (Tests() for _ in _NOTHING_RAN.finditer(output))
    for match in _TAP.finditer(output):
        yield Tests() if match["skip"] else Tests(1, 1 if match["failed"] else 0)
    yield from _go(output)
    yield from (Tests() for match in _NPM_SCRIPT.finditer(output) if does_nothing(match["script"]))


def _counts(text: str) -> Counter[str]:
    """Add up a list such as ``1 failed, 2 passed``, ``failures=1`` or ``Failed: 1, Passed: 2``."""
    found: Counter[str] = Counter()
    for match in _COUNT.finditer(re.sub(r"\([^)]*\)", "", text)):
        number = int(match["before"] or match["after"])
        label = (match["what"] or match["name"]).lower().strip().removeprefix("tests ").removeprefix("test ")
        label = label.removeprefix("subtests ")
        found[next((name for name, starts in _LABELS.items() if label.startswith(starts)), "")] += number
    return found


def _go(output: str) -> Iterator[Tests]:
    """Yield a summary for each package; with ``-v``, one whose tests were all skipped ran none."""
    states = _GO_TEST.findall(output)
    all_skipped = bool(states) and set(states) == {"SKIP"}
    for match in _GO_PACKAGE.finditer(output):
        ran = match["state"] != "?" and "[no tests to run]" not in match["rest"] and not all_skipped
        yield Tests(int(ran), int(match["state"] == "FAIL"))


# Scripts that a check runs

_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
_NO_EFFECT = re.compile(r"(?:exit(?:\s+0)?|true|:|set\s.*|echo\b[^|;&<>`$]*|printf\b[^|;&<>`$]*|@?echo off)?")


def does_nothing(script: str) -> bool:
    """Whether a shell script clearly cannot fail: nothing in it but ``echo``, ``true``, ``exit 0`` …"""
    commands = re.split(r"[\n;]|&&", _COMMENT.sub("", script))
    return all(_NO_EFFECT.fullmatch(command.strip()) for command in commands)


def scripts_in(command: str) -> tuple[str, ...]:
    """Return the shell scripts that *command* runs by a relative path: ``sh check.sh``, ``./check``.

    One that it only looks at is not among them: ``test -x check.sh``, ``grep -q foo check.sh``.
    """
    found: list[str] = []
    for part in re.split(r"[;&|\n(){}`]+", command):
        words = [*re.findall(r"(?<![\w@%+./=:-])[\w@%+./-]+(?![=\w])", part)]
        while words and words[0] in _BEFORE_A_COMMAND:
            # Their options, and the limit of `timeout`, are not a command.
            words = list(dropwhile(re.compile(r"-|\d+\w?$").match, words[1:]))
        if words and PurePosixPath(words[0]).name in _RUN_A_SCRIPT:
            words = list(dropwhile(re.compile("-").match, words[1:]))
        elif not words or (not words[0].startswith(("./", "../")) and "/" not in words[0]):
            continue
        found += [word for word in words[:1] if word.endswith((".sh", ".bash")) or word.startswith("./")]
    return tuple(found)


_BEFORE_A_COMMAND = frozenset(
    {
        *("if", "then", "else", "while", "until", "do", "time"),
        *("exec", "command", "env", "nice", "nohup", "timeout"),
    }
)
_RUN_A_SCRIPT = frozenset(["sh", "bash", "dash", "ksh", "zsh", ".", "source"])


# Commands that cannot run

_SHELL = r"^(?:\S*/)?(?:ba|z)?sh(?::(?: -c:)?(?: line)? ?\d+)?: "
_ABSENT, _NO_MODULE = "`{name}` does not exist", "the Python module `{name}` is not installed"
_NO_SCRIPT = "package.json has no script `{name}`"
_NAMED = tuple(
    (re.compile(pattern, re.MULTILINE), problem)
    for pattern, problem in (
        (_SHELL + r"(?P<name>\S+): (?:command )?not found$", "`{name}` is not installed"),
        (_SHELL + r"command not found: (?P<name>\S+)$", "`{name}` is not installed"),
        (_SHELL + r"(?P<name>\S+): No such file or directory$", _ABSENT),
        (_SHELL + r"(?P<name>\S+): (?:Permission denied|Is a directory)$", "`{name}` is not executable"),
        (
            r"^(?:ba|da|z|k)?sh: (?:\d+: )?(?:cannot open |can't open ')?(?P<name>\S+?)'?: No such file",
            _ABSENT,
        ),
        (r"^(?:ba|da|z|k)?sh: \d+: (?:cannot open|Can't open) (?P<name>\S+?)(?:: No such file.*)?$", _ABSENT),
        (r"^env: .?(?P<name>[\w.+-]+)..? No such file or directory$", "`{name}` is not installed"),
        (r"^\S*python[\d.]*: can't open file '(?P<name>[^']+)'", _ABSENT),
        (r"^\S*python[\d.]*: No module named '?(?P<name>[\w.]+)'?$", _NO_MODULE),
        (r"^\S*python[\d.]*: Error while finding module specification for '(?P<name>[\w.]+)'", _NO_MODULE),
        (r"^Error: Cannot find module '(?P<name>/[^']+)'$", _ABSENT),
        (r"^npm (?:ERR!|error) Missing script: \"(?P<name>[^\"]+)\"", _NO_SCRIPT),
        (r"^[ \t]*ERR_PNPM_NO_SCRIPT\s+Missing script: (?P<name>\S+)", _NO_SCRIPT),
        (r"^error(?: Command|: Script not found) \"(?P<name>[^\"]+)\"(?: not found\.)?$", _NO_SCRIPT),
        (
            r"^(?:g?make|just): \*\*\* No rule to make target [`'](?P<name>[^']+)'\.",
            "no Makefile has the target `{name}`",
        ),
        (r"^error: no such (?:sub)?command: `(?P<name>[^`]+)`", "`cargo {name}` is not installed"),
        (r"^ERROR: file or directory not found: (?P<name>\S+)$", _ABSENT),
    )
)
_SYNTAX = re.compile(
    rf"{_SHELL}(?P<why>(?:-c: line \d+: )?(?:[Ss]yntax error\b.*|unexpected EOF.*|Bad substitution.*"
    r"|set: Illegal option.*|set: .*invalid option.*))$",
    re.MULTILINE,
)
_MANIFESTS = {"package.json": "package.json has no", "Makefile": "no Makefile has"}


def why_unusable(command: str, code: int | None, output: str, promised: Collection[str]) -> str:
    """Return why *command* cannot run, even if its task is done; empty if it can.

    *promised* are the files that the plan creates or changes: if one of them is missing, or lacks what the
    command needs, the task is not done, and the command is right. Only what the command names itself
    counts; a program that a script of the project misses is a fault of the script.
    """
    if not code:
        return ""
    if syntax := syntax_error(code, output):
        return syntax
    for pattern, problem in _NAMED:
        for match in pattern.finditer(output):
            name = match["name"]
            manifest = next((file for file, start in _MANIFESTS.items() if problem.startswith(start)), "")
            if _names(command, name) and not _is_promised(manifest or name, promised):
                return problem.format(name=PurePosixPath(name).name if name.startswith("/") else name)
    return ""


def syntax_error(code: int | None, output: str) -> str:
    """Return the shell's complaint about the command's syntax, if any."""
    match = _SYNTAX.search(output) if code else None
    return f"its shell syntax is wrong ({match['why']})" if match else ""


def _names(command: str, name: str) -> bool:
    """Whether *command* contains *name* as a word, or a relative path that *name* is the full path of."""
    words = re.findall(r"[^\s;&|()'\"`<>=]+", command)
    return any(
        word == name or (name.startswith("/") and name.endswith(f"/{word.removeprefix('./')}"))
        for word in words
    )


def _is_promised(name: str, promised: Collection[str]) -> bool:
    """Whether the file or module *name* is, or is in or below, what the plan promises."""
    path = name.removeprefix("./")
    if any(path == file or path.endswith(f"/{file}") or file.startswith(f"{path}/") for file in promised):
        return True
    if "/" in path:
        return False
    # A module: `greeter.cli` is `greeter/cli.py`, `src/greeter/cli.py`, or something in that package; a
    # program without a path may be one that the project installs under the name of its package.
    top = path.partition(".")[0].replace("-", "_")
    parts = {part.partition(".")[0].replace("-", "_") for file in promised for part in file.split("/")}
    return top in parts
