"""Two copies of a project, with the same runs in their journals, at work on one machine."""

from __future__ import annotations

import shutil
import time

import pytest

from gsd_core.processes import processes
from tests.e2e.project import EXAMPLE, FAKE, Project, door, no_problems

pytestmark = pytest.mark.slow


def test_a_copy_of_a_project_leaves_the_processes_of_the_original_alone(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    waits = door(project)
    waits.closed.touch()
    started = project.start("run", EXAMPLE, *FAKE, "--yes")
    assert started.until(waits.reached.exists)
    started.kill()
    end = time.monotonic() + 10
    while project.leftovers() and time.monotonic() < end:
        time.sleep(0.05)
    copy = Project(project.base / "copy", {**no_problems(), "GSD_SANDBOX": "off"})
    copy.environment["HOME"] = str(project.base / "home")
    shutil.copytree(project.root, copy.root)
    waits.reached.unlink()
    original = project.start("resume", *FAKE[:2], "--yes")
    assert original.until(waits.reached.exists)
    # The door sleeps again and again.
    at_the_door = {each.pid for each in project.leftovers() if each.handle.name() != "sleep"}
    assert at_the_door

    finished = copy.gsd("resume", *FAKE[:2], "--yes")

    assert finished.exit == 0, finished.err
    assert at_the_door <= {process.pid for process in processes()}
    waits.closed.unlink()
    ended = original.wait()
    assert ended.exit == 0, ended.err
    assert not [fact for fact in project.facts("step.completed") if "/verify/r" in fact.step]
    assert not [fact.data for fact in copy.facts("recovered") if fact.data["processes"]]
    assert not copy.clear()
