"""``gsd`` and ``gsd run`` without arguments: they lead a person at a terminal on, and nobody else."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.bench import EVIL, Bench, call
from tests.terminal.pseudo_terminal import Screen, on_a_terminal

CHOOSE = "Press Enter for 1: "
NO_LOGIN = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "", "CLAUDE_CONFIG_DIR": ""}
LOGIN = {"ANTHROPIC_API_KEY": "sk-ant-api03-" + "x" * 20}


def lines(screen: str) -> str:
    return screen.replace("\r\n", "\n")


def environment(tmp_path: Path, login: dict[str, str]) -> dict[str, str]:
    (tmp_path / "home").mkdir(exist_ok=True)
    git = {f"GIT_{who}_{key}": "x@y.example" for who in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    return {"NO_COLOR": "1", "HOME": str(tmp_path / "home"), "COLUMNS": "200", **git, **login}


def answer(screen: Screen, prompt: str, typed: str) -> str:
    shown = screen.until(prompt)
    screen.type(f"{typed}\n")
    return lines(shown)


def test_without_a_login_it_says_how_to_log_in_and_offers_the_demo_before_asking_for_an_idea(
    tmp_path: Path,
) -> None:
    root = tmp_path / "new"
    with on_a_terminal("gsd_core", "-C", str(root), "run", **environment(tmp_path, NO_LOGIN)) as screen:
        shown = answer(screen, CHOOSE, "q")
        code = screen.ended()

    assert code == 0
    assert "auth login" in " ".join(shown.split())
    assert "1. Try gsd without an account: a demo in a new folder" in shown
    assert "idea" not in shown
    assert not root.exists()


def test_a_run_is_put_together_from_answers_saved_and_shown_before_it_starts(tmp_path: Path) -> None:
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "plan.md").write_text("# A plan\n\nBuild it.\n")
    (root / "README.md").write_text("no idea\n")
    (root / f"{EVIL.replace('/', '')}.md").write_text("x")
    with on_a_terminal("gsd_core", "-C", str(root), "run", **environment(tmp_path, LOGIN)) as screen:
        first = answer(screen, CHOOSE, "7")
        again = answer(screen, CHOOSE, "2")
        answer(screen, "settings: ", "nobody")
        unknown = answer(screen, "settings: ", "")
        answer(screen, "no limit: ", "-3")
        wrong = answer(screen, "no limit: ", "5")
        answer(screen, "for none: ", "")
        answer(screen, "for no: ", "y")
        last = answer(screen, CHOOSE, "")
        code = screen.ended()
        end = lines(screen.seen)

    assert "2. Build what plan.md says" in first
    assert "README" not in first
    assert "red" not in first
    assert "There is no choice '7': type a number from 1 to 3, or q." in again
    assert "There is no agent 'nobody'" in unknown
    assert "Type an amount such as 20 or 2.50." in wrong
    assert "1. Show what the run would do, and start nothing" in last
    assert tomllib.loads((root / "gsd.toml").read_text()) == {"budget": {"max_usd": 5}}
    assert "plan.md --max-budget-usd 5 --dry-run" in end
    assert code == 0
    assert not (root / ".git" / "gsd").exists()


@pytest.mark.parametrize("typed", ["q", "\x04"], ids=["q", "end of input"])
def test_an_unfinished_run_is_shown_by_default_and_can_be_left(
    bench: Bench, tmp_path: Path, typed: str
) -> None:
    bench.start()
    # The bare command works on the current folder; Python starts in it with runpy.
    code = f"import os, runpy, sys; os.chdir({str(bench.root)!r}); sys.argv = ['gsd']; "
    (tmp_path / "bare.py").write_text(code + "runpy.run_module('gsd_core', run_name='__main__')\n")
    with on_a_terminal(str(tmp_path / "bare.py"), **environment(tmp_path, LOGIN)) as screen:
        left = screen.until(CHOOSE)
        screen.type(f"{typed}\n" if typed == "q" else typed)
        left_code = screen.ended()
    with on_a_terminal(str(tmp_path / "bare.py"), **environment(tmp_path, LOGIN)) as screen:
        answer(screen, CHOOSE, "")
        shown_code = screen.ended()
        shown = lines(screen.seen)

    assert "There is an unfinished run of idea.md in" in left
    assert "2. Resume it" in left
    assert left_code == 0
    assert shown_code == 0
    assert "$ gsd status" in shown
    assert "run r-1" in shown


def test_nobody_else_is_asked_anything(tmp_path: Path) -> None:
    bare = call()
    run = call("run", "-C", tmp_path)
    environment_ = environment(tmp_path, LOGIN)
    with on_a_terminal("gsd_core", "run", "-C", str(tmp_path), "--no-input", **environment_) as screen:
        code = screen.ended()
        shown = lines(screen.seen)

    assert "Usage:" in bare.output
    assert run.exit_code == 2
    assert "error:" in run.stderr
    assert code == 2
    assert "Press Enter" not in shown


def test_what_cannot_start_is_said_in_whole_words_on_a_narrow_terminal(tmp_path: Path) -> None:
    narrow = {**environment(tmp_path, NO_LOGIN), "COLUMNS": "80"}
    with on_a_terminal("gsd_core", "run", "-C", str(tmp_path / "new"), **narrow) as screen:
        shown = answer(screen, CHOOSE, "q")
        screen.ended()

    assert "A run cannot start yet: agent 'claude' cannot work: Claude Code is not logged in" in " ".join(
        shown.split()
    )
    # A path and a command are not broken; everything else fits.
    rows = [line.strip(" ,") for line in shown.splitlines() if len(line) > 80]
    assert [row for row in rows if len(row.split()) > 1 and not re.fullmatch("`[^`]+`", row)] == []


def test_a_folder_without_a_command_is_treated_like_the_current_folder(bench: Bench, tmp_path: Path) -> None:
    bench.start()
    with on_a_terminal("gsd_core", "-C", str(bench.root), **environment(tmp_path, LOGIN)) as screen:
        shown = answer(screen, CHOOSE, "q")
        code = screen.ended()
    elsewhere = call("-C", bench.root)

    assert code == 0
    assert "There is an unfinished run" in shown
    assert (elsewhere.exit_code, elsewhere.stderr) == (2, "")
    assert elsewhere.stdout.startswith("Usage: gsd")
