"""Sessions and projects for the dashboard: what ``bench/page.py`` measures, in the formats of real runs.

One rehearsed run gives the shapes: its facts and its repository are copied, with the ids replaced, into a
project with 200 plans and a journal of 100,000 events. Three more real runs end with a question, with gaps
and with a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from gsd_core import GsdError, boot_id, process_start
from gsd_core.journal.lock import ProjectLock
from gsd_plugins.sessions.host import stop_session
from gsd_plugins.sessions.output import OutputWriter
from gsd_plugins.sessions.registry import Registry, output_folder

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
RUNS = {
    "shortlink": ("unanswered-question.toml", "--no-input"),
    "egg-timer": ("staying-gaps.toml", "--yes"),
    "night-bus": ("lying-executor.toml", "--no-input"),
}
"""Rehearsed sessions: the project's name, its scenario and how questions are answered."""
WAIT_SECONDS = 180.0
TASKS = 2
SUBJECTS = ("accounts", "postings", "receipts", "invoices", "taxes", "budgets", "imports", "exports")
VERBS = ("Store", "Validate", "List", "Import", "Reconcile", "Report", "Archive", "Search")
ENDS = (
    ("completed", 0, ""),
    ("failed", 1, "step 2/execute/02-01 failed: the check `python3 -m unittest -q` exits with 1"),
    ("stopped", 130, "stopped by the user"),
    ("completed", 0, ""),
    ("failed", 5, "the budget of $5 is spent"),
)


@attrs.frozen(kw_only=True)
class Made:
    """The sessions: *large* has the most plans and events, *log* the longest output, *asks* a question."""

    large: str
    log: str
    asks: str
    gaps: str
    failed: str
    locks: Sequence[ProjectLock]


def make(folder: Path, *, plans: int, events: int, sessions: int, lines: int) -> Made:
    """Make everything below *folder*, whose ``state`` folder the environment must name already."""
    model = rehearse(folder / "greeter")
    started = {name: start(folder / name, *how) for name, how in RUNS.items()}
    large = folder / "ledger"
    shutil.copytree(model, large)
    write_planning(large, plans=plans)
    lock = ProjectLock(large / ".git" / "gsd")
    lock.acquire()
    write_journal(large, events=events)
    for number in range(sessions - len(RUNS) - 1):
        add_ended(model, folder / f"{SUBJECTS[number % 8]}-{number // 8 + 1}", number)
    log = add_running(large, slot=1)
    write_log(log, lines)
    wait_for(started.values())
    return Made(
        large=log,
        log=log,
        asks=started["shortlink"],
        gaps=started["egg-timer"],
        failed=started["night-bus"],
        locks=[lock],
    )


def gsd(*arguments: str) -> str:
    """Run gsd with the scripted agent in place of Claude Code, and return what it printed."""
    command = [sys.executable, "-m", "gsd_core", *arguments]
    environment = {**os.environ, "GSD_REHEARSAL_CLI": "false"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} exits with {done.returncode}: {done.stderr}")
    return done.stdout


def rehearse(project: Path) -> Path:
    """Rehearse a whole run with a gap and a question, and return its folder."""
    gsd("run", str(EXAMPLES / "greeter.md"), "-C", str(project), "--agent", "rehearsal", "--yes")
    return project


def start(project: Path, scenario: str, answers: str) -> str:
    """Start a rehearsed run in the background, and return its session."""
    script = str(EXAMPLES / "rehearsal" / scenario)
    idea = str(EXAMPLES / "greeter.md")
    before = set(ids())
    gsd("run", idea, "-C", str(project), "--agent", "rehearsal", "--script", script, answers, "--bg")
    return next(iter(set(ids()) - before))


def stop(made: Made) -> None:
    """End the sessions that wait for an answer, and release the project."""
    for session in (made.asks, made.gaps):
        with suppress(GsdError):
            stop_session(session)
    wait_for([made.asks, made.gaps], over=("completed", "failed", "stopped"))
    for lock in made.locks:
        lock.release()


def ids() -> list[str]:
    """Return the ids of all sessions."""
    with Registry() as registry:
        return [row.session.id for row in registry.all()]


OVER = ("completed", "failed", "stopped", "waiting_checkpoint")


def wait_for(sessions: Iterable[str], over: Sequence[str] = OVER) -> None:
    """Wait until each of *sessions* is in one of the states *over*: ended, or waiting for a person."""
    until = time.monotonic() + WAIT_SECONDS
    left = set(sessions)
    while left:
        with Registry() as registry:
            left = {one for one in left if registry.get(one).session.state not in over}
        if time.monotonic() > until:
            raise SystemExit(f"still running: {', '.join(sorted(left))}")
        time.sleep(0.2)


