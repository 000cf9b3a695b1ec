"""Detect gaps: run the plans' commands, ask all detectors, and keep what they found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from attrs import evolve

from gsd_core.border import PluginFailure
from gsd_core.gap import Gap, GapReport
from gsd_core.hooks import Hooks, Outcome
from gsd_core.hookspecs import gsd_find_gaps
from gsd_core.planning.model import PhaseView
from gsd_core.planning.render import render_verification
from gsd_core.step import FileWrite, StepRequest, StepResult, Verified
from gsd_core.text import clip, redact, sanitize

from .commands import check_plans
from .permission import Gate
from .session import Run
from .sound import unsound


async def detect(run: Run, step: StepRequest, gate: Gate) -> StepRequest:
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


def _report(hooks: Hooks, outcome: Outcome[Sequence[Gap] | GapReport]) -> GapReport:
    """Return one detector's report, stamped with its name; nonsense is a failed detector."""
    if outcome.error is not None:
        return _failed(outcome.plugin, str(outcome.error))
    value = outcome.value
    report = value if isinstance(value, GapReport) else GapReport(gaps=tuple(value or ()))
    if why := unsound(report, GapReport):
        hooks.report(PluginFailure(plugin=outcome.plugin, hook="gsd_find_gaps", error=why))
        return _failed(outcome.plugin, why)
    return evolve(
        report,
        gaps=tuple(evolve(_clean(gap), found_by=outcome.plugin) for gap in report.gaps),
        evidence=tuple(evolve(e, by=outcome.plugin, proof=_text(e.proof)) for e in report.evidence),
    )


def _failed(plugin: str, why: str) -> GapReport:
    return GapReport(failed_detectors=(f"{plugin}: {clip(redact(sanitize(why)), 300)}",))


def _clean(gap: Gap) -> Gap:
    return evolve(gap, truth=_text(gap.truth), reason=_text(gap.reason), evidence=_text(gap.evidence))


def _text(text: str) -> str:
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
    from gsd_core.ids import padded

    named = [file.path for file in result.files if file.path.endswith("-VERIFICATION.md")]
    return named[0] if named else f"{phase.directory}/{padded(phase.number)}-VERIFICATION.md"
