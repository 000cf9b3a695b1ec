"""Verify a phase: run its plans' commands, ask the detectors for gaps, and merge their reports.

``detect`` and ``merge_gaps`` serve a run's verify step; ``examine`` serves ``gsd gaps``, without a run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from datetime import timedelta
from typing import Any

from attrs import define, evolve, field, frozen

from gsd_core.errors import PluginRefused
from gsd_core.files import start_as_text
from gsd_core.git import Git
from gsd_core.git.command import Command
from gsd_core.git.history import before
from gsd_core.git.ignored import ignored_paths
from gsd_core.git.untrusted import LocalProgram
from gsd_core.hookspecs import gsd_find_gaps, gsd_permit_tool
from gsd_core.machine.facts import AttemptStarted
from gsd_core.model.agent import Allow, Ask, Deny, Permission, ToolUse
from gsd_core.model.checks import CheckResult, TaskCheck
from gsd_core.model.counts import some_of
from gsd_core.model.gap import Evidence, Gap, GapReport, Observation
from gsd_core.model.ids import padded
from gsd_core.model.step import FileWrite, Found, StepRequest, StepResult, Verified
from gsd_core.planning.context import read_decisions
from gsd_core.planning.exact import patterns_in_code
from gsd_core.planning.model import PhaseView, Plan, Requirement, Task
from gsd_core.planning.must_haves import (
    COVERAGE,
    MustHave,
    results_of,
    uncovered_decisions,
    unserved_requirements,
)
from gsd_core.planning.verification import add_gaps, read_verification, render_verification
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.plugins.validation import validate_storable
from gsd_core.sanitize import clip, safe_text, sanitize
from gsd_core.settings import LimitSettings

from .ablation import Ablation, ablation, without_work
from .checkout import checkout_of
from .commands import CommandGate, check
from .delivery import find_undelivered, with_history
from .permission import POLICY_LIMIT, RepeatGate, StepGate, shown, strictest
from .runtime import Run
from .sandbox import Sandbox
from .task_checks import with_results_before

SUMMARY_LIMIT = 200_000
"""How many characters of a SUMMARY.md are searched for its commits."""
OUTPUT_TAIL = 1_600
"""Characters of a failed check's output that its gap quotes: the last ones, where errors are reported."""
COMMAND_LIMIT = 300
"""Characters of its command before them; together they are below what a gap's text may have."""
NOT_CODE = re.compile(r"^\.planning/|\.(?:md|rst|lock)$|-lock\.|(?:^|/)go\.sum$", re.IGNORECASE)
"""Files that show nothing about the product: documents, and lock files."""
CHECKS = "checks"
"""What found a gap that a plan's check shows."""


@define(kw_only=True)
class InteractiveGate:
    """The gate for a command line without a run: where the policies say ask, *confirm* asks the user."""

    hooks: Hooks
    sandbox: Sandbox
    confirm: Callable[[str, str], bool]
    step: str
    limit: timedelta = POLICY_LIMIT
    _answers: dict[str, bool] = field(factory=dict[str, bool], init=False)

    @property
    def mark(self) -> str:
        """No run's id, so that no run ends these commands as leftovers."""
        return "interactive"

    async def decide(self, use: ToolUse) -> Permission:
        """Ask the policies, then the user if they say ask: once for each command."""
        verdict = strictest(await self.hooks.fan_out(gsd_permit_tool, self.limit, use))
        if not isinstance(verdict, Ask):
            return verdict
        command = shown(use)
        if command not in self._answers:
            self._answers[command] = self.confirm(command, verdict.reason)
        return Allow() if self._answers[command] else Deny(reason=verdict.reason)


async def detect(run: Run, step: StepRequest, gate: StepGate) -> StepRequest:
    """Return the verify step with the results of the plans' commands and the report of the detectors."""
    assert step.phase is not None, "a verify step has a phase"
    git = run.git_in(step.tree)
    phase = await _with_commits(git, evolve(step.phase, project=step.tree))
    checks = await check_plans(gate, phase, run.limits.check, git)
    phase = evolve(phase, checks=with_results_before(run, checks.results))
    requirements = step.planning.requirements
    without = await ablation(RepeatGate(gate), git, run.hooks, phase, requirements, run.limits, checks.took)
    phase = _with_measured(phase, without)
    checks = evolve(checks, gaps=(*checks.gaps, *without.gaps))
    # After the checks, because they may change files.
    phase = await with_history(git, phase)
    phase = evolve(phase, absent=await git.call(_absent, git.command, phase, requirements))
    found = await find_gaps(run.hooks, run.limits.detector, phase)
    trees = {fact.data.plan: fact.data.tree for fact in run.facts(AttemptStarted)}
    elsewhere = [plan for plan, tree in trees.items() if tree]
    report = await _with_own_gaps(git, found, phase, requirements, checks, elsewhere)
    report = evolve(report, observations=(*report.observations, *without.seen))
    return evolve(step, phase=phase, report=report)


