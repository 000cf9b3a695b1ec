"""A scripted model that does what GSD's real commands say, for a project with one phase and one plan."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from gsd_plugins.rehearsal.api import ApiRequest, Block, Blocks, Reply, Text, ToolUseBlock, text_of

PHASE = ".planning/phases/01-greeting"
PROJECT = "# Greeter\n\n## What This Is\n\nGreets people.\n\n## Core Value\n\nA friendly greeting.\n"
REQUIREMENTS = """# Requirements: Greeter

## v1 Requirements

### Greeting

- [ ] **GREET-01**: The program greets a person by name

## Traceability

| Requirement | Phase | Status |
|-------------|-------|--------|
| GREET-01 | Phase 1 | Pending |
"""
ROADMAP = """# Roadmap: Greeter

## Overview

One phase.

## Phases

- [ ] **Phase 1: Greeting** - Greet a person

## Phase Details

### Phase 1: Greeting
**Goal**: The program greets a person
**Depends on**: Nothing (first phase)
**Requirements**: GREET-01
**Success Criteria** (what must be TRUE):
  1. Running the program with a name prints a greeting
**Plans**: 1 plan

Plans:
- [ ] 01-01-PLAN.md - Write the greeter

## Progress

| Phase | Plans Complete | Status | Completed |
|-------|----------------|--------|-----------|
| 1. Greeting | 0/1 | Not started | - |
"""
STATE = """# Project State

## Project Reference

See: .planning/PROJECT.md

**Core value:** A friendly greeting.
**Current focus:** Phase 1

## Current Position

Phase: 1 of 1 (Greeting)
Plan: 0 of 1 in current phase
Status: Ready to plan
Last activity: 2026-01-01 - Roadmap created

Progress: [░░░░░░░░░░] 0%
"""
CONFIG = {
    "mode": "interactive",
    "granularity": "coarse",
    "commit_docs": True,
    "workflow": {"research": False, "auto_advance": True},
    # One that neither of the tests reaches: the run asks the gates itself, before it starts the command.
    "gates": {"issues_review": True},
}
CONTEXT = "# Phase 1: Greeting - Context\n\n<decisions>\n- D-01: Plain text\n</decisions>\n"
PLAN = """---
phase: 01-greeting
plan: 01
type: execute
wave: 1
depends_on: []
files_modified: [greeter.py]
autonomous: true
requirements: [GREET-01]
must_haves:
  truths:
    - "Running the program with a name prints a greeting"
  artifacts:
    - path: "greeter.py"
      provides: "The greeting"
  key_links: []
---

<objective>
Write the greeter.
</objective>

<tasks>
<task type="auto">
  <name>Task 1: Write the greeter</name>
  <files>greeter.py</files>
  <action>Print a greeting for the name in the first argument.</action>
  <verify>python3 greeter.py Ada</verify>
  <done>It greets.</done>
</task>
</tasks>
"""
GREETER = 'import sys\n\nprint(f"Hello, {sys.argv[1]}!")\n'
SUMMARY = """---
phase: 01-greeting
plan: 01
subsystem: greeting
requirements-completed: [GREET-01]
completed: 2026-01-01
---

# Phase 1 Plan 01: Greeter Summary

**A program that greets a person**

## Task Commits

1. **Task 1: Write the greeter** - see the history

## Deviations from Plan

None
"""
VERIFICATION = """---
phase: 01-greeting
verified: 2026-01-01T10:00:00Z
status: passed
score: 1/1 must-haves verified
---

# Phase 1: Greeting Verification Report
"""
AUDIT_FILE = """---
milestone: v1.0
audited: 2026-01-02T10:00:00Z
status: passed
scores:
  requirements: 1/1
  phases: 1/1
  integration: 1/1
  flows: 1/1
gaps:
  requirements: []
  integration: []
  flows: []
tech_debt: []
---

# Milestone v1.0 Audit

All requirements covered.
"""
COLLAPSED = """# Roadmap: Greeter

## Milestones

- ✅ **v1.0 Greeter** — Phase 1 (shipped 2026-01-02)

## Phases

<details>
<summary>✅ v1.0 Greeter (Phase 1) — SHIPPED 2026-01-02</summary>

- [x] Phase 1: Greeting (1/1 plan) — completed 2026-01-01

