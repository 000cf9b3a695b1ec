"""Hypothesis profiles, temporary files, signals and coverage data for the whole suite.

``HYPOTHESIS_PROFILE=thorough pytest …`` selects one; the default is ``ci`` where ``CI`` is set, else ``dev``.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

# Deadlines and the check for slow data generation measure the machine: with xdist, or beside other work,
# they fail for code that is fine. Hung tests are caught by the time limit of the CI job.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples in every run, so that a change fails only for what it changed. New examples are found by
# `dev` and `thorough`.
settings.register_profile(
    "ci", parent=settings.get_profile("dev"), derandomize=True, database=None, print_blob=True
)
settings.register_profile("thorough", parent=settings.get_profile("dev"), max_examples=2000)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# The journal and git write through to the disk at every step of a run. On a disk in memory the suite takes
# half the time. Kills, which the tests are about, lose nothing there that they would not lose on a disk.
MEMORY, NEEDED_BYTES = Path("/dev/shm"), 4 << 30
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# What gsd prints names its path if `gsd` would start another one: in the tests, that is this one.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# The suite must not fill the user's own folders: each project would get a private home for its sandbox, with
# copies of package caches, and what is trusted would be remembered. Workers of xdist inherit these variables.
if "GSD_TESTS_FOLDER" not in os.environ:
    FOLDER = os.environ["GSD_TESTS_FOLDER"] = tempfile.mkdtemp(prefix="gsd-tests-")
    os.environ |= {"XDG_CACHE_HOME": f"{FOLDER}/cache", "GSD_STATE_DIR": f"{FOLDER}/state"}
    os.environ.setdefault("GSD_SANDBOX_CACHES", "false")
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

# A shell starts background jobs with SIGINT ignored, and every process started from here would inherit that.
# Tests of Ctrl-C would then wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SAMPLED = 3
"""From this many slow variants of one test on, CI runs every fourth; the others are marked as long."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave three of four variants of slow tests to ``nox -s long``: CI has 45 minutes on two cores."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("long"):
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for variants in groups.values():
        # Sorted, because the order of the tests is random.
        for number, item in enumerate(sorted(variants, key=lambda item: item.nodeid)):
            if len(variants) >= SAMPLED and number % 4:
                item.add_marker(pytest.mark.long)


def pytest_sessionfinish() -> None:
    """Save what coverage has measured in this process, which may be a worker of xdist."""
    # Coverage saves at exit, but xdist kills a worker that takes more than ten seconds to exit. On a busy
    # machine that lost the data of both workers of a full run.
    if measuring := Coverage.current():
        measuring.stop()
        measuring.save()
