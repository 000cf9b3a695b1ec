"""The checks on new plans; the planner has to revise plans that do not pass."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from gsd_core import Gap, Plan, PlanningError, StepRequest
from gsd_core.planning.check import Issue, check_plans, check_serves
from gsd_core.planning.context import read_decisions, uncovered
from gsd_core.planning.exact import changed_facts, contradictions, exact_facts
from gsd_core.planning.must_haves import plans_for, served_by
from gsd_core.planning.plan import render_plan

from .depth import DIVISIONS
from .paths import phase_of, unwritten_plan_ids


def validate_plans(step: StepRequest, plans: Sequence[Plan], as_written: Sequence[Plan]) -> tuple[str, ...]:
    """Return the problems of *plans* that the planner must fix; mere warnings are left out.

    *as_written* are the plans as the planner wrote them: what is filled in for a gap closure closes no gap.
    """
    phase = phase_of(step)
    gaps = step.report.gaps if step.round and step.report else ()
    if unwritable := tuple(problem for plan in plans for problem in _unwritable(plan)):
        return unwritable
    # In a gap round, plans must close every gap; the phase's requirements are covered by earlier plans.
    issues = check_plans(phase, plans, () if step.round else phase.requirements)
    issues = (*issues, *check_serves(phase, plans, complete=not step.round))
    problems = blockers(issues)
    for plan in plans:
        problems += find_bad_patterns(plan)
        hint = "give a command that fails before the task and passes after it"
        problems += [f"{plan.id}, {problem} ({hint})" for problem in trivial_checks(plan)]
    # Plans that the roadmap lists already were decided by whoever listed them.
    most = max(DIVISIONS[step.depth].plans[1], len(unwritten_plan_ids(phase)))
    if len(plans) > most and not step.round:
        problems.append(
            f"too many plans: {len(plans)}, the maximum at depth {step.depth} is {most} "
            "(put tasks that belong together into one plan)"
        )
    if not step.round:
        # In a gap round, a decision that is not covered is one of the gaps.
        problems += [
            f"no plan names decision {one.id}, in the action of the task that implements it: {one.text}"
            for one in uncovered(read_decisions(phase.context), [*phase.plans, *plans])
        ]
    # One that waits for a plan with a deferred task is executed after those that close its gaps.
    waiting = [plan for plan in phase.plans if not plan.summary]
    written = {plan.id for plan in plans}
    if missing := [plan_id for plan_id in unwritten_plan_ids(phase) if plan_id not in written]:
        problems.append(f"plans listed in the roadmap are missing: {', '.join(missing)}")
    problems += [
        f"no plan closes gap {gap.key}: add its truth to the truths of a plan: {gap.truth}"
        for gap in gaps
        if not any(addresses(plan, gap) for plan in (*as_written, *waiting))
    ]
    return tuple(dict.fromkeys(problems))


def lost_facts(step: StepRequest, plans: Sequence[Plan]) -> Iterator[str]:
    """Yield a complaint for each requirement with an exact fact that no plan for it contains.

    Also if the truths that serve it have no word of it. Not for criteria: the numbers and texts in them are
    often examples, and the verifier tries them. The phase's earlier plans count too. A fact is not missed if
    a decision of the phase has another one in its place: a new limit, another order.
    """
    phase = phase_of(step)
    decided = "\n".join(one.text for one in read_decisions(phase.context))
    texts = {one.id: one.text for one in step.planning.requirements if one.id in phase.requirements}
    for name, text in texts.items():
        serving = plans_for(name, [*phase.plans, *plans])
        said = "\n".join(part for plan in serving for part in _texts(plan))
        truths = ((plan, truth) for plan in serving for truth in plan.must_haves.truths)
        quoted = "; ".join(truth.text for plan, truth in truths if name in served_by(plan, truth))
        # A plan may spell a call or a command otherwise.
        facts = [one for one in changed_facts(text, said, quoted) if not one.text.startswith("`")]
        overruled = contradictions(facts, decided)
        if serving and (lost := [one.text for one in facts if one not in overruled]):
            yield (
                f"{name} says {text!r}, but {', '.join(map(repr, lost))} is not in the plans for it, with "
                f"the truths {quoted!r}: keep it in a truth that serves {name}"
            )
        elif quoted and _words(text).isdisjoint(_words(quoted)) and not exact_facts(quoted):
            yield (
                f"{name} says {text!r}, and the truths that serve it say {quoted!r}: give a truth that says "
                f"what can be seen when {name} holds"
            )


def _words(text: str) -> set[str]:
    """Return the beginnings of the longer words of *text*, so that "refused" is the same as "refuses"."""
    return {word[:5] for word in re.findall(r"\w{4,}", text.casefold())}


def _texts(plan: Plan) -> Iterator[str]:
    """Yield what a plan says about the result, without its numbers and ids."""
    must = plan.must_haves
    yield from (plan.objective, *plan.files_modified, *(truth.text for truth in must.truths))
    for artifact in must.artifacts:
        yield from (artifact.provides, artifact.contains, *artifact.exports)
    for task in plan.tasks:
        yield from (task.name, task.action, task.verify, task.check, task.done, *task.details.values())


def _unwritable(plan: Plan) -> Iterator[str]:
    """Yield why a plan cannot be written: above the limit of size, nothing could read it back."""
    try:
        render_plan(plan)
    except PlanningError as error:
        yield f"{plan.id}: {error}"


def find_bad_patterns(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the patterns of a plan's key links.

    A pattern that is not a regular expression would be searched for as it is, and the link would be reported
    or accepted by chance.
    """
    for number, link in enumerate(plan.must_haves.key_links, start=1):
        where = f"{plan.id}, key link {number} ({link.source} -> {link.target})"
        try:
            re.compile(link.pattern, re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            hint = "escape characters such as ( [ { * + ? . with \\, or leave the pattern out"
            yield f"{where}: the pattern `{link.pattern}` is not a regular expression: {error} ({hint})"


def trivial_checks(plan: Plan) -> Iterator[str]:
    """Yield which tasks of a plan have a check that cannot fail."""
    for task in plan.tasks:
        if is_trivial_check(task.check):
            yield f"task {task.number}: the check `{task.check}` proves nothing"


def blockers(issues: Iterable[Issue]) -> list[str]:
    """Return the issues that have to be fixed, each in one line."""
    return [describe(issue) for issue in issues if issue.severity == "blocker"]


def describe(issue: Issue) -> str:
    """Return an issue in one line: where it is, what is wrong, and how to fix it."""
    where = f"{issue.plan}, task {issue.task}" if issue.task else issue.plan
    hint = f" ({issue.fix_hint})" if issue.fix_hint else ""
    return f"{where}: {issue.description}{hint}" if where else f"{issue.description}{hint}"


def addresses(plan: Plan, gap: Gap) -> bool:
    """Whether *plan* repeats the gap's truth, mentions what the gap is about, or changes that file."""
    truths = (truth.text for truth in plan.must_haves.truths)
    texts = (plan.objective, *truths, *(task.action for task in plan.tasks))
    if normalized(gap.truth) in map(normalized, texts):
        return True
    if not gap.about:
        return False
    return gap.about in {*plan.files_modified, *plan.requirements} or any(gap.about in text for text in texts)


def normalized(text: str) -> str:
    """Return a truth's text in a form that can be compared with another."""
    return " ".join(text.lower().split()).rstrip(".")


# Trivial checks

_OPERATORS = ";&|()\n"
_ALWAYS_SUCCEED = ("true", ":", "echo", "printf", "sleep")
_HIDE_FAILURE = ("cat", "tee", "head", "tail")
"""Commands that hide a failure when they end a pipeline."""

_Command: TypeAlias = tuple[str, tuple[str, ...]]
"""A simple command's words, after the operator that precedes it (empty for the first)."""


def is_trivial_check(command: str) -> bool:
    """Whether *command* clearly cannot fail: ``true``, ``echo ok``, ``pytest || true``.

    Only clear cases count. Anything that takes a real shell parser (a subshell, ``set -e``, an
    unclosed quote) is not trivial, since a good check must not be rejected.
    """
    try:
        commands = tuple(_commands(command))
    except ValueError:
        return False
    # `set +e` is what a shell does anyway.
    commands = tuple(one for one in commands if one[1] != ("set", "+e"))
    if any("(" in operator or ")" in operator or words[:1] == ("set",) for operator, words in commands):
        return False
    if not commands:
        return False
    # The last command decides the exit code; behind `&&`, so do the commands before it.
    for operator, words in reversed(commands):
        hides_failure = operator in ("|", "|&") and words[0] in _HIDE_FAILURE
        succeeds = words[0] in _ALWAYS_SUCCEED or words[:2] == ("exit", "0")
        if not hides_failure and not succeeds:
            return False
        if operator != "&&":
            return True
    return True


def _commands(line: str) -> Iterator[_Command]:
    lexer = shlex.shlex(line.strip(), posix=False, punctuation_chars=_OPERATORS)
    # A newline separates commands, so it is an operator here and not whitespace.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    operator, words = "", list[str]()
    for token in lexer:
        if token.strip(_OPERATORS):
            words.append(token)
            continue
        if words:
            yield operator, tuple(words)
            operator, words = "", []
        operator += token.strip("\n") or ";"
    if words or "(" in operator or ")" in operator:
        yield operator, tuple(words)