</details>
"""
BANNER = """╔═══════════════════════════════════════════════════════╗
║  CHECKPOINT: Verification Required                    ║
╚═══════════════════════════════════════════════════════╝

Progress: 1/1 tasks complete
Built: the greeter

How to verify:
  1. Run python3 greeter.py Ada

────────────────────────────────────────────────────────
→ YOUR ACTION: Type "approved" or describe issues
────────────────────────────────────────────────────────
"""

_COMMAND = re.compile(r"<command-name>/gsd[:-]([a-z-]+)</command-name>")


def bash(command: str) -> ToolUseBlock:
    return ToolUseBlock("Bash", {"command": command, "description": "a command of the workflow"})


def write(path: str, text: str) -> ToolUseBlock:
    # A shell command, because the Write tool wants absolute paths, which the model would have to know.
    mark = "END_OF_FILE"
    return bash(f"mkdir -p \"$(dirname '{path}')\" && cat > '{path}' <<'{mark}'\n{text}\n{mark}")


def commit(message: str, *paths: str) -> ToolUseBlock:
    return bash(f'gsd-sdk query commit "{message}" --files {" ".join(paths)}')


Turns = Sequence[Sequence[Block]]

QUESTION = ToolUseBlock(
    "AskUserQuestion",
    {
        "questions": [
            {
                "question": "How finely should scope be sliced into phases?",
                "header": "Granularity",
                "multiSelect": False,
                "options": [
                    {"label": "Coarse (Recommended)", "description": "Fewer, broader phases"},
                    {"label": "Fine", "description": "Many focused phases"},
                ],
            }
        ]
    },
)

NEW_PROJECT: Turns = (
    (bash("gsd-sdk query init.new-project"),),
    (QUESTION,),
    (
        write(".planning/PROJECT.md", PROJECT),
        write(".planning/REQUIREMENTS.md", REQUIREMENTS),
        write(".planning/ROADMAP.md", ROADMAP),
        write(".planning/STATE.md", STATE),
        write(".planning/config.json", json.dumps(CONFIG)),
    ),
    (commit("docs: initialize project", ".planning/"),),
    (Text("Project initialized."),),
)
DISCUSS: Turns = (
    (
        bash("gsd-sdk query init.phase-op 1 > /dev/null; cat .planning/config.json"),
        write(f"{PHASE}/01-CONTEXT.md", CONTEXT),
        commit("docs(01): capture phase context", f"{PHASE}/01-CONTEXT.md"),
    ),
    (Text("Context captured."),),
)
PLANNER = "Write the plan of phase 1."
PLAN_PHASE: Turns = (
    (bash("gsd-sdk query init.plan-phase 1"),),
    (
        ToolUseBlock(
            "Agent", {"description": "Plan phase 1", "prompt": PLANNER, "subagent_type": "gsd-planner"}
        ),
    ),
    (commit("docs(01): create phase plan", f"{PHASE}/01-01-PLAN.md"),),
    (Text("## PLANNING COMPLETE"),),
)
SUBAGENT: Turns = ((write(f"{PHASE}/01-01-PLAN.md", PLAN),), (Text("## PLANNING COMPLETE"),))
# The step handle_branching of workflows/execute-phase.md, as far as an existing branch goes.
BRANCHING = """INIT=$(gsd-sdk query init.execute-phase 1)
value() { printf '%s' "$INIT" | grep -o "\\"$1\\": \\"[^\\"]*\\"" | head -1 | cut -d'"' -f4; }
if [ "$(value branching_strategy)" != none ]; then
  BRANCH_NAME=$(value branch_name)
  if git show-ref --verify --quiet "refs/heads/$BRANCH_NAME"; then git switch "$BRANCH_NAME"
  else git checkout -b "$BRANCH_NAME"; fi
fi
"""
BUILD = bash(
    f"{BRANCHING}cat .planning/config.json; "
    f"cat > greeter.py <<'END'\n{GREETER}\nEND\n"
    "git add greeter.py && git commit -qm 'feat(01-01): write the greeter'"
)
FINISH: Turns = (
    (
        write(f"{PHASE}/01-01-SUMMARY.md", SUMMARY),
        commit("docs(01-01): complete the plan", f"{PHASE}/01-01-SUMMARY.md"),
        write(f"{PHASE}/01-VERIFICATION.md", VERIFICATION),
    ),
    (
        bash("gsd-sdk query phase.complete 1"),
        commit("docs(01): complete phase execution", ".planning/"),
    ),
    (Text("Phase 1 complete."),),
)
EXECUTE: Turns = ((BUILD,), *FINISH)
WITH_CHECKPOINT: Turns = ((BUILD,), (Text(f"The greeter is written.\n\n{BANNER}"),), *FINISH)

# The workflow itself names the file like this in one place.
AUDIT = ".planning/v1.0-v1.0-MILESTONE-AUDIT.md"
AUDIT_MILESTONE: Turns = (
    (bash("gsd-sdk query init.milestone-op && gsd-sdk query phases.list"), write(AUDIT, AUDIT_FILE)),
    (Text("## ✓ Milestone v1.0 — Audit Passed"),),
)
ARCHIVE_PHASES = ToolUseBlock(
    "AskUserQuestion",
    {
        "questions": [
            {
                "question": "Archive phase directories to milestones/?",
                "header": "Archive",
                "multiSelect": False,
                "options": [
                    {"label": "Yes (Recommended)", "description": "Move to milestones/v1.0-phases/"},
                    {"label": "Skip", "description": "Keep phases in place"},
                ],
            }
        ]
    },
)
COMPLETE_MILESTONE: Turns = (
    (
        bash("gsd-sdk query audit-open; gsd-sdk query roadmap.analyze"),
        bash('gsd-sdk query milestone.complete v1.0 --name "Greeter"'),
    ),
    (ARCHIVE_PHASES,),
    (
        bash("mkdir -p .planning/milestones/v1.0-phases"),
        bash("mv .planning/phases/01-greeting .planning/milestones/v1.0-phases/"),
        write(".planning/ROADMAP.md", COLLAPSED),
        bash("git add -A .planning && git commit -qm 'chore: archive v1.0 milestone files'"),
        bash("git rm -q .planning/REQUIREMENTS.md"),
    ),
    (
        bash("git tag -a v1.0 -m 'v1.0 Greeter'"),
        bash("git commit -qm 'chore: remove REQUIREMENTS.md for v1.0 milestone'"),
    ),
    (Text("✅ Milestone v1.0 Greeter complete"),),
)
COMMANDS: Mapping[str, Turns] = {
    "audit-milestone": AUDIT_MILESTONE,
    "complete-milestone": COMPLETE_MILESTONE,
    "new-project": NEW_PROJECT,
    "discuss-phase": DISCUSS,
    "plan-phase": PLAN_PHASE,
    "execute-phase": EXECUTE,
}


@define
class Model:
    """Answers each request with the turn of its command; *turns* are those that a test replaces.

    *before* is called with the command and the number of the turn before each answer. Afterwards, look at
    *called*, the commands in the order in which they began, and *seen*, the last message of each request.
    """

    turns: Mapping[str, Turns] = field(factory=dict[str, Turns])
    before: Callable[[str, int], None] = lambda command, turn: None
    called: list[str] = field(factory=list[str], init=False)
    seen: list[tuple[str, str]] = field(factory=list[tuple[str, str]], init=False)
    prompts: list[str] = field(factory=list[str], init=False)
    systems: list[str] = field(factory=list[str], init=False)
    lock: Any = field(factory=threading.Lock, init=False)

    def __call__(self, request: ApiRequest) -> Reply:
        """Return the model's next message."""
        everything = "\n".join(json.dumps(message["content"]) for message in request.messages)
        found = _COMMAND.search(everything)
        name = "subagent" if PLANNER in request.prompt and not found else found[1] if found else "prompt"
        turns: Turns = {"subagent": SUBAGENT, **COMMANDS, **self.turns}.get(name, ((Text("Fine."),),))
        # When it resumes an interrupted conversation, Claude Code adds a message of its own.
        said = [text_of(m["content"]) for m in request.messages if m["role"] == "assistant"]
        turn = sum(text != "No response requested." for text in said)
        with self.lock:
            if turn == 0:
                self.called.append(name)
                self.prompts.append(everything)
                self.systems.append(request.system)
            self.seen.append((name, request.last))
        self.before(name, turn)
        return Blocks(tuple(turns[min(turn, len(turns) - 1)]))
