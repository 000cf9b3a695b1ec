"""Notifications: once each, with the result recorded, and reminders of questions that stay open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import define, evolve, field

from gsd_core import Answer, Delivery, Event, Inquiry, Notice, dollars_text, implements
from gsd_core.hookspecs import gsd_answer, gsd_links, gsd_notify, gsd_on_event
from gsd_core.run import notifying
from gsd_core.testing import RecordingNotifier, ScriptedHuman

from . import harness as h


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "NOTIFY_AFTER", timedelta(seconds=0.05))


@define(eq=False)
class Answers:
    """Answers with *label* as soon as the notifier has received *count* notices about questions."""

    notifier: RecordingNotifier
    count: int
    label: str = "Period"

    @implements(gsd_answer)
    async def wait(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        while len(questions(self.notifier)) < self.count:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
        return [Answer(question=inquiry.questions[0].id, chosen=(self.label,))]


def questions(notifier: RecordingNotifier) -> list[Notice]:
    return [notice for notice in notifier.notices if notice.type == "question"]


@pytest.mark.slow
def test_reminders_come_at_growing_intervals_until_the_answer(tmp_path: Path) -> None:
    root, notifier = h.repository(tmp_path / "project"), RecordingNotifier()
    sections = {"notify": {"remind_after": 0.1, "events": ["question"]}}
    agent, human = h.one_phase(question=True), Answers(notifier, 4)

    end = h.do(
        h.request(root, agent, given=h.idea(), yes=False, sections=sections, notifier=notifier, human=human)
    )

    notices = notifier.notices  # of the other types there are none
    begun = [fact.at for fact in h.facts(root, "notice.begun")]
    waits = [(later - earlier).total_seconds() for earlier, later in pairwise(begun)]
    assert end.outcome == "done"
    assert [notice.reminder for notice in notices] == [0, 1, 2, 3]
    assert len({notice.key for notice in notices}) == 4
    assert "still waiting for an answer" in notices[3].title
    assert {notice.answer_with for notice in notices} == {f"gsd -C {root} answer {h.asked(root)[0]} CHOICE"}
    assert [wait >= least for wait, least in zip(waits, (0.1, 0.2, 0.4), strict=True)] == [True] * 3, waits


@pytest.mark.slow
def test_a_process_that_resumes_the_run_sends_nothing_twice_and_reminds_when_it_is_time(
    tmp_path: Path,
) -> None:
    root, notifier = h.repository(tmp_path / "project"), RecordingNotifier()

    def run(remind_after: float) -> None:
        sections = {"notify": {"remind_after": remind_after}}
        h.do(
            h.request(
                root,
                h.one_phase(question=True),
                given=h.idea(),
                yes=False,
                notifier=notifier,
                sections=sections,
                run={"wait_for_answers": 0.3},
            )
        )

    run(3600)
    assert [notice.reminder for notice in questions(notifier)] == [0]
    run(3600)
    assert [notice.reminder for notice in questions(notifier)] == [0]
    # The first reminder is overdue by now, and there is one, not one for each interval that has passed.
    run(0.2)
    assert [notice.reminder for notice in questions(notifier)] == [0, 1]
    keys = [notice.key for notice in notifier.notices]
    assert len(set(keys)) == len(keys)


@define(eq=False)
class Links:
    """Links to pages, or to what is none; fails if it is asked about a question."""

    links: tuple[str, ...]

    @implements(gsd_links)
    def link(self, notice: Notice) -> Iterable[str]:
        yield from self.links
        if notice.type == "question":
            raise RuntimeError("no link")


@pytest.mark.slow
@pytest.mark.parametrize("strict", [False, True])
def test_notices_have_the_links_of_plugins_and_are_sent_if_there_are_none(
    tmp_path: Path, strict: bool
) -> None:
    root, notifier = h.repository(tmp_path / "project"), RecordingNotifier()
    many = tuple(f"https://example.net/{number}" for number in range(9))
    bad = ("javascript:alert(1)", "https://example.net/0\x1b[2J")

    request = h.request(
        root,
        h.one_phase(question=True),
        given=h.idea(),
        yes=False,
        notifier=notifier,
        human=Answers(notifier, 1),
        links=Links((*bad, "https://example.net/0", *many)),
    )
    end = h.do(evolve(request, hooks=evolve(request.hooks, strict=strict)))

    assert end.outcome == "done"
    found = {notice.type: notice.links for notice in notifier.notices}
    assert found["question"] == ()
    assert found["complete"] == tuple(f"https://example.net/{number}" for number in range(3))
    assert any("no link" in str(fact.data) for fact in h.facts(root, "plugin.failed"))


@define(eq=False)
class Busy:
    """Blocks the event loop when a question is asked, for longer than a question may stay unannounced."""

    @implements(gsd_on_event)
    async def block(self, event: Event) -> None:
        if event.name == "question.asked":
            time.sleep(0.3)  # noqa: ASYNC251 - the point


@define(eq=False)
class SlowPolicy:
    """Answers after a few turns of the event loop, as a policy with an `await` or two does."""

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        for _ in range(3):
            await asyncio.sleep(0)
        question = inquiry.questions[0]
        return [Answer(question=question.id, chosen=(question.options[0].label,), how="policy")]


@pytest.mark.slow
def test_a_policy_s_answer_is_in_time_even_if_a_plugin_blocks_the_run_meanwhile(tmp_path: Path) -> None:
    root, notifier = h.repository(tmp_path / "project"), RecordingNotifier()
    agent = h.one_phase(question=True)

    h.do(
        h.request(root, agent, given=h.idea(), yes=False, busy=Busy(), policy=SlowPolicy(), notifier=notifier)
    )

    assert len(h.asked(root)) == 1
    assert questions(notifier) == []


@define(eq=False)
class Services:
    """A notifier with two services, of which one fails."""

    sent: list[Notice] = field(factory=list[Notice])

    @implements(gsd_notify)
    async def send(self, notice: Notice) -> Sequence[Delivery]:
        self.sent.append(notice)
        return [Delivery(service="one"), Delivery(service="two", ok=False, reason="HTTP 500", tries=2)]


@define(eq=False)
class Raising:
    """A notifier that fails."""

    @implements(gsd_notify)
    async def send(self, notice: Notice) -> None:
        raise OSError("offline")


@pytest.mark.slow
def test_the_result_for_each_service_is_recorded_and_the_end_has_a_summary(tmp_path: Path) -> None:
    root, services = h.repository(tmp_path / "project"), Services()
    human = ScriptedHuman({"greeting end": "Period"})

    end = h.do(
        h.request(root, h.one_phase(), given=h.idea(), services=services, raising=Raising(), human=human)
    )

    facts = h.facts(root, "notice.sent")
    assert end.outcome == "done"
    assert [fact.data["key"].split()[0] for fact in facts] == ["progress", "complete"]
    for fact in facts:
        assert (fact.data["ok"], fact.data["failed"]) == ([], ["raising", "services"])
        found = {one["service"]: (one["ok"], one["reason"], one["tries"]) for one in fact.data["deliveries"]}
        assert found["one"] == (True, "", 1)
        assert found["two"] == (False, "HTTP 500", 2)
        assert "offline" in found["raising"][1]
    complete = services.sent[-1]
    assert complete.type == "complete"
    for line in (
        "Phases complete: 1 of 1",
        f"Commits: {end.commits}",
        f"Cost: {dollars_text(end.dollars)}",
        "Time since",
    ):
        assert line in complete.body


@define(eq=False)
class Hanging:
    """A notifier that never returns."""

    @implements(gsd_notify)
    async def send(self, notice: Notice) -> None:
        await asyncio.Event().wait()


def test_a_notifier_that_hangs_delays_the_end_by_its_limit_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gsd_core.run.publishing.SEND_LIMIT", timedelta(seconds=0.5))
    root = h.repository(tmp_path / "project")
    asked = h.request(root, h.one_phase(question=True), given=h.idea(), yes=False, hanging=Hanging())

    began = time.monotonic()
    end = h.do(evolve(asked, hooks=evolve(asked.hooks, grace=timedelta(seconds=0.2))))

    assert end.exit == 3
    assert time.monotonic() - began < 20
    reasons = [one["reason"] for fact in h.facts(root, "notice.sent") for one in fact.data["deliveries"]]
    assert set(reasons) == {"the run ended before there was a result"}
