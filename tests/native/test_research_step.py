"""research: due where depth and config ask for it; sources are checked, and what has none is marked."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gsd_core import (
    AgentResult,
    Permanent,
    PhaseView,
    Plan,
    Planning,
    StepRequest,
    StepResult,
    StepSituation,
    ToolRecord,
)
from gsd_core.testing.fakes import FakeHost
from gsd_plugins import native
from gsd_plugins.native.research import is_due

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PHASE = PhaseView(number="2", name="Sync", project=Path("/p"), goal="Notes are synchronized")
DOCS = "https://docs.example.org/sync"
BLOG = "https://blog.example.org/post"


def an_answer(**fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "summary": "Two libraries can do it.\n\n## Use the first",
        "claims": [
            {"topic": "stack", "name": "syncer", "text": "Version 3 needs 3.11", "sources": [1, 2]},
            {"topic": "pitfall", "name": "Clocks", "text": "They differ", "sources": []},
            {"topic": "example", "name": "Use", "text": "sync()\n```\n# Phase 9", "sources": [1]},
        ],
        "sources": [
            {"url": DOCS, "supports": "the version", "confidence": "high"},
            {"url": BLOG, "supports": "the version, too", "confidence": "high"},
        ],
        "questions": ["Is it fast?"],
        "confidence": "high",
    }
    return {**answer, **fields}


def run(*answers: dict[str, Any], opened: tuple[str, ...] = (DOCS,), **fields: Any) -> tuple[str, FakeHost]:
    uses = tuple(ToolRecord(tool="WebFetch", target=url) for url in opened)
    host = FakeHost(agent={"research": [AgentResult(value=answer, uses=uses) for answer in answers]})
    step = StepRequest(
        id="2/research",
        run="r-1",
        kind="research",
        project=Path("/p"),
        tree=Path("/p"),
        now=NOW,
        phase=PHASE,
        planning=Planning(phases=(PHASE,)),
        **fields,
    )
    result: StepResult | None = asyncio.run(native.execute_step(step, host))
    assert result is not None
    [file] = result.files
    assert file.path == ".planning/phases/02-sync/02-RESEARCH.md"
    return file.text, host


def part(text: str, heading: str) -> str:
    found = re.search(rf"^#+ {re.escape(heading)}.*?\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def test_each_claim_names_its_sources_and_one_without_any_is_marked() -> None:
    text, _ = run(an_answer())

    assert "**syncer:** Version 3 needs 3.11 [1, 2]" in part(text, "Standard Stack")
    assert "**Clocks:** They differ [no source]" in part(text, "Common Pitfalls")
    assert f"[1] {DOCS} - the version" in part(text, "Sources") + part(text, "Primary")


def test_a_source_that_was_not_opened_is_not_trusted_whatever_the_agent_says() -> None:
    text, _ = run(an_answer())

    assert BLOG not in part(text, "Primary")
    assert f"[2] {BLOG} - the version, too (not opened)" in part(text, "Tertiary")


def test_an_answer_of_which_nothing_was_looked_up_has_a_low_confidence() -> None:
    text, _ = run(an_answer(), opened=())

    assert "**Confidence:** LOW" in text
    assert "**Confidence:** HIGH" in run(an_answer(), opened=(f"{DOCS}/#install", "http://x.example"))[0]


def test_what_the_web_says_cannot_become_structure() -> None:
    text, _ = run(an_answer())

    assert not re.search(r"^## Use the first", text, re.MULTILINE)
    assert not re.search(r"^(# Phase 9|```)", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"sources": []}, "cites source 1; the sources are none"),
        ({"sources": [{"url": "file:///etc/passwd", "supports": "x", "confidence": "high"}]}, "not an http"),
        ({"sources": [{"url": "the docs", "supports": "x", "confidence": "high"}]}, "not an http"),
        ({"sources": [{"url": DOCS, "supports": " ", "confidence": "high"}]}, "what it supports"),
        ({"summary": " "}, "summary is empty"),
    ],
)
def test_sources_that_cannot_be_looked_up_are_sent_back(wrong: dict[str, Any], complaint: str) -> None:
    text, host = run(an_answer(**wrong), an_answer())

    assert complaint in " ".join(host.complaints[0])
    assert "syncer" in text


def test_a_researcher_that_insists_on_an_invalid_source_fails() -> None:
    with pytest.raises(Permanent):
        run(an_answer(sources=[]))


def test_only_the_researcher_has_web_tools_and_it_cannot_write() -> None:
    _, host = run(an_answer())
    task = host.task("research")

    assert (task.role, task.model, task.writable) == ("researcher", "sonnet", False)
    assert {"WebSearch", "WebFetch"} < set(task.tools or ())
    assert "Bash" not in (task.tools or ())
    assert "Notes are synchronized" in task.prompt


@pytest.mark.parametrize(
    ("depth", "config", "wanted"),
    [
        ("quick", {"workflow": {"research": True}}, False),
        ("standard", {}, False),
        ("standard", {"workflow": {"research": False}}, False),
        ("standard", {"workflow": {"research": True}}, True),
        ("standard", {"research": True}, True),
        ("comprehensive", {}, True),
        ("comprehensive", {"workflow": {"research": False}}, False),
    ],
)
def test_depth_and_config_decide_whether_a_phase_is_researched(
    depth: Any, config: dict[str, Any], wanted: bool
) -> None:
    def due(phase: PhaseView) -> bool:
        planning = Planning(phases=(phase,), config=config)
        return is_due(StepSituation(project=Path("/p"), planning=planning, phase=phase, depth=depth))

    planned = PhaseView(number="2", name="Sync", project=Path("/p"), plans=(Plan(id="02-01", phase="2"),))
    researched = PhaseView(number="2", name="Sync", project=Path("/p"), research="# Research")
    assert due(PHASE) is wanted
    assert not due(planned)
    assert not due(researched)
