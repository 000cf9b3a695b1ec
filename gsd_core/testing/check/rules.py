"""The rules that ``gsd plugins check`` applies, and what it found about them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import attrs


@attrs.frozen(kw_only=True)
class Rule:
    """One rule: *what* must be true of a plugin, *why*, and how to *fix* it; an *id* keeps its meaning."""

    id: str
    what: str
    why: str
    fix: str


@attrs.define(kw_only=True)
class Findings:
    """The results of running a plugin, saved to *path* before each part of the check.

    A plugin may end or hang its process at any time. The file then has everything found before, and
    *current* is the part that was running: ``imports``, ``fits``, or the name of a hook.
    """

    path: Path
    current: str = "start"
    hooks: list[str] = attrs.field(factory=list[str])
    checked: list[str] = attrs.field(factory=list[str])
    problems: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])
    skipped: dict[str, str] = attrs.field(factory=dict[str, str])
    seconds: dict[str, float] = attrs.field(factory=dict[str, float])
    answered: dict[str, bool] = attrs.field(factory=dict[str, bool])

    def add(self, rule: str, problems: Iterable[str] = ()) -> None:
        """Record that *rule* was checked, and its *problems*, if any."""
        if rule not in self.checked:
            self.checked.append(rule)
        self.problems.extend((rule, problem) for problem in problems if (rule, problem) not in self.problems)

    def begin(self, part: str) -> None:
        """Save the findings so far, and that *part* begins."""
        self.current = part
        data = attrs.asdict(self, filter=lambda field, _: field.name != "path")
        self.path.write_text(json.dumps(data), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the findings saved to *path*."""
        data = json.loads(path.read_text(encoding="utf-8"))
        problems = [(str(rule), str(problem)) for rule, problem in data.pop("problems")]
        return cls(path=path, problems=problems, **data)


RULES: tuple[Rule, ...] = (
    Rule(
        id="imports",
        what="the plugin can be imported",
        why="a plugin that fails to import is left out of every run",
        fix="run `python -c 'import …'` and fix the error",
    ),
    Rule(
        id="fits",
        what="it implements existing hooks with the right arguments",
        why="a misspelled hook is never called, and a plugin with a wrong signature is not loaded",
        fix="decorate functions with @implements(gsd_…), and run mypy or pyright to compare the signatures",
    ),
    Rule(
        id="cheap-import",
        what="importing it takes less than 0.5 s of CPU time, and less than 2 s in all",
        why="every gsd command imports every installed plugin",
        fix="move expensive imports into the functions that need them",
    ),
    Rule(
        id="light-import",
        what="importing it does not load a heavy library",
        why="API clients and frameworks cost time and memory even in runs that do not use them",
        fix="import the library in the function that needs it",
    ),
    Rule(
        id="quiet-import",
        what="importing it has no side effects: no files, processes, connections or output",
        why="commands that only read, such as `gsd status`, import plugins too",
        fix="move the work into a hook; resources that last for a run belong in gsd_lifespan",
    ),
    Rule(
        id="public-imports",
        what="it imports only public modules of gsd",
        why="everything else may change without notice",
        fix="import from gsd_core, or its hookspecs, planning, project or testing",
    ),
    Rule(
        id="declared",
        what="its package declares every library that it imports",
        why="on another machine the import fails",
        fix="add the distribution to project.dependencies in pyproject.toml",
    ),
    Rule(
        id="entry-point",
        what="it has an entry point in the group gsd, with a name that is not taken",
        why="without an entry point it is not found; if two plugins share a name, only the first is loaded",
        fix='add [project.entry-points.gsd] with name = "module" to pyproject.toml',
    ),
    Rule(
        id="packaged",
        what="its package is marked as typed, requires a Python version and depends on gsd-core",
        why="installers and type checkers rely on this metadata",
        fix="add py.typed, requires-python and the dependency gsd-core",
    ),
    Rule(
        id="documented",
        what="its modules, public functions and classes have docstrings, and its package has a README",
        why="`gsd plugins` shows only a name; users need to know what the plugin does",
        fix="write a docstring for the module and for each hook, and a README",
    ),
    Rule(
        id="typed",
        what="every function has type annotations for its parameters and its return value",
        why="mypy and pyright can find a wrong hook only if there are annotations",
        fix="annotate every parameter and every return value",
    ),
    Rule(
        id="tested",
        what="its tests cover each of its hooks",
        why="a hook without a test can break unnoticed",
        fix="write tests/test_….py with gsd_core.testing.conformance.check_…",
    ),
    Rule(
        id="settings",
        what="its settings are frozen attrs classes with a docstring and a default for every field",
        why="a plugin must work when gsd.toml does not mention it",
        fix="use @attrs.frozen(kw_only=True), a docstring, and setting(default) for each field",
    ),
    Rule(
        id="contributes",
        what="the names it contributes are unique, its commands have a help text, and its findings a fix",
        why="a duplicate name is an error that prevents every run",
        fix="rename duplicates; give each command a help text and each finding a fix",
    ),
    Rule(
        id="returns",
        what="its hooks return values of the declared type",
        why="any other value counts as a failure of the plugin",
        fix="return the type in the hook's signature, or None to decline",
    ),
    Rule(
        id="names-errors",
        what="its hooks raise only Transient or Permanent",
        why="only these say whether to retry; any other exception is reported as a bug in the plugin",
        fix="catch the errors you expect and raise Transient or Permanent from them, with a hint",
    ),
    Rule(
        id="prompt",
        what="it decides or declines within the time limit of the hook",
        why="other plugins and the run wait for the answer, and a policy that times out counts as a failure",
        fix="return None immediately if the call is not for this plugin",
    ),
    Rule(
        id="cancels",
        what="it stops within 5 s when canceled",
        why="Ctrl-C should take effect immediately; a plugin that does not stop is abandoned",
        fix="let CancelledError propagate, and keep the cleanup in finally short",
    ),
    Rule(
        id="leaves-nothing",
        what="it leaves no task, thread or process behind",
        why="leftovers keep running after the run, and nothing stops them",
        fix="use asyncio.TaskGroup, and end processes in finally",
    ),
    Rule(
        id="no-state",
        what="it keeps no state in module variables",
        why="two runs may share a process",
        fix="read settings with settings_of, and keep resources in gsd_lifespan",
    ),
    Rule(
        id="writes-nothing",
        what="it does not write to the project or the home folder on its own",
        why="the core writes and commits; other changes look like the user's own work",
        fix="return files from gsd_execute_step; write elsewhere only if a setting names the place",
    ),
    Rule(
        id="does-not-block",
        what="it does not block the event loop",
        why="the whole run shares one loop: while it is blocked, screen, timeouts and agents stop",
        fix="use asyncio.to_thread for files and asyncio subprocesses for programs",
    ),
    Rule(
        id="same-twice",
        what="it returns the same result when called twice with the same input",
        why="gaps are compared between rounds, and a resumed run calls the hook again",
        fix="sort lists, and leave out timestamps and random values",
    ),
    Rule(
        id="says-nothing",
        what="its hooks print nothing to standard output",
        why="standard output is reserved for data that other programs read",
        fix="use logging, or write to standard error",
    ),
    Rule(
        id="pickles",
        what="its return values and errors can be pickled",
        why="results are recorded, and errors cross process boundaries",
        fix="return the classes of gsd_core; in your own errors, pass all arguments to super().__init__",
    ),
    Rule(
        id="hands-off",
        what="it does not change the process: environment, working directory, signal handlers, logging",
        why="they are shared by everything in the process",
        fix="pass env and cwd to the processes you start; log with logging.getLogger(__name__)",
    ),
)
