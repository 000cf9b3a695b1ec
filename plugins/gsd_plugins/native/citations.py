"""Check what a verifier cites: against the tree, and against what it really did in its conversation."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

import attrs

from gsd_core import History, TaskCheck, ToolRecord, protected_part, read_below, redact, safe_text, some_of
from gsd_core.planning.plan_tasks import is_test_file

from .answers import Citation
from .plan_checks import is_trivial_check

MAX_BYTES = 5_000_000
DOCUMENTS = (".md", ".rst", ".txt", ".adoc", ".html")
COMMENT = re.compile(r"\s*(?:$|#(?!!|\[|\s*(?:include|define|if|pragma))|//|/\*|\*[\s/]|--\s|;;|<!--)")
"""A line that is blank, or a comment in most languages."""
FEW_CASES = 3
"""Test cases of a command that may be cited together, without a name."""
MAX_NAMES = 20
"""Test cases that a complaint lists."""
MAX_QUOTE = 300
"""How many characters of the cited lines are kept."""


@attrs.frozen(kw_only=True)
class Sources:
    """What may be cited: lines of files in *tree*, and commands.

    *uses* are the tools of the conversation, *checks* the commands that the core has just run itself.
    *history*, if known, says which files are committed.
    """

    tree: Path
    uses: Sequence[ToolRecord] = ()
    checks: Sequence[TaskCheck] = ()
    history: History | None = None

    def problems(self, citations: Sequence[Citation]) -> tuple[str, ...]:
        """Return what is wrong with the citations of a verdict; one that cites nothing proves nothing."""
        if not citations:
            return ("nothing is cited: cite the lines that you read, or a command that you ran",)
        wrong = [(one, found) for one in citations if (found := self.problem(one))]
        if any(one.file and not (is_test_file(one.file) or self.problem(one)) for one in citations):
            # Beside lines of the product it is no proof, and no mistake either.
            wrong = [(one, found) for one, found in wrong if not self.is_vague(one)]
        problems = tuple(found for _, found in wrong)
        if not problems and all(self.passes_anyway(citation) for citation in citations):
            return (
                f"{describe(citations[0])} passes without the work too, so it shows only that "
                "nothing broke: cite lines as well, or a command that fails without the work",
            )
        if not problems and all(one.file and is_test_file(one.file) for one in citations):
            return (
                f"{describe(citations[0])} is a test, and proves something when it runs: cite the command, "
                "and the test case",
            )
        return problems

    def passes_anyway(self, citation: Citation) -> bool:
        """Whether what is cited is known to pass without the work too, or to have passed before it."""
        if citation.case:
            named = [one for check in self.checks for one in check.result.cases if _is(citation, one.name)]
            return bool(named) and all(one.passes_without for one in named)
        command = citation.command.strip()
        checks = [one.result for one in self.checks if one.result.command.strip() == command]
        anyway = [one.passed_before or one.passes_without for one in checks]
        trials = [use.passes_without for use in self.uses if command and use.target.strip() == command]
        return any(known and all(known) for known in (anyway, trials))

    def problem(self, citation: Citation) -> str:
        """Return why *citation* proves nothing, and what to do; empty if it is correct."""
        if citation.file and citation.command:
            return "a citation names a file with lines, or a command with its exit code, not both"
        if citation.file:
            return self._problem_of_lines(citation)
        if citation.command:
            return self._problem_of_command(citation)
        return "a citation needs a file with lines, or a command with its exit code"

    def _problem_of_lines(self, citation: Citation) -> str:
        name, first, last = citation.file, citation.first, citation.last
        path = _real(self.tree, name)
        root = self.tree.resolve()
        if path is None or not path.is_relative_to(root):
            return f"{name} is not in the project: cite its own files"
        relative = path.relative_to(root).as_posix()
        if protected_part(relative):
            return f"{name} is not part of the product: cite the code, not documents about it"
        if not path.is_file():
            return f"{name} does not exist"
        if self.history is not None and relative not in self.history.files:
            return f"{name} is not committed"
        try:
            text = read_below(root, relative, limit=MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            return f"{name} cannot be cited: {error.strerror}"
        # Numbered as the agent's tools do: splitlines() would also end a line at a form feed or U+2028.
        lines = text.removesuffix("\n").split("\n") if text else []
        if not 1 <= first <= last <= len(lines):
            return f"{name} has lines 1 to {len(lines)}, not {first} to {last}"
        cited = lines[first - 1 : last]
        if not any(re.search(r"\w", line) for line in cited):
            return f"{name}: lines {first} to {last} are blank, or only signs"
        if path.suffix not in DOCUMENTS and all(COMMENT.match(line) for line in cited):
            return f"{name}: lines {first} to {last} are comments: cite the code"
        if path.suffix == ".py" and _is_documentation(text, first, last):
            return f"{name}: lines {first} to {last} are documentation: cite the code"
        shown = {number for use in self.uses for number in self._shown(use, path, lines)}
        if not shown:
            return f"{name} was not read in this conversation: read it, then judge again"
        if not shown.issuperset(range(first, last + 1)):
            return (
                f"{name}: lines {first} to {last} were not all shown in this conversation: read them, then "
                "judge again"
            )
        return ""

    def quote(self, citation: Citation) -> str:
        """Return the text of the lines that a correct *citation* names, on one line; empty for a command."""
        if not citation.file:
            return ""
        root, path = self.tree.resolve(), _real(self.tree, citation.file)
        try:
            text = read_below(root, path.relative_to(root), limit=MAX_BYTES) if path else b""
        except (OSError, ValueError):
            return ""  # it was there a moment ago, when the citation was checked
        cited = text.decode("utf-8", "replace").split("\n")[citation.first - 1 : citation.last]
        words = " ".join(redact(safe_text("\n".join(cited)), strict=True).split())
        return words[:MAX_QUOTE] + "…" * (len(words) > MAX_QUOTE)

    def _shown(self, use: ToolRecord, path: Path, lines: Sequence[str]) -> Collection[int]:
        """Return the numbers of the file's lines that *use* showed: a range, or what a search finds."""
        if use.tool not in ("Read", "Grep") or (target := _real(self.tree, use.target)) is None:
            return ()
        if use.tool == "Read":
            # Those of earlier versions have no range.
            first, last = use.shown or (1, len(lines))
            return range(first, min(last, len(lines)) + 1) if target == path else ()
        if use.shown is None or not path.is_relative_to(target):
            return ()
        before, after = use.shown
        found = _matches(use.pattern, lines)
        return {
            near
            for number in found
            for near in range(max(1, number - before), min(len(lines), number + after) + 1)
        }

    def _problem_of_command(self, citation: Citation) -> str:
        command = citation.command.strip()
        if is_trivial_check(command):
            return f"`{command}` proves nothing: it always succeeds"
        exits = [u.exit for u in self.uses if u.tool == "run_command" and u.target.strip() == command]
        exits += [c.result.exit for c in self.checks if c.result.command.strip() == command]
        if not exits:
            return f"`{command}` was not run in this conversation: run it with run_command, then judge again"
        if others := sorted({str(code) for code in exits if code != citation.exit}):
            ended = " or ".join("without an exit code" if code == "None" else code for code in others)
            return f"`{command}` did not exit with {citation.exit} but with {ended}"
        flaws = {use.flaw for use in self.uses if use.target.strip() == command}
        flaws |= {one.result.flaw for one in self.checks if one.result.command.strip() == command}
        if "" not in flaws:
            return f"`{command}` {min(flaws)}: it proves nothing"
        return self._problem_of_case(citation, command)

    def is_vague(self, citation: Citation) -> bool:
        """Whether *citation* is a command that ran test cases, without the one that shows something."""
        vague = self._problem_of_case(citation, citation.command.strip()) if citation.command else ""
        return bool(vague) and not citation.case and self.problem(citation) == vague

    def _problem_of_case(self, citation: Citation, command: str) -> str:
        """Return why a command that ran test cases proves nothing: it proves what one of them shows."""
        passed = [name for use in self.uses if use.target.strip() == command for name in use.cases]
        for check in self.checks:
            if check.result.command.strip() == command:
                passed += [case.name for case in check.result.cases if case.outcome == "passed"]
        names = list(dict.fromkeys(passed))
        # Without their parameters, or the subtests of Go.
        tops = {re.sub(r"(\.(?:Test|Fuzz|Example)\w*)/.*$", r"\1", name).partition("[")[0] for name in names}
        is_named = any(_is(citation, name) for name in names)
        if is_named or (not citation.case and len(tops) <= FEW_CASES):
            return ""
        what = f"no test case {citation.case!r} passed" if citation.case else "it runs test cases"
        return f"`{command}`: {what}: cite the `case` that shows it, one of {some_of(names, MAX_NAMES)}"


