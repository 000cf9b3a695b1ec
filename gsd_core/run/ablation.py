"""Ablation: does a check fail without the work that it is to prove? A check that still passes proves nothing.

In a throwaway checkout of HEAD, the files of one plan are as they were before the plan, its tests stay, and
the plan's checks run again. SWE-bench calls it FAIL_TO_PASS (arXiv 2310.06770); here each plan is measured.
Then plugins name small faults of these files (:func:`gsd_core.hookspecs.gsd_find_mutants`): functions that
fail, changed values and conditions. Each is tried by itself, as long as there is time, so that it is known
which test cases need which function, and which faults no test notices.

A plan is not measured if a file of it has tests of its own (with the work, the tests would go), or cannot be
read: what is left of the work could be what the check needs. The project's folder is not touched.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path

import attrs

from gsd_core.files import read_below, remove_below, start_as_text, write_below
from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.history import before, changed_lines, paths_of, removes_lines, renamed_since
from gsd_core.hookspecs import gsd_find_mutants
from gsd_core.model.checks import CaseResult, CheckResult, TaskCheck
from gsd_core.model.counts import some_of
from gsd_core.model.gap import Gap, Observation
from gsd_core.model.mutant import Mutant, SourceFile, Unnoticed
from gsd_core.planning.exact import exact_facts
from gsd_core.planning.model import PhaseView, Plan, Requirement
from gsd_core.planning.plan_tasks import is_named_as_test, is_test_file
from gsd_core.plugins.calling import Hooks
from gsd_core.settings import LimitSettings

from .check_output import HIDDEN_FAILURE
from .checkout import Checkout, checkout_of
from .commands import CommandGate

OWN_TESTS = re.compile(rb"#\[(?:test|cfg\(test\))\]|import\.meta\.vitest|^\s*>>> ", re.MULTILINE)
"""What a file has that contains its tests: Rust, Vitest's tests in source, Python's doctest."""
LEAST_TIME = timedelta(seconds=30)
LEAST_FOR_FAULTS = timedelta(seconds=3)
TIMES = 3
"""The most time for all plans of a phase, as a multiple of what their checks took."""
BY = "ablation"
"""What found a gap here."""
MAX_TESTS = 400_000
"""Characters of a file of tests that are read."""
FOLDERS = 2
"""In how many folders faults are tried at the same time."""
MAX_MUTANTS = 30
"""Faults that are tried for a plan."""


@attrs.frozen(kw_only=True)
class Ablation:
    """The *checks* of a phase, marked if they pass without the work of their plan.

    *seen* says which plans were not measured, because no time was left. *unnoticed* are faults that all
    checks of the phase pass with. *gaps* are plans whose own tests all pass without their work. *took* is how
    long this took; *is_cut*: there was no time for all faults.
    """

    checks: tuple[TaskCheck, ...]
    took: timedelta = timedelta()
    is_cut: bool = False
    seen: tuple[Observation, ...] = ()
    unnoticed: tuple[Unnoticed, ...] = ()
    gaps: tuple[Gap, ...] = ()


async def ablation(
    gate: CommandGate,
    git: Git,
    hooks: Hooks,
    phase: PhaseView,
    requirements: Sequence[Requirement],
    limits: LimitSettings,
    took: timedelta,
) -> Ablation:
    """Run the checks of the phase's plans that have passed again, each without the work of its plan.

    *took* is how long they took before. Faults are tried for at most as long again.
    """
    if not limits.ablation:
        return Ablation(checks=phase.checks)
    promises = tuple(one.text for one in requirements if one.id in phase.requirements)
    measured = _Measurement(gate=gate, git=git, hooks=hooks, phase=phase, promises=promises, limits=limits)
    began = measured.now
    measured.end = began + min(limits.ablation, max(LEAST_TIME, TIMES * took)).total_seconds()
    for name in phase.commits:
        await measured.take_out(name)
    measured.end = min(measured.end, measured.now + max(LEAST_FOR_FAULTS, took).total_seconds())
    for plan in phase.plans:
        if plan.id in phase.commits:
            await measured.try_faults(plan)
    return Ablation(
        checks=tuple(
            attrs.evolve(one, result=measured.results.get((one.plan, one.result.command), one.result))
            for one in phase.checks
        ),
        took=timedelta(seconds=measured.now - began),
        is_cut=measured.is_cut,
        seen=tuple(Observation(text=text, severity="minor") for text in measured.seen()),
        unnoticed=tuple(measured.unnoticed),
        gaps=tuple(measured.gaps),
    )


@attrs.define(kw_only=True)
class _Measurement:
    """What is known so far about the checks of a phase, by plan and command; *end* is a time of the loop."""

    gate: CommandGate
    git: Git
    hooks: Hooks
    phase: PhaseView
    promises: tuple[str, ...]
    limits: LimitSettings
    end: float = 0.0
    is_cut: bool = False
    results: dict[tuple[str, str], CheckResult] = attrs.field(factory=dict[tuple[str, str], CheckResult])
    left_out: set[str] = attrs.field(factory=set[str])
    unnoticed: list[Unnoticed] = attrs.field(factory=list[Unnoticed])
    gaps: list[Gap] = attrs.field(factory=list[Gap])
    about_tests: list[str] = attrs.field(factory=list[str])

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def __attrs_post_init__(self) -> None:
        for one in self.phase.checks:
            # Of a check that passed before the task, other cases may be new.
            if one.result.ok and (one.result.cases or not one.result.passed_before):
                self.results[one.plan, one.result.command] = one.result

    def seen(self) -> Iterator[str]:
        """Yield what people should know: tests and faults that prove nothing, and what was not measured."""
        for (plan, command), result in self.results.items():
            if result.passes_without and not result.passed_before:
                yield f"the check `{command}` of plan {plan} passes without its work too"
        yield from self.about_tests
        for one in self.unnoticed:
            if one.promised:
                yield str(one)
        for plan in sorted(self.left_out):
            yield f"not measured: whether plan {plan}'s checks need its work"

    def _results_of(self, plan: str) -> list[CheckResult]:
        return [result for (owner, _), result in self.results.items() if owner == plan]

    async def _again(self, clean: Checkout, result: CheckResult) -> CheckResult | None:
        """Run a check again in a changed checkout; ``None`` if it may not, or the time is not enough."""
        if (left := timedelta(seconds=self.end - self.now)) <= timedelta():
            return None
        limit = min(self.limits.check, left)
        again = await clean.run(result.command, self.gate, limit, reported=bool(result.cases))
        said = f"the exit code of the check `{result.command}` says nothing: it {again.flaw}"
        if again.flaw == HIDDEN_FAILURE and said not in self.about_tests:
            self.about_tests.append(said)
        return None if again.unusable or (again.exit is None and self.now >= self.end) else again

    async def take_out(self, plan: str) -> None:
        """Run the checks of *plan* without its work."""
        commits = self.phase.commits[plan]
        if not (results := self._results_of(plan)):
            return
        async with checkout_of(self.git) as clean:
            work = await self.git.call(_old_and_new, self.git.command, clean, commits) if clean else None
            if clean is None or work is None:
                return
            if not work[0]:
                # Without a file that the plan added, test cases that import it could not even start.
                await self._run_disabled(plan, [one for one in results if one.cases])
            so_far = {one: self.results[plan, one.command] for one in results}
            # What passes with such functions may need another file, such as data.
            left = [
                one for one, now in so_far.items() if now is one or any(c.passes_without for c in now.cases)
            ]
            if left:
                await self.git.call(_take_out, self.git.command, clean, commits)
            for result in left:
                if not (without := await self._again(clean, result)):
                    self.left_out.add(plan)
                    continue
                compared = _compared(result, without)
                if so_far[result] is result or not _is_unknown(compared):
                    self.results[plan, result.command] = compared
            if work[0]:
                unknown = [one for one in results if _is_unknown(self.results[plan, one.command])]
                await self._run_disabled(plan, unknown)
            added, changed = await self.git.call(_tests_of, self.git.command, clean, commits)
        if changed:
            self.about_tests.append(
                f"plan {plan} changes or deletes tests that were there before: {some_of(changed)}"
            )
        # A case has the name in the code, at the end of its own.
        cases = [case for one in self._results_of(plan) for case in one.cases]
        idle = [
            path
            for path, lines in added.items()
            if is_named_as_test(path) and not any(_is_in(case, lines) for case in cases)
        ]
        if cases and idle:
            self.about_tests.append(f"no check of plan {plan} runs its tests in {some_of(idle)}")
        own = [case for case in cases if _is_in(case, "\n".join(added.values()))]
        if skipped := tuple(dict.fromkeys(case.name for case in own if case.outcome == "skipped")):
            self.about_tests.append(f"these tests of plan {plan} are skipped: {some_of(skipped)}")
        own = [case for case in own if case.outcome == "passed"]
        names = tuple(dict.fromkeys(case.name for case in own if case.passes_without))
        if names and not all(case.passes_without for case in own):
            self.about_tests.append(f"these tests of plan {plan} pass without its work too: {some_of(names)}")
        elif names:
            gap = Gap(
                truth=f"Tests that plan {plan} adds fail without its work",
                reason=f"all of them pass without it too: {some_of(names)}",
                missing=("a test case that uses the work of the plan, and fails without it",),
                found_by=BY,
            )
            self.gaps.append(gap)

    async def _run_disabled(self, plan: str, results: Sequence[CheckResult]) -> None:
        """Run these checks of *plan* again, with its files, but with functions that do not work."""
        if not results:
            return
        async with checkout_of(self.git) as clean:
            commits = self.phase.commits[plan]
            if clean is None or not await disable(self.hooks, self.limits, self.git, clean, commits):
                return
            for result in results:
                if without := await self._again(clean, result):
                    self.results[plan, result.command] = _compared(result, without)

    async def try_faults(self, plan: Plan, folders: int = FOLDERS) -> None:
        """Run the checks that need the work of *plan*, each time with one fault of it.

        A fault may also be noticed by the checks of the phase's other plans. If a check does not pass a
        second time in the same folder, whatever is in it, nothing is known. If that is only so while another
        one runs, such as with one port for both, one folder is used instead of several *folders*.
        """
        own = [one for one in self._results_of(plan.id) if not one.passes_without]
        if not own or self.now >= self.end:
            self.is_cut = self.is_cut or bool(own)
            return
        async with AsyncExitStack() as stack:
            made = [await stack.enter_async_context(checkout_of(self.git)) for _ in range(folders)]
            cleans = [clean for clean in made if clean]
            if not cleans:
                return
            sources = await self.git.call(_sources, self.git.command, cleans[0], self.phase.commits[plan.id])
            if not (chosen := await self._chosen(plan, sources)):
                return
            known, found, faults = dict(self.results), len(self.unnoticed), iter(chosen)
            await asyncio.gather(*(self._try(plan.id, clean, islice(faults, 1), own) for clean in cleans))
            if all(await asyncio.gather(*(self._still_pass(clean, own) for clean in cleans))):
                await asyncio.gather(*(self._try(plan.id, clean, faults, own) for clean in cleans))
                order = [fault for _, fault in chosen]
                self.unnoticed[found:] = sorted(self.unnoticed[found:], key=order.index)
                return
            self.results, self.unnoticed = known, self.unnoticed[:found]
        if folders > 1:
            await self.try_faults(plan, folders=1)

    async def _try(
        self,
        plan: str,
        clean: Checkout,
        faults: Iterator[tuple[SourceFile, Unnoticed]],
        own: Sequence[CheckResult],
    ) -> None:
        """Try *faults* one after the other; *own* are the checks of the *plan*."""
        every = {one.command: one for one in (*own, *self.results.values())}
        for source, fault in faults:
            _write(clean.tree, source.path, fault.mutant.apply(source.text))
            noticed = False
            for result in every.values():
                if noticed and (fault.mutant.kind != "function" or result not in own):
                    break
                if not (broken := await self._again(clean, result)):
                    self.is_cut = True
                    return
                noticed |= self._note(plan, result, broken, fault)
            if not noticed:
                self.unnoticed.append(fault)
            _write(clean.tree, source.path, source.text)

    async def _still_pass(self, clean: Checkout, results: Iterable[CheckResult]) -> bool:
        for result in results:
            again = await self._again(clean, result)
            if again is None or not again.ok or _passed(again) != _passed(result):
                return False
        return True

    def _note(self, plan: str, result: CheckResult, broken: CheckResult, fault: Unnoticed) -> bool:
        """Return whether a check noticed a fault; remember which of its test cases need a function."""
        lost = _passed(result) - _passed(broken)
        known = self.results.get((plan, result.command))
        if lost and known and fault.mutant.kind == "function":
            place = f"{fault.path}: {fault.mutant.name}"
            cases = (
                attrs.evolve(case, needs=tuple(sorted([*case.needs, place]))) if case.name in lost else case
                for case in known.cases
            )
            self.results[plan, result.command] = attrs.evolve(known, cases=tuple(cases))
        return bool(lost) or not broken.ok

    async def _chosen(
        self, plan: Plan, sources: Mapping[SourceFile, frozenset[int]]
    ) -> list[tuple[SourceFile, Unnoticed]]:
        """Return the faults to try, the most telling first: only where the plan changed lines.

        These are the functions that the plan promises, then other functions, then values that stand in the
        words of a promise, then conditions.
        """
        exports = {name for artifact in plan.must_haves.artifacts for name in artifact.exports}
        truths = (truth.text for truth in plan.must_haves.truths)
        text = "\n".join([self.phase.goal, *self.phase.criteria, *truths, *self.promises])
        numbers = {fact.value for fact in exact_facts(text) if fact.kind == "number"}
        ranked: list[tuple[int, SourceFile, Unnoticed]] = []
        for source, lines in sources.items():
            for mutant in await _mutants(self.hooks, self.limits, source, lines):
                match mutant.kind:
                    case "function":
                        promised = not exports.isdisjoint((mutant.name, mutant.name.rpartition(".")[2]))
                        rank = 0 if promised else 1
                    case "value":
                        promised, rank = mutant.name in numbers or _stands_in(mutant.name, text), 2
                        if not promised:
                            continue
                    case _:
                        promised, rank = False, 3
                ranked.append((rank, source, Unnoticed(path=source.path, mutant=mutant, promised=promised)))
        ranked.sort(key=lambda one: one[0])
        return [(source, fault) for _, source, fault in ranked[:MAX_MUTANTS]]


def _stands_in(value: str, text: str) -> bool:
    return len(value) > 2 and re.search(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", text) is not None


def _sources(git: Command, clean: Checkout, commits: Sequence[str]) -> dict[SourceFile, frozenset[int]]:
    """Return the files of a plan that can be read as text, and the lines that it changed."""
    base = before(git, commits)
    found: dict[SourceFile, frozenset[int]] = {}
    for path in _work(git, commits):
        try:
            text = read_below(clean.tree, path).decode("utf-8")
        except (OSError, ValueError):
            continue
        if lines := changed_lines(git, base, clean.commit, path):
            found[SourceFile(root=clean.tree, path=path, text=text)] = lines
    return found


def _tests_of(git: Command, clean: Checkout, commits: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the lines that a plan added to each file of tests, and the files of tests that lost some."""
    base, added, changed = before(git, commits), dict[str, str](), list[str]()
    for path in filter(is_test_file, paths_of(git, commits)):
        if base and removes_lines(git, base, clean.commit, path):
            changed.append(path)
        lines = start_as_text(clean.tree, path, MAX_TESTS).splitlines()
        new = changed_lines(git, base, clean.commit, path)
        if text := "\n".join(line for number, line in enumerate(lines, start=1) if number in new):
            added[path] = text
    return added, changed