def add_running(project: Path, slot: int) -> str:
    """Add a session that this process seems to run."""
    with Registry() as registry:
        session = registry.add(project=project, folder=project, command=["run", "ledger.md"]).id
        own = {"runner": os.getpid(), "runner_started": process_start(os.getpid()), "boot": boot_id()}
        began = (datetime.now(UTC) - timedelta(hours=3)).isoformat(timespec="milliseconds")
        process = {"pid": os.getpid(), "pid_started": process_start(os.getpid()), "started": began}
        registry.update(session, state="running", slot=slot, run="r-ledger", **own, **process)
    return session


def add_ended(model: Path, project: Path, number: int) -> None:
    """Add an ended session with a copy of the rehearsed run, some hours ago."""
    shutil.copytree(model, project)
    state, code, reason = ENDS[number % len(ENDS)]
    began = datetime.now(UTC) - timedelta(hours=2 + number * 3)
    ended = began + timedelta(minutes=17 + number % 40)
    with Registry() as registry:
        session = registry.add(project=project, folder=project, command=["run", "idea.md"]).id
        registry.end(session, state, exit_code=code, reason=reason)  # type: ignore[arg-type]
        times = {"created": began.isoformat(), "started": began.isoformat(), "ended": ended.isoformat()}
        registry.update(session, **times)


def write_log(session: str, lines: int) -> None:
    """Write output of so many lines, with colors, steps, commits and errors."""
    writer = OutputWriter(output_folder(session), keep_bytes=1 << 40)
    output_folder(session).mkdir(parents=True, exist_ok=True)
    block: list[str] = []
    for number in range(lines):
        match number % 500:
            case 0:
                text = f"\x1b[34m▸\x1b[0m {number // 50_000 + 1}/execute/01-{number % 12:02}"
            case 251:
                text = f"\x1b[31m✗\x1b[0m error: the check failed with exit code {number % 7}"
            case 499:
                text = f"\x1b[32m✓\x1b[0m task {number}  3f2a9c{number % 1000:03} feat(ledger): post entries"
            case _:
                text = f"    Edit ledger/{SUBJECTS[number % 8]}.py: line {number}"
        block.append(text)
    writer.append(("\r\n".join(block) + "\r\n").encode())
    writer.close()


# The planning files


@attrs.frozen(kw_only=True)
class PlanId:
    """A plan of the large project."""

    phase: int
    number: int
    wave: int
    depends_on: tuple[str, ...]

    @property
    def id(self) -> str:
        """Such as ``03-07``."""
        return f"{self.phase:02}-{self.number:02}"

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        verb, subject = VERBS[(self.number * 3 + self.phase) % 8], SUBJECTS[self.number % 8]
        return f"{verb} {subject} of the {ORDINALS[self.phase % 8]} ledger"


ORDINALS = ("first", "second", "shared", "monthly", "quarterly", "yearly", "imported", "archived")
PER_PHASE = 13
DONE = 13
"""How many phases of the large project are complete; the one after them is in progress."""


