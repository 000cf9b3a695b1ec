"""Kinds of steps that plugins add, and steps that the user asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field, frozen

from gsd_core import (
    AgentResult,
    AgentTask,
    Done,
    FileWrite,
    Found,
    Gap,
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
)
from gsd_core.errors import ConfigError
from gsd_core.exit_codes import ExitCode
from gsd_core.git import Git
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_execute_step, gsd_steps
from gsd_core.journal.store import Journal
from gsd_core.machine.facts import Record
from gsd_core.machine.state import Options
from gsd_core.planning.verification import parse_verdict
from gsd_core.run.runtime import Effects, RunEnd

from . import harness as h


@define(eq=False)
class Review:
    """A step before *before* in each phase; it writes a file and finds the *gaps* that *check* returns."""

    before: Any = "complete"
    check: Callable[[StepRequest], tuple[Gap, ...]] = lambda step: ()
    writes: tuple[str, ...] = ("{phase}/{number}-REVIEW.md",)
    path: str = "{phase}/{number}-REVIEW.md"
    due: Callable[[StepSituation], bool] | None = None
    seen: list[StepRequest] = field(factory=list[StepRequest], init=False)

    @implements(gsd_steps)
    def steps(self) -> Iterable[StepType]:
        """Contribute the kind."""
        yield StepType(
            kind="review", before=self.before, due=self.due or self.is_due, writes=self.writes, title="Review"
        )

    def is_due(self, now: StepSituation) -> bool:
        """After each verification once."""
        kinds = [step.kind for step in now.completed]
        return (
            "review" not in kinds[len(kinds) - kinds[::-1].index("verify") :] if "verify" in kinds else True
        )

    @implements(gsd_execute_step)
    async def execute(self, step: StepRequest, host: StepHost) -> StepResult | None:
        """Do the step."""
        if step.kind != "review":
            return None
        self.seen.append(step)
        folder = step.phase.directory if step.phase else ".planning"
        path = self.path.replace("{phase}", folder).replace("{number}", "01")
        gaps = self.check(step)
        file = FileWrite(path=path, text=f"# Review\n\n{len(gaps)} found. {step.text}\n")
        outcome = Found(gaps=gaps) if step.phase else Done()
        return StepResult(subject="docs: review", files=(file,), outcome=outcome)


def completed(root: Path) -> list[str]:
    return [fact.step for fact in h.facts(root, "step.completed")]


def do(root: Path, review: object, **more: object) -> RunEnd:
    # Without the audit of the milestone, which has tests of its own.
    given = h.request(root, h.one_phase(), given=h.idea(), review=review, run={"audit": False}, **more)  # type: ignore[arg-type]
    return h.do(given)


@pytest.mark.slow
def test_a_step_comes_right_before_the_one_it_names(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    review = Review()

    end = do(root, review)

    assert (end.outcome, end.exit) == ("done", 0)
    assert completed(root)[-3:] == ["1/verify", "1/review", "1/complete"]
    [path] = root.glob(".planning/phases/*/01-REVIEW.md")
    assert path.read_text().startswith("# Review")
    assert "GSD-Step: 1/review" in h.git(root, "log", "-1", "--format=%B", "--", str(path))


LICENSE = Gap(truth="The project has a license", reason="no LICENSE in the root", about="LICENSE")


@pytest.mark.slow
def test_the_gaps_it_finds_are_planned_executed_and_verified(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = do(root, review := Review(check=lambda step: () if step.round else (LICENSE,)))

    assert (end.outcome, end.exit) == ("done", 0)
    assert completed(root)[-8:] == [
        *("1/verify", "1/review", "1/debug/r1", "1/plan/r1", "1/execute/01-02"),
        *("1/verify/r1", "1/review/r1", "1/complete"),
    ]
    assert [step.round for step in review.seen] == [0, 1]
    # It gets what the phase's commits changed, and in the next round also what the gap round changed.
    for step, plans in zip(review.seen, (["01-01"], ["01-01", "01-02"]), strict=True):
        assert step.phase is not None
        assert step.phase.history is not None
        assert sorted(step.phase.commits) == plans
        shown = [
            h.git(root, "show", "--format=", "--name-only", sha)
            for sha in chain(*step.phase.commits.values())
        ]
        assert set(step.phase.changed) == set("\n".join(shown).split())
        assert set(step.phase.changed) <= step.phase.history.files
        assert ("LICENSE" in step.phase.changed) == (step.round == 1)
    verdicts = h.git(root, "log", "--format=%s", "--", ".planning/phases/01-greetings/01-VERIFICATION.md")
    assert verdicts.splitlines() == ["docs(01): verify phase", "docs: review", "docs(01): verify phase"]
    assert (root / "LICENSE").exists()


@pytest.mark.slow
def test_gaps_that_stay_end_the_run_with_their_exit_code(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    review = Review(check=lambda step: (LICENSE,))
    given = h.request(
        root, h.one_phase(), given=h.idea(), review=review, options=Options(gap_rounds=1), without=("yolo",)
    )

    end = h.do(given)

    assert (end.outcome, end.exit) == ("gaps", ExitCode.GAPS)
    assert "1/complete" not in completed(root)
    [path] = root.glob(".planning/phases/*/01-VERIFICATION.md")
    verdict = parse_verdict(path.read_text(), path="01-VERIFICATION.md")
    assert (verdict.status, [gap.truth for gap in verdict.gaps]) == ("gaps_found", [LICENSE.truth])
    assert verdict.gaps[0].found_by == "review"


@pytest.mark.slow
def test_a_step_that_stays_due_is_not_repeated_for_ever(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(
        h.request(root, h.one_phase(), given=h.idea(), review=Review(due=lambda now: True), without=("yolo",))
    )

    assert end.exit != 0
    assert completed(root).count("1/review") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        *("{phase}/01-VERIFICATION.md", "{phase}/01-01-SUMMARY.md", ".planning/ROADMAP.md", "greeter.py"),
        *(".planning/phases/02-other/01-REVIEW.md", "{phase}/../01-REVIEW.md", "{phase}/deep/01-REVIEW.md"),
    ],
)
def test_it_may_only_write_what_it_declared(tmp_path: Path, path: str) -> None:
    root = h.repository(tmp_path / "project")

    end = h.do(h.request(root, h.one_phase(), given=h.idea(), review=Review(path=path), without=("yolo",)))

    assert end.exit != 0
    assert "belongs to another step" in end.reason
    assert "1/review" not in completed(root)


@pytest.mark.slow
def test_steps_before_init_and_at_the_end_belong_to_no_phase(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    first = Review(
        before="init",
        writes=(".planning/codebase/*.md",),
        path=".planning/codebase/STACK.md",
        due=lambda now: not (now.project / ".planning/codebase/STACK.md").exists(),
    )
    last = Review(
        before="end",
        writes=(".planning/END.md",),
        path=".planning/END.md",
        due=lambda now: not (now.project / ".planning/END.md").exists(),
    )
    first.check = last.check = lambda step: ()

    @implements(gsd_steps)
    def both() -> Iterable[StepType]:
        for one, kind in ((first, "first-look"), (last, "tally")):
            yield from (evolve(found, kind=kind) for found in one.steps())

    @implements(gsd_execute_step)
    async def execute(step: StepRequest, host: StepHost) -> StepResult | None:
        one = {"first-look": first, "tally": last}.get(step.kind)
        if one is None:
            return None
        result = await one.execute(evolve(step, kind="review"), host)
        assert result is not None
        return StepResult(subject=result.subject, files=result.files)

    plugin = type("Plugin", (), {"both": staticmethod(both), "execute": staticmethod(execute)})()

    end = do(root, plugin)

    assert end.outcome == "done"
    assert (completed(root)[0], completed(root)[-1]) == ("first-look", "tally/v1.0")


@pytest.mark.parametrize(
    ("kind", "before", "message"),
    [
        ("verify", "complete", "'verify' is a kind of the core"),
        ("Review", "complete", "'Review' cannot be a kind"),
        ("review", "lunch", "'review' comes before 'lunch', not one of init, discuss"),
    ],
)
def test_an_invalid_kind_is_refused_before_the_start(
    tmp_path: Path, kind: str, before: str, message: str
) -> None:
    root = h.repository(tmp_path / "project")

    @implements(gsd_steps)
    def steps() -> Iterable[StepType]:
        yield StepType(kind=kind, before=before)  # type: ignore[arg-type]

    plugin = type("Plugin", (), {"steps": staticmethod(steps)})()
    with pytest.raises(ConfigError, match=message):
        do(root, plugin)


def test_a_plugin_that_cannot_tell_whether_its_step_is_due_ends_the_run(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    def due(now: StepSituation) -> bool:
        raise KeyError("missing")

    end = do(root, Review(due=due))

    assert (end.outcome, end.exit) == ("failed", 2)
    assert "plugin 'review' cannot tell whether 'review' is due" in end.reason
    assert "-p no:review" in end.reason


@pytest.mark.slow
def test_a_step_that_is_asked_for_leaves_the_lifecycle_where_it_is(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = h.one_phase()
    review = Review(before="", writes=(".planning/notes/*.md",), path=".planning/notes/1.md")
    stopped = h.do(h.request(root, agent, given=h.idea(), review=review, options=Options(phases=())))

    asked = evolve(
        h.request(root, agent, review=review, options=Options(only_asked=True)),
        asked={"review/first": "Look at the names."},
    )
    aside = h.do(asked)
    end = h.do(h.request(root, agent, review=review))

    assert stopped.outcome == "blocked"
    assert (aside.outcome, aside.exit, aside.reason) == ("done", 0, "review/first complete")
    assert [step.text for step in review.seen] == ["Look at the names."]
    assert end.outcome == "done"
    assert completed(root)[:2] == ["init", "review/first"]
    assert completed(root)[-2:] == ["1/complete", "audit/v1.0"]


class Ended(BaseException):
    """Stands for the end of the process."""


@frozen(kw_only=True)
class EndingEffects(Effects):
    """Effects that end the process before the first result of a review is recorded."""

    def append(self, kind: str, data: Mapping[str, Any], *, step: str, **more: Any) -> Record:
        if (kind, step) == ("step.result", "1/review"):
            raise Ended
        return super().append(kind, data, step=step, **more)


def ending_effects(journal: Journal, git: Git) -> Effects:
    return EndingEffects(journal=journal, git=git)


@pytest.mark.slow
def test_a_restart_does_not_forget_how_often_an_answer_was_sent_back(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    counts: list[int] = []
    review = Review()

    def accept(result: AgentResult) -> Sequence[str]:
        counts.append(result.sent_back)
        return ["better"] if result.sent_back < 2 else []

    @implements(gsd_execute_step)
    async def execute(step: StepRequest, host: StepHost) -> StepResult | None:
        if step.kind == "review":
            task = AgentTask(step=step.id, run=step.run, role="reviewer", prompt="Review.", tree=step.tree)
            await host.run_agent("review", task, accept)
        return await review.execute(step, host)

    plugin = type("Plugin", (), {"steps": review.steps, "execute": staticmethod(execute)})()
    given = h.request(root, h.one_phase(), given=h.idea(), review=plugin)
    with pytest.raises(Ended):
        h.do(evolve(given, effects=ending_effects))
    end = h.do(h.request(root, h.one_phase(), review=plugin))

    assert end.outcome == "done"
    # The third answer is taken, and after the restart again: nobody is asked a fourth time.
    assert counts == [0, 1, 2, 2]
    assert [fact.step for fact in h.facts(root, "agent.opened")].count("1/review") == 3
