"""Play a case in a temporary repository with gsd's own engine, and see whether the mistake was caught."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import attrs

from bench.careless.agent import Careless
from bench.careless.cases import Case
from gsd_core.machine.state import Options
from tests.run import harness

MEMORY = Path("/dev/shm")
LIMIT = 60
"""Seconds that a command of a case may take."""
NO_SANDBOX = ("it ran without a sandbox",)


@attrs.frozen(kw_only=True)
class Result:
    """What happened to a case, and how the run ended, after so many *seconds*.

    *complaints* are what somebody was sent back with, and the gaps. *observations* are what the run says
    beside them: deviations, notes, files left over. *shown* is what the verifier's prompt says about a check.
    """

    case: Case
    complaints: tuple[str, ...]
    observations: tuple[str, ...]
    shown: tuple[str, ...]
    end: str
    seconds: float

    @property
    def said(self) -> tuple[str, ...]:
        """What counts: for an honest case, only complaints."""
        return (*self.complaints, *(self.observations if self.case.by else ()))

    @property
    def caught(self) -> bool:
        """Whether something that was said names the mistake; of an honest case, whether anything was said."""
        return any(re.search(self.case.names, text) for text in self.said)


def temporary() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder, in memory if there is one."""
    return tempfile.TemporaryDirectory(prefix="careless-", dir=MEMORY if MEMORY.is_dir() else None)


def play(case: Case) -> Result:
    """Play *case*; raises what the engine raises."""
    logging.disable(logging.CRITICAL)
    began = time.perf_counter()
    with temporary() as folder, contextlib.chdir(folder):
        os.environ |= {"GSD_STATE_DIR": f"{folder}/state", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        root = harness.repository(Path(folder) / "project")
        if start := case.story.get("start"):
            write(root, start)
            harness.git(root, "add", "--all")
            harness.git(root, "commit", "--quiet", "--message", "feat: what there was before")
        agent = Careless(case)
        asked = harness.request(
            root,
            agent,
            given=harness.idea(case.story["idea"]),
            options=Options(gap_rounds=1 if "gap_plans" in case.story else 0),
            ablation=True,
        )
        end = harness.do(asked)
        gaps, observations = observed(root, case)
        if end.exit and not (agent.complaints or gaps):
            raise RuntimeError(f"exit {end.exit} without a complaint: {end.reason}")
    return Result(
        case=case,
        complaints=(*agent.complaints, *gaps),
        observations=tuple(observations),
        shown=tuple(agent.shown),
        end=f"exit {end.exit}: {end.reason}",
        seconds=time.perf_counter() - began,
    )


def observed(root: Path, case: Case) -> tuple[list[str], list[str]]:
    """Return the gaps that were found, and what else the run says about its work."""
    gaps: list[str] = []
    said: list[str] = []
    for fact in harness.facts(root, "step.result", "files.left", "run.closed"):
        match fact.kind:
            case "step.result":
                report = fact.data["result"]["outcome"].get("report", {})
                gaps += [f"gap: {gap['about']}: {gap['reason']}" for gap in report.get("gaps", ())]
                said += [
                    f"observation: {one['text']} {one['where']}" for one in report.get("observations", ())
                ]
            case "files.left":
                said.append(f"left: {', '.join(fact.data['paths'])} {fact.data.get('why', '')}")
            case _:
                said += [f"note: {note}" for note in fact.data["notes"] if note not in NO_SANDBOX]
                said += [
                    f"note: {what}" for what in re.findall(r"phases? complete \((.+)\)", fact.data["reason"])
                ]
    own = {line for plan in case.plans for line in plan.get("report", {}).get("deviations", ())}
    for path in sorted(root.glob(".planning/phases/*/*-SUMMARY.md")):
        section = path.read_text("utf-8").partition("## Deviations from Plan")[2].partition("\n## ")[0]
        said += [
            f"deviation: {line}"
            for line in section.splitlines()
            if line.strip() and not line.startswith("None") and not any(one in line for one in own)
        ]
    return gaps, said


def write(root: Path, files: dict[str, str]) -> None:
    """Write *files*, given as text by path in *root*."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def passes(root: Path, command: str) -> bool:
    """Return whether a shell command succeeds in *root*."""
    done = subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, timeout=LIMIT, check=False)
    return done.returncode == 0


def problems_of(case: Case) -> list[str]:
    """Return in which way the case is not what it says: wrong where it should be right, or the reverse."""
    found: list[str] = []
    checks = [task["check"] for task in case.tasks if task["check"]]
    with temporary() as folder:
        root = Path(folder)
        write(root, case.files())
        found += [f"the check fails: {check}" for check in dict.fromkeys(checks) if not passes(root, check)]
        hidden = [command for command in case.story.get("hidden", ()) if not passes(root, command)]
        if case.wrong == "product" and not hidden:
            found.append("the product passes all hidden tests")
        if case.wrong != "product":
            found += [f"a hidden test fails: {command}" for command in hidden]
        if broken := case.story.get("broken"):
            path, old, new = broken
            text = case.files().get(path, "")
            if case.wrong in ("", "tests") and old not in text:
                found.append(f"{path} does not contain {old!r}")
            write(root, {path: text.replace(old, new)})
            noticed = not all(passes(root, check) for check in checks)
            if case.wrong == "tests" and noticed:
                found.append("the checks notice the broken product")
            if not case.by and not noticed:
                found.append("the checks do not notice the broken product")
    return found