async def with_committed_work(run: Run, step: StepRequest) -> StepRequest:
    """Return a step of a plugin's kind with what git says about its phase: commits, changed paths, tree."""
    if step.phase is None:
        return step
    git = run.git_in(step.tree)
    phase = await _with_commits(git, evolve(step.phase, project=step.tree))
    return evolve(step, phase=await with_history(git, phase))


async def _with_commits(git: Git, phase: PhaseView) -> PhaseView:
    """Return the phase with the commits of its executed plans, and the paths that they changed."""
    [commits] = await phase_commits(git, [phase])
    paths = await git.paths_of([sha for ids in commits.values() for sha in ids])
    return evolve(phase, commits=commits, changed=paths)


def _with_measured(phase: PhaseView, found: Ablation) -> PhaseView:
    return evolve(
        phase,
        checks=found.checks,
        unnoticed=found.unnoticed,
        measured_for=found.took,
        measured_all=not found.is_cut,
    )


def _absent(
    git: Command, phase: PhaseView, requirements: Sequence[Requirement]
) -> dict[str, tuple[str, ...]]:
    """Return the exact words and numbers of requirements and decisions that no file of HEAD contains.

    Those that a file contained before the phase do not count: the phase may be about removing them. Documents
    and lock files do not count as files.
    """
    commits = [sha for ids in phase.commits.values() for sha in ids]
    if not commits:
        return {}
    texts = {one.id: one.text for one in requirements if one.id in phase.requirements}
    texts |= {one.id: one.text for one in read_decisions(phase.context) if one.is_tracked}
    trees = [tree for tree in ("HEAD", before(git, commits)) if tree]

    def is_somewhere(pattern: str) -> bool:
        files = git("grep", "-l", "-z", "--ignore-case", "-E", "-e", pattern, *trees, ok=(0, 1)).split("\0")
        paths = (file.partition(":")[2] for file in files)
        return any(path and not NOT_CODE.search(path) for path in paths)

    found = dict[str, tuple[str, ...]]()
    names = "\n".join([*phase.changed, *(phase.history.files if phase.history else ())]).lower()
    for name, text in texts.items():
        if lost := [
            said
            for said, pattern in patterns_in_code(text).items()
            if said.strip("`").lower() not in names and not is_somewhere(pattern)
        ]:
            found[name] = tuple(lost)
    return found


@frozen(kw_only=True)
class Examination:
    """The *report* on a phase, the commands that were *refused* or timed out, and a *note* for the user.

    *detected* is the part of the report that the detectors made, before the core's own gaps replaced any.
    """

    report: GapReport
    detected: GapReport
    refused: Collection[str] = ()
    note: str = ""


async def examine(
    hooks: Hooks,
    limits: LimitSettings,
    phase: PhaseView,
    gate: InteractiveGate | None,
    requirements: Sequence[Requirement] = (),
    programs: frozenset[LocalProgram] = frozenset(),
) -> Examination:
    """Ask the detectors; with a *gate*, run the executed plans' commands first.

    *programs* are those in the repository's own settings that git may run.
    """
    git = Git(phase.project, trusted=programs)
    checks, seen = PlanChecks(), tuple[Observation, ...]()
    phase = await _with_commits(git, phase)
    if gate:
        checks = await check_plans(gate, phase, limits.check, git)
        phase = evolve(phase, checks=checks.results)
        without = await ablation(gate, git, hooks, phase, requirements, limits, checks.took)
        phase, seen = _with_measured(phase, without), without.seen
        checks = evolve(checks, gaps=(*checks.gaps, *without.gaps))
    refused = [c.result.command for c in phase.checks if c.result.exit is None]
    phase = await with_history(git, phase)
    phase = evolve(phase, absent=await git.call(_absent, git.command, phase, requirements))
    found = await find_gaps(hooks, limits.detector, phase)
    report = await _with_own_gaps(git, found, phase, requirements, checks)
    return Examination(
        report=evolve(report, observations=(*report.observations, *seen)),
        detected=found,
        refused=dict.fromkeys(refused),
        note=checks.note,
    )


