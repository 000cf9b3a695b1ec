"""The pages that say how much a budget can be exceeded say it in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from gsd_core.cli.run import command
from gsd_plugins.budget import BudgetSettings

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("../README.md", "how-to/control-costs.md", "how-to/run-unattended.md", "explanation/faq.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_most_that_can_be_overspent_is_said_in_one_sentence(page: str) -> None:
    assert sentence() in (DOCS / page).read_text(encoding="utf-8")


def sentence() -> str:
    doc = " ".join((BudgetSettings.__doc__ or "").split())
    return doc[doc.index("At most the turns in progress") :].strip()


def test_the_help_of_run_says_it_in_the_same_sentence() -> None:
    assert sentence() in " ".join((command.help or "").split())


def test_no_other_page_says_it_in_other_words() -> None:
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if page.relative_to(DOCS).as_posix() not in PAGES:
            assert "ends below its budget" not in text, page
