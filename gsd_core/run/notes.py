"""What the end of a run does not cover: the notes in its last line, in ``gsd status`` and in its events.

A run that ends with ``done`` promises that the phases in range are complete and that it verified them. Each
exception is a note, a clause without a full stop: "2 phases were complete before and not verified by this
run". :func:`with_notes` appends them to the reason for the end. Two exceptions are part of that reason
itself: that verification was skipped, and the number of assumed checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gsd_core.machine import facts
from gsd_core.machine.claims import unverified
from gsd_core.model.counts import counted, some_of
from gsd_core.model.ids import StepId
from gsd_core.sanitize import one_line, safe_text

from .runtime import Run

MAX_NAMED = 5
MAX_NOTE = 200


def notes_of(run: Run) -> Iterator[str]:
    """Yield the notes of a run that ends now."""
    state = run.state
    # What the agents' results have to say about the run, each thing once.
    values = [fact.data.value or {} for fact in run.facts(facts.AgentClosed)]
    said = [one_line(str(value.get("note") or ""), MAX_NOTE) for value in values]
    yield from dict.fromkeys(filter(None, said))
    phases = () if state.options.skip_verify else unverified(state)
    if phases:
        which = counted(len(phases), "phase was", "phases were")
        yield f"{which} complete before and not verified by this run ({some_of(phases, MAX_NAMED)})"
    if state.journal_lost:
        yield "the journal of an earlier run is missing, and what its commits and files say was believed"
    if plans := state.edited_plans:
        verb = "plan {} was" if len(plans) == 1 else "plans {} were"
        yield f"{verb.format(some_of(plans, MAX_NAMED))} edited by hand"
    # Processes of earlier versions did not record their sandbox.
    opened = [fact.data for fact in run.facts(facts.RunOpened)]
    without = sum(not process.sandbox.name for process in opened if process.sandbox)
    if without:
        yield f"it ran {'in part ' if without < len(opened) else ''}without a sandbox"
    detectors = sorted({name for process in opened for name in process.left_out})
    if detectors and not state.options.skip_verify:
        yield f"without the detector{'s' if len(detectors) > 1 else ''} {some_of(detectors, MAX_NAMED)}"
    if missing := [info.name for info in run.request.plugins if info.status in ("broken", "untrusted")]:
        verb = "plugin {} was" if len(missing) == 1 else "plugins {} were"
        yield f"{verb.format(some_of(missing, MAX_NAMED))} not loaded"
    secrets = (fact.data for fact in run.facts(facts.FilesLeft) if fact.data.why == "secrets")
    if left := sorted({path for each in secrets for path in each.paths if (run.root / path).exists()}):
        which = counted(len(left), "file that may contain secrets was", "files that may contain secrets were")
        yield f"{which} left uncommitted ({safe_text(some_of(left, MAX_NAMED), multiline=False)})"
    if tasks := _still_deferred(run):
        which = counted(len(tasks), "task was", "tasks were")
        yield f"{which} deferred ({some_of(tasks, MAX_NAMED)}; see deferred-items.md)"
    if switched := [fact.data for fact in run.facts(facts.BranchSwitched)]:
        first, last = (safe_text(name, multiline=False) for name in (switched[0].from_, switched[-1].branch))
        into = f" into {first!r}" if first else ""
        yield f"the work is on branch {last!r}, and merging it{into} is left to you"


def _still_deferred(run: Run) -> list[str]:
    """Return the tasks that were deferred and neither done later nor made up for by a gap round."""
    deferred: dict[str, str] = {}
    passed = set[str]()
    for fact in run.facts(facts.TaskDeferred, facts.TaskCommitted, facts.AttemptFailed, facts.StepCompleted):
        step = StepId.parse(fact.step)
        match fact.data:
            case facts.AttemptFailed():
                # The next attempt does them again.
                plan = fact.step.rpartition("/")[2]
                deferred = {name: of for name, of in deferred.items() if not name.startswith(f"{plan}/")}
            case facts.TaskDeferred(plan=plan, task=number):
                deferred[f"{plan}/{number}"] = step.phase
                passed.discard(step.phase)
            case facts.TaskCommitted(task=task):
                deferred.pop(task, None)
            case facts.StepCompleted(gaps=gaps) if step.kind == "verify":
                # It has run the checks of the deferred tasks as well.
                (passed.discard if gaps else passed.add)(step.phase)
            case _ if step.kind == "complete" and step.phase in passed:
                deferred = {name: of for name, of in deferred.items() if of != step.phase}
            case _:
                pass
    return [*deferred]


def with_notes(reason: str, notes: Sequence[str]) -> str:
    """Return why a run ended, with its notes, as one line."""
    return "; ".join([reason, *notes])