def _write(tree: Path, path: str, text: str) -> None:
    """Write a file of a checkout, at a later time than all that was written before.

    Python and build tools compare times in seconds, and would use what they made of the file before.
    """
    file = tree / path
    last = file.stat().st_mtime if file.is_file() else 0
    write_below(tree, path, text.encode())
    at = max(time.time(), last + 1)
    os.utime(file, (at, at))


def _work(git: Command, commits: Sequence[str]) -> list[str]:
    """Return the files that the commits of a plan changed, by the names of today, without its tests."""
    renamed = renamed_since(git, commits[0]) | renamed_since(git, commits[-1]) if commits else {}
    paths = (renamed.get(path, path) for path in paths_of(git, commits))
    return [path for path in paths if not (is_test_file(path) or path.startswith(".planning/"))]


async def without_work(
    gate: CommandGate,
    git: Git,
    hooks: Hooks,
    phase: PhaseView,
    result: CheckResult,
    limits: LimitSettings,
) -> CheckResult:
    """Return the *result* of a trial, marked if it ends and prints the same without the work of *phase*.

    Of test cases, it is marked if all that passed do so without the work too. That a file exists, or that the
    code can be built, proves nothing.
    """
    commits = [sha for ids in phase.commits.values() for sha in ids]
    promised = {artifact.path for plan in phase.plans for artifact in plan.must_haves.artifacts}
    async with checkout_of(git) as clean:
        if clean is None or not await disable(hooks, limits, git, clean, commits, promised):
            return result
        again = await clean.run(result.command, gate, limits.check, reported=bool(result.cases))
    if again.unusable:
        return result
    found = _compared(result, again)
    # Runners print how long a test took, so their output is never the same.
    passed = [case.passes_without for case in found.cases if case.outcome == "passed"]
    same = all(passed) if passed else (again.exit, again.output) == (result.exit, result.output)
    return attrs.evolve(found, passes_without=same)


