"""Descriptions of events and facts for the reference; tests compare them with a real run."""

from __future__ import annotations

EVENTS: dict[str, tuple[str, str]] = {
    "run.started": ("a new run begins; sent once per run", "idea, sha256"),
    "run.opened": (
        "a process starts working on the run: at its start and at each resume; *so_far* is what earlier "
        "processes did: `seconds`, `dollars`, `tokens`, `calls`, `basis`, and the finished `tasks` by step",
        "pid, version, agent, sandbox, resumed, so_far",
    ),
    "run.closed": ("the process stops working on the run", "outcome, exit, reason, notes, dollars, commits"),
    "phase.started": ("the first step of a phase begins", "number, name"),
    "phase.completed": ("a phase is verified and marked complete in the roadmap", "number, name"),
    "phase.skipped": ("a human chose to skip a phase", "number, reason"),
    "step.started": ("an attempt at a step begins", "kind, phase, plan, round, attempt"),
    "step.completed": (
        "a step's files are written and committed",
        "kind, phase, plan, round, commit, subject, unchanged",
    ),
    "step.returned": (
        "a step's agents have finished, and its result is being committed; *merges*: first, what was "
        "committed in another work tree is brought into the branch",
        "merges",
    ),
    "step.failed": ("a step failed, and no automatic retry is left", "error"),
    "step.waiting": ("a step waits for a service or a limit, until a time (ISO 8601)", "until, why"),
    "step.queued": (
        "a plan could start, but the run may have no more agents now: *why*, and what to do about it",
        "why, hint",
    ),
    "step.skipped": ("a step is skipped", "by, reason"),
    "attempt.failed": (
        "one attempt failed; the step may be retried",
        "attempt, error, left, written",
    ),
    "question.asked": ("the run asks one or more questions", "key, inquiry"),
    "question.answered": ("a question was answered", "question, words, how, by, via"),
    "question.withdrawn": ("questions need no answer any more", "questions"),
    "gap.found": ("verification found gaps", "phase, round, gaps"),
    "gap.escalated": ("gaps remain, and a human is asked what to do", "phase, gaps"),
    "error.escalated": ("a step failed, and a human is asked what to do", "phase, error"),
    "task.committed": (
        "a task's check passed and its changes are committed",
        "task, name, at, commit, paths, created, deleted, note, check",
    ),
    "files.kept": (
        "a copy was made of uncommitted files that a plan may overwrite; *listed*: the plan lists them",
        "ref, paths, listed, found",
    ),
    "merge.failed": (
        "the step's commits, up to *ours*, conflict with those that the branch got since, up to *theirs*; "
        "both changed the same lines of *paths*, or *check* fails on the merge with this *output*",
        "ours, theirs, paths, check, output",
    ),
    "files.left": (
        "files that changed during a plan, and that no task named, stay uncommitted; *why* is `secrets` if "
        "they may contain one, and *found* then says what, by path, and `command` if a command of the user "
        "left them; those of another work tree are *kept* in a ref",
        "paths, kept, found, why",
    ),
    "cost.changed": ("an agent call ended; its own usage, not a total", "dollars, tokens, calls, basis"),
    "agent.activity": (
        "an agent did something; the last ones before a kill may be lost",
        "key, kind, tool, text, usage",
    ),
    "notice.failed": ("a notification did not reach a service", "notice, service, reason"),
    "plugin.failed": ("a plugin raised, timed out or returned something invalid", "plugin, hook, error"),
    "recovered": (
        "gsd cleaned up when it started; *crashed*: the last process ended without closing the run",
        "processes, locks, lost, crashed",
    ),
}

