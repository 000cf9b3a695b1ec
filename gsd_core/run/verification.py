"""Verify a phase: run its plans' commands, ask the detectors for gaps, and merge their reports.

``detect`` and ``merge_gaps`` serve a run's verify step; ``examine`` serves ``gsd gaps``, without a run.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from attrs import define, evolve

from gsd_core.git import Git, git_common_dir
from gsd_core.hookspecs import gsd_find_gaps, gsd_permit_tool
from gsd_core.model.agent import Allow, Ask, Deny, Permission, ToolUse
from gsd_core.model.checks import CheckResult, TaskCheck
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.ids import padded
from gsd_core.model.step import FileWrite, StepRequest, StepResult, Verified
from gsd_core.planning.model import PhaseView
from gsd_core.planning.verification import render_verification
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.plugins.validation import validate_storable
from gsd_core.sanitize import clip, redact, sanitize
from gsd_core.settings import LimitSettings

from .permission import POLICY_LIMIT, StepGate, shown, strictest
from .runtime import Run
from .snapshot import with_staleness

OUTPUT_LIMIT = 4000
"""Characters of a command's output that are kept: the last ones, where errors are reported."""
PASSED_ON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ"),
    *("VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME"),
    *("NVM_DIR", "PYENV_ROOT"),
)
"""The variables that a command gets. A list of what is allowed, because an agent wrote the command and
the environment holds API keys."""


class CommandGate(Protocol):
    """Decides whether a command may run: the gate of a step, or a human at the terminal.

    *mark* is the value of ``GSD_RUN`` in the command's environment.
    """

    step: str

    @property
    def mark(self) -> str: ...

    async def decide(self, use: ToolUse) -> Permission:
        """Return whether the tool may be used; ``Ask`` counts as no."""
        ...


@define(kw_only=True)
class InteractiveGate:
    """The gate for a command line without a run: where the policies say ask, *confirm* asks the user."""

    hooks: Hooks
    confirm: Callable[[str, str], bool]
    step: str
    limit: timedelta = POLICY_LIMIT

    @property
    def mark(self) -> str:
        """No run's id, so that no run ends these commands as leftovers."""
        return "interactive"

    async def decide(self, use: ToolUse) -> Permission:
        """Ask the policies, then the user if they say ask."""
        verdict = strictest(await self.hooks.fan_out(gsd_permit_tool, self.limit, use))
        if not isinstance(verdict, Ask):
            return verdict
        return Allow() if self.confirm(shown(use), verdict.reason) else Deny(reason=verdict.reason)


async def detect(run: Run, step: StepRequest, gate: StepGate) -> StepRequest:
    """Return the verify step with the results of the plans' commands and the report of the detectors."""
    assert step.phase is not None, "a verify step has a phase"
    phase = evolve(step.phase, project=step.tree)
    phase = evolve(phase, checks=await check_plans(gate, phase, run.limits.check))
    return evolve(step, phase=phase, report=await find_gaps(run.hooks, run.limits.detector, phase))


async def examine(
    hooks: Hooks, limits: LimitSettings, phase: PhaseView, gate: InteractiveGate | None
) -> tuple[GapReport, Collection[str]]:
    """Ask the detectors; with a *gate*, run the executed plans' commands first.

    Returns the report, and the commands that were refused or timed out.
    """
    if gate:
        phase = evolve(phase, checks=await check_plans(gate, phase, limits.check))
    refused = [c.result.command for c in phase.checks if c.result.exit is None]
    return await find_gaps(hooks, limits.detector, phase), dict.fromkeys(refused)


async def with_verdict(phase: PhaseView) -> PhaseView:
    """Return the phase with its verdict marked as stale if a summary was committed after it."""
    if phase.verdict is None or git_common_dir(phase.project) is None:
        return phase
    return with_staleness(phase, await Git(phase.project).order(".planning"))


# Commands


