"""``git.branching_strategy``: the branch on which the steps of a phase, or of a milestone, are committed.

Before the first step of a phase, the run creates the branch and switches to it. A branch begins at the
current commit, because that one has the roadmap and the work of earlier phases, or at the base branch once
that contains all of it. Nothing is merged, moved back or deleted: that is left to the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gsd_core.errors import ConfigError, ProjectError
from gsd_core.git import GitError
from gsd_core.machine.facts import BranchChosen, BranchSwitched
from gsd_core.model.ids import StepId, padded, slug
from gsd_core.planning.config import CONFIG, branch_template, get

from .runtime import Run
from .work import require_branch

NEVER = ("main", "master", "HEAD")
"""Names that no template may give, besides the base branch and the protected ones."""


async def enter_branch(run: Run, step: StepId) -> bool:
    """Switch to the branch of the step's phase or milestone, if there is to be one; return if HEAD moved.

    Raises ``ProjectError`` if that is not possible without losing something, and ``ConfigError`` for a
    template that does not give a name.
    """
    name = branch_of(run, step)
    if not name or name == run.workspace.branch:
        return False
    # A person may have switched the branch: then their commits must not be taken along.
    await require_branch(run)
    if not await run.git.is_branch_name(name):
        message = f"{CONFIG}: {name!r} is not a name for a branch"
        raise ConfigError(message, hint="correct the template in `git`")
    start = await _start(run, name)
    if start is None:
        return False
    before = run.workspace.branch or ""
    # Before the switch: a process that resumes the run after a kill accepts both branches.
    run.record(BranchChosen(branch=name, from_=before, start=start))
    try:
        if start:
            await run.git.start_branch(name, start)
        else:
            await run.git.switch_branch(name)
    except GitError as error:
        hint = error.hint or "commit or stash what is in the way, or rename the branch that is; then resume"
        raise ProjectError(f"cannot switch to branch {name!r}: {error.output or error}", hint=hint) from error
    run.workspace.branch = await run.git.branch()
    run.record(BranchSwitched(branch=name, from_=before, start=start))
    return True


def branch_of(run: Run, step: StepId) -> str:
    """Return the branch that config.json asks for; empty if the step has no branch of its own."""
    config = run.planning.config
    if step.kind == "quick" and (template := branch_template(config, "quick")):
        number, _, words = step.detail.partition("-")
        name = template.replace("{num}", number).replace("{quick}", number).replace("{slug}", words)
        return _allowed(name, "git.quick_branch_template", config)
    strategy = get(config, "git.branching_strategy", "none")
    phase = run.planning.phase(step.phase) if step.phase else None
    if phase is None or strategy not in ("phase", "milestone"):
        return ""
    words = slug(phase.name if strategy == "phase" else run.planning.milestone_name or "milestone")
    name = branch_template(config, strategy).replace("{phase}", padded(phase.number))
    name = name.replace("{milestone}", run.planning.milestone).replace("{slug}", words)
    return _allowed(name, f"git.{strategy}_branch_template", config)


def _allowed(name: str, key: str, config: Mapping[str, Any]) -> str:
    """Return *name*; raise ``ConfigError`` if it is that of a protected branch."""
    protected = get(config, "git.protected_branches", list[str]())
    if name in (*NEVER, get(config, "git.base_branch", ""), *protected):
        hint = f"change {key}, so that no branch of a phase, a milestone or a quick task has that name"
        raise ConfigError(f"{CONFIG}: {key}: {name!r} is a protected branch", hint=hint)
    return name


async def _start(run: Run, name: str) -> str | None:
    """Return the commit where the branch *name* is to begin; empty if it stays where it is.

    ``None``: stay on the current branch, which contains the other one's work.
    """
    git = run.git
    head, there = await git.head() or "", await git.commit_of(name)
    if not there:
        # At the base branch, if that has all that HEAD has.
        base = await git.commit_of(get(run.planning.config, "git.base_branch", ""))
        return base if base and await git.is_ancestor(head, base) else head
    if await git.is_ancestor(head, there):
        return ""
    if not await git.is_ancestor(there, head):
        message = f"branch {name!r} and the current branch {run.workspace.branch!r} have different commits"
        raise ProjectError(message, hint=f"merge one into the other, or rename {name!r}; then resume")
    if any(fact.data.branch == name for fact in run.facts(BranchSwitched)):
        # A phase is worked on once more after later ones: their commits do not belong on its branch.
        return None
    return head
