"""Questions that nobody answers in time follow the user's policy: wait, take what is recommended, or stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gsd_core import Option, Question
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask

from . import harness as h
from .test_questions import Hanging

COLORS = (Option(label="Red"), Option(label="Blue", recommended=True))
QUESTIONS = {
    "recommended": Question(text="Which color?", options=COLORS),
    "first": Question(text="Which size?", options=COLORS[:1]),
    "text": Question(text="Which name?"),
    "human": Question(text="Which key?", options=COLORS, human_only=True),
}


def asking(*names: str) -> h.Watched:
    async def ask(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            answers = await host.ask([QUESTIONS[name] for name in names])
            await h.write(task, host, "choice.txt", answers[0].words)
        return None

    return h.Watched(h.one_phase(), ask)


def run(root: Path, names: Sequence[str], *, human: bool = False, **settings: Any) -> int:
    people = {"human": Hanging(root)} if human else {}
    sections = {"questions": {"timeout": 0.3, **settings}}
    request = h.request(root, asking(*names), given=h.idea(), yes=False, sections=sections, **people)  # type: ignore[arg-type]
    return h.do(h.quick(request)).exit


@pytest.mark.slow
def test_the_recommended_option_is_taken_after_the_timeout_and_recorded_as_such(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    code = run(root, ["recommended"], unanswered="recommended")

    [asked], [answered] = h.facts(root, "question.asked"), h.facts(root, "question.answered")
    answer = answered.data["answer"]
    assert code == 0
    assert (root / "choice.txt").read_text() == "Blue"
    assert (answer["how"], answer["via"]) == ("timeout", "questions.timeout")
    assert (answered.at - asked.at).total_seconds() >= 0.3


def test_what_has_no_recommended_answer_or_needs_a_human_stays_open(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    assert run(root, ["human", "first", "text", "recommended"], unanswered="recommended") == 3

    [answered] = h.facts(root, "question.answered")
    assert answered.data["answer"]["question"] == h.asked(root)[3]


@pytest.mark.slow
def test_a_run_that_shall_stop_does_not_wait_longer_for_a_person_who_could_answer(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")

    assert run(root, ["recommended"], human=True, unanswered="stop") == 3

    assert h.facts(root, "question.answered") == []
