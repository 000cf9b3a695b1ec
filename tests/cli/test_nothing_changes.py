"""Wrong arguments change nothing: no folder, file, commit, settings or journal, in no command."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_every_command import COMMANDS, Forks
from tests.e2e.project import FAKE, Project
from tests.planning.trees import make_project, plan_text
from tests.run.harness import git, repository

NEW = "run ../idea.md -C ../new"
BAD = f"""
demo ../file
demo ../project
run ../absent.md
run ../folder
run ../empty
run ../idea.md more
{NEW} --agent nope
{NEW} --agent rehearsal --script ../absent.toml
{NEW} FAKE --only 99
{NEW} FAKE --phases 99
{NEW} FAKE --phases 5-1
{NEW} FAKE --only 1 --phases 1
{NEW} FAKE --only 99 --bg
{NEW} FAKE --answers ../absent.toml
{NEW} FAKE --answers - --bg
{NEW} FAKE --depth deep
{NEW} FAKE --max-budget-turns -1
{NEW} FAKE --notify nonsense
{NEW} FAKE --web-port 99999
{NEW} FAKE -q -v
{NEW} FAKE --plugins-dir ../absent
{NEW} FAKE --dry-run --only 99
run -C ../file ../idea.md FAKE
run --only 99 FAKE --yes
resume -C ../new
resume -C ../bare
watch -C ../new
pause -C ../new
stop -C ../new
stop ''
discuss 99 FAKE
plan 1 FAKE
plan 2 --gaps FAKE
plan 2 --answers ../absent FAKE
execute 2 FAKE
verify 99 FAKE
quick '' FAKE
debug '' FAKE
map more FAKE
map -C ../bare FAKE
exec '' FAKE
exec hello --step a/b FAKE
questions more
answer q-1
answer q-none 1
status -C ../file
next --workstream ../x
why nope
panels more
progress more
log --since soon
log --after -1
cost --by nope
report -o ../absent/report.html
report -o ../folder
phases --workstream nope
plans 99
plan-graph 99
gaps 99
gaps 1 --only nope
requirements more
phase add ''
phase add Sync -C ../bare
phase insert 99 Sync
phase remove 99
phase remove 1
milestone audit --depth deep FAKE
milestone complete more FAKE
milestone complete --no-input FAKE
todo add ''
todo add Sync -C ../bare
todo done none
todo list more
trust --show --revoke
plugins --hook nope
plugins check ../absent.py
plugins list more
plugins new '' --hook find_gaps
plugins new own --hook nope
plugins new own --hook find_gaps --directory ../file
plugins info none
plugins install ../absent
plugins install --no-index --find-links ../absent own
plugins outdated --no-index --find-links ../absent
plugins uninstall absent
settings show nope
settings set run.depth deep
settings set run.nope 1
settings set --user limits.idle soon
settings set run.depth quick -C ../new
settings unset ''
doctor more
health more
health --yes
merge-driver
merge-driver --install more
merge-driver --install -C ../bare
merge-driver absent
merge-driver absent absent absent
merge-driver absent absent absent 0
paths more
completion nope
help nope
schema nope
version more
bug-report --records -1
attach nope
logs nope
rm nope
rm s1 --ended
ps more
serve --port 99999
serve --host 0.0.0.0
mcp install --scope nope
"""
LINES = [line for line in BAD.splitlines() if line]


def state_of(folder: Path) -> Mapping[str, str]:
    """Return every path in *folder*, with the digest of a file."""
    return dict(_entries(folder))


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(folder):
        yield from ((str(Path(parent, name)), "") for name in folders)
        for path in (Path(parent, name) for name in files):
            # Empty files for a lock, and an empty list of sessions, are made where they are looked for.
            if "sessions" not in path.parts and path.name not in ("lock", "commit-lock"):
                yield str(path), hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Forks, Path]]:
    """Return a process that runs commands, and a folder with a project of two phases."""
    base = tmp_path_factory.mktemp("world")
    root = repository(base / "project")
    phases = (
        "- [ ] **Phase 1: Core** - a\n- [ ] **Phase 2: More** - b\n### Phase 1: Core\n### Phase 2: More\n"
    )
    make_project(
        root,
        {
            "PROJECT.md": "# Night Bus\n",
            "ROADMAP.md": phases,
            "phases/01-core/01-01-PLAN.md": plan_text(),
            "phases/01-core/01-01-SUMMARY.md": "done",
        },
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "begin")
    for name in ("folder", "bare", "project/.git/gsd", "home/.local/state/gsd/sessions"):
        (base / name).mkdir(parents=True)
    for name, text in {"file": "x", "empty": "", "idea.md": "Print a list of guests.\n"}.items():
        (base / name).write_text(text, encoding="utf-8")
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = {f"GIT_{name}": "t@example.org" for name in names}
    with closing(Forks(Project(base).environ({**identity, "GSD_SANDBOX_CACHES": "false"}))) as process:
        yield process, base


@pytest.mark.parametrize("line", LINES)
def test_wrong_arguments_are_an_error_and_change_nothing(forks: tuple[Forks, Path], line: str) -> None:
    process, base = forks
    before = state_of(base)
    args = ["" if word == "''" else word for word in line.replace("FAKE", " ".join(FAKE)).split()]

    done = process.run_in(base / "project", *args)

    assert done.exit in (2, 4), done.err
    assert done.err.startswith("error: ") or "\nerror: " in done.err
    assert "Traceback" not in done.err
    assert state_of(base) == before


def test_every_command_is_called_in_a_wrong_way() -> None:
    called = {" ".join(line.split()[:words]) for line in LINES for words in (1, 2)}

    assert set(COMMANDS) - called == set()


@pytest.mark.parametrize(
    "line", ["phase add Sync", "phase insert 1 Sync", "phase remove 2", "todo add Sync", "pause later"]
)
def test_nothing_is_edited_if_git_could_not_commit_it(forks: tuple[Forks, Path], line: str) -> None:
    _, base = forks
    # An empty value hides the identity in the repository's settings.
    project = Project(base, {"GIT_COMMITTER_NAME": "", "GIT_COMMITTER_EMAIL": ""})
    before = state_of(project.root)

    done = project.gsd(*line.split())

    assert (done.exit, "git does not know your name" in done.err) == (2, True)
    assert state_of(project.root) == before
