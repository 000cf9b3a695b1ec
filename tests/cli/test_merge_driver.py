"""``gsd merge-driver`` with real git: merge, rebase and cherry-pick between clones of a project."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gsd_core.git.command import Command
from gsd_core.git.merges import merged_tree
from tests.cli.test_every_command import Forks
from tests.e2e.project import EXAMPLE, FAKE, Project
from tests.planning.test_merge import BOX, CONFLICT, ROADMAP, TICKED, edited
from tests.run.harness import git, repository

PATHS = ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md", "MILESTONES.md")


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with closing(Forks(Project(tmp_path_factory.mktemp("forks")).environ({}))) as process:
        yield process


def write(root: Path, text: str, name: str = "ROADMAP.md") -> None:
    """Commit a planning file."""
    path = root / ".planning" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", name)


def clones(base: Path) -> tuple[Path, Path, Path]:
    """Return a project, and two clones: one ticks phase 1, the other phase 2."""
    origin = repository(base / "origin")
    write(origin, ROADMAP)
    found = [base / "mine", base / "others"]
    for root, change in zip(found, ((BOX, TICKED), ("[ ] **Phase 2", "[x] **Phase 2")), strict=True):
        git(base, "clone", "-q", "origin", root.name)
        git(root, "config", "user.name", "Tester")
        git(root, "config", "user.email", "tester@example.invalid")
        write(root, edited(ROADMAP, change))
    return origin, found[0], found[1]


@pytest.mark.slow
def test_it_is_set_up_and_removed_in_one_clone(forks: Forks, tmp_path: Path) -> None:
    root = repository(tmp_path / "repository") / "a b[1]"
    write(root, ROADMAP)
    attributes = tmp_path / "repository" / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_bytes(b"caf\xe9.txt text")
    config = tmp_path / "repository" / ".git" / "config"
    before = config.read_text()

    for _ in range(2):
        assert forks.run_in(root, "merge-driver", "--install").exit == 0

    paths = [f".planning/{folder}{name}" for name in PATHS for folder in ("", "workstreams/x/")]
    assert set(git(root, "check-attr", "merge", *paths).split("\n")[:-1]) == {
        f"{path}: merge: gsd" for path in paths
    }
    elsewhere = git(tmp_path / "repository", "check-attr", "merge", ".planning/ROADMAP.md", "ROADMAP.md")
    assert "gsd" not in elsewhere
    assert git(root, "status", "--porcelain") == ""
    assert attributes.read_bytes().count(b"merge=gsd") == len(PATHS)

    for _ in range(2):
        assert forks.run_in(root, "merge-driver", "--remove").exit == 0
    assert attributes.read_bytes() == b"caf\xe9.txt text\n"
    assert config.read_text() == before


@pytest.mark.parametrize(
    "how",
    [
        ("merge", "-q", "-m", "both"),
        pytest.param(("rebase", "-q"), marks=pytest.mark.slow),
        pytest.param(("cherry-pick",), marks=pytest.mark.slow),
    ],
    ids=lambda how: how[0],
)
def test_git_merges_with_it(forks: Forks, tmp_path: Path, how: tuple[str, ...]) -> None:
    _, mine, others = clones(tmp_path)
    both = edited(ROADMAP, (BOX, TICKED), ("[ ] **Phase 2", "[x] **Phase 2"))
    other = git(others, "rev-parse", "HEAD").strip()
    git(mine, "fetch", "-q", str(others), "main")

    with pytest.raises(subprocess.CalledProcessError):
        git(mine, *how, other)  # as without the driver
    git(mine, how[0], "--abort")
    assert forks.run_in(mine, "merge-driver", "--install").exit == 0

    git(mine, *how, other)

    assert (mine / ".planning/ROADMAP.md").read_text() == both
    assert git(mine, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_conflict_is_left_to_the_person_around_its_line_only(forks: Forks, tmp_path: Path) -> None:
    _, mine, others = clones(tmp_path)
    for root, word in ((mine, "ours"), (others, "theirs")):
        write(
            root,
            edited((root / ".planning/ROADMAP.md").read_text(), ("**Goal**: Lines", f"**Goal**: {word}")),
        )
    git(mine, "fetch", "-q", str(others), "main")
    assert forks.run_in(mine, "merge-driver", "--install").exit == 0

    with pytest.raises(subprocess.CalledProcessError):
        git(mine, "merge", "-q", "FETCH_HEAD")

    text = (mine / ".planning/ROADMAP.md").read_text()
    assert git(mine, "status", "--porcelain") == "UU .planning/ROADMAP.md\n"
    assert [CONFLICT.sub(rf"\{side}", text) for side in (1, 2)] == [
        edited(
            ROADMAP,
            (BOX, TICKED),
            ("[ ] **Phase 2", "[x] **Phase 2"),
            ("**Goal**: Lines", f"**Goal**: {word}"),
        )
        for word in ("ours", "theirs")
    ]


@pytest.mark.parametrize("program", ["gone", "broken"])
def test_without_gsd_git_has_its_usual_merge(forks: Forks, tmp_path: Path, program: str) -> None:
    _, mine, others = clones(tmp_path)
    assert forks.run_in(mine, "merge-driver", "--install").exit == 0
    driver = git(mine, "config", "merge.gsd.driver").strip()
    (tmp_path / "broken").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "broken").chmod(0o755)
    called, _, rest = driver.partition(" merge-driver")
    git(mine, "config", "merge.gsd.driver", f"{tmp_path / program} merge-driver{rest}")
    git(mine, "fetch", "-q", str(others), "main")

    with pytest.raises(subprocess.CalledProcessError):
        git(mine, "merge", "-q", "FETCH_HEAD")

    text = (mine / ".planning/ROADMAP.md").read_text()
    found = CONFLICT.search(text)
    assert called
    assert found
    assert TICKED in found[1]
    assert "[x] **Phase 2" in found[2]


LARGE = b"- one\n" * 400_000
BROKEN = {
    "not UTF-8": (b"\xff\n", b"\xff\nours\n", b"theirs\n\xff\n"),
    "too large": (LARGE, LARGE + b"ours\n", b"theirs\n" + LARGE),
    "too many phases": tuple(
        "".join(f"{more}- [ ] **Phase {n}: X** - y\n" for n in range(600)).encode()
        for more in ("", "\n", "text\n")
    ),
    "NUL": (b"\0\n", b"\0\nours\n", b"theirs\n\0\n"),
    "empty": (b"", b"ours\n", b"theirs\n"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_merged_line_by_line(forks: Forks, tmp_path: Path, case: str) -> None:
    for names in (("base", "ours", "theirs"), ("o", "a", "b")):
        for name, data in zip(names, BROKEN[case], strict=True):
            (tmp_path / name).write_bytes(data)
    usual = subprocess.run(
        ["git", "merge-file", "-q", "-L", "ours", "-L", "base", "-L", "theirs", "a", "o", "b"],
        cwd=tmp_path,
        check=False,
    )

    done = forks.run_in(tmp_path, "merge-driver", "base", "ours", "theirs", "7", ".planning/ROADMAP.md")

    assert done.exit == min(1, usual.returncode)
    assert "Traceback" not in done.err
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "a").read_bytes() != b""


def test_links_are_refused(forks: Forks, tmp_path: Path) -> None:
    for name in ("base", "theirs", "secret"):
        (tmp_path / name).write_text(f"{name}\n")
    (tmp_path / "ours").symlink_to("secret")

    assert forks.run_in(tmp_path, "merge-driver", "base", "ours", "theirs").exit == 2
    assert (tmp_path / "secret").read_text() == "secret\n"


def test_merges_of_gsd_itself_run_no_driver_of_the_repository(forks: Forks, tmp_path: Path) -> None:
    _, mine, others = clones(tmp_path)
    git(mine, "fetch", "-q", str(others), "main")
    usual = merged_tree(Command(root=mine), "HEAD", "FETCH_HEAD")[1]
    assert forks.run_in(mine, "merge-driver", "--install").exit == 0
    for name in ("gsd", "other"):
        git(mine, "config", f"merge.{name}.driver", f"touch {tmp_path / 'ran'}")

    tree, paths = merged_tree(Command(root=mine), "HEAD", "FETCH_HEAD")

    assert paths == usual == (".planning/ROADMAP.md",)
    assert CONFLICT.search(git(mine, "show", f"{tree}:.planning/ROADMAP.md"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.long
def test_two_people_each_complete_a_phase(tmp_path: Path) -> None:
    project = Project(tmp_path / "world")
    project.base.mkdir()
    project.create()
    assert project.gsd("run", EXAMPLE, *FAKE, "--only", "1", "--yes").exit == 0
    path = project.root / ".planning" / "ROADMAP.md"
    write(project.root, edited(path.read_text(), ("**Depends on**: Phase 2", "**Depends on**: Phase 1")))
    people: list[Project] = []
    for name, phase in (("ann", "2"), ("ben", "3")):
        one = Project(tmp_path / name, environment=project.environment)
        one.base.mkdir()
        git(one.base, "clone", "-q", str(project.root), "project")
        people.append(one)
        for key in ("name", "email"):
            git(one.root, "config", f"user.{key}", f"{name}@example.invalid")
        assert one.gsd("merge-driver", "--install").exit == 0
        done = one.gsd("run", *FAKE, "--only", phase, "--yes")
        assert done.exit in (0, 1, 6)
        assert "merge" not in done.out + done.err
        assert one.gsd("todo", "add", f"ask {name}").exit == 0
    assert people[0].gsd("phase", "add", "Export").exit == 0

    texts: list[dict[str, str]] = []
    for one, other in (people, people[::-1]):
        merged = Project(tmp_path / f"{one.base.name}-merged", environment=project.environment)
        shutil.copytree(one.base, merged.base)
        pulled = subprocess.run(
            ["git", "pull", "-q", "--no-rebase", "--no-edit", str(other.root), "main"],
            cwd=merged.root,
            env=merged.environ({"PATH": os.environ["PATH"]}),
            capture_output=True,
            text=True,
            check=False,
        )
        unmerged = git(merged.root, "diff", "--name-only", "--diff-filter=U").split()
        assert not [name for name in unmerged if name.startswith(".planning/")], pulled.stdout
        planning = merged.root / ".planning"
        texts.append({name: (planning / name).read_text() for name in PATHS if (planning / name).exists()})
        for phase in merged.json("progress")["phases"]:
            row = f"| {phase['number']}. {phase['name']} | {phase['summaries']}/{phase['plans'] or 'TBD'} "
            assert row in texts[-1]["ROADMAP.md"]
        health = merged.json("health")
        assert (health["errors"], health["warnings"]) == ([], [])
    assert texts[0] == texts[1]
    assert "- [x] **Phase 2" in texts[0]["ROADMAP.md"]
    assert "### Phase 4: Export" in texts[0]["ROADMAP.md"]
    assert "- [x] **CLI-01**" in texts[0]["REQUIREMENTS.md"]
    assert "ask ann" in texts[0]["STATE.md"]
    assert "ask ben" in texts[0]["STATE.md"]
