"""Run a plan's commands: through the gate, in the tree, bounded, with its output's end kept.

Examine a phase without a run: is its verdict stale, and what do the detectors see?

Detect gaps: run the plans' commands, ask all detectors, and keep what they found.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from attrs import define, evolve

from gsd_core.git import Git, git_common_dir
from gsd_core.hookspecs import gsd_find_gaps, gsd_permit_tool
from gsd_core.model.agent import Allow, Ask, Deny, Permission, ToolUse
from gsd_core.model.checks import CheckResult, TaskCheck
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.step import FileWrite, StepRequest, StepResult, Verified
from gsd_core.planning.model import PhaseView
from gsd_core.planning.verification import render_verification
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.plugins.validation import validate_storable
from gsd_core.sanitize import clip, redact, sanitize
from gsd_core.settings import LimitSettings

from .observe import with_staleness
from .permission import POLICY_LIMIT, StepGate, shown, strictest
from .runtime import Run

KEPT = 4000
PASSED_ON = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "TZ",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "JAVA_HOME",
    "GOPATH",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
)


class CommandGate(Protocol):
    """Who says whether a command may run: the gate of a step, or one at the desk.

    *mark* is what the command bears in its environment.
    """

    step: str

    @property
    def mark(self) -> str: ...

    async def decide(self, use: ToolUse) -> Permission:
        """Return whether the tool may be used; ``Ask`` counts as no."""
        ...


def environment(run: str) -> dict[str, str]:
    """Return what a command of a plan may see of ours, with the mark by which it is found after a crash."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"GSD_RUN": run}


async def check(gate: CommandGate, command: str, tree: Path, limit: timedelta) -> CheckResult:
    """Run *command* if the gate allows it; refused or too slow is a result without an exit code."""
    use = ToolUse(step=gate.step, name="Bash", input={"command": command}, asked_by="plan", tree=tree)
    verdict = await gate.decide(use)
    if not isinstance(verdict, Allow):
        return CheckResult(command=command, exit=None, output=f"refused: {verdict.reason}")
    return await _execute(command, tree, environment(gate.mark), limit)


async def _execute(command: str, tree: Path, env: Mapping[str, str], limit: timedelta) -> CheckResult:
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        cwd=tree,
        env=dict(env),
        start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    tail = bytearray()
    try:
        async with asyncio.timeout(limit.total_seconds()):
            await _drain(process, tail)
            code = await process.wait()
    except TimeoutError:
        return CheckResult(command=command, exit=None, output=f"{_text(tail)}\nstopped after {limit}")
    finally:
        _kill_group(process)
    return CheckResult(command=command, exit=code, output=_text(tail))


async def _drain(process: asyncio.subprocess.Process, tail: bytearray) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(65536):
        tail += chunk
        del tail[: -2 * KEPT]


def _kill_group(process: asyncio.subprocess.Process) -> None:
    """End whatever the command left behind; its group is its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(tail: bytearray) -> str:
    return redact(sanitize(bytes(tail).decode("utf-8", "replace")))[-KEPT:].strip()


async def check_plans(gate: CommandGate, phase: PhaseView, limit: timedelta) -> tuple[TaskCheck, ...]:
    """Run the checks of the phase's executed plans, each command once."""
    results: dict[str, CheckResult] = {}
    found: list[TaskCheck] = []
    for plan, task, command in _commands(phase):
        if command not in results:
            results[command] = await check(gate, command, phase.project, limit)
        found.append(TaskCheck(plan=plan, task=task, result=results[command]))
    return tuple(found)


def _commands(phase: PhaseView) -> Iterator[tuple[str, int, str]]:
    for plan in phase.plans:
        for task in plan.tasks:
            if plan.summary and task.check:
                yield plan.id, task.number, task.check


@define(kw_only=True)
class InteractiveGate:
    """The permission gate of a command that a human started: *confirm* asks where the policies do."""

    hooks: Hooks
    confirm: Callable[[str, str], bool]
    step: str
    limit: timedelta = POLICY_LIMIT

    @property
    def mark(self) -> str:
        """Commands of no run bear no run's id."""
        return "desk"

    async def decide(self, use: ToolUse) -> Permission:
        """Permit, and confirm where the policies ask for it."""
        verdict = strictest(await self.hooks.fan_out(gsd_permit_tool, self.limit, use))
        if not isinstance(verdict, Ask):
            return verdict
        return Allow() if self.confirm(shown(use), verdict.reason) else Deny(reason=verdict.reason)


