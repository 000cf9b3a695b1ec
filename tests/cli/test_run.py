"""Whole runs from the command line, with a fake agent, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gsd_core
from tests.cli.bench import said
from tests.terminal.pseudo_terminal import on_a_terminal

HOME = Path(gsd_core.__file__).parents[1]
FAKE = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")
SMALL = {
    "GSD_BUDGET_MAX_TURNS": "10000",
    "GSD_FAKE_PHASES": "1",
    "GSD_FAKE_GAP": "false",
    "GSD_FAKE_OVERLOADED": "false",
}


@pytest.fixture
def idea(tmp_path: Path) -> Path:
    path = tmp_path / "idea.md"
    path.write_text("# A greeter\n\nIt greets people by name.\n")
    return path


def _gsd(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gsd_core", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
        env=os.environ | SMALL | {"PYTHONPATH": f"{HOME}:{HOME / 'plugins'}"} | environment,
    )


@pytest.mark.slow
def test_an_idea_becomes_a_finished_project_and_stdout_has_the_result(tmp_path: Path, idea: Path) -> None:
    done = _gsd("run", idea, "-C", tmp_path / "new", *FAKE, "--yes")

    assert done.returncode == 0, done.stderr
    assert "phase 1 complete: " in done.stderr
    assert "phase 1 complete: " not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("built: ")
    assert lines[lines.index("next:") + 1] == f"  gsd -C {tmp_path / 'new'} report --open"
    assert done.stdout.splitlines()[-1].startswith("done: 1 phase complete (")
    assert said("status", "-C", tmp_path / "new")["progress"] == 100


def test_a_folder_with_nothing_but_the_idea_becomes_a_repository(tmp_path: Path) -> None:
    root = tmp_path / "greeter"
    plugin = root / ".gsd" / "plugins" / "local.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("")
    for name in ("idea.md", "gsd.toml", ".DS_Store", "idea.md~"):
        (root / name).write_text("# A greeter\n" if name == "idea.md" else "")

    done = _gsd("run", root / "idea.md", "-C", root, *FAKE, "--no-input", "--dry-run")
    (root / "notes.txt").write_text("…")
    refused = _gsd("run", root / "idea.md", "-C", root, *FAKE, "--no-input", "--dry-run")

    assert done.returncode == 0, done.stderr
    assert "a git repository would be created" in done.stdout
    assert (refused.returncode, "notes.txt" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_with_yes_a_folder_with_other_files_becomes_a_repository(tmp_path: Path, idea: Path) -> None:
    (tmp_path / "notes.txt").write_text("…")

    done = _gsd("run", idea, "-C", tmp_path, *FAKE, "--yes")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "notes.txt").read_text() == "…"


@pytest.mark.slow
def test_json_is_one_object_at_the_end(tmp_path: Path, idea: Path) -> None:
    done = _gsd("run", idea, "-C", tmp_path / "new", *FAKE, "--yes", "--output-format", "json")

    end = json.loads(done.stdout)
    assert (end["schema_version"], end["outcome"], end["exit"]) == (1, "done", 0)
    assert end["commits"] > 3
    assert end["project"]["path"] == str(tmp_path / "new")
    assert end["project"]["phases"] == end["project"]["phases_complete"] == 1
    assert end["project"]["requirements_verified"] == end["project"]["requirements"] > 0
    assert end["questions"] == []
    assert end["assumed"]
    assert end["next"][0] == f"gsd -C {tmp_path / 'new'} report --open"
    assert end["cost"]["calls"] > 3
    assert (end["hint"], "results" in end) == ("", False)


@pytest.mark.slow
def test_the_json_of_a_single_step_has_what_its_text_says(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    begun = _gsd("run", idea, "-C", root, *FAKE, "--yes", "--phases", "1")
    step = ("verify", "1", "-C", root, *FAKE, "--yes")
    text = _gsd(*step)
    end = json.loads(_gsd(*step, "--output-format", "json").stdout)

    assert (begun.returncode, text.returncode, end["exit"]) == (0, 0, 0)
    assert end["results"]
    assert text.stdout.splitlines()[:-1] == end["results"]


@pytest.mark.slow
def test_json_at_the_end_has_the_open_questions_and_how_to_answer_them(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    done = _gsd("run", idea, "-C", root, *FAKE, "--no-input", "--output-format", "json")

    end = json.loads(done.stdout)
    (question,) = end["questions"]
    assert (done.returncode, end["exit"]) == (3, 3)
    assert question["text"]
    assert question["options"]
    assert question["answer_with"] == f"gsd -C {root} -p {FAKE[1]} answer {question['id']} CHOICE"
    assert end["next"] == [f"gsd -C {root} -p gsd_plugins.rehearsal.fake resume"]


def test_printed_commands_name_the_program_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Path(sys.executable).with_name("gsd")
    (tmp_path / ".planning").mkdir()
    command = [str(program), "-C", str(tmp_path), "next"]
    here = subprocess.run(command, capture_output=True, text=True, check=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    elsewhere = subprocess.run(command, capture_output=True, text=True, check=False)

    assert f"gsd -C {tmp_path} run IDEA" in here.stdout + here.stderr
    assert str(program) not in here.stdout + here.stderr
    assert f"{program} -C {tmp_path} run IDEA" in elsewhere.stdout + elsewhere.stderr


@pytest.mark.slow
def test_ctrl_c_while_the_end_of_a_run_is_read_says_what_was_left_and_how_to_continue(
    tmp_path: Path, idea: Path
) -> None:
    root = tmp_path / "new"
    program = (
        "import gsd_core.cli.launch as launch, gsd_core.cli as cli, signal, sys\n"
        "launch.show_end = lambda *_, **__: signal.raise_signal(signal.SIGINT)\n"
        "cli.main()"
    )
    command = [sys.executable, "-c", program, "run", str(idea), "-C", str(root), *FAKE, "--yes"]
    environment = os.environ | SMALL | {"PYTHONPATH": f"{HOME}:{HOME / 'plugins'}"}
    for more in ((), ("--output-format", "json")):
        ended = subprocess.run(
            [*command, *more], capture_output=True, text=True, env=environment, timeout=120, check=False
        )
        *_, about, left, how = ended.stderr.splitlines()
        assert (ended.returncode, about) == (130, "interrupted")
        assert left.startswith("ended at once; finished tasks are committed")
        assert how == f"continue with: gsd -C {root} -p gsd_plugins.rehearsal.fake resume"
    assert json.loads(ended.stdout)["error"]["hint"] == f"{left}\n{how}"


@pytest.mark.slow
def test_stream_json_is_nothing_but_events(tmp_path: Path, idea: Path) -> None:
    done = _gsd("run", idea, "-C", tmp_path / "new", *FAKE, "--yes", "--output-format", "stream-json")

    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    assert (names[0], names[1], names[-1]) == ("run.started", "run.opened", "run.closed")
    assert {"phase.started", "step.completed", "question.answered", "cost.changed"} <= set(names)
    assert done.stderr == ""


@pytest.mark.slow
def test_an_unanswered_question_ends_the_run_and_resume_continues_it(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    asked = _gsd("run", idea, "-C", root, *FAKE, "--no-input")
    (question,) = said("questions", "-C", root)["questions"]

    answered = _gsd("answer", question["id"], "1", "-C", root)
    resumed = _gsd("resume", "-C", root, *FAKE[:2])

    assert asked.returncode == 3, asked.stderr
    assert f"answer {question['id']}" in asked.stdout
    assert answered.returncode == 0, answered.stderr
    assert resumed.returncode == 0, resumed.stderr
    assert said("status", "-C", root)["status"] == "done"


@pytest.mark.slow
def test_a_human_at_a_terminal_sees_the_run_and_answers(tmp_path: Path, idea: Path) -> None:
    command = ("gsd_core", "run", str(idea), "-C", str(tmp_path / "new"), *FAKE)
    with on_a_terminal(*command, **SMALL, NO_COLOR="1") as screen:
        prompt = screen.until("\n> ")
        screen.type("1\n")
        screen.until("done: 1 phase complete")
        code = screen.ended()

    assert "Enter answers" in prompt
    assert code == 0


@pytest.mark.slow
def test_a_run_works_with_a_closed_standard_input(tmp_path: Path, idea: Path) -> None:
    script = 'exec "$0" -m gsd_core "$@" <&-'
    command = [
        "sh",
        "-c",
        script,
        sys.executable,
        "run",
        str(idea),
        "-C",
        str(tmp_path / "new"),
        *FAKE,
        "--yes",
    ]

    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | SMALL | {"PYTHONPATH": f"{HOME}:{HOME / 'plugins'}"},
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_terminal_without_unicode_shows_plain_signs(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    run = _gsd("run", idea, "-C", root, *FAKE, "--yes", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    status = _gsd("status", "-C", root, PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert run.stderr.isascii()
    assert "+ phase 1 complete" in run.stderr
    assert "+ 1  " in status.stdout


@pytest.mark.slow
def test_an_answer_from_another_terminal_is_seen_at_this_one(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    with on_a_terminal("gsd_core", "run", str(idea), "-C", str(root), *FAKE, **SMALL, NO_COLOR="1") as screen:
        screen.until("\n> ")
        (question,) = said("questions", "-C", root)["questions"]
        answered = _gsd("answer", question["id"], "2", "-C", root)
        screen.until("answered elsewhere")
        screen.until("done: 1 phase complete")

    assert "will use it" in answered.stdout


@pytest.mark.slow
def test_a_run_that_waits_for_a_human_can_be_stopped_from_elsewhere(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    with on_a_terminal("gsd_core", "run", str(idea), "-C", str(root), *FAKE, **SMALL, NO_COLOR="1") as screen:
        screen.until("\n> ")
        stopped = _gsd("stop", "-C", root)
        screen.until("stopped: on request")
        code = screen.ended()

    assert "asked the active run" in stopped.stdout
    assert code == 130
    assert "waiting for" in _gsd("status", "-C", root).stdout


@pytest.mark.slow
def test_ctrl_c_at_the_prompt_ends_the_run_and_resume_asks_again(tmp_path: Path, idea: Path) -> None:
    root = tmp_path / "new"
    with on_a_terminal("gsd_core", "run", str(idea), "-C", str(root), *FAKE, **SMALL, NO_COLOR="1") as screen:
        screen.until("\n> ")
        screen.type("\x03")
        screen.until(" resume")
        code = screen.ended()
    with on_a_terminal("gsd_core", "resume", "-C", str(root), *FAKE[:2], **SMALL, NO_COLOR="1") as screen:
        screen.until("\n> ")
        screen.type("1\n")
        screen.until("done: 1 phase complete")

    assert code == 130