FACTS: dict[str, str] = {
    "run.started": "a run begins",
    "run.opened": "a process starts working on the run; raises the epoch",
    "run.closed": "the process stops working on the run",
    "recovered": "gsd cleaned up after a crash",
    "project.observed": "the content of the planning files, recorded when it differs from the last time",
    "attempt.started": "an attempt at a step begins",
    "attempt.declared": "written by earlier versions; has no effect",
    "attempt.lost": "the attempt's process is gone, was stopped, or waits for a human",
    "attempt.failed": "the attempt failed",
    "files.kept": "a copy was made of what a plan may overwrite",
    "files.settled": "a human decided about files that a plan lists",
    "files.left": "files that changed during a plan stay uncommitted",
    "landing.failed": "a recorded result cannot be written now; the next start tries again",
    "merge.failed": "the step's commits conflict with those that its branch got: it has to merge them",
    "step.result": "the step's result, recorded before any of it is written",
    "step.completed": "the result is written and committed",
    "step.failed": "the step failed permanently",
    "agent.opened": "an agent call begins",
    "agent.process": "the agent's process, to be ended if gsd is killed",
    "agent.used": (
        "an agent of a read-only task used a tool; the next result of its conversation lists it as evidence"
    ),
    "agent.closed": "an agent call ended, with its usage and its result",
    "check.before": "a task's check ran before the task, once",
    "check.replaced": "the planner replaced or kept the check of a task",
    "task.committing": "a task's commit is about to be made",
    "task.committed": "a task is committed, once",
    "task.deferred": "the executor gave a task up; what it changed is taken back, and kept",
    "guard.found": "something changed while an agent worked that only the run may change; it is saved",
    "guard.accepted": (
        "files that only the run may change were changed while agents in a sandbox worked: by a person, "
        "because the agents cannot; or, with *owned*, by an agent that owns the planning"
    ),
    "guard.confined": (
        "which of the agent *calls* in progress are in a sandbox, with the *places* that each sees there;"
        " after a crash, changes of what they could not write are a person's, and stay"
    ),
    "config.overlaid": (
        "`.planning/config.json` is about to get other values for an agent call: *put* are these, "
        "*before* the user's own, in lists that are empty for a missing one; *clean*: the file was "
        "committed"
    ),
    "config.restored": (
        "the user's own values are back; *keys* had to be put back one by one, *commit* has them if the "
        "agent had committed the others"
    ),
    "guard.undone": "that is undone, except for the problems",
    "plan.made": "a step outside of the roadmap made a plan for itself",
    "plan.edited": "a plan is no longer as the run wrote it",
    "phase.added": "a phase was added on request of another process; or why it was not (error)",
    "todo.edited": "a todo was added or completed on request of another process; or why it was not (error)",
    "question.asked": "an inquiry was asked",
    "question.answered": "a question was answered",
    "question.withdrawn": (
        "an inquiry no longer counts; it is asked again if it is still due. *reason* is there if its step"
        " can no longer become due"
    ),
    "answer.refused": "an answer from the inbox is invalid",
    "step.queued": "a plan could start, but the run may have no more agents now",
    "unit.submitted": "a plan is to be executed elsewhere, by the dispatcher of a plugin",
    "unit.ended": "the work on it is over: its facts are in this journal, and its commits were taken",
    "timer.set": "the step continues at a later time",
    "timer.fired": "that time has come",
    "control.asked": "someone asked the run to stop, or to pause after its step",
    "branch.chosen": "the run is about to switch to the branch of a phase or milestone",
    "branch.switched": "the run works on that branch from now on",
    "step.asked": "the user asked for a step",
    "step.withdrawn": "a step that the user asked for can no longer be done",
    "notice.begun": "a notification is about to be sent; recorded so that it is sent once",
    "notice.sent": (
        "it was sent, or not: *ok* and *failed* are plugins, *deliveries* has the result for each service"
    ),
    "plugin.failed": "a plugin raised, timed out or returned something invalid",
    "step.skipped": "written by earlier versions: a phase is left out, and with it what depends on it",
}

ACTIVITY: dict[str, tuple[str, str]] = {
    "agent.activity": (
        "something an agent did, with the usage of each turn",
        "key, kind, tool, text, usage",
    ),
}

