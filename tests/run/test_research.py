"""research in a run: before the first plan of a phase, once, and only where it is asked for."""

from __future__ import annotations

import json
from pathlib import Path

from gsd_core import AgentHost, AgentResult, AgentTask, Allow, Permanent, ToolUse

from . import harness as h

CHOSEN = {"depth": "comprehensive", "co_authored_by": "Claude <noreply@anthropic.com>"}
PAGE = "https://docs.example.org/entries"


async def stop(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """End the run before anything is built."""
    if task.role == "executor":
        raise Permanent("enough")
    return None


async def look_up(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Open one of two pages and cite both."""
    if task.role != "researcher":
        return await stop(task, host)
    use = ToolUse(
        step=task.step, name="WebFetch", input={"url": PAGE}, asked_by="agent", tree=task.tree, writable=False
    )
    assert isinstance(await host.permit(use), Allow)
    sources = [
        {"url": url, "supports": "the format", "confidence": "high"}
        for url in (PAGE, "https://never.example.org/opened")
    ]
    claim = {"topic": "stack", "name": "Format", "text": "It is plain text", "sources": [1, 2]}
    return AgentResult(
        value={
            "summary": "Plain text.",
            "claims": [claim],
            "sources": sources,
            "questions": [],
            "confidence": "high",
        }
    )


def test_research_comes_before_the_plan_and_the_planner_is_given_it(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    agent = h.Watched(h.one_phase(), stop)

    h.do(h.request(root, agent, given=h.idea(), run=CHOSEN, without=("yolo",)))

    [found] = root.glob(".planning/phases/*/01-RESEARCH.md")
    [planner] = agent.of("planner")[:1]
    done = [fact.step for fact in h.facts(root, "step.completed")]
    assert done == ["init", "1/discuss", "1/research", "1/plan"]
    assert "[no source]" in found.read_text()
    assert "[no source]" in planner.prompt
    messages = h.git(root, "log", "--format=%(trailers:key=Co-Authored-By,valueonly)").split("\n")
    assert [line for line in messages if line] == [CHOSEN["co_authored_by"]] * len(done)
    tools = {tool for task in agent.tasks if task.role != "researcher" for tool in task.tools or ()}
    assert not tools & {"WebSearch", "WebFetch"}


def test_a_config_that_asks_for_research_gets_it_with_the_pages_that_were_opened(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    (root / ".planning").mkdir()
    (root / ".planning" / "config.json").write_text(json.dumps({"workflow": {"research": True}}))

    h.do(h.request(root, h.Watched(h.one_phase(), look_up), given=h.idea(), without=("yolo",)))

    [found] = root.glob(".planning/phases/*/01-RESEARCH.md")
    trusted, _, rest = found.read_text().partition("### Tertiary")
    assert f"[1] {PAGE}" in trusted
    assert "never.example.org/opened - the format (not opened)" in rest
