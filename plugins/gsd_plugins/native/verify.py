"""verify: what the detectors left open goes to a verifier, then to a human; silence is no pass."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from gsd_core import (
    AgentTask,
    FileWrite,
    GapReport,
    Limits,
    PhaseView,
    StepHost,
    StepRequest,
    StepResult,
    TaskCheck,
    Verified,
    padded,
)
from gsd_core.planning.must_haves import Promise
from gsd_core.planning.verification import render_verification

from .byhand import ask_human
from .models import model_for
from .place import phase_file, phase_of
from .prompt import fenced, joined, system, titled
from .schemas import VERDICTS
from .truths import claims_of, contradicted, unknown
from .verdicts import Complaints, judged

OUTPUT = 1500
"""Characters of a command's output that the verifier is shown: the end of it."""


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Verify the phase as it is now; whatever is not shown to hold is a gap."""
    phase = phase_of(step)
    found = step.report or GapReport()
    claims = claims_of(phase)
    found = evolve(found, gaps=(*found.gaps, *contradicted(claims, found)))
    if left := unknown(claims, found):
        found = await _verified(step, host, left, found)
    found = await ask_human(step, host, found)
    text = render_verification(phase, found, now=step.now, previous=phase.verdict)
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): verify phase",
        outcome=Verified(report=found),
        files=(FileWrite(path=phase_file(phase, f"{number}-VERIFICATION.md"), text=text),),
    )


async def _verified(
    step: StepRequest, host: StepHost, left: tuple[Promise, ...], found: GapReport
) -> GapReport:
    complaints = Complaints(claims=left)
    result = await host.run_agent("verify", _task(step, left), complaints)
    return judged(left, result.value, found)


def _task(step: StepRequest, left: tuple[Promise, ...]) -> AgentTask:
    return AgentTask(
        step=step.id,
        run=step.run,
        role="verifier",
        system=system("verify"),
        prompt=_prompt(phase_of(step), left),
        tools=("Read", "Glob", "Grep"),
        schema=VERDICTS,
        model=model_for("verifier", step),
        tree=step.tree,
        limits=Limits(turns=40),
    )


def _prompt(phase: PhaseView, left: tuple[Promise, ...]) -> str:
    truths = "\n".join(f"- {claim.id}: {' '.join(claim.text.split())}" for claim in left)
    files = "\n".join(f"- {path}" for path in _files(phase))
    return joined(
        titled("The phase", fenced("phase", f"{phase.name}\n{phase.goal}")),
        titled("Truths to verify", fenced("truths", truths)),
        titled("Files that it was to touch", fenced("files", files)),
        titled("What commands showed just now", fenced("commands", "\n".join(map(_shown, phase.checks)))),
    )


def _files(phase: PhaseView) -> Sequence[str]:
    return sorted({path for plan in phase.plans if plan.summary for path in plan.files_modified})


def _shown(check: TaskCheck) -> str:
    ran = check.result
    ended = "was not run to its end" if ran.exit is None else f"exit {ran.exit}"
    return f"- {check.plan}, task {check.task}: {ran.command}: {ended}\n{ran.output[-OUTPUT:]}".rstrip()
