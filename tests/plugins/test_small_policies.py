"""The plugins budget, yolo, inplace and retry, through their hooks."""

from __future__ import annotations

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from attrs import evolve

from gsd_core import (
    Credentials,
    Inquiry,
    Option,
    Outage,
    Permanent,
    PluginError,
    ProjectInfo,
    Question,
    Spend,
    StepRequest,
    StepResult,
    Stop,
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
    return verdict.reason if isinstance(verdict, Stop) else ""


def test_without_a_budget_nothing_stops() -> None:
    assert stop_reason(None, spend("1000000", "50")) == ""


def test_a_spent_budget_stops_the_run() -> None:
    assert stop_reason("5", spend("5")).startswith("$5.00 of the $5.00 ")


def test_a_budget_stops_before_a_call_that_could_exceed_it() -> None:
    reason = stop_reason("5", spend("4.50", "0.51"))

    assert all(amount in reason for amount in ("$4.50", "$5.00 ", "$0.51"))


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


def raised(
    error: BaseException,
    *,
    retries: int = 0,
    waited: timedelta = timedelta(0),
    settings: retry.RetrySettings | None = None,
    jitter: float = 1.0,
) -> BaseException:
    """Return what the plugin raises when an attempt ends with *error*."""

    async def attempt(step: StepRequest, /) -> StepResult:
        raise error

    step = evolve(request(), retries=retries, waited=waited)
    clock = retry.Clock(now=lambda: NOW, jitter=lambda: jitter)
    with pytest.raises(type(error)) as info:
        asyncio.run(retry.retry(step, attempt, settings or retry.RetrySettings(), clock))
    return info.value


def pause(error: BaseException) -> float | None:
    """Return the seconds until the next attempt; ``None`` if there is none."""
    assert isinstance(error, Transient)
    return (error.until - NOW).total_seconds() if error.until else None


def test_an_attempt_that_succeeds_is_not_repeated() -> None:
    async def attempt(step: StepRequest, /) -> StepResult:
        return StepResult(subject=step.id)

    with bind_settings({retry.RetrySettings: retry.RetrySettings()}):
        assert asyncio.run(retry.retry_step(request(), attempt)).subject == "1/plan"


def test_a_transient_failure_is_repeated_after_a_pause_until_there_were_enough_attempts() -> None:
    assert [pause(raised(Transient("lost"), retries=number)) for number in (0, 1)] == [2.0, None]


def test_an_outage_is_waited_for_until_the_time_for_it_is_used_up() -> None:
    settings = retry.RetrySettings(outage=timedelta(minutes=10), attempts=1)
    minutes = [
        pause(raised(Outage("529"), retries=40, waited=timedelta(minutes=m), settings=settings))
        for m in (0, 9, 10)
    ]

    assert minutes == [60.0, 60.0, None]


def test_an_outage_that_lasted_too_long_ends_the_step_even_if_the_service_names_a_time() -> None:
    error = Outage("529", NOW + timedelta(seconds=1))

    assert pause(raised(error, retries=40, waited=timedelta(hours=2))) is None


def test_by_default_an_outage_of_ten_minutes_does_not_end_a_run() -> None:
    assert pause(raised(Outage("529"), retries=20, waited=timedelta(minutes=10))) is not None


def test_an_outage_that_lasted_too_long_says_which_setting_limits_the_wait() -> None:
    error = raised(Outage("529"), retries=40, waited=timedelta(hours=2))

    assert isinstance(error, Outage)
    assert "retry.outage" in error.hint


def test_pauses_double_up_to_the_maximum_and_jitter_shortens_them_by_up_to_half() -> None:
    settings = retry.RetrySettings(wait=timedelta(seconds=20), max_wait=timedelta(seconds=60))

    for jitter, expected in ((1.0, [20.0, 40.0, 60.0, 60.0]), (0.0, [10.0, 20.0, 30.0, 30.0])):
        found = [
            pause(raised(Outage("x"), retries=n, settings=settings, jitter=jitter)) for n in (0, 1, 2, 10**6)
        ]
        assert found == expected


def test_the_time_that_a_service_names_is_waited_for_but_never_less_than_the_backoff() -> None:
    later, past = NOW + timedelta(minutes=5), NOW - timedelta(hours=1)

    assert pause(raised(Outage("busy", later))) == 300.0
    assert pause(raised(Outage("busy", past))) == 2.0


def test_a_usage_limit_is_waited_for_whatever_happened_before() -> None:
    limit = Transient("limit", NOW + timedelta(hours=3))

    assert pause(raised(limit, retries=9, waited=timedelta(hours=1))) == 3 * 3600


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
def test_other_errors_are_passed_on_as_they_are(error: BaseException) -> None:
    assert raised(error) is error
    assert not hasattr(error, "until")


def test_the_raised_error_pickles() -> None:
    revived = pickle.loads(pickle.dumps(raised(Outage("b", hint="later"))))

    assert (str(revived), revived.hint, pause(revived)) == ("b", "later", 2.0)


def test_the_settings_are_contributed() -> None:
    classes = [*budget.settings(), *yolo.settings(), *retry.settings()]

    assert classes == [budget.BudgetSettings, yolo.YoloSettings, retry.RetrySettings]