async def check_plans(gate: CommandGate, phase: PhaseView, limit: timedelta) -> tuple[TaskCheck, ...]:
    """Run the checks of the phase's executed plans, each command once."""
    results: dict[str, CheckResult] = {}
    found: list[TaskCheck] = []
    for plan in phase.plans:
        for task in plan.tasks:
            if not (plan.summary and task.check):
                continue
            if task.check not in results:
                results[task.check] = await check(gate, task.check, phase.project, limit)
            found.append(TaskCheck(plan=plan.id, task=task.number, result=results[task.check]))
    return tuple(found)


async def check(gate: CommandGate, command: str, tree: Path, limit: timedelta) -> CheckResult:
    """Run *command* in *tree* if the gate allows it; if refused or too slow, the result has no exit code."""
    use = ToolUse(step=gate.step, name="Bash", input={"command": command}, asked_by="plan", tree=tree)
    verdict = await gate.decide(use)
    if not isinstance(verdict, Allow):
        return CheckResult(command=command, exit=None, output=f"refused: {verdict.reason}")
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        cwd=tree,
        env=environment(gate.mark),
        # Its own process group, so that everything the command leaves behind can be killed with it.
        start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    tail = bytearray()
    code: int | None = None
    timed_out = ""
    try:
        async with asyncio.timeout(limit.total_seconds()):
            assert process.stdout is not None
            while chunk := await process.stdout.read(65536):
                tail += chunk
                del tail[: -2 * OUTPUT_LIMIT]
            code = await process.wait()
    except TimeoutError:
        timed_out = f"\ntimed out after {limit}"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    output = redact(sanitize(bytes(tail).decode("utf-8", "replace")))[-OUTPUT_LIMIT:].strip()
    return CheckResult(command=command, exit=code, output=output + timed_out)


def environment(mark: str) -> dict[str, str]:
    """Return the environment of a plan's command; *mark* is for finding its processes after a crash."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"GSD_RUN": mark}


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
    )


def _report(hooks: Hooks, outcome: Outcome[Any]) -> GapReport:
    """Return one detector's report, stamped with its name; ``None`` is a report without gaps.

    A detector that failed or returned an invalid report is listed in it: a missing report must not let a
    phase pass.
    """
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
    return GapReport(failed_detectors=(f"{plugin}: {clip(redact(sanitize(why)), 300)}",))


def _clean(gap: Gap) -> Gap:
    """Return the gap with its texts made safe to print: they quote output of commands and agents."""
    truth, reason, evidence = map(_clean_text, (gap.truth, gap.reason, gap.evidence))
    return evolve(gap, truth=truth, reason=reason, evidence=evidence)


def _clean_text(text: str) -> str:
    return clip(redact(sanitize(text)), 2000)


def unique(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return each gap of a detector once, in its last version."""
    return tuple({(gap.key, gap.found_by): gap for gap in gaps}.values())


def merge_gaps(step: StepRequest, result: StepResult, plugin: str) -> StepResult:
    """Return the executor's result with every detector's gaps in it, and the verdict on disk to match.

    An executor can add gaps but not drop any: no agent overrules a detector about its own work.
    """
    assert isinstance(result.outcome, Verified)
    assert step.phase is not None
    before, after = step.report or GapReport(), result.outcome.report
    named = [gap if gap.found_by else evolve(_clean(gap), found_by=plugin) for gap in after.gaps]
    report = evolve(
        after,
        gaps=unique([*before.gaps, *named]),
        failed_detectors=tuple(dict.fromkeys([*before.failed_detectors, *after.failed_detectors])),
    )
    # Written to the path that the executor chose, or else to the default one.
    paths = [file.path for file in result.files if file.path.endswith("-VERIFICATION.md")]
    path = paths[0] if paths else f"{step.phase.directory}/{padded(step.phase.number)}-VERIFICATION.md"
    text = render_verification(step.phase, report, now=step.now, previous=step.phase.verdict)
    files = [file for file in result.files if file.path != path]
    return evolve(result, outcome=Verified(report=report), files=(*files, FileWrite(path=path, text=text)))
