"""The plugins budget, yolo, inplace and retry, through their hooks."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from attrs import define, field

from gsd_core import (
    Credentials,
    Inquiry,
    Option,
    Permanent,
    PluginError,
    ProjectInfo,
    Question,
    Spend,
    StepRequest,
    StepResult,
    Transient,
    bind_settings,
)
from gsd_plugins import budget, inplace, retry, yolo

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def spend(spent: str, reserved: str | None = None, unknown: int = 0) -> Spend:
    return Spend(
        run="r-1",
        step="1/plan",
        spent=Decimal(spent),
        reserved=Decimal(reserved) if reserved else None,
        calls=3,
        unknown_calls=unknown,
    )


def stop_reason(limit: str | None, spent: Spend) -> str:
    limits = budget.BudgetSettings(max_usd=Decimal(limit) if limit else None)
    with bind_settings({budget.BudgetSettings: limits}):
        verdict = asyncio.run(budget.check_budget(spent))
    return verdict.reason if verdict else ""


def test_without_a_budget_nothing_stops() -> None:
    assert stop_reason(None, spend("1000000", "50")) == ""


def test_a_spent_budget_stops_the_run() -> None:
    assert stop_reason("5", spend("5")).startswith("$5 of the $5 ")


def test_a_budget_stops_before_a_call_that_could_exceed_it() -> None:
    reason = stop_reason("5", spend("4.50", "0.51"))

    assert all(amount in reason for amount in ("$4.50", "$5 ", "$0.51"))


def test_a_call_that_exactly_reaches_the_budget_is_allowed() -> None:
    assert stop_reason("5", spend("4.50", "0.50")) == ""


def test_a_zero_budget_allows_no_call() -> None:
    assert stop_reason("0", spend("0")).startswith("$0 of the $0 ")


def test_calls_of_unknown_cost_are_mentioned() -> None:
    assert "2 calls of unknown cost" in stop_reason("5", spend("6", unknown=2))
    assert "1 call of unknown cost" in stop_reason("5", spend("4", "2", unknown=1))


def answers(inquiry: Inquiry, *, yes: bool = True) -> dict[str, tuple[str, ...]]:
    with bind_settings({yolo.YoloSettings: yolo.YoloSettings(yes=yes)}):
        given = asyncio.run(yolo.answer_as_recommended(inquiry)) or ()
    assert {(answer.how, answer.by) for answer in given} <= {("policy", "--yes")}
    return {answer.question: answer.chosen for answer in given}


def question(name: str = "q-1", *labels: str, recommended: str = "", human_only: bool = False) -> Question:
    options = tuple(Option(label=label, recommended=label == recommended) for label in labels)
    return Question(id=name, text="Which?", options=options, human_only=human_only)


def test_yes_takes_the_recommended_option() -> None:
    assert answers(Inquiry(questions=(question("q-1", "a", "b", recommended="b"),))) == {"q-1": ("b",)}


def test_yes_takes_the_first_option_if_none_is_recommended() -> None:
    assert answers(Inquiry(questions=(question("q-1", "a", "b"),))) == {"q-1": ("a",)}


def test_yes_approves_a_checkpoint_that_a_human_would_verify() -> None:
    inquiry = Inquiry(kind="checkpoint", questions=(question("q-1", "approved", "there is a problem"),))

    assert answers(inquiry) == {"q-1": ("approved",)}


def test_without_yes_nothing_is_answered() -> None:
    assert answers(Inquiry(questions=(question("q-1", "a"),)), yes=False) == {}


def test_yes_never_answers_for_a_human_action() -> None:
    inquiry = Inquiry(kind="checkpoint", questions=(question("q-1", "done", human_only=True),))

    assert answers(inquiry) == {}


def test_yes_never_answers_an_escalation() -> None:
    inquiry = Inquiry(kind="escalation", questions=(question("q-1", "retry", "skip", recommended="retry"),))

    assert answers(inquiry) == {}


def test_yes_permits_a_tool_only_if_that_is_recommended() -> None:
    allow = Inquiry(kind="permission", questions=(question("q-1", "Allow", "Deny"),))
    refuse = Inquiry(kind="permission", questions=(question("q-1", "Allow", "Deny", recommended="Deny"),))

    assert (answers(allow), answers(refuse)) == ({}, {"q-1": ("Deny",)})


def test_yes_skips_a_question_without_options_and_answers_the_rest() -> None:
    inquiry = Inquiry(questions=(question("q-open"), question("q-2", "a")))

    assert answers(inquiry) == {"q-2": ("a",)}


def test_yes_turns_off_the_gates_and_leaves_the_safety_settings() -> None:
    proposed = {v.key: v.value for v in yolo.propose_config(ProjectInfo(root=Path(), yes=True))}

    assert (proposed.pop("mode"), proposed.pop("workflow.auto_advance")) == ("yolo", True)
    assert proposed == {f"gates.{gate}": False for gate in yolo.GATES}


def test_without_yes_no_setting_is_proposed() -> None:
    assert list(yolo.propose_config(ProjectInfo(root=Path()))) == []


def request(project: Path = Path()) -> StepRequest:
    return StepRequest(id="1/plan", run="r-1", kind="plan", project=project, tree=project, now=NOW)


def test_the_project_itself_is_the_workspace(tmp_path: Path) -> None:
    async def tree() -> Path:
        workspace = await inplace.project_folder(request(tmp_path))
        assert workspace is not None
        async with workspace as path:
            return path

    assert asyncio.run(tree()) == tmp_path


@define
class Attempts:
    """A step that raises the given errors, then succeeds; *pauses* are the waits in between."""

    errors: list[BaseException]
    made: int = 0
    pauses: list[float] = field(factory=list[float])

    async def __call__(self, step: StepRequest, /) -> StepResult:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return StepResult(subject="done")

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def tried(
    *errors: BaseException,
    settings: retry.RetrySettings | None = None,
    jitter: Callable[[], float] = lambda: 1.0,
) -> tuple[Attempts, BaseException | None]:
    attempts = Attempts(errors=list(errors))
    clock = retry.Clock(now=lambda: NOW, sleep=attempts.sleep, jitter=jitter)
    try:
        asyncio.run(retry.retry(request(), attempts, settings or retry.RetrySettings(), clock))
    except BaseException as exc:
        return attempts, exc
    return attempts, None


def test_a_transient_failure_is_retried_after_a_pause() -> None:
    attempts, error = tried(Transient("overloaded"))

    assert (attempts.made, attempts.pauses, error) == (2, [2.0], None)


def test_the_last_failure_is_raised() -> None:
    first, second = Transient("overloaded"), Transient("still overloaded")
    attempts, error = tried(first, second)

    assert (attempts.made, error) == (2, second)


def test_pauses_double_up_to_the_maximum_and_jitter_shortens_them() -> None:
    settings = retry.RetrySettings(attempts=5, wait=timedelta(seconds=20), max_wait=timedelta(seconds=60))
    attempts, _ = tried(*[Transient("x") for _ in range(4)], settings=settings, jitter=lambda: 0.0)

    assert attempts.pauses == [10.0, 20.0, 40.0, 60.0]


def test_a_retry_time_within_the_maximum_wait_is_waited_for() -> None:
    attempts, error = tried(Transient("limit", NOW + timedelta(seconds=45)))

    assert (attempts.pauses, error) == ([45.0], None)


def test_a_later_retry_time_is_left_to_the_core() -> None:
    limit = Transient("limit", NOW + timedelta(seconds=61))
    attempts, error = tried(limit)

    assert (attempts.made, attempts.pauses, error) == (1, [], limit)


@pytest.mark.parametrize(
    "error",
    [
        Permanent("no"),
        Credentials("log in"),
        PluginError("x", "gsd_run_agent", "boom"),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
        RuntimeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_are_not_retried(error: BaseException) -> None:
    attempts, raised = tried(error)

    assert (attempts.made, attempts.pauses, type(raised)) == (1, [], type(error))


def test_the_raised_error_pickles() -> None:
    _, error = tried(Transient("a"), Transient("b", hint="later"))

    revived = pickle.loads(pickle.dumps(error))
    assert (str(revived), revived.hint) == ("b", "later")


def test_the_hook_uses_the_run_s_settings() -> None:
    attempts = Attempts(errors=[Transient("a"), Transient("b")])
    settings = retry.RetrySettings(attempts=3, wait=timedelta(0))
    with bind_settings({retry.RetrySettings: settings}):
        result = asyncio.run(retry.retry_step(request(), attempts))

    assert (result.subject, attempts.made) == ("done", 3)


def test_the_settings_are_contributed() -> None:
    classes = [*budget.settings(), *yolo.settings(), *retry.settings()]

    assert classes == [budget.BudgetSettings, yolo.YoloSettings, retry.RetrySettings]