async def disable(
    hooks: Hooks,
    limits: LimitSettings,
    git: Git,
    clean: Checkout,
    commits: Sequence[str],
    promised: Collection[str] = (),
) -> bool:
    """Let the functions that *commits* changed end when they are called; return whether there are any.

    In a file without functions, its values are others. If it is *promised*, it is as it was before instead,
    or empty if it is new. What was deleted is there again. Of the rest nothing is changed: without a
    ``go.mod``, no test could start.
    """
    changed: set[str] = set()
    for source, lines in (await git.call(_sources, git.command, clean, commits)).items():
        mutants = await _mutants(hooks, limits, source, lines)
        functions = [mutant for mutant in mutants if mutant.kind == "function"]
        if not functions and source.path in promised:
            continue
        text, limit = source.text, len(source.text)
        for mutant in reversed(functions or [one for one in mutants if one.kind == "value"]):
            # A function inside of one that is replaced as a whole is gone with it.
            if mutant.end <= limit:
                text, limit = mutant.apply(text), mutant.start
                changed.add(source.path)
        if source.path in changed:
            _write(clean.tree, source.path, text)
    gone = [path for path in await git.call(_work, git.command, commits) if not (clean.tree / path).exists()]
    others = [path for path in (*promised, *gone) if path not in changed]
    return await git.call(partial(_take_out, only=others), git.command, clean, commits) or bool(changed)