async def _with_own_gaps(
    git: Git,
    found: GapReport,
    phase: PhaseView,
    requirements: Sequence[Requirement],
    checks: PlanChecks,
    elsewhere: Collection[str] = (),
) -> GapReport:
    """Add what the core itself knows; its gaps replace a detector's about the same thing, and name it too.

    The checks of the plans are judged here and not by a detector, because a run can be started without it.
    """
    if not any(plan.summary for plan in phase.plans):
        return found
    about_checks = [judge_check(check) for check in phase.checks]
    own = [*unserved_requirements(phase, requirements), *uncovered_decisions(phase), *checks.gaps]
    if phase.history is not None:
        own += await find_undelivered(git, phase, elsewhere)
    more = [*(item for item in about_checks if isinstance(item, Gap)), *found.gaps]
    also = {gap.key: [one.found_by for one in more if one.key == gap.key] for gap in own}
    named = (evolve(gap, found_by=", ".join(dict.fromkeys([gap.found_by, *also[gap.key]]))) for gap in own)
    evidence = (item for item in about_checks if isinstance(item, Evidence))
    seen = (
        Observation(
            text=f"{name} says {some_of(words)}, which no file of the project contains", severity="minor"
        )
        for name, words in phase.absent.items()
    )
    return evolve(
        found,
        observations=(*found.observations, *seen),
        gaps=(*named, *(gap for gap in more if gap.key not in also)),
        evidence=(*evidence, *found.evidence),
    )


def judge_check(check: TaskCheck) -> Gap | Evidence:
    """Return what the result of a plan's check says."""
    about, result = f"{check.plan}/{check.task}", check.result
    if result.ok:
        too = ", as it did before the task" if result.passed_before else ""
        too = too or (f", and also without the work of {check.plan}" if result.passes_without else "")
        proof = f"`{result.command}` exited with 0{too}"
        return Evidence(about=about, holds=True, proof=_clean_text(proof), by=CHECKS)
    refused = result.exit is None
    gap = Gap(
        truth=f"The check of task {check.task} of plan {check.plan} passes: `{result.command}`",
        reason="the command was denied or timed out" if refused else result.flaw or result.outcome,
        about=about,
        status="unverified" if refused else "failed",
        evidence=f"$ {clip(result.command, COMMAND_LIMIT)}\n{result.output[-OUTPUT_TAIL:]}".rstrip(),
        found_by=CHECKS,
    )
    return _clean(gap)


# Commands


@frozen(kw_only=True)
class PlanChecks:
    """The results of the plans' checks, gaps that only the core can see, and a *note* for the user.

    *took* is how long the checks took.
    """

    results: tuple[TaskCheck, ...] = ()
    took: timedelta = timedelta()
    gaps: tuple[Gap, ...] = ()
    note: str = ""


async def check_plans(gate: CommandGate, phase: PhaseView, limit: timedelta, git: Git) -> PlanChecks:
    """Run the checks of the phase's executed plans in a clean checkout of HEAD, each command once.

    One that fails there runs again in the project: if it passes, it needs what is not committed. Without a
    commit the checks run in the project only, and the note says so.
    """
    tasks = [
        (plan, task)
        for plan in phase.plans
        for task in plan.tasks
        # The tasks of a test-driven feature have the same check: one result for it is enough.
        if plan.summary and task.check and task.cycle not in ("red", "refactor")
    ]
    if not tasks:
        return PlanChecks()
    results: dict[str, CheckResult] = {}
    only_here: dict[str, str] = {}
    began = asyncio.get_running_loop().time()
    async with checkout_of(git) as clean:
        for command in dict.fromkeys(task.check for _, task in tasks):
            if clean is None:
                results[command] = await check(gate, command, phase.project, limit)
                continue
            results[command] = await clean.run(command, gate, limit)
            if results[command].ok or results[command].exit is None:
                continue
            if (await check(gate, command, phase.project, limit)).ok:
                only_here[command] = await _uncommitted(git, phase)
    note = f"the checks ran in {phase.project} and not in a clean checkout, because there is no commit"
    return PlanChecks(
        results=tuple(
            TaskCheck(plan=plan.id, task=task.number, result=results[task.check]) for plan, task in tasks
        ),
        gaps=tuple(
            _needs_uncommitted(plan, task, results[task.check], only_here[task.check])
            for plan, task in tasks
            if task.check in only_here
        ),
        note="" if clean else note,
        took=timedelta(seconds=asyncio.get_running_loop().time() - began),
    )


