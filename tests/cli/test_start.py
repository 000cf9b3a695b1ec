"""``gsd run`` and ``gsd resume`` up to the first step: errors, after which nothing is written."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from gsd_core.cli.options import parse_phases
from gsd_core.errors import ConfigError
from tests.cli.bench import Bench, call, repository, said, trust_everything
from tests.planning.trees import make_project
from tests.terminal.pseudo_terminal import on_a_terminal

LOGGED_OUT = """
from gsd_core import AgentResult, Finding, implements
from gsd_core.hookspecs import gsd_doctor, gsd_run_agent

@implements(gsd_run_agent)
async def run_agent(task, host):
    return AgentResult(text="")

@implements(gsd_doctor)
def doctor():
    yield Finding(name="login", ok=False, message="not logged in", fix="oracle login")
"""
OTHER_DOCTOR = LOGGED_OUT.replace("oracle", "pythia").replace(
    "    yield", "    raise SystemExit(9)\n    yield"
)


@pytest.fixture
def idea(tmp_path: Path) -> Path:
    path = tmp_path / "idea.md"
    path.write_text("# A greeter\n")
    return path


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"a\0b", "is binary"), (b"\xff\xfe", "not UTF-8"), (None, "no idea document at")],
)
def test_a_bad_idea_is_refused_before_anything_is_written(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "idea.md"
    if content is not None:
        path.write_bytes(content)

    result = call("run", path, "-C", tmp_path / "new")

    assert result.exit_code == 2
    assert words in result.stderr.splitlines()[0]
    assert result.stderr.splitlines()[-1].startswith("hint: ")
    assert not (tmp_path / "new").exists()


def test_an_unknown_agent_is_an_error_that_lists_the_installed_ones(tmp_path: Path, idea: Path) -> None:
    result = call("run", idea, "-C", tmp_path / "new", "--agent", "claud")

    assert result.exit_code == 2
    assert "unknown agent 'claud'; installed: 'claude', 'rehearsal'" in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_with_other_files_does_not_become_a_repository_without_consent(
    tmp_path: Path, idea: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    before = _files(tmp_path)

    result = call("run", idea, "-C", tmp_path, "--agent", "rehearsal", "--here")

    assert result.exit_code == 2
    assert "is not a git repository and contains 1 other file: thesis.tex" in result.stderr
    assert "git init" in result.stderr
    assert "--yes" in result.stderr
    assert _files(tmp_path) == before


def test_a_human_at_a_terminal_is_asked_before_a_folder_becomes_a_repository(
    tmp_path: Path, idea: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    command = ("gsd_core", "run", str(idea), "-C", str(tmp_path), "--agent", "rehearsal", "--here")
    with on_a_terminal(*command, NO_COLOR="1") as screen:
        shown = screen.until("[y/N]: ")
        screen.type("n\n")
        screen.until("git init`")
        code = screen.ended()

    assert "1 other file: thesis.tex" in shown.replace("\r\n", "")
    assert code == 2
    assert not (tmp_path / ".git").exists()


def test_nobody_is_asked_to_agree_to_a_rehearsal_that_may_not_run_here(tmp_path: Path, idea: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    before = _files(tmp_path)
    command = ("gsd_core", "run", str(idea), "-C", str(tmp_path), "--agent", "rehearsal")

    with on_a_terminal(*command, NO_COLOR="1", COLUMNS="200") as screen:
        code = screen.ended()

    assert code == 2
    assert "has files that no rehearsal made: thesis.tex" in " ".join(screen.seen.split())
    assert "[y/N]" not in screen.seen
    assert _files(tmp_path) == before


def test_an_idea_in_words_is_answered_with_a_way_to_give_it(tmp_path: Path) -> None:
    words = call("run", "build a todo app", "-C", tmp_path / "new")
    name = call("run", "my idea.md", "-C", tmp_path / "new")

    assert (words.exit_code, name.exit_code) == (2, 2)
    assert "hint: the idea itself goes into a text file, or to stdin" in words.stderr
    assert "hint: give a text file, or - for stdin" in name.stderr


def test_a_file_of_the_project_cannot_consent_for_the_user(tmp_path: Path, idea: Path) -> None:
    (tmp_path / "gsd.toml").write_text("[yolo]\nyes = true\n")
    (tmp_path / "thesis.tex").write_text("years of work")

    result = call("run", idea, "-C", tmp_path, "--agent", "rehearsal", "--trust")

    assert result.exit_code == 2
    assert "gsd.toml sets yolo.yes: consent cannot come from the project's files" in result.stderr
    assert not (tmp_path / ".git").exists()


@pytest.mark.slow
def test_an_agent_that_is_not_logged_in_does_not_matter_to_what_code_does_alone(tmp_path: Path) -> None:
    root = repository(make_project(tmp_path / "project", {"ROADMAP.md": "### Phase 1: A\n"}))
    (tmp_path / "oracle.py").write_text(LOGGED_OUT)
    given = ("-C", root, "-p", tmp_path / "oracle.py", "--agent", "oracle", "--max-budget-usd", "1")

    audit = call("milestone", "audit", *given)
    debug = call("debug", "It hangs", *given)

    assert audit.exit_code == 0, audit.stderr
    assert [*(root / ".planning").glob("v*-MILESTONE-AUDIT.md")]
    assert debug.exit_code == 4, debug.stderr


def test_an_agent_without_credentials_ends_the_start_at_once(tmp_path: Path, idea: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "oracle.py").write_text(LOGGED_OUT)
    began = time.monotonic()

    result = call("run", idea, "-C", tmp_path / "new", "--agent", "oracle", "--plugins-dir", plugins)

    assert result.exit_code == 4
    assert result.stderr.splitlines() == [
        "error: agent 'oracle' cannot work: not logged in",
        "hint: oracle login",
    ]
    assert not (tmp_path / "new").exists()
    assert time.monotonic() - began < 5


def test_only_the_chosen_agents_are_checked(tmp_path: Path, idea: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "oracle.py").write_text(LOGGED_OUT)
    (plugins / "pythia.py").write_text(OTHER_DOCTOR)

    result = call("run", idea, "-C", tmp_path / "new", "--agent", "oracle", "--plugins-dir", plugins)

    assert "pythia" not in result.stderr


def test_an_unknown_setting_is_an_error_with_a_suggestion(bench: Bench, idea: Path) -> None:
    (bench.root / "gsd.toml").write_text("[run]\nmodle = 'opus'\n")

    result = call("run", idea, "-C", bench.root, "--agent", "rehearsal")

    assert result.exit_code == 2
    assert "unknown key run.modle; did you mean 'model'?" in result.stderr


def test_a_flag_with_a_value_of_the_wrong_type_is_an_error(bench: Bench, idea: Path) -> None:
    result = call("run", idea, "-C", bench.root, "--max-budget-usd", "lots")

    assert result.exit_code == 2
    assert "--max-budget-usd: expected a number, got 'lots'" in result.stderr


def test_two_ways_to_choose_phases_cannot_be_combined(bench: Bench, idea: Path) -> None:
    result = call("run", idea, "-C", bench.root, "--phases", "1-3", "--only", "2", "--agent", "rehearsal")

    assert result.exit_code == 2
    assert "--phases and --only cannot be combined" in result.stderr


def test_there_is_nothing_to_resume_in_a_fresh_project(bench: Bench) -> None:
    result = call("resume", "-C", bench.root)

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: nothing to resume in this project",
        f"hint: start with: gsd -C {bench.root} run IDEA",
    ]


def _dry(*args: str | Path) -> dict[str, object]:
    result = call("run", *args, "--dry-run", "--output-format", "json")
    assert result.exit_code == 0, result.stderr
    plan: dict[str, object] = json.loads(result.stdout)
    return plan


def _settings(plan: dict[str, object]) -> dict[str, tuple[str, str]]:
    settings: list[dict[str, str]] = plan["settings"]  # type: ignore[assignment]  # JSON
    return {setting["name"]: (setting["value"], setting["origin"]) for setting in settings}


def test_a_dry_run_shows_the_first_step_and_writes_nothing(tmp_path: Path, idea: Path) -> None:
    plan = _dry(idea, "-C", tmp_path / "new", "--agent", "rehearsal")

    assert plan["due"] == [
        {
            "what": "start",
            "step": "init",
            "plugin": None,
            "does": "write the requirements, the roadmap and the project's other files from the idea (init)",
            "why": "the project has no roadmap yet",
        }
    ]
    assert plan["then"] == ["then discuss, plan, execute, verify and complete each phase of the roadmap"]
    assert plan["new_folder"] is True
    assert not (tmp_path / "new").exists()


STEPS = """
from gsd_core import StepResult, StepType, implements
from gsd_core.hookspecs import gsd_execute_step, gsd_steps

