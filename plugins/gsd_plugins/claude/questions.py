"""The questions of Claude Code's tool ``AskUserQuestion``, in our words and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gsd_core import Answer, Option, Question

TOOL = "AskUserQuestion"


def asked(arguments: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return the questions that the tool's *arguments* hold."""
    return tuple(map(_question, arguments.get("questions", ())))


def _question(raw: Mapping[str, Any]) -> Question:
    return Question(
        text=str(raw.get("question", "")),
        header=str(raw.get("header", "")),
        options=tuple(map(_option, raw.get("options", ()))),
        multiple=bool(raw.get("multiSelect")),
    )


def _option(raw: Mapping[str, Any]) -> Option:
    label = str(raw.get("label", ""))
    return Option(
        label=label,
        description=str(raw.get("description", "")),
        recommended="(recommended)" in label.lower(),
    )


def answered(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, str]:
    """Return *answers* as the tool wants them: by the question's text, several labels in one string."""
    return {question.text: answer.words for question, answer in zip(questions, answers, strict=True)}
