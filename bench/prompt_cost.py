"""Measure how many tokens gsd's own prompts cost in a phase, as sent to the API.

Run ``python bench/prompt_cost.py`` where gsd is installed; it needs no account and takes seconds.

It takes an idea through one phase with the real SDK and the real CLI, against a scripted model on
loopback that records every request. The first request of each conversation is split into gsd's part
(the system prompt, the prompt without its fenced data, our functions, the answer's schema), the
project's part (the fenced data) and Claude Code's part (its tools and its text). A token is counted
as four bytes, a phase as one plan, three executions and one verification.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from gsd_core.cli.budgets import OWN_PROMPT_TOKENS
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import RunInfo, gsd_run_agent
from gsd_core.machine.state import Options
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.step import Idea
from gsd_core.plugins.loading import collect_settings
from gsd_core.run.runtime import RunRequest
from gsd_core.run.start import run_project
from gsd_core.settings import CORE_SECTIONS, Layer, resolve
from gsd_core.testing import make_hooks
from gsd_plugins import budget, inplace, must_haves, native, permissions, retry, uat, yolo
from gsd_plugins.claude import run_claude
from gsd_plugins.rehearsal import Scenario
from gsd_plugins.rehearsal.api import ApiRequest, MessagesApi
from gsd_plugins.rehearsal.replies import Replies
from gsd_plugins.rehearsal.server import claude_environment

__all__ = ["GSD_1_20", "LIMIT", "TIMES", "Cost", "measure", "table", "total"]

EXAMPLE = Path(__file__).parent.parent / "examples" / "greeter.md"
LIMIT = OWN_PROMPT_TOKENS
GSD_1_20 = 102_600
"""What the same phase costs with GSD 1.20."""
TIMES = {"discusser": 1, "planner": 1, "executor": 3, "verifier": 1}
OUR_TOOLS = re.compile(r"^(mcp__gsd__.*|StructuredOutput)$")
FENCED = re.compile(r"<(data-[0-9a-f]+) name=\"[^\"]*\">\n(.*?)\n</\1>", re.DOTALL)


@attrs.frozen(kw_only=True)
class Cost:
    """The first request of a conversation: its size in bytes, split by who wrote what."""

    role: str
    system: int
    prompt: int
    schemas: int
    content: int
    cli_tools: int
    cli_text: int

    @property
    def ours(self) -> int:
        """The tokens of gsd's own part."""
        return tokens(self.system + self.prompt + self.schemas)


def tokens(size: int) -> int:
    """Return the number of tokens in *size* bytes."""
    return -(-size // 4)


def total(costs: Sequence[Cost]) -> int:
    """Return gsd's own tokens in one discussion, one plan, three executions and one verification."""
    return sum(cost.ours * TIMES[cost.role] for cost in costs)


def measure(folder: Path) -> list[Cost]:
    """Run one phase in *folder* and return the cost of discussing, planning, executing and verifying it."""
    text = EXAMPLE.read_text(encoding="utf-8")
    idea = Idea(name=EXAMPLE.name, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())
    scenario = Scenario(text, phases=1, question=False, gap=False, overloaded=False)
    with MessagesApi(Replies(scenario)) as api:
        agent = RecordingClaude(url=api.url, home=folder / "home")
        end = asyncio.run(run_project(_request(_repository(folder / "project"), idea, agent)))
    if end.outcome != "done":
        raise SystemExit(f"the run failed: {end.reason}")
    return [_cost(task, _first_request(api.requests, task)) for task in agent.tasks if task.role in TIMES]


@attrs.define(eq=False)
class RecordingClaude:
    """An agent plugin: Claude Code against the API at *url*; *tasks* records what it was asked to do."""

    url: str
    home: Path
    tasks: list[AgentTask] = attrs.field(factory=list[AgentTask])

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task*."""
        self.tasks.append(task)
        (self.home / "claude").mkdir(parents=True, exist_ok=True)
        # The user's own options of Claude Code must not change what is measured.
        options = {name: "" for name in os.environ if name.startswith("CLAUDE_CODE_")}
        return await run_claude(task, host, env=options | {**claude_environment(task, self.url, self.home)})


def _repository(root: Path) -> Path:
    root.mkdir(parents=True)
    for arguments in (
        ("init", "-q"),
        ("config", "user.name", "Bench"),
        ("config", "user.email", "bench@example.invalid"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


def _request(root: Path, idea: Idea, agent: RecordingClaude) -> RunRequest:
    hooks = make_hooks(
        agent=agent,
        native=native,
        must_haves=must_haves,
        uat=uat,
        permissions=permissions,
        retry=retry,
        inplace=inplace,
        yolo=yolo,
        budget=budget,
    )
    chosen = Layer(origin="bench", sections={"run": {"agent": ["agent"]}, "yolo": {"yes": True}})
    return RunRequest(
        root=root,
        idea=idea,
        hooks=hooks,
        plugins=(),
        settings=resolve((*CORE_SECTIONS, *collect_settings(hooks)), [chosen]),
        info=RunInfo(id="", project=root, yes=True, agent="agent"),
        options=Options(),
        clock=lambda: datetime.now(UTC),
    )


def _first_request(requests: Iterable[ApiRequest], task: AgentTask) -> ApiRequest:
    """Return the first request of the task's conversation: the first one with its prompt."""
    return next(r for r in requests if r.step == task.step and task.prompt in _texts(r.messages))


def _texts(messages: Iterable[Mapping[str, Any]]) -> str:
    found: list[str] = []
    for message in messages:
        content = message["content"]
        blocks = [{"text": content}] if isinstance(content, str) else content
        found += [str(block.get("text", "")) for block in blocks]
    return "\n".join(found)


def _cost(task: AgentTask, request: ApiRequest) -> Cost:
    if task.system not in request.system:
        raise SystemExit(f"{task.step}: the request does not contain our system prompt")
    tools: list[Mapping[str, Any]] = list(request.body.get("tools", ()))
    ours = [tool for tool in tools if OUR_TOOLS.match(tool["name"])]
    theirs = [tool for tool in tools if tool not in ours]
    return Cost(
        role=task.role,
        system=_size(task.system),
        prompt=_size(FENCED.sub("", task.prompt)),
        content=_size("".join(match[2] for match in FENCED.finditer(task.prompt))),
        schemas=_size(json.dumps(ours)) if ours else 0,
        cli_tools=_size(json.dumps(theirs)),
        cli_text=_size(request.system + _texts(request.messages)) - _size(task.system + task.prompt),
    )


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def table(costs: Sequence[Cost]) -> str:
    """Return the costs in tokens, one line for each conversation, and the total of a phase."""
    rows = [["", "system", "prompt", "schemas", "OURS", "project", "CLI tools", "CLI text"]]
    for cost in costs:
        sizes = (cost.system, cost.prompt, cost.schemas, cost.content, cost.cli_tools, cost.cli_text)
        system, prompt, schemas, *others = (str(tokens(size)) for size in sizes)
        rows.append([f"{TIMES[cost.role]} x {cost.role}", system, prompt, schemas, str(cost.ours), *others])
    lines = ["".join(f"{cell:>13}" for cell in row) for row in rows]
    summary = f"a phase: {total(costs):,} tokens are gsd's own; limit {LIMIT:,}; GSD 1.20: {GSD_1_20:,}"
    return "\n".join([*lines, summary])


def main() -> int:
    """Measure and print the costs; return 1 if they exceed the limit."""
    with tempfile.TemporaryDirectory(prefix="gsd-bench-") as folder:
        costs = measure(Path(folder))
    print(table(costs))
    return 0 if total(costs) < LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
