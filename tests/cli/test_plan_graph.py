"""``gsd plan-graph``: what plans depend on, what may start, what the rest waits for, on paper and as data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.bench import call, said
from tests.planning.trees import make_project

ROADMAP = """# Roadmap

- [ ] **Phase 1: Store** - a
- [ ] **Phase 2: "Ask" & <tell>** - b

## Phase Details

### Phase 1: Store
**Goal**: It stores
**Depends on**: Nothing

### Phase 2: "Ask" & <tell>
**Goal**: It asks
**Depends on**: Phase 1
"""


def plan(number: int, after: str, files: str, tasks: int) -> str:
    task = '<task type="auto"><name>Do it</name></task>\n'
    return (
        f"---\nphase: 01-store\nplan: {number:02}\ntype: execute\nwave: 1\ndepends_on: [{after}]\n"
        f"files_modified: [{files}]\nautonomous: true\nrequirements: []\n---\n"
        f"<objective>\nPlan {number}\n</objective>\n<tasks>\n{task * tasks}</tasks>\n"
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "ROADMAP.md": ROADMAP,
        "phases/01-store/01-01-PLAN.md": plan(1, "", "a.py", 1),
        "phases/01-store/01-01-SUMMARY.md": "done",
        "phases/01-store/01-02-PLAN.md": plan(2, "01-01", "b.py", 3),
        "phases/01-store/01-03-PLAN.md": plan(3, "01-01-PLAN.md", "c.py", 2),
        "phases/01-store/01-04-PLAN.md": plan(4, "01-02, 01-03", "a.py", 1),
    }
    return make_project(tmp_path, files)


def test_the_graph_has_what_each_plan_waits_for_and_the_longest_chain(root: Path) -> None:
    found = said("plan-graph", "-C", root)

    nodes = {node["id"]: node for node in found["nodes"]}
    assert {name: (node["state"], node["waits_for"]) for name, node in nodes.items()} == {
        "01-01": ("done", []),
        "01-02": ("ready", []),
        "01-03": ("ready", []),
        "01-04": ("waiting", ["01-02", "01-03"]),
        "2": ("waiting", ["01-04"]),
    }
    assert found["critical_path"] == ["01-02", "01-04", "2"]
    assert {(edge["from"], edge["to"]) for edge in found["edges"]} == {
        ("01-01", "01-02"),
        ("01-01", "01-03"),
        ("01-02", "01-04"),
        ("01-03", "01-04"),
        ("01-04", "2"),
    }


def test_the_text_names_what_is_waited_for_and_what_is_left(root: Path) -> None:
    lines = call("plan-graph", "-C", root).stdout.splitlines()

    assert lines[0] == "phase 1 Store"
    assert re.fullmatch(r"  . 01-01 .*\(1 task\)", lines[1])
    assert lines[2].endswith("(ready; 3 tasks)")
    assert lines[4].endswith("(waits for 01-02, 01-03; 1 task)")
    assert lines[-1] == "critical path: 01-02 → 01-04 → 2 (4 tasks left)"


def test_one_phase_has_the_graph_of_its_plans_alone(root: Path) -> None:
    assert [node["id"] for node in said("plan-graph", "1", "-C", root)["nodes"]] == [
        "01-01",
        "01-02",
        "01-03",
        "01-04",
    ]


def test_the_flowchart_has_labels_that_mermaid_reads_as_text(root: Path) -> None:
    lines = call("plan-graph", "-C", root, "--mermaid").stdout.splitlines()

    assert lines[0] == "flowchart LR"
    assert '  subgraph p2["Phase 2: #34;Ask#34; #38; #60;tell#62;"]' in lines
    assert any(line.endswith(":::ready") for line in lines)
    assert "  n1 ==> n3" in lines
    assert "  n2 --> n3" in lines


def test_a_flowchart_is_no_json(root: Path) -> None:
    result = call("plan-graph", "-C", root, "--mermaid", "--json")

    assert result.exit_code == 2
    assert "--mermaid and --json exclude each other" in result.stderr
