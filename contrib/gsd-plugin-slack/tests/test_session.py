"""Questions in Slack: how they are shown, who may answer, and what happens when Slack is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
import gsd_plugin_slack as plugin
import pytest
from gsd_plugin_slack import SlackSettings, session, thread
from gsd_plugin_slack.storage import Storage
from slack_stand_in import ADA, APP, BOT, CHANNEL, EVE, SlackStandIn, is_open, text_of

from gsd_core import Answer, ConfigError, Event, EventName, Inquiry, Notice, Option, Question, bind_settings
from gsd_core.settings import Layer, restricted
from gsd_core.testing import a_notice, a_run, an_event
from gsd_core.testing.conformance import check_doctor, check_settings

T = TypeVar("T")
pytest_plugins = ["gsd_core.testing.pytest_plugin"]


@pytest.fixture
def slack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[SlackStandIn]:
    """Return a stand-in without a limit of messages, and make the plugin as fast as that allows."""
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SLACK_BOT_TOKEN", BOT)
    monkeypatch.setenv("SLACK_APP_TOKEN", APP)
    for module, name in (
        (session, "NOTICEABLE"),
        (thread, "PACE"),
        (thread, "PACE_OF_CHANGES"),
        (thread, "FIRST_PAUSE"),
        (session, "FIRST_PAUSE"),
        (session, "CHECK_EVERY"),
    ):
        monkeypatch.setattr(module, name, 0.02)
    monkeypatch.setattr(session, "PING", 0.3)
    stand_in = SlackStandIn()
    stand_in.pace = 0
    with stand_in.serving():
        yield stand_in


def settings_for(slack: SlackStandIn, **changes: Any) -> SlackSettings:
    return attrs.evolve(SlackSettings(channel=CHANNEL, users=(ADA,), api_url=slack.url), **changes)


async def in_thread(work: Callable[[], T]) -> T:
    """Do what a person does, which blocks, beside the run."""
    return await asyncio.to_thread(work)


def during_a_run(
    slack: SlackStandIn,
    scenario: Callable[[SlackSettings], Awaitable[None]],
    run: str = "r-20260103T040506-1a2b3c",
    **changes: Any,
) -> None:
    """Play *scenario* while a run has the plugin open."""

    async def play() -> None:
        settings = settings_for(slack, **changes)
        with bind_settings({SlackSettings: settings}):
            [context] = plugin.lifespan(a_run(Path("ledger"), id=run, idea="# Ledger", command="gsd -C x"))
            async with context:
                await scenario(settings)

    asyncio.run(play())


def question(name: str, *labels: str, **changes: Any) -> Question:
    options = tuple(Option(label=label) for label in labels)
    return Question(id=f"q-{name}", text=f"Which {name}?", options=options, **changes)


def event(name: EventName, /, **data: Any) -> Event:
    return an_event(name, data=data)


async def ask(*questions: Question, **changes: Any) -> asyncio.Task[Sequence[Answer] | None]:
    inquiry = Inquiry(questions=questions, step="1/plan", **changes)
    task = asyncio.create_task(plugin.answer(inquiry))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    return task


def test_every_kind_of_question_can_be_answered(slack: SlackStandIn) -> None:
    many = [f"{n} {'long ' * 30}" for n in range(30)]
    few, menu = question("a1", "x", "y", free_text=False), question("a2", *many)
    several, words = question("a3", "x", "y", "z", multiple=True), question("a4")

    async def scenario(_: SlackSettings) -> None:
        task = await ask(few)
        assert await in_thread(lambda: slack.click(slack.question("a1"), "gsd_choose_1"))
        assert await task == [Answer(question="q-a1", chosen=("y",), by="ada (U0ADA)")]

        task = await ask(menu)
        chosen: dict[str, Any] = {"selected_option": {"value": "29"}}
        assert await in_thread(lambda: slack.click(slack.question("a2"), "gsd_submit", **chosen))
        assert await task == [Answer(question="q-a2", chosen=(many[29],), by="ada (U0ADA)")]

        task = await ask(several)
        chosen = {"selected_options": [{"value": "2"}, {"value": "0"}]}
        assert await in_thread(lambda: slack.click(slack.question("a3"), "gsd_submit"))
        assert await in_thread(lambda: slack.click(slack.question("a3"), "gsd_submit", **chosen))
        assert await task == [Answer(question="q-a3", chosen=("x", "z"), by="ada (U0ADA)")]
        assert [told["text"] for told in slack.told] == ["Choose an option first."]

        task = await ask(words)
        assert await in_thread(lambda: slack.click(slack.question("a4"), "gsd_own_words"))
        view = await in_thread(lambda: slack.wait_for(lambda: slack.views, "a dialog"))
        refused = await in_thread(lambda: slack.submit(view[0], "  "))
        assert refused
        assert refused["payload"]["response_action"] == "errors"
        assert await in_thread(lambda: slack.submit(view[0], "a < b & c", user=EVE))
        assert not task.done()
        assert await in_thread(lambda: slack.submit(view[0], "a < b & c"))
        assert await task == [Answer(question="q-a4", text="a < b & c", by="ada (U0ADA)")]

    during_a_run(slack, scenario)
    assert slack.problems == []


def test_talk_in_the_thread_is_no_answer(slack: SlackStandIn) -> None:
    async def scenario(_: SlackSettings) -> None:
        task = await ask(question("b1", "SQLite", "PostgreSQL"))
        await in_thread(lambda: slack.question("b1"))
        [root] = slack.roots()
        for text, user in (("what does this mean?", ADA), ("PostgreSQL", EVE), ("3", ADA)):
            await in_thread(lambda text=text, user=user: slack.reply(root, text, user))
        await in_thread(lambda: slack.wait_for(lambda: len(slack.told) == 3, "three refusals"))
        assert not task.done()
        await in_thread(lambda: slack.reply(root, "q-b1: both, &lt;see&gt; <https://x.example|x.example>"))
        [answer] = list(await task or ())
        assert (answer.text, answer.by) == ("both, <see> x.example", ADA)

        task = await ask(question("b2", "SQLite", "PostgreSQL"))
        await in_thread(lambda: slack.question("b2"))
        await in_thread(lambda: slack.reply(root, "postgresql"))
        [answer] = list(await task or ())
        assert answer.chosen == ("PostgreSQL",)

    during_a_run(slack, scenario)


def test_nobody_can_permit_what_is_not_shown_completely(slack: SlackStandIn) -> None:
    long = attrs.evolve(question("c1", "Allow", "Deny", free_text=False), text="x" * 9000)
    evil = attrs.evolve(question("c2", "Allow"), text="<!channel> *bold* " * 300)

    async def scenario(_: SlackSettings) -> None:
        task = await ask(long, kind="permission")
        await in_thread(lambda: slack.wait_for(lambda: slack.questions(), "the question"))
        [message] = slack.questions()
        assert not is_open(message)
        assert "gsd -C x answer q-c1" in text_of(message)
        [root] = slack.roots()
        await in_thread(lambda: slack.reply(root, "q-c1 Allow"))
        await in_thread(lambda: slack.wait_for(lambda: slack.told, "a refusal"))
        assert not task.done()
        task.cancel()

        task = await ask(evil, kind="permission")
        shown = await in_thread(lambda: slack.question("channel"))
        assert evil.text in text_of(shown).replace("\n", "")
        assert "<!channel>" not in shown["text"]
        texts = [block["text"] for block in shown["blocks"] if "channel" in str(block)]
        assert {text["type"] for text in texts} == {"plain_text"}
        task.cancel()

    during_a_run(slack, scenario)
    assert slack.problems == []


def test_an_answer_from_elsewhere_is_shown_and_the_next_questions_of_the_batch_stay(
    slack: SlackStandIn,
) -> None:
    first, second, third = (question(name, "x", "y") for name in ("d1", "d2", "d3"))

    async def scenario(_: SlackSettings) -> None:
        task = await ask(first, second, third)
        await in_thread(lambda: slack.wait_for(lambda: len(slack.questions()) == 3, "three questions"))
        messages = {name: slack.question(name) for name in ("d1", "d2", "d3")}
        # Two people click at the same time; the core takes one answer after the other.
        assert await in_thread(lambda: slack.click(messages["d2"], "gsd_choose_0"))
        assert await in_thread(lambda: slack.click(messages["d3"], "gsd_choose_1"))
        assert [answer.question for answer in await task or ()] == ["q-d2"]
        for happened in (
            event(
                "question.answered", question="q-d2", words="x", how="human", by="ada (U0ADA)", via="slack"
            ),
            event("question.answered", question="q-d1", words="y", how="human", by="", via="terminal"),
        ):
            await plugin.on_event(happened)
        task = await ask(third)
        assert [answer.question for answer in await task or ()] == ["q-d3"]
        await plugin.on_event(event("question.withdrawn", questions=["q-d3"]))
        await plugin.notify(a_notice())
        assert len(slack.questions()) == 3
        texts = "\n".join(text_of(message) for message in slack.questions())
        for part in ("Answered by ada (U0ADA) in Slack: x", "Answered at the terminal: y", "Withdrawn"):
            assert part in texts
        assert not any(is_open(message) for message in slack.questions())
        assert await in_thread(lambda: slack.click(messages["d1"], "gsd_choose_0"))
        await in_thread(lambda: slack.wait_for(lambda: slack.told, "a refusal"))
        assert "at the terminal" in slack.told[-1]["text"]

    during_a_run(slack, scenario)


def test_people_are_reminded_of_a_question_that_stays_open_each_time_once(slack: SlackStandIn) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5p" + "Q8sT1vW4yZ7cF0hL3nR6"

    def notice(reminder: int) -> Notice:
        return a_notice(
            key=f"question r 7 reminder {reminder}" if reminder else "question r 7",
            type="question",
            title="ledger: 1/plan is still waiting for an answer",
            body=f"q-r1: Which r1? <!channel> {secret}",
            question="q-r1",
            answer_with="gsd -C /ledger answer q-r1 CHOICE",
            reminder=reminder,
        )

    async def scenario(_: SlackSettings) -> None:
        task = await ask(question("r1", "x", "y"))
        await in_thread(lambda: slack.question("r1"))
        await plugin.notify(notice(0))  # the question is there
        slack.lose_replies = 1
        await plugin.notify(notice(1))
        await plugin.notify(notice(2))
        assert await in_thread(lambda: slack.click(slack.question("r1"), "gsd_choose_0"))
        assert await task

    during_a_run(slack, scenario)
    [root] = slack.roots()
    reminders = [message for message in slack.messages if "still waiting" in text_of(message)]
    assert len(reminders) == 2
    for message in reminders:
        assert message["thread_ts"] == root["ts"]
        assert f"<@{ADA}>" in message["text"]
        assert f"<@{ADA}>" in text_of(message)
        assert "gsd -C /ledger answer q-r1 CHOICE" in text_of(message)
        assert "<!channel>" not in message["text"]
    assert secret not in str(slack.messages)
    assert len(slack.questions()) == 1
    assert slack.problems == []


def test_slack_that_is_away_loses_and_repeats_nothing(slack: SlackStandIn) -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5p" + "Q8sT1vW4yZ7cF0hL3nR6"
    slack.down = True

    async def scenario(_: SlackSettings) -> None:
        task = await ask(attrs.evolve(question("e1", "x", "y"), text=f"Use {secret} and {BOT}?"))
        await plugin.on_event(event("phase.started", number="1", name=f"Leak {secret}"))
        await in_thread(lambda: slack.wait_for(lambda: len(slack.calls) > 2, "attempts"))
        # It comes back, but replies to the first two messages are lost, and the third is one too many.
        slack.lose_replies, slack.down = 2, False
        slack.errors = {"chat.update": ["internal_error"]}
        message = await in_thread(lambda: slack.question("Use"))
        slack.cut()
        assert await in_thread(lambda: slack.click(message, "gsd_choose_0"))
        assert await task
        await plugin.notify(a_notice())
        assert len(slack.roots()) == len(slack.questions()) == 1

    during_a_run(slack, scenario)
    shown = str(slack.messages)
    assert "Leak" in shown
    assert secret not in shown
    assert BOT not in shown


def test_a_message_that_somebody_deleted_is_posted_again(slack: SlackStandIn) -> None:
    async def scenario(_: SlackSettings) -> None:
        inquiry = question("f1", "x", "y")
        task = await ask(inquiry)
        slack.delete(await in_thread(lambda: slack.question("f1")))
        task.cancel()
        task = await ask(attrs.evolve(inquiry, header="Again"))
        assert await in_thread(lambda: slack.click(slack.question("Again"), "gsd_choose_0"))
        assert await task
        slack.messages.clear()
        await plugin.on_event(event("phase.started", number="1", name="Greetings"))
        await plugin.on_event(event("step.started", kind="plan"))
        await plugin.notify(a_notice())

    during_a_run(slack, scenario)
    assert len(slack.roots()) == 1


def test_a_click_that_another_run_received_reaches_its_run(slack: SlackStandIn, tmp_path: Path) -> None:
    async def play() -> None:
        with bind_settings({SlackSettings: settings_for(slack)}):
            [context] = plugin.lifespan(a_run(Path("ledger"), id="r-1", idea="One"))
            async with context:
                task = await ask(question("0a1", "x", "y"))
                message = await in_thread(lambda: slack.question("0a1"))
                forged = {
                    "user": {"id": ADA},
                    "actions": [
                        {"action_id": "gsd_choose_0", "value": "0", "block_id": "gsd|r-1|q-0a1|controls"}
                    ],
                }
                storage = Storage(folder=tmp_path / "state" / "slack", key=b"guessed")
                assert storage.forward("r-1", "action", forged)
                other = settings_for(slack)
                with bind_settings({SlackSettings: other}):
                    [second] = plugin.lifespan(a_run(Path("ledger"), id="r-2", idea="Two"))
                    async with second:
                        # The stand-in sends clicks to the newest socket, which is the second run's.
                        await in_thread(lambda: slack.wait_for(lambda: slack.connections == 2, "two sockets"))
                        assert await in_thread(lambda: slack.click(message, "gsd_choose_1"))
                        assert [answer.chosen for answer in await task or ()] == [("y",)]

    asyncio.run(play())


def test_who_may_answer_is_no_setting_of_the_project() -> None:
    [classes] = plugin.contribute_settings()
    check_settings(plugin)
    sections = {"slack": {"users": [EVE], "api_url": "https://evil.example/", "channel": "C1"}}
    layer = Layer(origin="gsd.toml", sections=sections, project=True)
    found = {item.name: item.consent for item in restricted([("slack", classes)], [layer])}

    assert found == {"slack.users": True, "slack.api_url": True, "slack.channel": False}
    for wrong in ({"api_url": "http://slack.example/api/"}, {"channel": "#general"}, {"users": ("@ada",)}):
        with pytest.raises(ValueError, match="expected"):
            SlackSettings(**wrong)  # type: ignore[arg-type]


def test_the_set_up_is_checked(slack: SlackStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    def problems(**changes: Any) -> dict[str, str]:
        with bind_settings({SlackSettings: settings_for(slack, **changes)}):
            return {finding.name: finding.fix for finding in check_doctor(plugin) if not finding.ok}

    assert problems() == {}
    assert list(problems(channel="C9", users=("U9",))) == ["slack channel", "slack user U9"]
    assert problems(channel="") == {}
    monkeypatch.setenv("SLACK_APP_TOKEN", "xapp-1-wrong")
    assert list(problems()) == ["slack app token"]
    monkeypatch.delenv("SLACK_BOT_TOKEN")
    assert list(problems()) == ["slack tokens"]
    with pytest.raises(ConfigError, match="SLACK_BOT_TOKEN is not set"):
        during_a_run(slack, lambda _: asyncio.sleep(0))
