"""The step: ask a reviewer about each group of files, check what it cites, and turn defects into gaps."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from gsd_core import (
    AgentResult,
    AgentTask,
    BadArtifact,
    FileWrite,
    Found,
    Gap,
    Limits,
    PhaseView,
    StepHost,
    StepRequest,
    StepResult,
    padded,
    safe_text,
)

from .findings import SCHEMA, Finding, Severity, Sources, distinct, form_problems, read_review
from .prompt import SYSTEM, prompt
from .report import Report, render, report_path
from .scope import scope_of

MAX_COMPLAINTS = 2
"""How often wrong citations are sent back."""


async def review(
    step: StepRequest,
    phase: PhaseView,
    host: StepHost,
    *,
    blocking: Collection[Severity],
    skip: Sequence[str],
    model: str,
    files_per_call: int,
) -> StepResult:
    """Review the code that the phase changed; write its SECURITY.md, and find gaps."""
    # In a thread, because reading many files would block the run.
    scope = await asyncio.to_thread(scope_of, phase, skip)
    sources = Sources(tree=step.tree, history=phase.history)
    reported: list[Finding] = []
    for files in scope.batches(files_per_call):
        task = AgentTask(
            step=step.id,
            run=step.run,
            role="reviewer",
            system=SYSTEM,
            prompt=prompt(phase, files),
            tools=("Read", "Glob", "Grep"),
            schema=SCHEMA,
            model=model or step.model,
            tree=step.tree,
            limits=Limits(turns=40 + 2 * len(files)),
        )
        reported += await _ask(host, task, files, sources)
    found = distinct(reported)
    problems = {one: sources.problem(one) for one in found}
    proven = tuple(one for one in found if not problems[one])
    report = Report(
        scope=scope,
        proven=proven,
        unproven=tuple((one, problems[one]) for one in found if problems[one]),
        blocking=tuple(blocking),
    )
    number = padded(phase.number)
    return StepResult(
        subject=f"docs({number}): review the security of the phase",
        files=(FileWrite(path=report_path(phase), text=render(phase, report, now=step.now)),),
        outcome=Found(gaps=tuple(_gaps([one for one in proven if one.severity in blocking], sources))),
    )


async def _ask(
    host: StepHost, task: AgentTask, files: Sequence[str], sources: Sources
) -> tuple[Finding, ...]:
    """Return the findings of one agent call; raise if the agent does not read the *files*."""

    def accept(answered: AgentResult) -> Sequence[str]:
        if invalid := form_problems(answered.value):
            return invalid
        # Without limit: a review of files that nobody opened is none, and the step has to fail.
        if unread := _unread(task, files, answered):
            return (f"not read in this conversation: {', '.join(unread)}. Read each file, then answer again",)
        findings = map(sources.located, read_review(answered.value).findings)
        problems = [
            f"finding {number}: {problem}"
            for number, one in enumerate(findings, 1)
            if (problem := sources.problem(one))
        ]
        # After that the answer is taken, and what is unproven is only listed: another conversation would cost
        # as much again. Not a counter of this function's own, which a restart would set back.
        return problems if answered.sent_back < MAX_COMPLAINTS else ()

    # The key is that of these files: with another setting, a recorded answer would be about others.
    digest = hashlib.sha256("\0".join(files).encode("utf-8", "surrogateescape")).hexdigest()
    result = await host.run_agent(f"review-{digest[:12]}", task, accept)
    return tuple(map(sources.located, read_review(result.value).findings))


def _unread(task: AgentTask, files: Sequence[str], answered: AgentResult) -> list[str]:
    """Return the files that were not opened in the conversation, which the core has recorded."""

    def shown(path: str) -> str:
        # As the journal may have it, in which an answer is found after a restart.
        return safe_text(str(task.tree / PurePosixPath(path)), strict=True)

    read = {shown(use.target) for use in answered.uses if use.tool == "Read"}
    return [path for path in files if shown(path) not in read]


def _gaps(findings: Sequence[Finding], sources: Sources) -> Iterator[Gap]:
    seen: Counter[str] = Counter()
    for one in findings:
        label = f"{one.severity}, {one.cwe}" if one.cwe else one.severity
        # Not the line, nor the agent's words: a gap keeps its identity while both change.
        about = f"security:{one.file}:{one.cwe or one.severity}"
        seen[about] += 1
        about = about if seen[about] == 1 else f"{about}:{seen[about]}"
        yield Gap(
            truth=" ".join(one.property.split()),
            reason=f"Security ({label}): {one.what} {one.why}",
            about=about,
            artifacts=(BadArtifact(path=one.file, issue=one.what),),
            missing=(one.fix,),
            evidence=f"{one.file}:{one.line}: {sources.quoted(one)}",
        )