def describe(citation: Citation) -> str:
    """Return a citation as text for people: ``src/notes.py:3-9`` or ```pytest -q` (exit 0)``."""
    if citation.command:
        return f"`{citation.command}` (exit {citation.exit})" + f", {citation.case}" * bool(citation.case)
    lines = str(citation.first)
    return f"{citation.file}:{lines if citation.last == citation.first else f'{lines}-{citation.last}'}"


def _is_documentation(code: str, first: int, last: int) -> bool:
    """Whether lines of Python are inside of the documentation of a function or class."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        node.body[0].lineno <= first and last <= (node.body[0].end_lineno or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(node)
    )


def _is(citation: Citation, name: str) -> bool:
    """Whether the test case with that *name* is cited, perhaps without its file, class or parameters."""
    case = re.escape(citation.case.strip())
    return bool(case and re.search(rf"(?:^|::|\.|/| > ){case}(?:\[.*\])?$", name, re.DOTALL))


def _real(tree: Path, name: str) -> Path | None:
    """Return the real path of *name*, symlinks followed; ``None`` if there can be no such file."""
    try:
        return (tree / PurePosixPath(name)).resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def _matches(pattern: str, lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines that a search for *pattern* finds."""
    # A repeated group can take exponential time, and a model wrote the pattern.
    if not pattern or len(pattern) > 300 or re.search(r"\)[*+{]", pattern):
        return []
    try:
        found = re.compile(pattern, re.IGNORECASE)
    except re.error:
        # ripgrep's dialect differs a little from Python's: reading the file is always possible.
        return []
    return [number for number, line in enumerate(lines, start=1) if found.search(line[:300])]
