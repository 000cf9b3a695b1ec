"""``gsd doctor``: what it reports, what ``--fix`` removes, and what it never runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gsd_core.cli.environment_checks import check_space
from gsd_core.journal.lock import ProjectLock
from gsd_core.run.file_system import file_system_type, try_out
from gsd_core.run.leftovers import remove_leftovers
from tests.cli.bench import Bench, call, trust_everything
from tests.planning.trees import make_project
from tests.terminal.pseudo_terminal import on_a_terminal

OLD = 2 * 86_400
SECRET = "sk-ant-api03-" + "a1B2c3D4" * 11
MARKING = "from pathlib import Path\nPath({marker!r}).touch()\n"
MAKE_FOLDER = """
import sys
from pathlib import Path
from gsd_core.run.temporary import make_folder
print(make_folder(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _free_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Choose an agent that needs no login, and a folder for temporary files that is ours."""
    monkeypatch.setenv("GSD_AGENT", "rehearsal")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))


def doctor(root: Path, *args: str, code: int = 0) -> dict[str, Any]:
    """Return the JSON of ``gsd doctor``, and check its exit code."""
    result = call("doctor", "-C", root, "--json", *args)
    assert result.exit_code == code, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def find(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the only check of that name."""
    [check] = [check for check in data["checks"] if check["name"] == name]
    return dict(check)


def age(path: Path, seconds: float = OLD) -> Path:
    """Make *path* look as if it was changed that long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then), follow_symlinks=False)
    return path


def index_lock(bench: Bench) -> Path:
    path = bench.root / ".git" / "index.lock"
    path.touch()
    return path


@pytest.fixture
def run_folder(bench: Bench) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """Provide a run's temporary folder, and the process that it belongs to."""
    command = (sys.executable, "-c", MAKE_FOLDER, str(bench.root))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        folder = Path(process.stdout.readline().strip())
        assert folder.is_dir()
        yield folder, process
        process.kill()


def test_a_healthy_project_has_no_problem_and_every_part_is_looked_at(bench: Bench) -> None:
    data = doctor(bench.root)

    assert set(data) == {"schema_version", "project", "state", "checks", "fixed"}
    assert data["project"] == str(bench.root)
    assert data["fixed"] == []
    assert {key for check in data["checks"] for key in check} == {"section", "name", "state", "found", "fix"}
    sections = ["machine", "settings", "plugins", "agent", "security", "project", "leftovers"]
    assert list(dict.fromkeys(check["section"] for check in data["checks"])) == sections
    expected = {"python", "git", "git identity", "disk", "trust", "sandbox", "secrets", "plugins"}
    assert expected | {"settings", "repository", "file system", "run", "planning", "leftovers"} <= {
        check["name"] for check in data["checks"]
    }
    assert all(check["state"] in ("ok", "warning", "skipped") for check in data["checks"])
    assert all(check["fix"] for check in data["checks"] if check["state"] == "warning")
    # The sandbox is tried out in the project, and leaves nothing in it.
    assert [path.name for path in bench.root.iterdir()] == [".git"]
    assert not [*(bench.root / ".git").glob("gsd*")]


@pytest.mark.slow
def test_a_problem_has_a_command_and_exit_code_1(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    subprocess.run(["git", "config", "--unset", "user.email"], cwd=bench.root, check=True)

    result = call("doctor", "-C", bench.root)

    assert result.exit_code == 1
    assert "git does not know your name and email" in result.stdout
    assert 'git config --global user.name "NAME"' in result.stdout
    assert "1 problem" in result.stdout.splitlines()[-1]


@pytest.mark.slow
def test_only_an_old_lock_that_no_git_has_open_is_stale(bench: Bench) -> None:
    lock = index_lock(bench)
    assert find(doctor(bench.root), "leftovers")["state"] == "ok"
    age(lock)
    with lock.open("w"):
        age(lock)
        # This process has it open, as a slow git would.
        assert doctor(bench.root, "--fix")["fixed"] == []
    assert lock.exists()
    age(lock)

    check = find(doctor(bench.root, code=1), "leftovers")
    assert (check["state"], check["fix"]) == ("problem", f"gsd -C {bench.root} doctor --fix")
    assert str(lock) in check["found"]
    assert lock.exists()

    assert f"removed {lock}" in doctor(bench.root, "--fix")["fixed"]
    assert not lock.exists()


@pytest.mark.slow
def test_the_folder_of_a_killed_run_is_removed_and_that_of_a_live_one_stays(
    bench: Bench, tmp_path: Path, run_folder: tuple[Path, subprocess.Popen[str]]
) -> None:
    folder, process = run_folder
    other = tmp_path / "other"
    other.mkdir()
    assert remove_leftovers(bench.root, bench.root / ".git" / "gsd") == ()
    age(folder)
    assert remove_leftovers(other, None) == ()
    process.send_signal(signal.SIGKILL)
    process.wait()

    # The run may have been in a container, where its process is not visible from here.
    age(folder, 60)
    assert remove_leftovers(other, None) == ()
    assert str(folder) in find(doctor(bench.root), "leftovers")["found"]
    assert folder.is_dir()
    assert doctor(bench.root, "--fix")["fixed"] == [f"removed {folder}"]
    assert not folder.exists()

    folder.mkdir()
    age(folder)
    assert remove_leftovers(other, None) == (folder,)


@pytest.mark.slow
def test_saved_work_and_files_without_a_known_owner_are_never_removed(bench: Bench) -> None:
    git = ("git", "-C", str(bench.root))
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "update-ref", "refs/gsd/recover/r-1", "HEAD"], check=True)
    unowned = age(Path(tempfile.mkdtemp(prefix="gsd-claude-")))

    data = doctor(bench.root, "--fix")

    assert "refs/gsd/recover/r-1" in find(data, "saved work")["fix"]
    assert find(data, "old files")["fix"] == f"rm -r {unowned}"
    assert unowned.is_dir()
    shown = subprocess.run([*git, "show-ref"], capture_output=True, text=True, check=True).stdout
    assert "refs/gsd/recover/r-1" in shown


@pytest.mark.slow
def test_nothing_is_removed_while_a_run_is_active(bench: Bench) -> None:
    lock = age(index_lock(bench))
    with ProjectLock(bench.root / ".git" / "gsd", command="gsd run"):
        data = doctor(bench.root, "--fix", code=1)

    assert lock.exists()
    assert data["fixed"] == []
    assert f"pid {os.getpid()}" in find(data, "fix")["found"]
    assert find(data, "leftovers")["state"] == "skipped"
    assert find(data, "run")["found"].startswith(f"active: pid {os.getpid()}")


def test_an_agent_cannot_remove_leftovers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = age(index_lock(bench))
    monkeypatch.setenv("GSD_RUN", "r-1")

    assert "only a person may" in find(doctor(bench.root, "--fix", code=1), "fix")["found"]
    assert lock.exists()


@pytest.mark.slow
def test_a_hostile_project_gets_nothing_run(bench: Bench, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    program = bench.root / "evil"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    program.chmod(0o755)
    for name in ("git", "bwrap", "claude", "true", "lsof"):
        (bench.root / name).symlink_to("evil")
    for hook in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        (bench.root / ".git" / "hooks").mkdir(exist_ok=True)
        (bench.root / ".git" / "hooks" / hook).symlink_to(program)
    for key in ("core.fsmonitor", "core.pager", "core.editor", "gpg.program", "diff.external"):
        subprocess.run(["git", "-C", str(bench.root), "config", key, str(program)], check=True)
    plugins = bench.root / ".gsd" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "greedy.py").write_text(MARKING.format(marker=str(marker)))
    (bench.root / "gsd.toml").write_text(f"[claude]\ncli_path = '{program}'\n[run]\nagent = ['claude']\n")
    environment = {"PATH": f".:{bench.root}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": SECRET}

    process = subprocess.run(
        [sys.executable, "-m", "gsd_core", "doctor", "--json", "--fix"],
        cwd=bench.root,
        env=os.environ | environment | {"GSD_AGENT": "claude", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert not marker.exists()
    assert SECRET not in process.stdout + process.stderr
    data = json.loads(process.stdout)
    trust = find(data, "trust")
    assert trust["state"] == "warning"
    assert "plugin .gsd/plugins/greedy.py" in trust["found"]
    assert "claude.cli_path" in trust["found"]
    assert str(program) not in find(data, "claude CLI")["found"]
    assert "pre-commit" in find(data, "git hooks")["found"]


@pytest.mark.slow
def test_a_trusted_plugin_is_asked_and_its_failure_is_not_ours(bench: Bench) -> None:
    plugins = bench.root / ".gsd" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "service.py").write_text(
        "from gsd_core import Finding, implements\n"
        "from gsd_core.hookspecs import gsd_doctor\n"
        "@implements(gsd_doctor)\n"
        "def check():\n"
        "    yield Finding(name='queue', ok=False, message='no queue', fix='start it')\n"
    )
    (plugins / "crash.py").write_text(
        "from gsd_core import implements\n"
        "from gsd_core.hookspecs import gsd_doctor\n"
        "@implements(gsd_doctor)\n"
        "def check():\n"
        "    raise SystemExit(9)\n"
    )
    (plugins / "broken.py").write_text("1 / 0\n")
    trust_everything(bench.root)

    data = doctor(bench.root, code=1)

    queue = find(data, "service: queue")
    assert (queue["state"], queue["found"], queue["fix"]) == ("warning", "no queue", "start it")
    assert "its check failed" in find(data, "crash")["found"]
    broken = find(data, "broken")
    assert broken["state"] == "problem"
    assert "division by zero" in broken["found"]


@pytest.mark.slow
def test_an_agent_that_cannot_work_is_a_problem(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_AGENT", "claude,nobody")
    monkeypatch.setenv("GSD_CLAUDE_CLI_PATH", "no-such-claude")

    data = doctor(bench.root, code=1)

    assert "no-such-claude" in find(data, "claude CLI")["found"]
    assert "is not a loaded agent" in find(data, "nobody")["found"]


@pytest.mark.slow
def test_plugins_that_failed_in_the_last_run_are_named(bench: Bench) -> None:
    bench.start()
    bench.fact("plugin.failed", plugin="slack", hook="gsd_notify", error="no network")

    data = doctor(bench.root)

    assert find(data, "last run: slack")["found"] == "gsd_notify failed: no network"
    assert find(data, "run")["fix"] == f"gsd -C {bench.root} resume"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [("x = [", "cannot read gsd.toml"), ("[run]\nmodle = 'opus'\n", "did you mean 'model'?")],
)
def test_wrong_settings_are_one_problem_and_the_rest_is_still_checked(
    bench: Bench, text: str, words: str
) -> None:
    (bench.root / "gsd.toml").write_text(text)

    data = doctor(bench.root, code=1)

    settings = find(data, "settings")
    assert settings["state"] == "problem"
    assert words in settings["found"]
    assert find(data, "sandbox")["found"]
    assert [check["name"] for check in data["checks"] if check["state"] == "problem"] == ["settings"]


@pytest.mark.slow
def test_settings_are_shown_with_their_origins(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-config.toml").write_text("[limits]\ncheck = '5m'\n")
    (bench.root / "gsd.toml").write_text("[run]\nprofile = 'budget'\n")
    monkeypatch.setenv("GSD_MODLE", "x")

    data = doctor(bench.root)

    found = find(data, "settings")["found"]
    assert "environment: run.agent" in found
    assert "gsd.toml: run.profile" in found
    assert "no-config.toml: limits.check" in found
    assert find(data, "GSD_MODLE")["fix"] == "unset GSD_MODLE; did you mean GSD_MODEL?"


@pytest.mark.slow
def test_the_planning_files_are_summed_up(bench: Bench) -> None:
    make_project(bench.root, {"PROJECT.md": "# Greeter\n"})

    check = find(doctor(bench.root, code=1), "planning")

    assert (check["state"], check["fix"]) == ("problem", f"gsd -C {bench.root} health")
    assert "E003" in check["found"]


@pytest.mark.slow
def test_without_a_sandbox_it_says_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_SANDBOX", "off")
    off = find(doctor(bench.root), "sandbox")
    monkeypatch.setenv("GSD_SANDBOX", "required")
    monkeypatch.setenv("GSD_SANDBOXES", "nothing")
    none = find(doctor(bench.root, code=1), "sandbox")

    assert off["state"] == "warning"
    assert "turned off" in off["found"]
    assert none["state"] == "problem"
    assert "'nothing' is not loaded" in none["found"]


@pytest.mark.parametrize(("free", "state"), [(10 << 20, "problem"), (1 << 30, "warning"), (1 << 40, "ok")])
def test_little_free_space_is_reported(tmp_path: Path, free: int, state: str) -> None:
    checks = list(check_space(tmp_path, usage=lambda _: (1 << 41, 0, free)))

    assert {check.state for check in checks} == {state}


def test_the_file_system_is_tried_out_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    able = try_out(folder)

    assert (able.symlinks, able.exclusive, able.locks) == (True, True, True)
    assert list(folder.iterdir()) == []


def test_the_innermost_mount_decides(tmp_path: Path) -> None:
    mounts = [
        ("/", "ext4"),
        (str(tmp_path), "ext4"),
        (str(tmp_path / "share"), "nfs4"),
        (f"{tmp_path}/shared", "x"),
    ]

    assert file_system_type(tmp_path / "share" / "project", mounts) == "nfs4"
    assert file_system_type(tmp_path / "other", mounts) == "ext4"
    assert file_system_type(tmp_path, [*mounts, (str(tmp_path), "tmpfs")]) == "tmpfs"


SURROUNDINGS: dict[str, tuple[str, dict[str, str | None]]] = {
    "no home folder and no user": ("unshare -U --map-user=12345 {gsd}", {"HOME": None}),
    "no git, and a state folder that cannot be written": (
        "{gsd}",
        {"PATH": "/nonexistent", "GSD_STATE_DIR": "/proc/nothing"},
    ),
    "closed streams, the C locale, and a broken settings file of the user": (
        "echo '[' > broken.toml && {gsd} <&- 2>&-",
        {"LC_ALL": "C", "PYTHONUTF8": "0", "GSD_CONFIG": "broken.toml"},
    ),
    "a folder that was removed": ("mkdir gone && cd gone && rmdir ../gone && {gsd}", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_it_reports_in_any_surroundings_and_never_fails_itself(name: str, tmp_path: Path) -> None:
    line, variables = SURROUNDINGS[name]
    if line.startswith("unshare"):
        probe = subprocess.run(
            ["unshare", "-U", "--map-user=12345", "true"], capture_output=True, check=False
        )
        if probe.returncode:
            pytest.skip("this machine has no user namespaces")
    folder = tmp_path / "folder"
    folder.mkdir()
    environment = {key: value for key, value in (os.environ | variables).items() if value is not None}
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "COLUMNS": "40"}
    process = subprocess.run(
        ["/bin/sh", "-c", line.format(gsd=f"{sys.executable} -m gsd_core doctor --json")],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "Traceback" not in process.stderr
    assert "bug in gsd" not in process.stdout + process.stderr
    if "removed" in name:
        assert process.returncode == 2
        assert "hint: cd to a folder that exists" in process.stderr
        return
    data = json.loads(process.stdout)
    assert process.returncode == (1 if data["state"] == "problem" else 0)
    problems = [check for check in data["checks"] if check["state"] == "problem"]
    # One cause is one problem.
    assert len({check["found"] for check in problems}) == len(problems)
    assert all(check["fix"] for check in problems)


@pytest.mark.slow
def test_a_narrow_terminal_without_colors_gets_plain_text(bench: Bench) -> None:
    command = ("gsd_core", "doctor", "-C", str(bench.root))
    with on_a_terminal(*command, NO_COLOR="1", COLUMNS="40", GSD_AGENT="rehearsal") as screen:
        shown = screen.until("no problems")
        assert screen.ended() == 0

    assert "\x1b[" not in shown
    assert "sandbox: " in shown


@pytest.mark.slow
def test_a_bug_report_has_the_log_and_no_secret(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(bench.root.parent))
    bench.start()
    bench.fact(
        "plugin.failed", plugin="slack", hook="gsd_notify", error=f"token {SECRET}\x1b[2J in {bench.root}"
    )

    result = call("bug-report", "-C", bench.root)

    assert result.exit_code == 0
    assert "ok: machine: python: gsd" in result.stdout
    assert "slack" in result.stdout.split("## gsd log")[1]
    assert SECRET not in result.output
    assert "\x1b" not in result.output
    assert str(bench.root) not in result.output
    assert "t@example.org" not in result.output
    assert str(bench.root.parent) not in result.output
    last = call("bug-report", "-C", bench.root, "--records", "0").stdout.splitlines()[-1]
    assert last.startswith("## gsd log")