async def run_in_checkout(run: Run, step: StepRequest, gate: StepGate, command: str) -> CheckResult:
    """Run *command* in a new checkout, so that no command can prepare the result of another.

    For a verification it runs once more without the work of the phase, to see whether it depends on it.
    """
    git = run.git_in(step.tree)
    async with checkout_of(git) as clean:
        if clean is None:
            return CheckResult(command=command, exit=None, output="refused: nothing is committed yet")
        result = await clean.run(command, gate, run.limits.check, again=RepeatGate(gate))
    phase = step.phase
    if step.kind == "verify" and phase and phase.commits and result.exit is not None and run.limits.ablation:
        return await without_work(RepeatGate(gate), git, run.hooks, phase, result, run.limits)
    return result


async def _uncommitted(git: Git, phase: PhaseView) -> str:
    """Return the files that are not committed, those that the phase promised first, for a sentence."""
    promised = {path for plan in phase.plans for path in plan.files_modified}
    promised |= {artifact.path for plan in phase.plans for artifact in plan.must_haves.artifacts}
    changed = [path for path in await git.changed() if not path.startswith(".planning/")]
    found = [*changed, *await git.call(lambda: list(ignored_paths(git.command)))]
    # An ignored folder is one path: the promised file is below it.
    ranked = sorted(
        dict.fromkeys(found), key=lambda path: not any(f"{name}/".startswith(f"{path}/") for name in promised)
    )
    return some_of(ranked)


def _needs_uncommitted(plan: Plan, task: Task, result: CheckResult, files: str) -> Gap:
    return Gap(
        truth=f"The check of task {task.number} of plan {plan.id} passes: `{result.command}`",
        reason=f"it passes only with files that are not committed: {sanitize(files, multiline=False)}"
        if files
        else "it passes only in the project's folder, although git lists no file there that is not committed",
        about=f"{plan.id}/{task.number}",
        missing=("commit what the check needs, or make the check work without it",),
        evidence=f"in a clean checkout of HEAD: $ {result.command}\n{result.output[-OUTPUT_TAIL:]}".rstrip(),
        found_by="checkout",
    )


async def phase_commits(git: Git, phases: Sequence[PhaseView]) -> list[dict[str, tuple[str, ...]]]:
    """Return for each phase the commits of its executed plans: those with our trailers, else in SUMMARYs.

    A SUMMARY written by other tools names its commits in short form; names of no commit are left out.
    """
    if not await git.is_repository():
        return [{} for _ in phases]
    trailed: dict[str, list[str]] = {}
    for commit in await git.trailed():
        trailed.setdefault(commit.task.partition("/")[0], []).append(commit.sha)
    named = [await asyncio.to_thread(_commits_in_summaries, phase, trailed) for phase in phases]
    # One process of git for all of them: a project may have hundreds of plans.
    names = [name for plans in named for listed in plans.values() for name in listed]
    ids = await git.existing_commits(names)
    found: list[dict[str, tuple[str, ...]]] = []
    for phase, plans in zip(phases, named, strict=True):
        listed = {plan: [ids[name] for name in plans[plan] if name in ids] for plan in plans}
        own = ((plan.id, trailed.get(plan.id) or listed.get(plan.id)) for plan in phase.plans)
        found.append({plan: tuple(dict.fromkeys(shas)) for plan, shas in own if shas})
    return found


_COMMIT_ID = re.compile(r"`([0-9a-f]{7,40})`")


def _commits_in_summaries(phase: PhaseView, trailed: Container[str]) -> dict[str, list[str]]:
    return {
        plan.id: _COMMIT_ID.findall(start_as_text(phase.project, plan.summary, SUMMARY_LIMIT))
        for plan in phase.plans
        if plan.summary and plan.id not in trailed
    }


# Gaps


async def find_gaps(hooks: Hooks, limit: timedelta, phase: PhaseView) -> GapReport:
    """Ask all detectors about the tree as it is now; one that fails makes the report incomplete."""
    outcomes = await hooks.fan_out(gsd_find_gaps, limit, phase)
    reports = [_report(hooks, outcome) for outcome in outcomes]
    return GapReport(
        gaps=unique(gap for report in reports for gap in report.gaps),
        failed_detectors=tuple(name for report in reports for name in report.failed_detectors),
        human=tuple(check for report in reports for check in report.human),
        evidence=tuple(evidence for report in reports for evidence in report.evidence),
        observations=tuple(seen for report in reports for seen in report.observations),
    )


