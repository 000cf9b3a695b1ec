"""What the reference says of facts, events and exit codes; tests hold it against what a run does."""

from __future__ import annotations

EVENTS: dict[str, tuple[str, str]] = {
    "run.started": ("a run begins, once in its life", "idea, sha256"),
    "run.opened": (
        "a process takes the run up, at its start and at each resume",
        "pid, version, agent, resumed",
    ),
    "run.closed": ("the process is done with the run", "outcome, exit, reason, dollars, commits"),
    "phase.started": ("the first step of a phase begins", "number, name"),
    "phase.completed": ("a phase is verified and ticked", "number, name"),
    "phase.skipped": ("a human chose to leave a phase undone", "number, reason"),
    "step.started": ("an attempt at a step begins", "kind, phase, plan, round, attempt"),
    "step.completed": (
        "a step's files are written and committed",
        "kind, phase, plan, round, commit, subject",
    ),
    "step.failed": ("a step failed for good: no retry is left", "error"),
    "step.skipped": ("a step is left out", "by, reason"),
    "attempt.failed": ("one attempt failed; the step may be tried again", "error"),
    "question.asked": ("something has to be decided", "key, inquiry"),
    "question.answered": ("it was decided", "question, words, how, by, via"),
    "gap.found": ("verification found gaps", "phase, round, gaps"),
    "gap.escalated": ("gaps remain, and a human is asked what to do", "phase, gaps"),
    "error.escalated": ("a step failed, and a human is asked what to do", "phase, error"),
    "task.committed": (
        "a task's check passed and its changes are committed",
        "task, name, at, commit, paths, created, check",
    ),
    "cost.changed": ("an agent call ended; its own use, not a total", "dollars, tokens, calls, basis"),
    "agent.activity": (
        "an agent was seen doing something; no promise that it is kept",
        "key, kind, tool, text, usage",
    ),
    "plugin.failed": ("a plugin broke its contract", "plugin, hook, error"),
    "recovered": ("a start found and mended what a crash had left", "processes, locks, lost"),
}

FACTS: dict[str, tuple[str, str]] = {
    "run.started": ("a run begins", "idea, workflow, base"),
    "run.opened": (
        "a process takes the run over; raises the epoch",
        "pid, start, boot, epoch, version, options, agent, seed, typed, resumed, plugins",
    ),
    "run.closed": ("the process is done with the run", "outcome, exit, reason, dollars, commits"),
    "recovered": ("what a crash had left was mended", "processes, locks, lost"),
    "project.observed": (
        "what the planning files say, when it differs from the last time",
        "milestone, phases",
    ),
    "attempt.started": (
        "an attempt at a step begins",
        "kind, phase, plan, round, for_gaps, executor, agent, base_commit, dirty_before",
    ),
    "attempt.declared": ("what to do with the attempt after a crash", "effect"),
    "attempt.lost": (
        "the attempt has no owner any more, was stopped, or waits for a human",
        "why, questions, kept",
    ),
    "attempt.failed": ("the attempt failed", "error"),
    "step.result": (
        "what the step returned, before any of it is written",
        "result, phase, gaps, failed_detectors, passed",
    ),
    "step.completed": ("it is written and committed", "commit, subject, gaps, paths"),
    "step.failed": ("it failed for good", "error"),
    "agent.opened": ("an agent call begins", "key, conversation, model, role, prompt_sha256, reserved"),
    "agent.process": ("the agent's process, to be ended if gsd is killed", "key, pid, start"),
    "agent.closed": ("the call ended, with what it used and what it answered", "key, ended, usage, value"),
    "task.committed": ("a task is committed, once", "task, name, at, commit, paths, created, check"),
    "question.asked": ("questions were put", "inquiry, occasion, gaps, error"),
    "question.answered": ("one of them was answered", "answer"),
    "answer.refused": ("an answer from the inbox does not fit", "answer, reason"),
    "timer.set": ("the step goes on at a later time", "until, why"),
    "timer.fired": ("that time has come", ""),
    "control.asked": ("somebody asked the run to stop", "what, by, via"),
    "notice.sent": ("people were told something", "key, ok, failed"),
    "plugin.failed": ("a plugin broke its contract", "plugin, hook, error"),
}

ACTIVITY: dict[str, tuple[str, str]] = {
    "agent.activity": (
        "what an agent was seen doing, with the use of each turn",
        "key, kind, tool, text, usage",
    ),
}
