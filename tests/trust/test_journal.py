"""A journal that came with a copied or unpacked folder counts only once its user trusts it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from gsd_core.journal.inbox import put
from gsd_core.processes import boot_id
from tests.cli.bench import DATABASE, Bench, call, repository, said, trust_everything
from tests.terminal.pseudo_terminal import on_a_terminal

RESUME = ("--no-input", "--yes", "--sandbox", "off")


@pytest.fixture
def evil(bench: Bench, tmp_path: Path) -> Path:
    """Write a journal whose options name a program for the agent; return the file that it would leave."""
    program, marker = tmp_path / "evil.sh", tmp_path / "evil.ran"
    program.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    program.chmod(0o755)
    bench.fact("run.started", idea={"name": "idea.md", "text": "# A greeter\n", "sha256": "ab12"})
    typed = {"claude": {"cli_path": str(program)}}
    trusted = {"0" * 64: "plugin .gsd/plugins/evil.py"}
    bench.fact("run.opened", pid=1, agent=["claude"], options={}, typed=typed, trusted=trusted)
    return marker


def unpack(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a copy of the project, as somebody else gets it."""
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "another"))
    return Bench(Path(shutil.copytree(bench.root, tmp_path / "unpacked")))


def test_the_options_of_a_journal_from_elsewhere_do_not_count(
    bench: Bench, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("resume", "-C", bench.root, *RESUME)
    assert evil.exists()  # in the user's own journal they do
    evil.unlink()
    copied = unpack(bench, tmp_path, monkeypatch)

    refused = [call(command, "-C", copied.root, *RESUME) for command in ("resume", "run")]

    for result in refused:
        assert result.exit_code == 2
        assert "no run of yours wrote here" in result.stderr
        assert "evil.sh" in result.stderr
        assert "--trust" in result.stderr
    dry = call("resume", "-C", copied.root, *RESUME, "--dry-run")
    assert dry.exit_code == 0, dry.stderr
    assert "evil.sh" not in dry.stdout
    assert not evil.exists()


def test_a_trusted_journal_counts_from_then_on(
    bench: Bench, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.ask()
    copied = unpack(bench, tmp_path, monkeypatch)
    [want] = said("trust", "--show", "-C", copied.root)["wants"]
    assert (want["kind"], want["trusted"]) == ("journal", False)

    with on_a_terminal("gsd_core", "trust", "-C", str(copied.root), NO_COLOR="1") as screen:
        shown = screen.until("Trust it? [y/N]: ")
        screen.type("y\n")
        code = screen.ended()

    assert (code, "evil.sh" in shown) == (0, True)
    assert said("trust", "--show", "-C", copied.root)["wants"] == []
    answered = call("answer", DATABASE.id, "1", "-C", copied.root)
    assert answered.exit_code == 0, answered.stderr
    call("resume", "-C", copied.root, *RESUME)
    assert evil.exists()


def test_trust_holds_for_the_content_that_was_shown(
    bench: Bench, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, again = unpack(bench, tmp_path, monkeypatch), tmp_path / "again"
    shutil.copytree(copied.root, again)
    trust_everything(copied.root)
    assert [want["trusted"] for want in said("trust", "--show", "-C", again)["wants"]] == [True]

    put(again / ".git/gsd/journal.db", "answer", {"question": DATABASE.id, "chosen": [0]}, "x")

    assert [want["trusted"] for want in said("trust", "--show", "-C", again)["wants"]] == [False]
    assert "1 answer" in call("resume", "-C", again, *RESUME).stderr


def test_a_project_that_is_moved_on_the_same_machine_keeps_its_journal(
    bench: Bench, evil: Path, tmp_path: Path
) -> None:
    bench.root.rename(tmp_path / "moved")

    assert said("trust", "--show", "-C", tmp_path / "moved")["wants"] == []
    call("resume", "-C", tmp_path / "moved", *RESUME)
    assert evil.exists()


def test_a_journal_cannot_bring_its_own_recognition(
    bench: Bench, evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a home folder in a repository: the list comes with the folder too.
    shutil.copytree(bench.root.parent / "state", bench.root / "state")
    monkeypatch.setenv("GSD_STATE_DIR", str(bench.root / "state"))

    assert call("resume", "-C", bench.root, *RESUME, "--trust").exit_code == 2
    assert not evil.exists()


@pytest.mark.parametrize(
    "change", ["DELETE FROM origin", "UPDATE origin SET token = '../x'", "DROP TABLE origin"]
)
def test_without_its_token_a_journal_is_unknown(bench: Bench, evil: Path, change: str) -> None:
    with sqlite3.connect(bench.journal) as database:
        database.execute(change)
    database.close()

    assert [want["kind"] for want in said("trust", "--show", "-C", bench.root)["wants"]] == ["journal"]


def test_the_users_own_journal_of_an_earlier_version_is_recognized(bench: Bench) -> None:
    bench.fact("run.started", idea={"name": "idea.md", "text": "# A greeter\n", "sha256": "ab12"})
    bench.fact("run.opened", pid=1, boot=boot_id(), agent=["claude"], options={})
    with sqlite3.connect(bench.journal) as database:
        database.execute("DROP TABLE origin")
    database.close()

    assert said("trust", "--show", "-C", bench.root)["wants"] == []


def test_a_project_without_a_run_wants_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "new")

    assert said("trust", "--show", "-C", root)["wants"] == []
    assert not (root / ".git" / "gsd").exists()
