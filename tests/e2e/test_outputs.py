"""The output of a run: data on standard output, messages for people on standard error."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

from gsd_core.model.event import EVENT_NAMES
from tests.e2e.project import EXAMPLE, FAKE, Done, Project, no_problems

pytestmark = pytest.mark.slow

RUN = ("run", EXAMPLE, *FAKE, "--yes")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """Return a finished project, and how the run that made it ended, with colors."""
    project = Project(tmp_path_factory.mktemp("finished"), no_problems())
    project.create()
    return project, project.gsd("-C", project.root, *RUN, FORCE_COLOR="1")


def test_stream_json_is_a_line_for_each_event_with_a_documented_name(project: Project) -> None:
    project.create()
    project.environment = no_problems(QUESTION="1", GAP="1")
    done = project.gsd(*RUN, "--output-format", "stream-json")
    names = [event["name"] for event in done.lines]
    seqs = [event["seq"] for event in done.lines]

    assert done.exit == 0, done.err
    assert set(names) <= set(EVENT_NAMES)
    assert {event["schema_version"] for event in done.lines} == {1}
    assert (names[0], names[-1]) == ("run.started", "run.closed")
    assert seqs == sorted(seqs)
    assert {"phase.started", "step.completed", "task.committed", "gap.found", "cost.changed"} <= set(names)
    assert {"run.opened", "question.asked", "question.answered", "phase.completed"} <= set(names)


def test_json_is_one_object_at_the_end(finished: tuple[Project, Done]) -> None:
    done = finished[0].gsd(*RUN, "--output-format", "json")
    summary = json.loads(done.out)

    assert (summary["schema_version"], summary["outcome"], summary["exit"]) == (1, "done", 0)
    assert summary["run"].startswith("r-")


def test_with_json_output_an_error_is_an_object(finished: tuple[Project, Done]) -> None:
    done = finished[0].gsd("run", "absent.md", *FAKE, "--output-format", "json")

    assert done.exit == json.loads(done.out)["exit"] == 2
    assert "absent.md" in json.loads(done.out)["error"]["message"]


def test_the_result_is_on_standard_output_as_text(finished: tuple[Project, Done]) -> None:
    _, done = finished

    assert done.exit == 0
    assert done.out.splitlines()[-1].startswith("done: 1 phase complete")
    assert "done: " not in done.err


def test_force_color_adds_colors(finished: tuple[Project, Done]) -> None:
    project, done = finished

    assert "\x1b[" in done.err
    assert "\x1b[" in project.gsd("status", FORCE_COLOR="1").out


@pytest.mark.parametrize("verb", [RUN, ("status",), ("log",), ("plugins",), ("--help",), ("run", "--help")])
def test_no_color_overrides_force_color(finished: tuple[Project, Done], verb: tuple[str, ...]) -> None:
    done = finished[0].gsd(*verb, FORCE_COLOR="1", NO_COLOR="1")

    assert done.exit == 0
    assert "\x1b[3" not in done.out + done.err
    assert "\x1b[9" not in done.out + done.err


def test_the_folder_can_be_named_before_or_after_the_command(finished: tuple[Project, Done]) -> None:
    project, _ = finished
    after = project.gsd("status", "-C", project.root, "--json")
    before = project.gsd("-C", project.root, "status", "--json")

    assert before.out == after.out
    assert json.loads(after.out)["status"] == "done"


def test_a_closed_pipe_is_not_a_failure(finished: tuple[Project, Done]) -> None:
    project, _ = finished
    line = f"{shlex.quote(sys.executable)} -m gsd_core log | head -1"
    piped = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=project.root,
        env=project.environ({}),
        capture_output=True,
        check=False,
    )

    assert piped.returncode == 0
    assert piped.stdout.count(b"\n") == 1
    assert piped.stderr == b""
