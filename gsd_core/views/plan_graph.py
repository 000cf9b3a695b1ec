"""The plans of phases as a graph: what depends on what, what may start now, and what the rest waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from gsd_core.machine.schedule import Schedule, Work, overlap, works_of
from gsd_core.machine.state import State, StepRecord
from gsd_core.model.ids import EXECUTE, StepId
from gsd_core.planning.model import PhaseView, Plan
from gsd_core.planning.waves import plan_dependencies
from gsd_core.sanitize import one_line
from gsd_core.serializer import TEXT, Serializer, arr, obj

from .status import active_steps

NodeState: TypeAlias = Literal[
    "done", "running", "merging", "interrupted", "parked", "delayed", "failed", "skipped", "ready", "waiting"
]
"""*merging*: its result is being brought into the branch. *parked* is one that waits for an answer, *delayed*
one that waits for a time.
"""
STATE_WORDS: Mapping[NodeState, str] = {
    "merging": "being merged",
    "parked": "waits for an answer",
    "delayed": "is tried again later",
}
"""Those that do not speak for themselves."""
MAX_NAME = 60
_OF_RECORD: Mapping[str, NodeState] = {
    "running": "running",
    "result": "merging",
    "parked": "parked",
    "failed": "failed",
    "skipped": "skipped",
}
_IN_PROGRESS = ("running", "merging", "delayed")


@attrs.frozen(kw_only=True)
class Node:
    """A plan, or a phase that has none yet, with the plans that it *depends_on* and those it *waits_for*.

    It waits for what it depends on, and for a running plan that changes the same files.
    """

    id: str
    phase: str
    name: str
    state: NodeState
    tasks: int = 0
    files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class PlanGraph:
    """The graph; *critical_path* is the longest chain of work that is left, in tasks."""

    nodes: tuple[Node, ...]
    critical_path: tuple[str, ...]


def plan_graph(phases: Sequence[PhaseView], state: State, *, is_running: bool) -> PlanGraph:
    """Return the graph of *phases*; *is_running*: a process works on the run in *state*.

    The first plans of a phase depend on the last ones of the phases that it depends on.
    """
    records = {**state.steps, **{str(one.id): one for one in active_steps(state)}}
    nodes: list[Node] = []
    works: dict[str, Work] = {}
    ends: dict[str, tuple[str, ...]] = {}
    for phase in phases:
        before = tuple(end for number in phase.depends_on for end in ends.get(number, ()))
        plans = works_of(phase.plans, plan_dependencies(phase.plans), before)
        found = [
            Node(
                id=plan.id,
                phase=phase.number,
                name=plan.name,
                state=_state_of(records, phase.number, plan, is_running=is_running),
                tasks=len(plan.tasks),
                files=plan.files_modified,
                depends_on=work.after,
            )
            for plan, work in zip(phase.plans, plans, strict=True)
        ]
        if not found:
            own: NodeState = "done" if phase.ticked else "waiting"
            found = [Node(id=phase.number, phase=phase.number, name=phase.name, state=own, depends_on=before)]
            plans = [Work(id=phase.number, after=before)]
        works |= {work.id: work for work in plans}
        inner = {name for node in found for name in node.depends_on}
        ends[phase.number] = tuple(node.id for node in found if node.id not in inner)
        nodes += found
    schedule = Schedule(works=[*works.values()])
    done = {node.id for node in nodes if node.state == "done"}
    running = [works[node.id] for node in nodes if node.state in ("running", "merging")]

    def finished(node: Node) -> Node:
        if node.state != "waiting":
            return node
        waits = [name for name in schedule.after[node.id] if name not in done]
        waits += [other.id for other in running if other.id not in waits and overlap(works[node.id], other)]
        return attrs.evolve(node, state="waiting" if waits else "ready", waits_for=tuple(waits))

    return PlanGraph(nodes=tuple(map(finished, nodes)), critical_path=schedule.critical_path(done))


def _state_of(records: Mapping[str, StepRecord], phase: str, plan: Plan, *, is_running: bool) -> NodeState:
    if plan.summary:
        return "done"
    record = records.get(str(StepId(kind=EXECUTE, phase=phase, detail=plan.id)))
    if record is None:
        return "waiting"
    found: NodeState = "delayed" if record.until else _OF_RECORD.get(record.status, "waiting")
    return "interrupted" if found in _IN_PROGRESS and not is_running else found


def graph_mermaid(graph: PlanGraph, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the graph as a Mermaid flowchart; *names* are those of the phases, by number."""
    keys = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    yield "flowchart LR"
    for number in dict.fromkeys(node.phase for node in graph.nodes):
        title = _label(f"Phase {number}: {names[number]}")
        yield f"  subgraph p{re.sub('[^A-Za-z0-9]', '_', number)}[{title}]"
        for node in graph.nodes:
            if node.phase == number:
                yield f"    {keys[node.id]}[{_label(f'{node.id} {node.name}')}]:::{node.state}"
        yield "  end"
    critical = {*zip(graph.critical_path, graph.critical_path[1:], strict=False)}
    for node in graph.nodes:
        for name in node.depends_on:
            yield f"  {keys[name]} {'==>' if (name, node.id) in critical else '-->'} {keys[node.id]}"
    for state, style in _STYLES.items():
        if any(node.state == state for node in graph.nodes):
            yield f"  classDef {state} {style}"


_STYLES: Mapping[NodeState, str] = {
    "done": "fill:#d7f0dd,stroke:#2b8a3e",
    "running": "fill:#d6e9ff,stroke:#1864ab",
    "merging": "fill:#d6e9ff,stroke:#1864ab",
    "interrupted": "fill:#fff3cd,stroke:#b98300",
    "parked": "fill:#fff3cd,stroke:#b98300",
    "delayed": "fill:#fff3cd,stroke:#b98300",
    "failed": "fill:#ffd9d9,stroke:#c92a2a",
    "skipped": "fill:#eee,stroke:#888",
    "ready": "fill:#fff,stroke:#1864ab",
    "waiting": "fill:#fff,stroke:#bbb",
}


def _label(text: str) -> str:
    # Quotes end a label, and Mermaid has entities of its own: https://mermaid.js.org/syntax/flowchart.html
    plain = one_line(text, MAX_NAME).strip()
    return '"' + re.sub(r'["#;&<>]', lambda found: f"#{ord(found[0])};", plain) + '"'


GRAPH = Serializer(
    PlanGraph,
    "nodes edges critical_path",
    nodes=Serializer(Node, "id phase name state tasks files depends_on waits_for"),
    edges=(
        arr(obj(**{"from": TEXT, "to": TEXT})),
        lambda graph: [{"from": name, "to": node.id} for node in graph.nodes for name in node.depends_on],
    ),
)
