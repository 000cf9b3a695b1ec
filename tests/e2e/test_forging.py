"""An agent whose scripts forge what only the run may say: no false exit 0, also after a kill."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gsd_core.planning.survey import read_planning
from tests.run.harness import git, trailed

from .project import EXAMPLE, Project, no_problems, plugin

AGENT = """
import os, subprocess
from pathlib import Path
from gsd_core import implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_plugins.rehearsal import fake

BASE = Path({base!r})

@implements(gsd_run_agent)
async def run_agent(task, host):
    script = BASE / "script"
    if task.role == "executor" and script.exists():
        text = script.read_text()
        if not (BASE / "always").exists():
            script.unlink()
        subprocess.run(["/bin/sh", "-ec", text], cwd=task.tree, check=True)
        if (BASE / "kill").exists():
            (BASE / "kill").unlink()
            os.kill(os.getpid(), 9)
    return await fake.run_agent(task, host)
"""
FORGERY = """
sed -i 's/- \\[ \\] /- [x] /' .planning/ROADMAP.md
cd .planning/phases/01-*
for plan in *-PLAN.md; do printf -- '---\\nstatus: complete\\n---\\n' > ${plan%-PLAN.md}-SUMMARY.md; done
printf -- '---\\nstatus: passed\\nscore: 3/3 must-haves verified\\n---\\n' > 01-VERIFICATION.md
git commit -q --allow-empty -m 'feat(01-01): all of it' -m "GSD-Run: $GSD_RUN
GSD-Step: 1/execute/01-01
GSD-Task: 01-01/1"
git commit -q --allow-empty -m 'feat(01-01): all of it' -m "GSD-Run: $GSD_RUN
GSD-Step: 1/execute/01-01
GSD-Task: 01-01/2"
"""


def arguments(project: Project, workspace: str = "inplace") -> tuple[str, ...]:
    loaded = plugin(project, AGENT.format(base=str(project.base)))
    chosen = ("--agent", "own", "--workspace", workspace)
    return (*loaded, "-p", "gsd_plugins.rehearsal.fake", *chosen, "--yes")


def forge(project: Project, *files: str) -> None:
    run = "$(git log -1 --format=%B | sed -n 's/GSD-Run: //p')"
    (project.base / "script").write_text(FORGERY.replace("$GSD_RUN", run))
    for name in files:
        (project.base / name).touch()


@pytest.mark.slow
def test_an_agent_that_forges_everything_does_not_reach_exit_0(project: Project) -> None:
    project.create()
    project.environment |= no_problems()
    forge(project, "always")

    done = project.gsd("run", EXAMPLE, *arguments(project))

    assert done.exit == 1, done.err
    assert "only the run may" in done.err
    assert "refs/gsd/recover/" in done.err
    [phase] = read_planning(project.root).phases
    assert (phase.ticked, phase.verdict) == (False, None)
    assert not [task for _, task in trailed(project.root) if task]
    kept = git(project.root, "for-each-ref", "--format=%(refname)", "refs/gsd/recover").split()
    assert any("01-VERIFICATION.md" in git(project.root, "ls-tree", "-r", "--name-only", ref) for ref in kept)


FORGERIES = {
    "promise nothing": "sed -i '/truths:/,/artifacts:/d' .planning/phases/01-*/01-01-PLAN.md",
    "hide the work from git": "echo '*.py' >> .git/info/exclude",
    "work on another branch": "git switch -q -C elsewhere",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", FORGERIES.values(), ids=FORGERIES)
def test_an_agent_that_forges_in_each_attempt_ends_the_run_with_1(project: Project, script: str) -> None:
    project.create()
    project.environment |= no_problems()
    options = arguments(project)
    (project.base / "script").write_text(script)
    (project.base / "always").touch()

    done = project.gsd("run", EXAMPLE, *options)

    assert done.exit == 1, done.err
    assert "only the run may" in done.err
    assert git(project.root, "branch", "--show-current").strip() == "main"
    assert not any(phase.ticked for phase in read_planning(project.root).phases)
    assert not [task for _, task in trailed(project.root) if task]


DETECTOR = (
    "from gsd_core import implements\nfrom gsd_core.hookspecs import gsd_find_gaps\nimport not_installed\n"
)


@pytest.mark.slow
def test_a_detector_of_the_project_that_cannot_be_loaded_stops_the_run(project: Project) -> None:
    project.create()
    project.environment |= no_problems()
    detector = project.root / ".gsd" / "plugins" / "strict.py"
    detector.parent.mkdir(parents=True)
    detector.write_text(DETECTOR)
    options = arguments(project)

    untrusted = project.gsd("run", EXAMPLE, *options)
    trusted = project.gsd("run", EXAMPLE, *options, "--trust")

    assert untrusted.exit == 2, untrusted.err
    assert "plugin .gsd/plugins/strict.py" in untrusted.err
    assert trusted.exit == 2, trusted.err
    assert "not_installed" in trusted.err


@pytest.mark.slow
def test_what_was_forged_before_a_kill_is_undone_by_the_next_start(project: Project) -> None:
    project.create()
    project.environment |= no_problems()
    forge(project, "kill")
    options = arguments(project)

    killed = project.gsd("run", EXAMPLE, *options)
    forged = git(project.root, "log", "--format=%s")
    resumed = project.gsd("resume", *options)

    assert killed.exit == -9
    assert "all of it" in forged
    assert resumed.exit == 0, resumed.err
    assert "all of it" not in git(project.root, "log", "--format=%s")
    assert "undone" in resumed.err
    [found] = project.facts("guard.found")
    assert any("ROADMAP.md" in what for what in found.data["what"])
    assert [task for _, task in trailed(project.root) if task] == ["01-01/1", "01-01/2"]
    assert "not verified" not in resumed.err


@pytest.mark.slow
def test_what_was_forged_in_a_work_tree_before_a_kill_is_undone_there(project: Project) -> None:
    project.create()
    project.environment |= no_problems()
    forge(project, "kill")
    options = arguments(project, "worktree")

    killed = project.gsd("run", EXAMPLE, *options)
    [_, tree] = [line.split()[0] for line in git(project.root, "worktree", "list").splitlines()]
    forged = git(Path(tree), "log", "--format=%s")
    resumed = project.gsd("resume", *options)

    assert killed.exit == -9
    assert "all of it" in forged
    assert resumed.exit == 0, resumed.err
    assert "all of it" not in git(project.root, "log", "--format=%s")
    assert [task for _, task in trailed(project.root) if task] == ["01-01/1", "01-01/2"]
    assert not Path(tree).exists()
    assert "not verified" not in resumed.err


@pytest.mark.slow
def test_what_a_person_changes_after_a_kill_stays(project: Project) -> None:
    project.create()
    project.environment |= no_problems()
    (project.base / "script").write_text("echo forged > .planning/forged.md")
    (project.base / "kill").touch()
    options = arguments(project)
    project.gsd("run", EXAMPLE, *options)

    time.sleep(12)  # longer than the run allows for what its own processes still do
    (project.root / ".planning" / "mine.md").write_text("mine")
    resumed = project.gsd("resume", *options)

    assert resumed.exit == 0, resumed.err
    assert (project.root / ".planning" / "mine.md").read_text() == "mine"
    assert not (project.root / ".planning" / "forged.md").exists()
