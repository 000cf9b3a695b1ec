"""Commands in hints: they repeat the global options that the user gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gsd_core.cli.commands import with_global_options
from gsd_core.cli.global_options import GlobalOptions
from tests.cli.bench import Bench, call

IN_DEMO = GlobalOptions(
    directory=Path("my demo"), directory_given=True, plugins=("no:uat",), plugin_dirs=(Path("own"),)
)


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("gsd status", "gsd -C 'my demo' status"),
        (
            "run `gsd answer q-1 …`, then gsd stop",
            "run `gsd -C 'my demo' answer q-1 …`, then gsd -C 'my demo' stop",
        ),
        ("gsd resume", "gsd -C 'my demo' -p no:uat --plugins-dir own resume"),
        ("gsd writes nothing, and gsd runs on", "gsd writes nothing, and gsd runs on"),
    ],
)
def test_a_hint_repeats_the_global_options(hint: str, shown: str) -> None:
    assert with_global_options(hint, IN_DEMO) == shown


def test_without_global_options_a_hint_stays_as_it_is() -> None:
    assert with_global_options("gsd resume", GlobalOptions()) == "gsd resume"


def test_a_failure_names_the_project_in_its_hint(bench: Bench) -> None:
    text = call("resume", "-C", bench.root)
    data = call("-C", bench.root, "resume", "--output-format", "json")

    assert f"gsd -C {bench.root} run IDEA" in text.stderr
    assert f"gsd -C {bench.root} run IDEA" in json.loads(data.stdout)["error"]["hint"]


def test_a_health_issue_names_the_project_in_its_fix(bench: Bench) -> None:
    (bench.root / ".planning").mkdir()

    assert f"gsd -C {bench.root} health --repair" in call("health", "-C", bench.root).stdout