@implements(gsd_steps)
def steps():
    yield StepType(kind="greet", before="init", due=lambda now: not now.completed, title="Greet")
    yield StepType(kind="license-review", before="complete", due=lambda now: now.phase.verdict is not None)
    yield StepType(kind="note", before="execute", due=lambda now: True)
    yield StepType(kind="scan", before="end", due=lambda now: True, title="Scan all")
"""


def test_a_dry_run_names_the_steps_of_plugins_and_their_plugin(tmp_path: Path, idea: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "reviewer.py").write_text(STEPS)
    common = ("--agent", "rehearsal", "--plugins-dir", folder)
    plan = _dry(idea, "-C", tmp_path / "new", *common)
    first: dict[str, str] = plan["due"][0]  # type: ignore[index]  # JSON

    assert (first["step"], first["plugin"]) == ("greet", "reviewer")
    assert first["does"] == "greet (greet, plugin reviewer)"
    assert first["why"] == "a step of the plugin reviewer is due: Greet"
    assert plan["then"] == [
        "then write the requirements, the roadmap and the project's other files from the idea",
        "then discuss, plan, note (plugin reviewer, if it is due), execute, verify, "
        "license-review (plugin reviewer, if it is due) and complete each phase of the roadmap",
        "then scan (plugin reviewer) at the end of the milestone",
    ]

    root = tmp_path / "project"
    make_project(root, {"ROADMAP.md": "# Roadmap\n\n- [ ] **Phase 1: Core** - x\n\n### Phase 1: Core\n"})
    subprocess.run(["git", "init", "-q", root], check=True)
    then = call("run", "-C", root, *common, "--dry-run").stdout
    assert "note (plugin reviewer), execute, verify, license-review (plugin reviewer, if it is due)" in then
    assert "scan (plugin reviewer) at the end of the milestone" in then
    assert "reviewer" not in str(_dry("-C", root, *common, "-p", "no:reviewer")["then"])


def test_a_dry_run_as_text_shows_plugins_and_origins(tmp_path: Path, idea: Path) -> None:
    shown = call("run", idea, "-C", tmp_path / "new", "--agent", "rehearsal", "--dry-run").stdout

    assert "from the idea (init), because the project has no roadmap yet" in shown
    assert "built-in ones (-v lists them)" in shown
    assert "setting: run.agent = rehearsal (command line)" in shown


def test_a_flag_that_was_not_given_overrides_nothing(
    bench: Bench, idea: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / "gsd.toml").write_text(
        "[run]\nskip_verify = true\nmodel = 'opus'\nagent = ['rehearsal']\n[claude]\nmax_retries = 50\n"
    )
    trust_everything(bench.root)
    monkeypatch.setenv("GSD_DEPTH", "quick")
    monkeypatch.delenv("GSD_SANDBOX_CACHES")

    found = _settings(_dry(idea, "-C", bench.root, "--model", "haiku"))

    assert found == {
        "run.agent": ("rehearsal", "gsd.toml"),
        "run.depth": ("quick", "environment"),
        "run.model": ("haiku", "command line"),
        "run.skip_verify": ("true", "gsd.toml"),
        "claude.max_retries": ("50", "gsd.toml"),
    }


def test_a_flag_may_be_repeated(bench: Bench, idea: Path) -> None:
    found = _settings(_dry(idea, "-C", bench.root, "--notify", "json://a", "--notify", "json://b"))

    # The addresses of notifications contain passwords.
    assert found["apprise.urls"] == ("[redacted], [redacted]", "command line")


def test_a_resumed_run_keeps_its_agent_and_its_range(bench: Bench) -> None:
    bench.start()
    options = {"phases": ["1", "2"], "skip_verify": True, "skip_discuss": False, "gap_rounds": 3}
    bench.fact("run.opened", pid=1, version="0.1.0", agent=["rehearsal"], options=options)

    result = call("resume", "-C", bench.root, "--dry-run", "--output-format", "json")

    found = _settings(json.loads(result.stdout))
    assert found["run.agent"] == ("rehearsal", "the run so far")
    assert found["run.phases"] == ("1,2", "the run so far")
    assert found["run.skip_verify"] == ("true", "the run so far")


def test_a_dry_run_counts_the_built_in_plugins_and_names_the_others(idea: Path, tmp_path: Path) -> None:
    (tmp_path / "watcher.py").write_text(LOGGED_OUT)
    start = ("run", idea, "-C", tmp_path / "new", "--agent", "rehearsal", "--plugins-dir", tmp_path)

    usual = call(*start, "-n", "-p", "no:apprise").stdout.splitlines()
    verbose = call(*start, "-n", "-p", "no:apprise", "-v").stdout.splitlines()
    shown = [line for line in usual if line.startswith("plugin")]
    listed = [line for line in verbose if line.startswith("plugin: ")]

    assert len(shown) == 3
    assert re.fullmatch(rf"plugins: {len(listed) - 2} built-in ones \(-v lists them\)", shown[0])
    assert shown[1:] == [line for line in listed if "watcher" in line or "apprise" in line]


def test_with_json_output_an_error_is_also_on_stdout(tmp_path: Path) -> None:
    result = call("run", tmp_path / "none.md", "-C", tmp_path / "new", "--output-format", "json")

    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["kind"] == "IdeaError"
    assert result.stderr.startswith("error: no idea document")


def _with_local_plugin(root: Path) -> Path:
    path = root / ".gsd" / "plugins" / "local.py"
    path.parent.mkdir(parents=True)
    path.write_text(LOGGED_OUT.replace("oracle", "local"))
    return path


def test_a_run_stops_if_a_plugin_of_the_project_is_not_trusted(bench: Bench, idea: Path) -> None:
    _with_local_plugin(bench.root)

    result = call("run", idea, "-C", bench.root, "--agent", "local", "--no-input")

    assert result.exit_code == 2
    assert "not trusted" in result.stderr
    assert "plugin .gsd/plugins/local.py" in result.stderr
    assert "--trust" in result.stderr


def test_yes_does_not_trust_the_project(bench: Bench, idea: Path) -> None:
    _with_local_plugin(bench.root)

    result = call("run", idea, "-C", bench.root, "--agent", "local", "--yes")

    assert result.exit_code == 2
    assert "not trusted" in result.stderr
    assert said("trust", "--show", "-C", bench.root)["trusted"] is False


def test_trust_loads_the_projects_plugins_and_remembers_it(bench: Bench, idea: Path) -> None:
    _with_local_plugin(bench.root)

    result = call("run", idea, "-C", bench.root, "--agent", "local", "--trust")
    again = call("run", idea, "-C", bench.root, "--agent", "local")

    assert result.exit_code == 4
    assert "agent 'local' cannot work: not logged in" in result.stderr
    assert again.exit_code == 4
    assert not (bench.root / ".git" / "gsd" / "trust.json").exists()


def test_a_trusted_plugin_of_the_project_adds_its_flags(bench: Bench) -> None:
    path = _with_local_plugin(bench.root)
    path.write_text(
        "import attrs\n"
        "from gsd_core import implements, setting\n"
        "from gsd_core.hookspecs import gsd_settings\n"
        "@attrs.frozen(kw_only=True)\n"
        "class Local:\n"
        "    colour: str = setting('', flag='--colour', help='a colour')\n"
        "@implements(gsd_settings)\n"
        "def settings():\n"
        "    yield Local\n"
    )
    before = call("run", "--help", "-C", bench.root).stdout
    trust_everything(bench.root)

    assert "--colour" not in before
    assert "--colour" in call("run", "--help", "-C", bench.root).stdout


def test_a_plugin_is_imported_once(bench: Bench, idea: Path) -> None:
    (bench.root / "counter.py").write_text(
        "from pathlib import Path\n"
        "with Path(__file__).with_suffix('.log').open('a') as log:\n"
        "    log.write('imported\\n')\n" + LOGGED_OUT
    )
    _with_local_plugin(bench.root)

    result = call(
        "run", idea, "-C", bench.root, "-p", bench.root / "counter.py", "--agent", "counter", "--trust"
    )

    assert result.exit_code == 4, result.stderr
    assert (bench.root / "counter.log").read_text() == "imported\n"


def test_a_human_at_a_terminal_is_asked_whether_to_trust_a_plugin(bench: Bench, idea: Path) -> None:
    _with_local_plugin(bench.root)
    command = ("gsd_core", "run", str(idea), "-C", str(bench.root), "--agent", "local")
    with on_a_terminal(*command, NO_COLOR="1") as screen:
        shown = screen.until("Trust it? [y/N]: ")
        screen.type("y\n")
        screen.until("agent 'local' cannot work")
        code = screen.ended()

    assert "local.py (sha256 " in shown.replace("\r\n", "")
    assert code == 4
    assert said("trust", "--show", "-C", bench.root)["trusted"] is True


def test_standard_input_can_be_used_for_one_purpose_only(bench: Bench) -> None:
    result = call("run", "-", "--answers", "-", "-C", bench.root, "--agent", "rehearsal", stdin="# idea")

    assert result.exit_code == 2
    assert "cannot be both" in result.stderr


def test_a_dirty_tree_is_refused(bench: Bench, idea: Path) -> None:
    tracked = bench.root / "code.py"
    tracked.write_text("one\n")
    subprocess.run(["git", "add", "."], cwd=bench.root, check=True)
    subprocess.run(["git", "commit", "-qm", "one"], cwd=bench.root, check=True)
    tracked.write_text("two\n")

    result = call("run", idea, "-C", bench.root, "--agent", "rehearsal", "--here")

    assert result.exit_code == 2
    assert "tracked files: code.py" in result.stderr


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", None),
        ("2", ("2",)),
        ("1-3,5,7.1", ("1", "2", "2.1", "3", "5", "7.1")),
        ("02.1", ("2.1",)),
        ("2.1-3", ("2.1", "3")),
        ("1,1", ("1",)),
    ],
)
def test_a_range_holds_the_phases_between_its_ends(text: str, numbers: tuple[str, ...] | None) -> None:
    assert parse_phases(text, ["1", "2", "2.1", "3", "3.1"]) == numbers


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-2", "1..2", "1-2-3"])
def test_anything_else_is_not_a_range(text: str) -> None:
    with pytest.raises(ConfigError, match="not a range of phases"):
        parse_phases(text, [])


def test_a_repository_inside_a_folder_is_found(tmp_path: Path, idea: Path) -> None:
    inner = repository(tmp_path / "outer") / "inner"
    inner.mkdir()

    assert _dry(idea, "-C", inner, "--agent", "rehearsal")["new_folder"] is False


def test_without_an_idea_an_empty_folder_is_reported_before_any_login_check(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    _with_local_plugin(tmp_path / "empty")
    for folder in ("empty", "new"):
        result = call("run", "-C", tmp_path / folder, "--agent", "claude")

        assert result.exit_code == 2
        assert result.stderr.splitlines()[0] == "error: no project here and no idea given"
        assert "run IDEA" in result.stderr.splitlines()[-1]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"PROJECT.md": "# A\n"}, "PROJECT.md"),
        ({"ROADMAP.md": "### Phase 1: A\n", "PROJECT.md": "# A\n"}, "PROJECT.md and ROADMAP.md"),
    ],
)
def test_an_idea_is_refused_for_an_existing_project_and_nothing_is_written(
    bench: Bench, idea: Path, files: dict[str, str], named: str
) -> None:
    make_project(bench.root, files)
    before = {path: path.read_bytes() for path in _files(bench.root)}

    result = call("run", idea, "-C", bench.root, "--agent", "rehearsal", "--yes")

    assert result.exit_code == 2
    assert named in result.stderr.splitlines()[0]
    assert f"gsd -C {bench.root} run" in result.stderr.splitlines()[-1]
    assert {path: path.read_bytes() for path in _files(bench.root)} == before


@pytest.mark.parametrize(
    "files",
    [
        {"PROJECT.md": "# A\n", "ROADMAP.md": "## ✅ v1.0 A\n"},
        {"milestones/v1.0-ROADMAP.md": "# v1.0\n### Phase 1: A\n"},
    ],
)
def test_between_milestones_an_idea_starts_the_next_one(
    bench: Bench, idea: Path, files: dict[str, str]
) -> None:
    make_project(bench.root, files)

    result = call("run", idea, "-C", bench.root, "--agent", "rehearsal", "--dry-run")

    assert result.exit_code == 0
    assert "this starts milestone v1.1" in result.stderr
    assert "from the idea (init), because the project has no roadmap yet" in result.stdout


@pytest.mark.parametrize("verb", [("run",), ("resume",)])
def test_between_milestones_there_is_nothing_to_run(bench: Bench, verb: tuple[str, ...]) -> None:
    make_project(bench.root, {"PROJECT.md": "# A\n", "ROADMAP.md": "## ✅ v1.0 A\n"})

    result = call(*verb, "-C", bench.root, "--agent", "rehearsal")

    assert result.exit_code == 2
    assert "v1.0 is shipped: no milestone is in progress" in result.stderr
    assert not (bench.root / ".git/gsd").exists()


def test_a_missing_file_of_answers_is_reported_at_the_start(bench: Bench, idea: Path) -> None:
    result = call("run", idea, "-C", bench.root, "--agent", "rehearsal", "--answers", "nowhere.json")

    assert result.exit_code == 2
    assert "nowhere.json: No such file" in result.stderr
    assert not (bench.root / ".git/gsd").exists()


@pytest.mark.parametrize(
    ("flags", "variables", "code", "error"),
    [
        (["--phases", "x"], {}, 2, "not a range of phases: 'x'"),
        (["--phases", "3-1"], {}, 2, "3 comes after 1"),
        (["--only", "1", "--phases", "2"], {}, 2, "--phases and --only cannot be combined"),
        (["--depth", "deep"], {}, 2, "'deep' is not one of"),
        (["--seed", "x"], {}, 2, "'x' is not a valid int"),
        (["--max-budget-usd", "lots"], {}, 2, "--max-budget-usd: expected a number"),
        (["--agent", "nobody"], {}, 2, "unknown agent 'nobody'"),
        (["--notify", "nothing://x"], {}, 4, "--notify 1 (nothing): apprise does not support this URL"),
        ([], {"GSD_PHASES": "1-x"}, 2, "not a range of phases: '1-x'"),
        ([], {"GSD_DEPTH": "deep"}, 2, "GSD_DEPTH: expected one of"),
        ([], {"GSD_LIMITS_IDLE": "soon"}, 2, "GSD_LIMITS_IDLE: "),
        ([], {"GSD_APPRISE_URLS": "nothing://x"}, 4, "apprise does not support this URL"),
        ([], {"GSD_DETPH": "quick"}, 2, "GSD_DETPH is set, and no setting has this variable; did you mean"),
    ],
)
@pytest.mark.parametrize("ask", ["no idea", "no login"])
def test_a_wrong_option_is_reported_before_a_missing_login_or_idea(
    tmp_path: Path,
    idea: Path,
    monkeypatch: pytest.MonkeyPatch,
    ask: str,
    flags: list[str],
    variables: dict[str, str],
    code: int,
    error: str,
) -> None:
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    given = [idea] if ask == "no login" else []

    result = call("run", *given, "-C", tmp_path / "new", *flags)

    only_warned = "GSD_DETPH" in variables
    assert result.exit_code == (4 if only_warned and given else code), result.stderr
    assert error in result.stderr.splitlines()[0]
    if not only_warned:
        assert "no idea given" not in result.stderr
        assert "logged in" not in result.stderr
    assert not (tmp_path / "new").exists()


def test_a_later_choice_of_phases_replaces_the_earlier_one(bench: Bench) -> None:
    bench.start()
    options = {"phases": ["99"], "skip_verify": False, "skip_discuss": False, "gap_rounds": 3}
    typed = {"run": {"only": "99"}}
    bench.fact("run.opened", pid=1, version="0.1.0", agent=["rehearsal"], options=options, typed=typed)

    result = call("resume", "-C", bench.root, "--dry-run", "--output-format", "json", "--phases", "1")

    found = _settings(json.loads(result.stdout))
    assert found["run.phases"] == ("1", "command line")
    assert "run.only" not in found


def test_paths_among_the_options_are_stored_so_that_they_hold_in_other_folders(
    idea: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules.toml").write_text("[[rule]]\nwhen = { step = 'init' }\ndo = 'error'\nstatus = 401\n")
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)

    found = _dry(idea, "-C", "new", "--agent", "rehearsal", "--script", "rules.toml", "--plugins-dir", "own")
    failed = call("resume", "--plugins-dir", "own")

    assert _settings(found)["rehearsal.script"] == (str(tmp_path / "rules.toml"), "command line")
    assert f"--plugins-dir {tmp_path / 'own'}" in failed.stderr
