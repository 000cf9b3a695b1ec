"""A secret in the idea and in the name of a file: where it ends up in a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, Project, no_problems, plugin
from tests.secrets.test_nothing_leaks import written

KEY = "AKIA" + "Q3EGRIPBTT7ZJ2MH"
TOKEN = "ghp_" + "Zk3vQ8rT1yWm5LxN9bHc2JdF7sGa4PqE6uKo"
AGENT = f'''
from gsd_core import implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_plugins.rehearsal import fake

@implements(gsd_run_agent)
async def run_agent(task, host):
    """Leave files that no task names, and do the task."""
    if task.role == "executor":
        (task.tree / "dump-{TOKEN}.txt").write_text("dump")
        (task.tree / "id_ed25519").write_text("key")
    return await fake.run_agent(task, host)
'''


@pytest.mark.slow
def test_a_secret_in_the_idea_or_in_a_name_stays_out_of_commits_and_messages(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.create()
    idea = project.base / "idea.md"
    idea.write_text(f"{EXAMPLE.read_text()}\n\nUse the key {KEY} for the bucket.\n")
    project.environment = no_problems()
    done = project.gsd(
        "run",
        idea,
        *plugin(project, AGENT),
        "-p",
        "gsd_plugins.rehearsal.fake",
        "--agent",
        "own",
        "--workspace",
        "inplace",
        "--yes",
        "-vv",
    )

    assert done.exit == 0, done.err
    shown = {" ".join(args): project.gsd(*args) for args in (("log",), ("status",), ("log", "--json"))}
    texts = {name: each.out + each.err for name, each in shown.items()} | {"run": done.out + done.err}
    assert {name: text for name, text in texts.items() if KEY in text or TOKEN in text} == {}
    everything = dict(written(project))
    assert [where for where, text in everything.items() if KEY in text] == []
    # The journal has to find the file again, and only its owner can read it.
    named = {where for where, text in everything.items() if TOKEN in text}
    assert {where for where in named if not where.startswith(("journal", ".git/gsd/journal.db"))} == set()
    assert "id_ed25519" in done.out + done.err
    assert done.out.splitlines()[-1].count("id_ed25519") == 1
