"""Whether files are in the last commit as they are on disk, and the reason if not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gsd_core.git import Git
from gsd_core.git.committed import DIGEST_LIMIT, digests

Run = Callable[..., str]


@pytest.fixture
def base(root: Path, sh: Run) -> Path:
    """A repository with one commit of ``a``, ``in/b`` and a ``.gitignore``."""
    (root / "in").mkdir()
    (root / "a").write_text("1\n")
    (root / "in/b").write_text("1\n")
    (root / ".gitignore").write_text("# build\nbuild/\n*.log\n!kept.log\n")
    sh("add", "-A")
    sh("commit", "-qm", "base")
    return root


def reasons(root: Path, *paths: str) -> dict[str, str]:
    return {found.path: found.reason for found in asyncio.run(Git(root).uncommitted(paths))}


def test_committed_files_and_absent_ones_are_no_difference(base: Path) -> None:
    assert (
        reasons(base, "a", "./in/b", "in/", "in", ".", "never/was", "*.md", "../outside", "/etc/passwd") == {}
    )


def test_each_kind_of_difference_has_its_reason(base: Path, sh: Run) -> None:
    (base / "a").write_text("2\n")
    (base / "in/b").unlink()
    (base / "new").touch()
    (base / "staged").touch()
    sh("add", "staged")
    (base / "intent").touch()
    sh("add", "-N", "intent")

    found = reasons(base, "a", "in/b", "new", "staged", "intent")

    assert list(found) == ["a", "in/b", "intent", "new", "staged"]
    assert "last change" in found["a"]
    assert "deleted on disk" in found["in/b"]
    assert "untracked" in found["new"]
    assert "staged" in found["staged"]
    assert "not committed" in found["intent"]


def test_an_ignored_file_names_the_rule(base: Path) -> None:
    (base / "build").mkdir()
    for name in ("build/app.js", "x.log", "kept.log", "we ird *.log"):
        (base / name).write_text("1\n")

    found = reasons(base, "build/app.js", "x.log", "kept.log", "we ird *.log", "build")

    assert ".gitignore:2: build/" in found["build/app.js"]
    assert ".gitignore:3: *.log" in found["x.log"]
    assert ".gitignore:3: *.log" in found["we ird *.log"]
    assert "untracked" in found["kept.log"]
    assert "ignores" in found["build"]


def test_rules_outside_the_tree_are_named_too(base: Path) -> None:
    exclude = base / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("secret-code/\n")
    (base / "secret-code").mkdir()
    (base / "secret-code/x.py").write_text("1\n")

    assert "info/exclude:1" in reasons(base, "secret-code/x.py")["secret-code/x.py"]


@pytest.mark.parametrize("added", [False, True], ids=["untracked", "added as a gitlink"])
def test_a_file_in_a_nested_repository_is_not_in_the_commit(base: Path, sh: Run, added: bool) -> None:
    (base / "app").mkdir()
    (base / "app/x.py").write_text("1\n")
    sh("init", "-q", "app")
    sh("-C", "app", "add", "-A")
    sh("-C", "app", "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "inner")
    if added:
        sh("-c", "advice.addEmbeddedRepo=false", "add", "app")
        sh("commit", "-qm", "swallowed")

    assert "app, a separate git repository" in reasons(base, "app/x.py")["app/x.py"]
    assert "app" in asyncio.run(Git(base).tree_facts()).nested


def test_a_submodule_counts_as_committed_if_its_commit_is(base: Path, sh: Run, tmp_path: Path) -> None:
    sh("clone", "-q", str(base), str(tmp_path / "other"))
    sh("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "other"), "sub")
    sh("commit", "-qm", "with a submodule")
    assert reasons(base, "sub/a", "sub") == {}
    assert asyncio.run(Git(base).tree_facts()).nested == ()

    (base / "sub/a").write_text("2\n")
    assert "in the submodule sub" in reasons(base, "sub/a")["sub/a"]
    sh("-C", "sub", "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qam", "inner")
    assert "new commit" in reasons(base, "sub/a")["sub/a"]


def test_links_are_followed_only_inside_the_project(base: Path, sh: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x.py").write_text("1\n")
    (base / "out").symlink_to(tmp_path / "elsewhere")
    (base / "loop").symlink_to("loop")
    (base / "alias").symlink_to("in")
    (base / "to-a").symlink_to("a")
    sh("add", "-A")
    sh("commit", "-qm", "links")

    found = reasons(base, "out/x.py", "alias/b", "to-a", "loop/x", "out")

    assert list(found) == ["out/x.py"]
    assert "out of the project" in found["out/x.py"]
    (base / "in/b").write_text("2\n")
    assert "in/b" in reasons(base, "alias/b")["alias/b"]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_the_index_hides_is_found(base: Path, sh: Run, flag: str) -> None:
    sh("update-index", flag, "a")
    (base / "a").write_text("not what is committed\n")
    assert sh("status", "--porcelain") == ""

    assert f"--no-{flag.removeprefix('--')}" in reasons(base, "a")["a"]


def test_filters_decide_what_equal_means(base: Path, sh: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sh("config", "core.autocrlf", "true")
    # The user's own settings: a filter that only the repository names does not run.
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(base.parent / "gitconfig"))
    sh("config", "--global", "filter.upper.clean", "tr a-z A-Z")
    sh("config", "--global", "filter.upper.smudge", "tr A-Z a-z")
    (base / ".gitattributes").write_text("*.up filter=upper\n")
    (base / "x.up").write_text("text\n")
    (base / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    sh("add", "-A")
    sh("commit", "-qm", "filtered")
    os.utime(base / "x.up")

    assert reasons(base, "x.up", "crlf.txt") == {}
    (base / "x.up").write_text("other\n")
    assert list(reasons(base, "x.up", "crlf.txt")) == ["x.up"]


def test_without_a_commit_everything_is_uncommitted(root: Path) -> None:
    (root / "a").write_text("1\n")

    assert list(reasons(root, "a")) == ["a"]
    assert asyncio.run(Git(root).tree_facts()).commits == frozenset()


def test_patterns_and_folders_mean_what_git_sees_in_them(base: Path) -> None:
    (base / "in/new.py").touch()
    (base / "in/new [1].py").touch()

    assert list(reasons(base, "in/*.py")) == ["in/new [1].py", "in/new.py"]
    assert list(reasons(base, "in")) == ["in/new [1].py", "in/new.py"]
    assert list(reasons(base, "in/new [1].py")) == ["in/new [1].py"]


def test_a_project_in_a_subfolder_sees_its_own_paths(base: Path) -> None:
    (base / "in/b").write_text("2\n")
    (base / "a").write_text("2\n")

    assert list(reasons(base / "in", "b", "a")) == ["b"]


def test_the_facts_about_the_tree_are_complete(base: Path, sh: Run) -> None:
    (base / "a").write_text("2\n")
    (base / "new").touch()
    (base / "x.log").touch()

    facts = asyncio.run(Git(base).tree_facts(["x.log", "a", "new", "gone.log"]))

    assert facts.files == {"a", "in/b", ".gitignore"}
    assert facts.changed == ("a", "new")
    assert facts.ignored == ("x.log",)
    assert facts.commits == {sh("rev-parse", "HEAD")}


def test_a_fingerprint_changes_with_the_content_and_survives_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "large").write_bytes(b"x" * (DIGEST_LIMIT + 1))
    (tmp_path / "link").symlink_to("a")
    names = ("a", "large", "link", "gone")
    first = digests(tmp_path, names)
    (tmp_path / "a").write_text("2")
    os.utime(tmp_path / "large", (1, 1))
    second = digests(tmp_path, names)

    assert [name for name in names if first[name] != second[name]] == ["a", "large"]
