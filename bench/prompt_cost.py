"""What the prompts of a phase cost on the wire, before any content of the project.

``python bench/prompt_cost.py``, where gsd is installed; it needs no account and takes seconds.

One phase is taken from an idea to its verdict with the real SDK and the real CLI, against a scripted
model on loopback that keeps every request. The first request of each conversation is taken apart:
what we say (system prompt, the prompt without what is fenced in it, our functions, the schema of
the answer), what the project says (what is fenced), and what Claude Code adds (its tools, its text).
A token is four bytes. A phase is one plan, three executions and one verification.
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

from attrs import define, field, frozen

from gsd_core.hookspecs import RunInfo, gsd_run_agent
from gsd_core.machine.state import Options
from gsd_core.markers import implements
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask
from gsd_core.model.step import Idea
from gsd_core.plugins.loading import collect_settings
from gsd_core.run import RunRequest, run_project
from gsd_core.settings import CORE_SECTIONS, Layer, resolve
from gsd_core.testing import make_hooks
from gsd_core.testing.scenario import Scenario
from gsd_plugins import budget, inplace, must_haves, native, permissions, retry, uat, yolo
from gsd_plugins.claude import run_claude
from gsd_plugins.rehearsal.api import ApiRequest, MessagesApi
from gsd_plugins.rehearsal.replies import Replies

EXAMPLE = Path(__file__).parent.parent / "examples" / "greeter.md"
LIMIT = 12_000
GSD_1_20 = 102_600
TIMES = {"planner": 1, "executor": 3, "verifier": 1}
OUR_TOOLS = re.compile(r"^(mcp__gsd__.*|StructuredOutput)$")
FENCED = re.compile(r"<(data-[0-9a-f]+) name=\"[^\"]*\">\n(.*?)\n</\1>", re.DOTALL)


@frozen(kw_only=True)
class Cost:
    """The bytes of one conversation's first request, by who wrote them."""

    role: str
    system: int
    prompt: int
    schemas: int
    content: int
    cli_tools: int
    cli_text: int

    @property
    def ours(self) -> int:
        """What we say, in tokens."""
        return tokens(self.system + self.prompt + self.schemas)


def tokens(size: int) -> int:
    """Return the tokens of so many bytes."""
    return -(-size // 4)


def total(costs: Sequence[Cost]) -> int:
    """Return our own tokens of one plan, three executions and one verification."""
    return sum(cost.ours * TIMES[cost.role] for cost in costs)


def measure(folder: Path) -> list[Cost]:
    """Run one phase in *folder* and return the cost of planning, executing and verifying."""
    idea = Idea(name="greeter.md", text=_idea(), sha256=hashlib.sha256(_idea().encode()).hexdigest())
    scenario = Scenario(idea.text, phases=1, question=False, gap=False, overloaded=False)
    with MessagesApi(Replies(scenario)) as api:
        agent = Agent(url=api.url, home=folder / "home")
        end = asyncio.run(run_project(_request(_repository(folder / "project"), idea, agent)))
    if end.outcome != "done":
        raise SystemExit(f"the run did not end well: {end.reason}")
    return [_cost(task, _first(api.requests, task)) for task in agent.tasks if task.role in TIMES]


def _idea() -> str:
    return EXAMPLE.read_text(encoding="utf-8")


@define(eq=False)
class Agent:
    """Claude Code against the API at *url*; *tasks* are those that it was given."""

    url: str
    home: Path
    tasks: list[AgentTask] = field(factory=list[AgentTask])

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task*."""
        self.tasks.append(task)
        return await run_claude(task, host, env=self._environment(task))

    def _environment(self, task: AgentTask) -> Mapping[str, str]:
        (self.home / "claude").mkdir(parents=True, exist_ok=True)
        silenced = {name: "" for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE_CODE_"))}
        said = {"step": task.step, "role": task.role, "tree": str(task.tree)}
        return silenced | {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "bench",
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"x-gsd-{name}: {value}" for name, value in said.items()),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(self.home / "claude"),
            "DISABLE_AUTOUPDATER": "1",
            "HOME": str(self.home),
            "IS_SANDBOX": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }


def _repository(root: Path) -> Path:
    root.mkdir(parents=True)
    for arguments in (
        ("init", "-q"),
        ("config", "user.name", "Bench"),
        ("config", "user.email", "bench@example.invalid"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    return root


def _request(root: Path, idea: Idea, agent: Agent) -> RunRequest:
    hooks = make_hooks(
        agent=agent, native=native, must_haves=must_haves, uat=uat, permissions=permissions, retry=retry,
        inplace=inplace, yolo=yolo, budget=budget,
    )  # fmt: skip
    chosen = Layer(origin="bench", sections={"run": {"agent": ["agent"]}, "yolo": {"yes": True}})
    return RunRequest(
        root=root, idea=idea, resume=False, hooks=hooks, plugins=(),
        settings=resolve((*CORE_SECTIONS, *collect_settings(hooks)), [chosen]),
        info=RunInfo(id="", project=root, yes=True, agent="agent"), options=Options(),
        clock=lambda: datetime.now(UTC),
    )  # fmt: skip


def _first(requests: Iterable[ApiRequest], task: AgentTask) -> ApiRequest:
    """Return the first request of the task's conversation: the one that carries its prompt."""
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
        raise SystemExit(f"{task.step}: our system prompt is not on the wire as it was given")
    tools: list[Mapping[str, Any]] = list(request.body.get("tools", ()))
    ours = [tool for tool in tools if OUR_TOOLS.match(tool["name"])]
    theirs = [tool for tool in tools if tool not in ours]
    prompt = _size(FENCED.sub("", task.prompt))
    content = _size("".join(match[2] for match in FENCED.finditer(task.prompt)))
    added = _size(request.system + _texts(request.messages)) - _size(task.system + task.prompt)
    return Cost(
        role=task.role, system=_size(task.system), prompt=prompt, content=content,
        schemas=_size(json.dumps(ours)) if ours else 0, cli_tools=_size(json.dumps(theirs)), cli_text=added,
    )  # fmt: skip


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def table(costs: Sequence[Cost]) -> str:
    """Return the costs in tokens, a line for each conversation, and the total of a phase."""
    heads = ("", "system", "prompt", "schemas", "OURS", "project", "CLI tools", "CLI text")
    rows = [heads, *map(_row, costs)]
    lines = ["".join(f"{cell:>13}" for cell in row) for row in rows]
    summary = f"a phase: {total(costs):,} tokens of our own; limit {LIMIT:,}; GSD 1.20: {GSD_1_20:,}"
    return "\n".join([*lines, summary])


def _row(cost: Cost) -> tuple[str, ...]:
    before = [str(tokens(size)) for size in (cost.system, cost.prompt, cost.schemas)]
    after = [str(tokens(size)) for size in (cost.content, cost.cli_tools, cost.cli_text)]
    return (f"{TIMES[cost.role]} x {cost.role}", *before, str(cost.ours), *after)


def main() -> int:
    """Measure, print, and say by the exit code whether the limit is kept."""
    with tempfile.TemporaryDirectory(prefix="gsd-bench-") as folder:
        costs = measure(Path(folder))
    print(table(costs))
    return 0 if total(costs) < LIMIT else 1


__all__ = ["GSD_1_20", "LIMIT", "TIMES", "Cost", "measure", "table", "total"]

if __name__ == "__main__":
    raise SystemExit(main())