PLANNING_FILES: dict[str, tuple[str, str]] = {
    ".planning/IDEA.md": ("the idea, with its statements numbered", "init"),
    ".planning/PROJECT.md": ("what is built and for whom, constraints, decisions", "init, complete, close"),
    ".planning/REQUIREMENTS.md": (
        "requirements with ids, and the phase of each",
        "init, complete, audit, close",
    ),
    ".planning/ROADMAP.md": (
        "the phases with their goals, criteria and check marks",
        "init, plan, execute, complete, audit, close",
    ),
    ".planning/STATE.md": ("where the work is, decisions, blockers, todos", "all steps"),
    ".planning/config.json": ("GSD's configuration; see [config.json](config-json.md)", "init"),
    ".planning/codebase/NAME.md": ("one of seven documents about existing code", "survey"),
    ".planning/phases/NN-NAME/NN-CONTEXT.md": ("decisions about the phase, and who made them", "discuss"),
    ".planning/phases/NN-NAME/NN-RESEARCH.md": ("what the planner needs to know, with sources", "research"),
    ".planning/phases/NN-NAME/NN-MM-PLAN.md": ("a plan: tasks, checks, must-haves", "plan, execute"),
    ".planning/phases/NN-NAME/NN-MM-SUMMARY.md": ("what a plan's execution did, with its commits", "execute"),
    ".planning/phases/NN-NAME/deferred-items.md": ("work that was left for later, and why", "execute"),
    ".planning/phases/NN-NAME/NN-VERIFICATION.md": ("the verdict, its evidence and the gaps", "verify"),
    ".planning/phases/NN-NAME/NN-UAT.md": ("what only a person can judge, and the results", "verify"),
    ".planning/debug/NAME.md": ("symptoms, evidence and root cause of a gap or problem", "debug"),
    ".planning/quick/NNN-NAME/NNN-PLAN.md": ("the plan of a quick task", "quick"),
    ".planning/quick/NNN-NAME/NNN-SUMMARY.md": ("what the quick task did", "quick"),
    ".planning/quick/NNN-NAME/NNN-VERIFICATION.md": ("the verdict, with `--full`", "quick"),
    ".planning/vX.Y-MILESTONE-AUDIT.md": ("requirements, phases and open items of a milestone", "audit"),
    ".planning/MILESTONES.md": ("an entry for each closed milestone", "close"),
    ".planning/milestones/vX.Y-NAME.md": (
        "ROADMAP, REQUIREMENTS, IDEA and audit of a closed milestone",
        "close, init",
    ),
    ".planning/milestones/vX.Y-phases/": ("the folders of its phases", "close"),
    ".planning/todos/pending/NAME.md": ("a todo; `completed/` has those that are done", "`gsd todo`"),
    ".planning/HANDOFF.json": ("where the work is, for tools", "`gsd pause`"),
    ".planning/phases/NN-NAME/.continue-here.md": ("where the work is, for people", "`gsd pause`"),
    ".planning/autopilot/NAME": ("the state of the run for tools that watch it; git ignores it", "the run"),
}
"""The files in ``.planning/``, what they contain, and which steps or commands write them."""

OWN_FILES: dict[str, tuple[str, str]] = {
    "gsd.toml": ("settings of the project; see [settings](settings.md)", "you, `gsd settings set`"),
    ".gsd/plugins/NAME.py": ("plugins of the project; they need trust", "you"),
    "<git dir>/gsd/journal.db": ("the [journal](journal.md)", "the run"),
    "<git dir>/gsd/lock": ("held by the one process that works in the project", "the run"),
    "<git dir>/gsd/commit-lock": ("held while a commit is made", "the run"),
    "<git dir>/gsd/guard": (
        "copies of what only the run may change, to undo what others do to it",
        "the run",
    ),
    "<git dir>/gsd/removed/": ("the folders of removed phases", "`gsd phase remove`"),
    "<git dir>/gsd/edit.json": (
        "what a command that does one thing is about to do, as `asked.json` and `request.json`; "
        "see [recovery](../explanation/recovery.md#commands-that-do-one-thing)",
        "that command",
    ),
    "<git dir>/gsd/report.html": ("the last report", "`gsd report`"),
    "<git dir>/gsd/rehearsal": ("which files a rehearsal made", "a rehearsal"),
    "~/.config/gsd/config.toml": ("your own settings", "you, `gsd settings set --user`"),
    "~/.local/state/gsd/": (
        "the state folder: what you trust, which journals are yours, your sessions and their output, the "
        "tokens of `gsd serve`, work trees; `GSD_STATE_DIR` moves it",
        "all commands",
    ),
    "~/.cache/gsd/homes/": ("a private home of each project, for confined processes", "the run"),
    "refs/gsd/recover/NAME": ("changes that were saved before something replaced them", "the run"),
}
"""Other files of a project."""
