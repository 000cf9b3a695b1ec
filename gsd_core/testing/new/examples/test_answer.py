"""Call the answer channel through its hook."""

from __future__ import annotations

import attrs
from gsd_core import Inquiry
from gsd_core.testing import an_inquiry
from gsd_core.testing.conformance import check_answer, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

from . import answer as plugin

DATABASE = an_inquiry("Which database?", "SQLite", "PostgreSQL")
LAYOUT = an_inquiry("Which layout?", "Rows", "Cards")


def test_a_question_on_a_topic_gets_the_recommended_option_and_others_are_declined(
    gsd_use_settings: UseSettings,
) -> None:
    gsd_use_settings(plugin.MyPluginSettings(topics=("database",)))

    [answer] = check_answer(plugin, DATABASE, declines=LAYOUT)

    assert (answer.chosen, answer.how) == (("SQLite",), "policy")


def test_without_topics_every_question_is_declined() -> None:
    assert check_answer(plugin, DATABASE, declines=LAYOUT) == ()


def test_a_question_for_humans_only_is_declined(gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(plugin.MyPluginSettings(topics=("database",)))
    inquiry = Inquiry(questions=(attrs.evolve(DATABASE.questions[0], human_only=True),))

    assert check_answer(plugin, inquiry, declines=inquiry) == ()


def test_settings_have_defaults() -> None:
    assert check_settings(plugin) == (plugin.MyPluginSettings,)
