"""Descriptions of events and facts for the reference; tests compare them with a real run."""

from __future__ import annotations

EVENTS: dict[str, tuple[str, str]] = {
    "run.started": ("a new run begins; sent once per run", "idea, sha256"),
    "run.opened": (
        "a process starts working on the run: at its start and at each resume",
        "pid, version, agent, resumed",
    ),
    "run.closed": ("the process stops working on the run", "outcome, exit, reason, dollars, commits"),
    "phase.started": ("the first step of a phase begins", "number, name"),
    "phase.completed": ("a phase is verified and marked complete in the roadmap", "number, name"),
    "phase.skipped": ("a human chose to skip a phase", "number, reason"),
    "step.started": ("an attempt at a step begins", "kind, phase, plan, round, attempt"),
    "step.completed": (
        "a step's files are written and committed",
        "kind, phase, plan, round, commit, subject",
    ),
    "step.failed": ("a step failed, and no automatic retry is left", "error"),
    "step.skipped": ("a step is skipped", "by, reason"),
    "attempt.failed": ("one attempt failed; the step may be retried", "error"),
    "question.asked": ("the run asks one or more questions", "key, inquiry"),
    "question.answered": ("a question was answered", "question, words, how, by, via"),
    "gap.found": ("verification found gaps", "phase, round, gaps"),
    "gap.escalated": ("gaps remain, and a human is asked what to do", "phase, gaps"),
    "error.escalated": ("a step failed, and a human is asked what to do", "phase, error"),
    "task.committed": (
        "a task's check passed and its changes are committed",
        "task, name, at, commit, paths, created, check",
    ),
    "cost.changed": ("an agent call ended; its own usage, not a total", "dollars, tokens, calls, basis"),
    "agent.activity": (
        "an agent did something; the last ones before a kill may be lost",
        "key, kind, tool, text, usage",
    ),
    "plugin.failed": ("a plugin raised, timed out or returned something invalid", "plugin, hook, error"),
    "recovered": ("gsd cleaned up after a crash when it started", "processes, locks, lost"),
}

FACTS: dict[str, tuple[str, str]] = {
    "run.started": ("a run begins", "idea, workflow, base"),
    "run.opened": (
        "a process starts working on the run; raises the epoch",
        "pid, start, boot, epoch, version, options, agent, seed, typed, resumed, plugins",
    ),
    "run.closed": ("the process stops working on the run", "outcome, exit, reason, dollars, commits"),
    "recovered": ("gsd cleaned up after a crash", "processes, locks, lost"),
    "project.observed": (
        "the content of the planning files, recorded when it differs from the last time",
        "milestone, phases",
    ),
    "attempt.started": (
        "an attempt at a step begins",
        "kind, phase, plan, round, for_gaps, executor, agent, base_commit, dirty_before",
    ),
    "attempt.declared": ("written by earlier versions; has no effect", "effect"),
    "attempt.lost": (
        "the attempt's process is gone, was stopped, or waits for a human",
        "why, questions, kept",
    ),
    "attempt.failed": ("the attempt failed", "error"),
    "step.result": (
        "the step's result, recorded before any of it is written",
        "result, phase, gaps, failed_detectors, passed",
    ),
    "step.completed": ("the result is written and committed", "commit, subject, gaps, paths"),
    "step.failed": ("the step failed permanently", "error"),
    "agent.opened": ("an agent call begins", "key, conversation, model, role, prompt_sha256, reserved"),
    "agent.process": ("the agent's process, to be ended if gsd is killed", "key, pid, start"),
    "agent.closed": ("an agent call ended, with its usage and its result", "key, ended, usage, value"),
    "task.committed": ("a task is committed, once", "task, name, at, commit, paths, created, check"),
    "question.asked": ("an inquiry was asked", "inquiry, occasion, gaps, error"),
    "question.answered": ("a question was answered", "answer"),
    "answer.refused": ("an answer from the inbox is invalid", "answer, reason"),
    "timer.set": ("the step continues at a later time", "until, why"),
    "timer.fired": ("that time has come", ""),
    "control.asked": ("someone asked the run to stop", "what, by, via"),
    "notice.sent": ("a notification was sent", "key, ok, failed"),
    "plugin.failed": ("a plugin raised, timed out or returned something invalid", "plugin, hook, error"),
}

ACTIVITY: dict[str, tuple[str, str]] = {
    "agent.activity": (
        "something an agent did, with the usage of each turn",
        "key, kind, tool, text, usage",
    ),
}