async def with_verdict(phase: PhaseView) -> PhaseView:
    """Return the phase with its verdict marked if a summary was committed after it."""
    if phase.verdict is None or git_common_dir(phase.project) is None:
        return phase
    return with_staleness(phase, await Git(phase.project).order(".planning"))


async def examine(
    hooks: Hooks, limits: LimitSettings, phase: PhaseView, desk: InteractiveGate | None
) -> tuple[GapReport, Collection[str]]:
    """Ask the detectors; with a *desk*, run the executed plans' commands before, as it allows.

    Returns what was found, and the commands that were refused.
    """
    if desk:
        phase = evolve(phase, checks=await check_plans(desk, phase, limits.check))
    refused = [c.result.command for c in phase.checks if c.result.exit is None]
    return await find_gaps(hooks, limits.detector, phase), dict.fromkeys(refused)


async def detect(run: Run, step: StepRequest, gate: StepGate) -> StepRequest:
    """Return the verify step with what the commands did and what the detectors found."""
    assert step.phase is not None, "a verify step has a phase"
    phase = evolve(step.phase, project=step.tree)
    phase = evolve(phase, checks=await check_plans(gate, phase, run.limits.check))
    return evolve(step, phase=phase, report=await find_gaps(run.hooks, run.limits.detector, phase))


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


def _report(hooks: Hooks, outcome: Outcome[Sequence[Gap] | GapReport | None]) -> GapReport:
    """Return one detector's report, stamped with its name; nonsense is a failed detector."""
    if outcome.error is not None:
        return _failed(outcome.plugin, str(outcome.error))
    value = outcome.value
    report = value if isinstance(value, GapReport) else GapReport(gaps=tuple(value or ()))
    if why := validate_storable(report, GapReport):
        hooks.report(PluginFailure(plugin=outcome.plugin, hook="gsd_find_gaps", error=why))
        return _failed(outcome.plugin, why)
    return evolve(
        report,
        gaps=tuple(evolve(_clean(gap), found_by=outcome.plugin) for gap in report.gaps),
        evidence=tuple(evolve(e, by=outcome.plugin, proof=_gaps_text(e.proof)) for e in report.evidence),
    )


def _failed(plugin: str, why: str) -> GapReport:
    return GapReport(failed_detectors=(f"{plugin}: {clip(redact(sanitize(why)), 300)}",))


def _clean(gap: Gap) -> Gap:
    return evolve(
        gap, truth=_gaps_text(gap.truth), reason=_gaps_text(gap.reason), evidence=_gaps_text(gap.evidence)
    )


def _gaps_text(text: str) -> str:
    return clip(redact(sanitize(text)), 2000)


def unique(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Return each finder's gap once, the last that it said of it."""
    return tuple({(gap.key, gap.found_by): gap for gap in gaps}.values())


def merged(step: StepRequest, result: StepResult, plugin: str) -> StepResult:
    """Return the result with every detector's gap in it, and the verdict on disk to match.

    A gap may be dropped by its finder only.
    """
    assert isinstance(result.outcome, Verified)
    assert step.phase is not None
    before, said = step.report or GapReport(), result.outcome.report
    named = [gap if gap.found_by else evolve(_clean(gap), found_by=plugin) for gap in said.gaps]
    report = evolve(
        said,
        gaps=unique([*before.gaps, *named]),
        failed_detectors=tuple(dict.fromkeys([*before.failed_detectors, *said.failed_detectors])),
    )
    text = render_verification(step.phase, report, now=step.now, previous=step.phase.verdict)
    path = verification_path(result, step.phase)
    files = tuple(file for file in result.files if file.path != path)
    verdict = FileWrite(path=path, text=text)
    return evolve(result, outcome=Verified(report=report), files=(*files, verdict))


def verification_path(result: StepResult, phase: PhaseView) -> str:
    """Return where the executor puts the verdict, or where it belongs."""
    from gsd_core.model.ids import padded

    named = [file.path for file in result.files if file.path.endswith("-VERIFICATION.md")]
    return named[0] if named else f"{phase.directory}/{padded(phase.number)}-VERIFICATION.md"
