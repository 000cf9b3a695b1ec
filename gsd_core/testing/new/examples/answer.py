"""An answer channel that picks the recommended option for questions on topics you choose.

All channels are asked at the same time and the first valid answer wins.
A channel that cannot answer returns `None` immediately, so that the run does not wait for it.
Questions marked `human_only` are never answered here.

Settings in `gsd.toml`:

    [my_plugin]
    topics = ["database", "license"]   # words that mark a question as one this plugin may answer
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs
from gsd_core import Answer, Inquiry, Question, implements, setting, settings_of
from gsd_core.hookspecs import gsd_answer, gsd_settings


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*topics*: words that mark a question as one this plugin may answer; if empty, it answers none."""

    topics: tuple[str, ...] = setting(())


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_answer)
async def answer_by_topic(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer the questions on one of the topics; decline if there are none."""
    topics = settings_of(MyPluginSettings).topics
    answers = [answer for q in inquiry.questions if _is_on_topic(q, topics) and (answer := _recommended(q))]
    return answers or None


def _is_on_topic(question: Question, topics: Iterable[str]) -> bool:
    text = f"{question.header} {question.text}".lower()
    return not question.human_only and any(topic.lower() in text for topic in topics)


def _recommended(question: Question) -> Answer | None:
    labels = [option.label for option in question.options if option.recommended]
    if not labels:
        return None
    return Answer(question=question.id, chosen=(labels[0],), by="my_plugin", how="policy")
