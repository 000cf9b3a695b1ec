"""``--yes``: answer questions with the recommended option, for runs without a person.

It never answers for a person's action (``human_only``), never decides an escalation (retry, skip or
abort), and permits a tool only if that is the recommended option.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from gsd_core import Answer, ConfigValue, Inquiry, ProjectInfo, implements, setting, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_settings, gsd_write_config
from gsd_core.planning.config_keys import GATES as GATES


@attrs.frozen(kw_only=True)
class YoloSettings:
    """Whether to answer questions with the recommended option."""

    yes: bool = setting(
        False, flag="--yes", short="-y", help="answer questions with the recommended option", consent=True
    )


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Contribute ``--yes``."""
    yield YoloSettings


@implements(gsd_write_config)
def propose_config(project: ProjectInfo) -> Iterable[ConfigValue]:
    """Propose GSD's settings for a run without questions; its safety settings stay unchanged."""
    if not project.yes:
        return
    yield ConfigValue(key="mode", value="yolo", reason="--yes")
    yield ConfigValue(key="workflow.auto_advance", value=True, reason="--yes")
    for gate in GATES:
        yield ConfigValue(key=f"gates.{gate}", value=False, reason="--yes")


@implements(gsd_answer)
async def answer_as_recommended(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer with the recommended option, else the first; leave what only a person may decide."""
    if not settings_of(YoloSettings).yes or inquiry.kind == "escalation":
        return None
    answers: list[Answer] = []
    for question in inquiry.questions:
        recommended = [option for option in question.options if option.recommended]
        # The first option of a permission may be "Allow": without a recommendation, nothing is permitted.
        candidates = recommended if inquiry.kind == "permission" else [*recommended, *question.options]
        if candidates and not question.human_only:
            chosen = (candidates[0].label,)
            answers.append(Answer(question=question.id, chosen=chosen, by="--yes", how="policy"))
    return answers or None