async def _mutants(
    hooks: Hooks, limits: LimitSettings, source: SourceFile, lines: frozenset[int]
) -> list[Mutant]:
    """Return the faults of a file that are in *lines*, in the order of the text."""
    outcomes = await hooks.fan_out(gsd_find_mutants, limits.detector, source)
    found = [mutant for outcome in outcomes for mutant in outcome.value or ()]
    inside = (one for one in found if not lines.isdisjoint(range(one.first, one.last + 1)))
    return sorted(inside, key=lambda one: one.start)


def _is_in(case: CaseResult, code: str) -> bool:
    """Whether *code* has the last part of a case's name: ``test_it`` of ``test_a.py::Adding::test_it[1]``."""
    _, sign, title = case.name.rpartition(" > ")
    return (title if sign else re.split(r"::|\.|/", case.name.partition("[")[0])[-1]) in code


def _passed(result: CheckResult) -> set[str]:
    return {case.name for case in result.cases if case.outcome == "passed"}


def _is_unknown(result: CheckResult) -> bool:
    return bool(result.cases) and all(case.passes_without is None for case in result.cases)


def _compared(result: CheckResult, without: CheckResult) -> CheckResult:
    """Return *result*, marked with what passed too when it ran *without* the work of its plan.

    If none of its test cases ran, because their file or package needs another one, nothing is known of them.
    """
    names = {case.name for case in without.cases}
    passed = _passed(without)
    if any(case.name in names for case in result.cases):
        cases = tuple(attrs.evolve(case, passes_without=case.name in passed) for case in result.cases)
        result = attrs.evolve(result, cases=cases)
    return attrs.evolve(result, passes_without=without.ok)


