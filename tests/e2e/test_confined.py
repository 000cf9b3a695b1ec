"""Whole runs in the real sandbox: ``gsd`` in its own process, with a hostile agent or Claude Code."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, FAKE, REHEARSAL, Project, defects, no_problems, plugin
from tests.run.harness import git
from tests.sandbox.box import require_sandbox

HOSTILE = '''
import asyncio, os
from gsd_core import AgentHost, AgentResult, AgentTask, implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_plugins.rehearsal import fake

SCRIPT = os.environ.get("HOSTILE_SCRIPT", "")

@implements(gsd_run_agent)
async def run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Run the script as a process of the agent, then do the task."""
    if task.role == "executor":
        variables = {"PATH": os.environ["PATH"], **host.environment}
        started = await host.confine(("/bin/sh", "-c", SCRIPT), variables)
        process = await asyncio.create_subprocess_exec(
            *started.command, env=dict(started.environment), cwd=task.tree, start_new_session=True
        )
        host.started(process.pid)
        await process.wait()
    return await fake.run_agent(task, host)
'''


def agent(project: Project, script: str) -> tuple[str, ...]:
    """Return the arguments for an agent that runs *script* first when it executes a plan, in the project."""
    project.environment |= {"HOSTILE_SCRIPT": script, "GSD_WORKSPACE": "inplace", **no_problems()}
    return (*plugin(project, HOSTILE), "-p", "gsd_plugins.rehearsal.fake", "--agent", "own")


@pytest.fixture
def confined(project: Project) -> Project:
    """Return a project of a user with secrets, where a sandbox works."""
    require_sandbox()
    project.create()
    secret = project.base / "home" / ".ssh" / "id"
    secret.parent.mkdir(parents=True)
    secret.write_text("PRIVATE-KEY")
    (project.root / ".git" / "info" / "exclude").write_text("seen\n")
    return project


@pytest.mark.slow
def test_a_rehearsal_with_claude_code_passes_in_the_sandbox(confined: Project) -> None:
    confined.environment = no_problems()
    done = confined.gsd("run", EXAMPLE, *REHEARSAL, "--yes")

    assert done.exit == 0, done.err
    assert "sandbox: bubblewrap" in done.err
    assert "no sandbox" not in done.err
    assert confined.json("status")["sandbox"] == {"name": "bubblewrap", "why": ""}
    assert "sandbox: bubblewrap" in confined.gsd("status").out
    assert list(defects(confined)) == []
    assert not (confined.root / ".claude").exists()


@pytest.mark.slow
def test_a_hostile_agent_leaves_no_trace_outside_of_its_files(confined: Project) -> None:
    home = confined.base / "home"
    script = f"""
    exec > seen 2>&1
    env; cat {home}/.ssh/id ~/.ssh/id; cat /proc/1/environ | tr '\\0' '\\n'; ls /proc | grep -c '^[0-9]'
    git commit -q --allow-empty -m forged; git tag forged; git config core.hooksPath /nowhere
    rm -rf .git/refs; echo all done > .planning/ROADMAP.md
    mkdir -p ~/.claude; echo x > ~/.claude/settings.json
    echo x > {home}/escaped; echo x > {confined.base}/escaped
    setsid sh -c 'while :; do echo > outlives; sleep 0.1; done' &
    :"""
    done = confined.gsd("run", EXAMPLE, *agent(confined, script), "--yes", SERVICE_TOKEN="TOKEN-VALUE")

    seen = (confined.root / "seen").read_text()
    assert done.exit == 0, done.err + seen
    assert "GSD_CALL=" in seen, seen
    assert "PRIVATE-KEY" not in seen
    assert "TOKEN-VALUE" not in seen
    assert confined.facts("guard.found") == []
    assert git(confined.root, "tag") == ""
    assert "forged" not in git(confined.root, "log", "--all", "--format=%s")
    assert not (home / "escaped").exists()
    assert not (confined.base / "escaped").exists()
    assert not (home / ".claude").exists()
    (confined.root / "outlives").unlink(missing_ok=True)
    time.sleep(0.3)
    assert not (confined.root / "outlives").exists()


@pytest.mark.slow
def test_after_a_kill_nothing_is_left_running_and_the_run_resumes(confined: Project) -> None:
    lives = "setsid sh -c 'while :; do echo > alive; sleep 0.1; done'"
    once = f"test -e seen || {{ touch seen; {lives} & sleep 600; }}"
    arguments = agent(confined, once)
    started = confined.start("run", EXAMPLE, *arguments, "--yes")
    alive = confined.root / "alive"
    assert started.until(alive.exists), started.output
    started.kill()

    end = time.monotonic() + 10
    while confined.leftovers() and time.monotonic() < end:
        time.sleep(0.05)
    assert confined.leftovers() == []
    alive.unlink()
    time.sleep(0.3)
    assert not alive.exists()
    done = confined.gsd("resume", *arguments[:-2], "--yes")
    assert done.exit == 0, done.err


@pytest.mark.slow
def test_what_a_person_changed_before_the_kill_of_a_confined_call_stays(confined: Project) -> None:
    """Even if the sandbox is missing at the next start. Without a record, the agent may have done it."""
    once = "test -e seen || { touch seen; echo x >> .planning/PROJECT.md; git tag forged; sleep 600; }"
    arguments = agent(confined, once)
    started = confined.start("run", EXAMPLE, *arguments, "--yes")
    assert started.until((confined.root / "seen").exists), started.output
    edited, notes = confined.root / ".planning" / "PROJECT.md", confined.root / ".claude" / "notes.md"
    mine = edited.read_text() + "\nMine.\n"
    edited.write_text(mine)
    notes.write_text("mine\n")
    git(confined.root, "tag", "mine")
    git(confined.root, "config", "alias.mine", "status")
    started.kill()
    last = confined.facts()[-1].seq
    seal = confined.journal_file.parent / "guard" / "seal.json"
    sealed = seal.read_text()

    def resume() -> str:
        """Resume until the killed attempt is settled, and return what was printed."""
        again = confined.start("resume", *arguments[:-2], "--yes", "--allow-dirty", "--sandbox", "off")
        assert again.until(lambda: [f for f in confined.facts("attempt.lost") if f.seq > last]), again.output
        return again.kill(group=True).err

    said = resume()

    assert "undone" not in said
    assert confined.facts("guard.found") == []
    accepted = {path for fact in confined.facts("guard.accepted") for path in fact.data["paths"]}
    assert {".planning/PROJECT.md", ".claude/notes.md"} <= accepted
    assert (edited.read_text(), notes.exists()) == (mine, True)
    assert git(confined.root, "tag").split() == ["mine"]
    assert git(confined.root, "config", "alias.mine").strip() == "status"

    # The same start, after a version that did not record it.
    with sqlite3.connect(confined.journal_file) as journal:
        assert journal.execute("DELETE FROM event WHERE kind = 'guard.confined'").rowcount > 0
        journal.execute("DELETE FROM event WHERE seq > ?", (last,))
    seal.write_text(sealed)

    assert "undone: " in resume()
    undone = {what for fact in confined.facts("guard.found") for what in fact.data["what"]}
    assert {".planning/PROJECT.md was changed", "refs/tags/mine was created"} <= undone
    assert ("Mine." in edited.read_text(), notes.exists()) == (False, False)


@pytest.mark.slow
def test_without_a_sandbox_a_run_says_so_once_and_goes_on(project: Project) -> None:
    project.create()
    project.environment = no_problems()
    done = project.gsd("run", EXAMPLE, *FAKE, "--yes", GSD_SANDBOXES="seatbelt")

    assert done.exit == 0, done.err
    assert done.err.count("no sandbox") == 1
    assert project.json("status")["sandbox"]["name"] is None
    assert "sandbox: none (none of seatbelt" in project.gsd("status").out


@pytest.mark.parametrize(
    "given", [("--sandbox", "required"), ("-p", "no:bubblewrap", "--sandbox", "required")]
)
def test_a_required_sandbox_that_is_missing_ends_the_start(project: Project, given: tuple[str, ...]) -> None:
    project.create()
    project.environment = {} if len(given) > 2 else {"GSD_SANDBOXES": "seatbelt"}
    done = project.gsd("run", EXAMPLE, *FAKE, "--yes", *given)

    assert done.exit == 4, done.err
    assert "no sandbox works, and one is required" in done.err
    assert "--sandbox off" in done.err
    assert not project.journal_file.exists() or project.facts() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ['sandbox = "off"', 'sandbox = "auto"', "sandboxes = []", "checks_share_caches = true"]
)
def test_a_project_cannot_weaken_the_sandbox_even_if_it_is_trusted(project: Project, line: str) -> None:
    project.create()
    (project.root / "gsd.toml").write_text(f"[run]\n{line}\n")
    given = ("run", EXAMPLE, *FAKE, "--yes", "--allow-dirty")
    refused = [project.gsd(*given), project.gsd(*given, "--trust")]

    assert [done.exit for done in refused] == [2, 2]
    name = f"run.{line.split()[0]}"
    assert all(f"gsd.toml sets {name}" in done.err for done in refused), refused
    assert all("remove it there" in done.err for done in refused), refused


def test_a_project_may_require_the_sandbox_without_trust(project: Project) -> None:
    project.create()
    (project.root / "gsd.toml").write_text('[run]\nsandbox = "required"\n')
    done = project.gsd("run", EXAMPLE, *FAKE, "--yes", "--allow-dirty", GSD_SANDBOXES="seatbelt")

    assert done.exit == 4, done.err
    assert "no sandbox works, and one is required" in done.err


def test_an_unknown_sandbox_is_an_error(project: Project) -> None:
    project.create()
    done = project.gsd("run", EXAMPLE, *FAKE, "--yes", GSD_SANDBOXES="bublewrap")

    assert done.exit == 2
    assert "unknown sandbox 'bublewrap'" in done.err


def test_the_plugins_are_listed_with_their_hook(project: Project) -> None:
    project.create()
    listed = json.loads(project.gsd("plugins", "--json").out)

    assert "gsd_sandbox" in json.dumps([each for each in listed["plugins"] if each["name"] == "bubblewrap"])


@pytest.mark.slow
def test_checks_of_gsd_gaps_run_in_the_sandbox(confined: Project, tmp_path: Path) -> None:
    confined.environment = no_problems()
    assert confined.gsd("run", EXAMPLE, *FAKE, "--yes").exit == 0
    plan = next((confined.root / ".planning").rglob("01-01-PLAN.md"))
    text = plan.read_text()
    first = text.index("<verify>")
    end = text.index("</verify>", first)
    marks = f"<verify>test -e {confined.base}/home/.ssh/id || echo x > {confined.base}/escaped; test 1 = 1"
    plan.write_text(text[:first] + marks + text[end:])
    done = confined.gsd("gaps", "1", "--run-checks", "-p", "no:permissions", "-p", str(allow(confined)))

    assert "no sandbox" not in done.err
    assert "not run" not in done.err
    assert not (confined.base / "escaped").exists()


def allow(project: Project) -> Path:
    """Return a plugin file that allows every command."""
    path = project.base / "allow.py"
    path.write_text(
        "from gsd_core import Allow, Permission, ToolUse, implements\n"
        "from gsd_core.hookspecs import gsd_permit_tool\n\n"
        "@implements(gsd_permit_tool)\n"
        "async def allow(use: ToolUse) -> Permission | None:\n"
        '    """Allow it."""\n'
        "    assert use.confined\n"
        "    return Allow()\n"
    )
    return path
