"""Checks in the sandbox do not find what an agent left in its home, and do not disturb one another."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from gsd_core.hookspecs import gsd_sandbox
from gsd_core.model.agent import Allow, Permission, ToolUse
from gsd_core.model.checks import CheckResult
from gsd_core.run.commands import check, environment, run_inside
from gsd_core.run.sandbox import Sandbox, choose_sandbox
from gsd_core.settings import RunSettings
from gsd_core.testing import make_hooks
from gsd_plugins import bubblewrap
from tests.planning.trees import make_project, plan_text
from tests.sandbox.box import git, require_sandbox

LIMIT = timedelta(seconds=60)
PLANT = """
set -e
site=$("$PYTHON" -m site --user-site)
mkdir -p "$site" ~/.config/git ~/.config/pip ~/.cache/pip
rm -f ~/.local/bin; mkdir -p ~/.local/bin
echo 'print("PLANTED usercustomize")' > "$site/usercustomize.py"
echo 'import sys; sys.stdout.write("PLANTED pth")' > "$site/evil.pth"
echo 'print("PLANTED module")' > "$site/planted_tool.py"
printf '#!/bin/sh\\necho PLANTED tool\\n' > ~/.local/bin/planted; chmod +x ~/.local/bin/planted
for file in .bashrc .bash_profile .profile .zshenv; do echo 'echo PLANTED shell' > ~/$file; done
printf '[alias]\\n\\tcheck = !echo PLANTED git\\n' > ~/.gitconfig
echo 'node-options=--require=PLANTED' > ~/.npmrc
echo cached > ~/.cache/pip/kept
"""
LOOK = """
"$PYTHON" -c 'print("python ran")'; "$PYTHON" -c 'import planted_tool' 2>/dev/null
PATH="$HOME/.local/bin:$PATH" planted 2>/dev/null
bash -lic true 2>/dev/null; bash -ic true 2>/dev/null; git check 2>/dev/null
cat ~/.npmrc 2>/dev/null; cat ~/.cache/pip/kept; echo left > ~/left; ls -A ~ | wc -l
"""


@attrs.frozen
class _Gate:
    """Allows everything."""

    sandbox: Sandbox
    step: str = "1/execute/01-01"
    mark: str = "run"

    async def decide(self, use: ToolUse) -> Permission:
        return Allow()


@pytest.fixture
def gate(project: Path, monkeypatch: pytest.MonkeyPatch) -> _Gate:
    require_sandbox()
    # Not in an environment, which has no user site.
    monkeypatch.setenv("PYTHON", str(Path(sys.base_prefix) / "bin" / "python3"))
    monkeypatch.setattr("gsd_core.run.commands.PASSED_ON", (*environment.__globals__["PASSED_ON"], "PYTHON"))
    hooks = make_hooks(bubblewrap=bubblewrap)
    assert hooks.plugins_of(gsd_sandbox)
    settings = RunSettings(sandbox="required", sandboxes=("bubblewrap",), sandbox_caches=False)
    return _Gate(asyncio.run(choose_sandbox(hooks, settings, project)))


async def act(gate: _Gate, tree: Path, script: str) -> str:
    """Run *script* as a process of an agent, and return what it printed."""
    async with gate.sandbox.around(tree) as inside:
        ran = await run_inside(inside, ("bash", "-c", script), environment("run"), LIMIT)
    assert ran.exit == 0, ran
    return ran.output


def run_checks(gate: _Gate, tree: Path, *commands: str) -> Sequence[CheckResult]:
    async def together() -> Sequence[CheckResult]:
        return await asyncio.gather(*(check(gate, command, tree, LIMIT) for command in commands))

    return asyncio.run(together())


def test_what_an_agent_leaves_in_its_home_does_not_reach_a_check(gate: _Gate, project: Path) -> None:
    asyncio.run(act(gate, project, PLANT))
    assert asyncio.run(act(gate, project, LOOK)).count("PLANTED") > 5  # it reaches the agent's own commands

    [first] = run_checks(gate, project, LOOK)
    [second] = run_checks(gate, project, LOOK)

    assert (first.exit, second.exit) == (0, 0)
    assert "PLANTED" not in first.output + second.output
    assert "python ran" in first.output
    assert "cached" in first.output
    # A check leaves nothing for the next one either.
    assert first.output == second.output


def test_a_cache_that_an_agent_removed_or_replaced_is_a_new_one(
    gate: _Gate, project: Path, user_home: Path
) -> None:
    asyncio.run(act(gate, project, f"rm -rf ~/.cache/pip ~/go/pkg/mod; ln -s {user_home}/.ssh ~/.cache/pip"))

    [done] = run_checks(
        gate, project, "mkdir -p ~/.cache/pip ~/go/pkg/mod && touch ~/.cache/pip/x && ls -A ~/.cache/pip"
    )

    assert (done.exit, done.output) == (0, "x")
    assert sorted(path.name for path in (user_home / ".ssh").iterdir()) == ["id_ed25519"]


MEET = """
set -e
test ! -e ~/name; echo $$ > ~/name
mktemp ~/.cache/pip/here.XXXX
for n in $(seq 400); do test $(ls ~/.cache/pip | grep -c here) = 2 && break; sleep 0.05; done
test $(cat ~/name) = $$
"""
CHECK = (
    '<tasks><task type="auto"><name>X</name><verify><automated>sh meet.sh</automated></verify></task></tasks>'
)


def test_two_processes_that_run_checks_at_the_same_time_have_separate_homes(
    gate: _Gate, project: Path
) -> None:
    make_project(
        project,
        {
            "ROADMAP.md": "### Phase 1: A\n",
            "phases/01-a/01-01-PLAN.md": plan_text(body=CHECK),
            "phases/01-a/01-01-SUMMARY.md": "done",
        },
    )
    (project / "meet.sh").write_text(MEET)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "plan")
    command = (sys.executable, "-m", "gsd_core", "gaps", "1", "--run-checks", "--json")

    both = [
        subprocess.Popen(command, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    shown = [json.loads(process.communicate(timeout=100)[0]) for process in both]
    assert [gap for found in shown for gap in found["gaps"] if gap["found_by"] == "checks"] == []