def _report(hooks: Hooks, outcome: Outcome[Any]) -> GapReport:
    """Return one detector's report, stamped with its name; ``None`` is a report without gaps.

    A detector that failed or returned an invalid report is listed in it: a missing report must not let a
    phase pass.
    """
    if isinstance(outcome.error, PluginRefused):
        raise outcome.error  # the phase would fail for what is wrong with the machine
    if outcome.error is not None:
        return _failed(outcome.plugin, str(outcome.error))
    value: Sequence[Gap] | GapReport | None = outcome.value
    report = value if isinstance(value, GapReport) else GapReport(gaps=tuple(value or ()))
    if why := validate_storable(report, GapReport):
        hooks.report(PluginFailure(plugin=outcome.plugin, hook="gsd_find_gaps", error=why))
        return _failed(outcome.plugin, why)
    return evolve(
        report,
        gaps=tuple(evolve(_clean(gap), found_by=outcome.plugin) for gap in report.gaps),
        evidence=tuple(evolve(e, by=outcome.plugin, proof=_clean_text(e.proof)) for e in report.evidence),
    )


def _failed(plugin: str, why: str) -> GapReport:
    return GapReport(failed_detectors=(f"{plugin}: {clip(safe_text(why), 300)}",))


def _clean(gap: Gap) -> Gap:
    """Return the gap with its texts made safe to print: they quote output of commands and agents."""
    truth, reason, evidence = map(_clean_text, (gap.truth, gap.reason, gap.evidence))
    return evolve(gap, truth=truth, reason=reason, evidence=evidence)


def _clean_text(text: str) -> str:
    return clip(safe_text(text), 2000)


def unique(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return each gap of a detector once, in its last version."""
    return tuple({(gap.key, gap.found_by): gap for gap in gaps}.values())


def merge_gaps(step: StepRequest, result: StepResult, plugin: str) -> StepResult:
    """Return the executor's result with every detector's gaps in it, and the verdict on disk to match.

    An executor can add gaps but not drop any: no agent overrules a detector about its own work. Each
    requirement, criterion and truth about which nothing is reported is a gap, so silence never passes.
    """
    assert isinstance(result.outcome, Verified)
    assert step.phase is not None
    before, after = step.report or GapReport(), result.outcome.report
    named = [gap if gap.found_by else evolve(_clean(gap), found_by=plugin) for gap in after.gaps]
    report = evolve(
        after,
        gaps=unique([*before.gaps, *named]),
        failed_detectors=tuple(dict.fromkeys([*before.failed_detectors, *after.failed_detectors])),
        evidence=tuple(evolve(one, proof=_clean_text(one.proof)) for one in after.evidence),
        observations=tuple(
            evolve(one, text=_clean_text(one.text), where=_clean_text(one.where))
            for one in dict.fromkeys([*before.observations, *after.observations])
        ),
    )
    results = results_of(step.phase, report, step.planning.requirements)
    unreported = (_unreported(one.must_have, plugin) for one in results.required if one.status == "open")
    report = evolve(report, gaps=(*report.gaps, *unreported))
    # Written to the path that the executor chose, or else to the default one.
    paths = [file.path for file in result.files if file.path.endswith("-VERIFICATION.md")]
    path = paths[0] if paths else f"{step.phase.directory}/{padded(step.phase.number)}-VERIFICATION.md"
    text = render_verification(
        step.phase, report, now=step.now, previous=step.phase.verdict, requirements=step.planning.requirements
    )
    files = [file for file in result.files if file.path != path]
    return evolve(result, outcome=Verified(report=report), files=(*files, FileWrite(path=path, text=text)))


def with_found_gaps(step: StepRequest, result: StepResult, plugin: str) -> StepResult:
    """Return the result of a plugin's own step, with the gaps that it found added to VERIFICATION.md."""
    assert isinstance(result.outcome, Found)
    assert step.phase is not None
    gaps = tuple(evolve(_clean(gap), found_by=plugin) for gap in result.outcome.gaps)
    result = evolve(result, outcome=Found(gaps=gaps))
    if not gaps:
        return result
    before = read_verification(step.phase)
    default = f"{step.phase.directory}/{padded(step.phase.number)}-VERIFICATION.md"
    path = step.phase.verdict.path if step.phase.verdict else default
    text = add_gaps(before, step.phase, gaps, now=step.now, path=path)
    return evolve(result, files=(*result.files, FileWrite(path=path, text=text)))


def _unreported(must_have: MustHave, plugin: str) -> Gap:
    return Gap(
        truth=must_have.text,
        reason=f"the verification by {plugin!r} reported nothing about {must_have.id}",
        about=must_have.id,
        status="unverified",
        found_by=COVERAGE,
    )