def _old_and_new(
    git: Command, clean: Checkout, commits: Sequence[str], only: Collection[str] | None = None
) -> tuple[list[str], list[str]] | None:
    """Return the files of a plan, but not its tests, that were there before its *commits*, and the others.

    With *only* these files count. ``None`` if there are none, or one has tests of its own.
    """
    work = [path for path in _work(git, commits) if only is None or path in only]
    if not work or any(_has_tests(clean.tree, path) for path in work):
        return None
    base, list_tree = before(git, commits), ("ls-tree", "-r", "-z", "--name-only")
    known = git.at(clean.tree)(*list_tree, base, "--", *work).split("\0") if base else []
    old, new = [path for path in work if path in known], [path for path in work if path not in known]
    # What a later plan has deleted cannot be taken out again.
    new = [path for path in new if (clean.tree / path).exists()]
    return (old, new) if old or new else None


def _take_out(
    git: Command,
    clean: Checkout,
    commits: Sequence[str],
    *,
    only: Collection[str] | None = None,
) -> bool:
    """Put the files of a plan, but not its tests, back to before its *commits*; return whether any are.

    Those that it deleted are there again, those that it added are gone. With *only* those files are put back,
    and those that it added are empty.
    """
    work = _old_and_new(git, clean, commits, only)
    if work is None:
        return False
    old, new = work
    if old:
        git.at(clean.tree)("checkout", "--quiet", before(git, commits), "--", *old)
    for path in new:
        if only is None:
            remove_below(clean.tree, path)
        else:
            write_below(clean.tree, path, b"")
    return True


def _has_tests(tree: Path, path: str) -> bool:
    """Whether a file has tests of its own, or may have: it cannot be read. One that is gone has none."""
    try:
        return OWN_TESTS.search(read_below(tree, path)) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True
