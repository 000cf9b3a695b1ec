"""``--trace-hooks``: each call of a plugin's hook, on standard error."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cli.bench import Bench
from tests.planning.trees import make_project

SECRET = "ghp_" + "aB3dE6gH9jK2mN5p" + "Q8sT1vW4yZ7cF0hL3nR6"
DETECTORS = f"""
import asyncio
from gsd_core import Gap, implements
from gsd_core.hookspecs import gsd_find_gaps, gsd_settings

@implements(gsd_settings)
def settings():
    return []

@implements(gsd_find_gaps)
async def look(phase):
    await asyncio.sleep(0.05)
    return [Gap(truth="It greets \\x1b[31m {SECRET}", reason="it does not")]
"""
BROKEN = DETECTORS.replace("await asyncio.sleep(0.05)", "raise ValueError('no such file')")


def test_each_call_is_shown_with_its_plugin_its_duration_and_its_result(bench: Bench) -> None:
    make_project(
        bench.root, {"ROADMAP.md": "# Roadmap\n\n- [ ] **Phase 1: Core** - x\n\n### Phase 1: Core\n"}
    )
    folder = bench.root.parent / "plugins"
    folder.mkdir()
    (folder / "greeter.py").write_text(DETECTORS)
    (folder / "broken.py").write_text(BROKEN)
    command = [sys.executable, "-m", "gsd_core", "gaps", "1", "-C", str(bench.root)]
    command += ["--plugins-dir", str(folder), "--json"]

    traced = subprocess.run([*command, "--trace-hooks"], capture_output=True, text=True)
    assert [gap["reason"] for gap in json.loads(traced.stdout)["gaps"]] == ["it does not"]
    calls = {
        tuple(line.split()[1:3]): line for line in traced.stderr.splitlines() if line.startswith("hook: ")
    }
    found = calls["gsd_find_gaps", "greeter"]
    assert 0.05 <= float(found.split()[3]) < 5
    assert "Gap(truth='It greets" in found
    assert SECRET not in traced.stderr
    assert "no such file" in calls["gsd_find_gaps", "broken"]
    assert ("gsd_find_gaps", "must_haves") in calls
    assert ("gsd_settings", "greeter") in calls

    silent = subprocess.run(command, capture_output=True, text=True)
    assert "hook: " not in silent.stderr
