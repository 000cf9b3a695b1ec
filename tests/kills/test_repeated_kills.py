"""SIGKILL at the same step again and again: a human is asked, and resuming the run counts as an answer."""

from __future__ import annotations

import pytest

from tests.e2e.place import EXAMPLE, FAKE, Place, calm, defects

RUN = ("run", EXAMPLE, *FAKE, "--yes")
WAITS = """import asyncio, pathlib
from gsd_core import implements
from gsd_core.hookspecs import gsd_permit_tool

@implements(gsd_permit_tool)
async def wait(use):
    pathlib.Path({reached!r}).touch()
    if pathlib.Path({closed!r}).exists():
        await asyncio.sleep(600)
"""


def killed_three_times(place: Place) -> None:
    """Have the run killed three times while the first file of the plan is half written."""
    place.make()
    place.environment = calm()
    reached, closed, plugin = (place.base / name for name in ("reached", "closed", "wait.py"))
    (place.base / "plugins").mkdir()
    plugin = place.base / "plugins" / "wait.py"
    plugin.write_text(WAITS.format(reached=str(reached), closed=str(closed)))
    closed.touch()
    for _ in range(3):
        started = place.start(*RUN, "--plugins-dir", plugin.parent)
        assert started.until(reached.exists), started.said
        (place.project / "greeter").mkdir(exist_ok=True)
        (place.project / "greeter" / "__init__.py").write_text("half of")
        started.kill()
        reached.unlink()
    closed.unlink()


@pytest.mark.slow
def test_a_step_lost_three_times_ends_the_run_with_a_question(place: Place) -> None:
    killed_three_times(place)
    done = place.gsd(*RUN)
    (asked,) = place.said("questions")["questions"]

    assert done.exit == 1
    assert "three attempts in a row were lost" in done.err
    assert asked["kind"] == "escalation"
    assert [option["label"] for option in asked["options"]] == ["Retry", "Skip", "Abort"]


def test_resuming_after_three_lost_attempts_starts_the_step_again(place: Place) -> None:
    killed_three_times(place)
    place.gsd(*RUN)
    done = place.gsd(*RUN)

    assert done.exit == 0, done.err
    assert list(defects(place)) == []


@pytest.mark.slow
def test_retry_after_three_lost_attempts_starts_the_step_again(place: Place) -> None:
    killed_three_times(place)
    place.gsd(*RUN)
    (asked,) = place.said("questions")["questions"]
    place.gsd("answer", asked["id"], "Retry")
    done = place.gsd("resume", *FAKE[:2], "--yes")

    assert done.exit == 0, done.err
    assert list(defects(place)) == []