def plans_of(count: int) -> list[PlanId]:
    """Return *count* plans in phases of 13, each phase with up to five waves."""
    found: list[PlanId] = []
    for index in range(count):
        phase, number = divmod(index, PER_PHASE)
        wave = 1 + number // 3
        before = [f"{phase + 1:02}-{one + 1:02}" for one in range(number) if 1 + one // 3 == wave - 1]
        depends = tuple(before if number % 3 == 0 else before[number % 3 : number % 3 + 1])
        found.append(PlanId(phase=phase + 1, number=number + 1, wave=wave, depends_on=depends))
    return found


def write_planning(project: Path, *, plans: int) -> None:
    """Replace the planning files of the rehearsed run by those of a project with so many *plans*."""
    every = plans_of(plans)
    phases = max(plan.phase for plan in every)
    planning = project / ".planning"
    shutil.rmtree(planning / "phases")
    (planning / "PROJECT.md").write_text(
        (planning / "PROJECT.md").read_text().replace("Greeter", "Ledger"), encoding="utf-8"
    )
    (planning / "ROADMAP.md").write_text(roadmap(every, phases), encoding="utf-8")
    (planning / "REQUIREMENTS.md").write_text(requirements(phases), encoding="utf-8")
    commits = subprocess.run(
        ["git", "-C", str(project), "log", "--format=%h", "--", "*.py"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for phase in range(1, phases + 1):
        own = [plan for plan in every if plan.phase == phase]
        folder = planning / "phases" / f"{phase:02}-{SUBJECTS[phase % 8]}"
        folder.mkdir(parents=True)
        if not own:
            continue
        (folder / f"{phase:02}-CONTEXT.md").write_text(f"# Phase {phase}: Context\n", encoding="utf-8")
        for plan in own:
            (folder / f"{plan.id}-PLAN.md").write_text(plan_text(plan), encoding="utf-8")
            if phase <= DONE or (phase == DONE + 1 and plan.wave == 1):
                (folder / f"{plan.id}-SUMMARY.md").write_text(summary_text(plan), encoding="utf-8")
        if phase <= DONE:
            (folder / f"{phase:02}-VERIFICATION.md").write_text(
                verification(phase, own, commits), encoding="utf-8"
            )


def name_of(phase: int) -> str:
    """Return the name of a phase."""
    return f"{SUBJECTS[phase % 8].title()} of the {ORDINALS[phase % 8]} ledger"


def required_by(phase: int) -> list[str]:
    """Return the ids of the requirements of a phase."""
    return [f"{SUBJECTS[phase % 8][:4].upper()}-{phase}{number}" for number in (1, 2, 3)]


def roadmap(plans: Sequence[PlanId], phases: int) -> str:
    """Return ROADMAP.md."""
    lines = ["# Roadmap: Ledger", "", "## Overview", "", "A ledger for a small company.", "", "## Phases", ""]
    for phase in range(1, phases + 1):
        tick, when = ("x", " (completed 2026-11-23)") if phase <= DONE else (" ", "")
        lines.append(f"- [{tick}] **Phase {phase}: {name_of(phase)}** - Entries are kept and found{when}")
    lines += ["", "## Phase Details", ""]
    for phase in range(1, phases + 1):
        own = [plan for plan in plans if plan.phase == phase]
        before = f"Phase {phase - 1}" if phase > 1 else "Nothing (first phase)"
        lines += [
            f"### Phase {phase}: {name_of(phase)}",
            f"**Goal**: Every one of the {SUBJECTS[phase % 8]} is stored once, and found again by its number",
            f"**Depends on**: {before}",
            f"**Requirements**: {', '.join(required_by(phase))}",
            "**Success Criteria** (what must be TRUE):",
            "  1. An entry that was stored is found after a restart",
            "  2. An invalid entry is refused, with the field and the reason",
            f"**Plans**: {len(own)} plans",
            "",
            "Plans:",
            *(
                f"- [{'x' if phase <= DONE or (phase == DONE + 1 and plan.wave == 1) else ' '}] "
                f"{plan.id}-PLAN.md — {plan.title}"
                for plan in own
                if own
            ),
            "",
        ]
    return "\n".join(lines) + "\n"


def requirements(phases: int) -> str:
    """Return REQUIREMENTS.md."""
    lines = ["# Requirements: Ledger", "", "**Defined:** 2026-11-23", "", "## v1 Requirements", ""]
    for phase in range(1, phases + 1):
        tick = "x" if phase <= DONE else " "
        lines += [f"### {name_of(phase)}", ""]
        for name, text in zip(
            required_by(phase),
            (
                f"User can store {SUBJECTS[phase % 8]} with a date, an amount and a text",
                "User gets a clear message that names the field when an entry is invalid",
                "User can find an entry by its number, its date or a word of its text, among 100,000 entries",
            ),
            strict=True,
        ):
            lines.append(f"- [{tick}] **{name}**: {text}")
        lines.append("")
    lines += ["## Traceability", "", "| Requirement | Phase | Status |", "|-----|-----|-----|"]
    for phase in range(1, phases + 1):
        state = "Complete" if phase <= DONE else "Pending"
        lines += [f"| {name} | Phase {phase} | {state} |" for name in required_by(phase)]
    return "\n".join(lines) + "\n"


def plan_text(plan: PlanId) -> str:
    """Return a PLAN.md."""
    needs = "".join(f"\n  - {name}" for name in plan.depends_on) or " []"
    module = f"ledger/{SUBJECTS[plan.number % 8]}_{plan.number}.py"
    test = f"tests/test_{SUBJECTS[plan.number % 8]}_{plan.number}.py"
    first, second = f"{plan.title}: an entry is unchanged", "An invalid entry is refused with a reason"
    tasks = "\n\n".join(
        f"""<task type="auto">
  <name>Task {number}: {title}</name>
  <files>{module}, {test}</files>
  <action>{title}. Write the tests first.</action>
  <verify>The tests pass
    <automated>python3 -m unittest -q tests.test_guests</automated>
  </verify>
  <done>{title}, and the tests pass</done>
</task>"""
        for number, title in (
            (1, plan.title),
            (2, f"Test the {SUBJECTS[plan.number % 8]} with invalid input"),
        )
    )
    return f"""---
phase: {plan.phase:02}-{SUBJECTS[plan.phase % 8]}
plan: "{plan.number:02}"
name: "{plan.title}"
type: execute
wave: {plan.wave}
depends_on:{needs}
files_modified:
  - {module}
  - {test}
autonomous: true
requirements:
  - {required_by(plan.phase)[plan.number % 3]}
must_haves:
  truths:
    - "{first}"
    - "{second}"
  artifacts:
    - path: {module}
      provides: "{plan.title}"
  serves:
    - "{required_by(plan.phase)[plan.number % 3]}, {plan.phase:02}:C1"
    - "{required_by(plan.phase)[plan.number % 3]}, {plan.phase:02}:C2"
---

<objective>
{plan.title}, so that an entry that was stored is found after a restart, and an invalid one is refused
</objective>

<tasks>

{tasks}

</tasks>
"""


def summary_text(plan: PlanId) -> str:
    """Return a SUMMARY.md."""
    return f"""---
phase: {plan.phase:02}-{SUBJECTS[plan.phase % 8]}
plan: "{plan.number:02}"
requirements-completed:
  - {required_by(plan.phase)[plan.number % 3]}
duration: "12min"
completed: "2026-11-23"
---

# Phase {plan.phase} Plan {plan.number:02}: {plan.title} Summary

**Done and tested: {plan.title}**

## Accomplishments
- {plan.title}, and the tests pass
"""


def verification(phase: int, plans: Sequence[PlanId], commits: Sequence[str]) -> str:
    """Return a VERIFICATION.md; each fourth phase has a requirement that nobody verified."""
    proof = "greeter/guests.py:1-12, `python3 -m unittest -q tests.test_guests` (exit 0): stored and found"
    truths = "\n".join(
        f"| {plan.id}:T{number} | {text} | ✓ VERIFIED | {proof} |"
        for plan in plans
        for number, text in ((1, f"{plan.title}: an entry is unchanged"), (2, "An invalid entry is refused"))
    )
    checks = "\n".join(
        f"| {plan.id}/{task} | python3 -m unittest -q tests.test_guests | ✓ PASSED | exit 0 |"
        for plan in plans
        for task in (1, 2)
    )
    names = required_by(phase)
    required = "\n".join(f"| {name} | An entry is stored | ✓ VERIFIED | {proof} |" for name in names)
    covered = "\n".join(
        f"| {name} | {', '.join(plan.id for plan in plans if plan.number % 3 == index)} | ✓ SATISFIED | "
        f"{proof} | S{index + 2}, S{phase % 9 + 1} | {', '.join(commits[index : index + 4])} | "
        f"{', '.join(f'{plan.id}/1' for plan in plans if plan.number % 3 == index)} |"
        for index, name in enumerate(names)
    )
    total = len(plans) * 2 + 3
    return f"""---
phase: {phase:02}-{SUBJECTS[phase % 8]}
verified: "2026-11-23T09:23:36Z"
status: passed
score: "{total}/{total} must-haves verified"
---

# Phase {phase}: {name_of(phase)} Verification Report

**Status:** passed

## Goal Achievement

### Observable Truths

| # | Truth | Status | Evidence |
| --- | --- | --- | --- |
{truths}

**Score:** {total}/{total} must-haves verified

### Requirements

| Requirement | Text | Status | Evidence |
| --- | --- | --- | --- |
{required}

### Checks

| Check | Command | Status | Evidence |
| --- | --- | --- | --- |
{checks}

### Requirements Coverage

| Requirement | Source Plan | Status | Evidence | Statements | Commits | Checks |
| --- | --- | --- | --- | --- | --- | --- |
{covered}

## Human Verification Required

None.

## Gaps Summary

**No gaps found.**
"""


# The journal

Row = tuple[str, int, str, str, int, str, int, str]


def write_journal(project: Path, *, events: int) -> None:
    """Replace the journal's facts by those of the large project, with activity up to so many *events*."""
    database = sqlite3.connect(project / ".git" / "gsd" / "journal.db")
    columns = "run, epoch, at, kind, v, step, attempt, data"
    known: list[Row] = list(database.execute(f"SELECT {columns} FROM event ORDER BY seq"))
    rows = [*large_run(known), observed(known)]
    activity = [row for row in known if row[3] == "agent.activity" and '"kind":"start"' not in row[7]]
    calls = sum(row[3] == "agent.opened" and "/execute/" in row[5] for row in rows)
    each, rest = divmod(max(0, events - len(rows)), calls)
    full: list[Row] = []
    number = 0
    for row in rows:
        full.append(row)
        if row[3] == "agent.opened" and "/execute/" in row[5]:
            for _ in range(each + (rest > 0)):
                like = activity[number % len(activity)]
                number += 1
                full.append((row[0], row[1], row[2], like[3], like[4], row[5], row[6], like[7]))
            rest -= rest > 0
    span = timedelta(hours=3) / len(full)
    start_ = datetime.now(UTC) - timedelta(hours=3)
    database.execute("DELETE FROM event")
    database.executemany(
        f"INSERT INTO event({columns}) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row[:2], (start_ + span * index).isoformat(), *row[3:]) for index, row in enumerate(full)],
    )
    database.commit()
    database.close()


def large_run(known: Sequence[Row]) -> Iterator[Row]:
    """Yield the facts of the large run: the rehearsed ones of each kind of step, with other ids."""
    of = {step: [row for row in known if row[5] == step] for step in {row[5] for row in known}}
    yield from (row for row in known if row[3] in ("run.started", "run.opened"))
    yield from of["init"]
    first = True
    for phase in range(1, DONE + 2):
        own = [plan for plan in plans_of(PER_PHASE * (DONE + 1)) if plan.phase == phase]
        for kind in ("discuss", "plan"):
            yield from renamed(of[f"2/{kind}"], {"2/": f"{phase}/", '"phase":"2"': f'"phase":"{phase}"'})
        for plan in own:
            # The first one with an outage and a question, as it was rehearsed.
            like = "1/execute/01-01" if first else "2/execute/02-01"
            first = False
            facts = renamed(
                of[like],
                {
                    like: f"{phase}/execute/{plan.id}",
                    like[-5:]: plan.id,
                    f'"phase":"{like[0]}"': f'"phase":"{phase}"',
                    '"dollars":"0.001"': f'"dollars":"0.0{plan.number % 7 + 1}"',
                },
            )
            if phase <= DONE or plan.wave == 1:
                yield from facts
            elif plan.wave == 2:
                # In progress: what comes before its second task.
                yield from facts[:6]
        if phase <= DONE:
            for kind in ("verify", "complete"):
                yield from renamed(of[f"2/{kind}"], {"2/": f"{phase}/", '"phase":"2"': f'"phase":"{phase}"'})


def observed(known: Sequence[Row]) -> Row:
    """Return what a run notes about the planning files, from which the status takes its numbers."""
    every = plans_of(200)
    phases = [
        {
            "number": str(phase),
            "name": name_of(phase),
            "depends_on": [str(phase - 1)] if phase > 1 else [],
            "ticked": phase <= DONE,
            "context": phase <= DONE + 1,
            "research": False,
            "plans": [
                {
                    "id": plan.id,
                    "on_disk": True,
                    "summary": phase <= DONE or (phase == DONE + 1 and plan.wave == 1),
                    "depends_on": [*plan.depends_on],
                    "wave": plan.wave,
                }
                for plan in every
                if plan.phase == phase
            ],
            "verdict": "passed" if phase <= DONE else "",
            "stale": False,
            "gaps": [],
            "due": [],
        }
        for phase in range(1, every[-1].phase + 1)
    ]
    data = {"milestone": "v1.0", "phases": phases, "idle": "", "due": []}
    last = next(row for row in reversed(known) if row[3] == "project.observed")
    return (*last[:5], "", 0, json.dumps(data))


def renamed(rows: Sequence[Row], names: Mapping[str, str]) -> list[Row]:
    """Return the rows with the ids replaced in their step and their data."""
    found: list[Row] = []
    for run, epoch, at, kind, v, step, attempt, data in rows:
        for old, new in names.items():
            step, data = step.replace(old, new), data.replace(old, new)
        json.loads(data)
        found.append((run, epoch, at, kind, v, step, attempt, data))
    return found
