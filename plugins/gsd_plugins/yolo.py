"""``--yes``: nobody is there to be asked, so what is recommended is done.

It never does a human's work (``human_only``), never chooses between retry, skip and abort
(an escalation), and permits a tool only where permitting is the recommended option.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from gsd_core import (
    Answer,
    ConfigValue,
    Inquiry,
    Option,
    ProjectInfo,
    Question,
    implements,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_answer, gsd_settings, gsd_write_config

GATES = (
    "confirm_project",
    "confirm_phases",
    "confirm_roadmap",
    "confirm_breakdown",
    "confirm_plan",
    "execute_next_plan",
    "issues_review",
    "confirm_transition",
)


@frozen(kw_only=True)
class YoloSettings:
    """Whether to go on without asking."""

    yes: bool = setting(False, flag="--yes", help="take what is recommended instead of asking")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute ``--yes``."""
    yield YoloSettings


@implements(gsd_write_config)
def go_on_unasked(project: ProjectInfo) -> Iterable[ConfigValue]:
    """Propose GSD's own settings for a run without questions; its safety settings stay."""
    if not project.yes:
        return
    yield ConfigValue(key="mode", value="yolo", reason="--yes")
    yield ConfigValue(key="workflow.auto_advance", value=True, reason="--yes")
    for gate in GATES:
        yield ConfigValue(key=f"gates.{gate}", value=False, reason="--yes")


@implements(gsd_answer)
async def take_recommended(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer with the recommended option, else the first; decline what is a human's to say."""
    if not settings_of(YoloSettings).yes or inquiry.kind == "escalation":
        return None
    chosen = [(question, _choice(inquiry, question)) for question in inquiry.questions]
    return [_answer(question, option) for question, option in chosen if option] or None


def _choice(inquiry: Inquiry, question: Question) -> Option | None:
    if question.human_only:
        return None
    recommended = [option for option in question.options if option.recommended]
    if inquiry.kind == "permission":
        return next(iter(recommended), None)
    return next(iter([*recommended, *question.options]), None)


def _answer(question: Question, option: Option) -> Answer:
    return Answer(question=question.id, chosen=(option.label,), by="--yes", how="policy")
