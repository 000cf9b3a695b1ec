"""What a confined process must not be able to see or change."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from gsd_core import ConfinedProcess, Permanent, Place
from gsd_core.errors import ProjectError
from gsd_core.run.places import remove_empty
from gsd_plugins import bubblewrap
from tests.sandbox.box import Box, git
from tests.sandbox.conftest import SECRETS


def test_the_users_secrets_are_not_there(box: Box, user_home: Path) -> None:
    found = box.out(
        """
        cd "$1"
        find . -xdev -type f -not -path './src/shop/*' -not -path './.cache/gsd/*' 2>/dev/null
        cat .ssh/id_ed25519 .aws/credentials .netrc .npmrc .gitconfig Documents/letter.txt 2>/dev/null
        cat /root/.npmrc /root/.gitconfig /root/.bashrc 2>/dev/null
        true
        """,
        str(user_home),
    )

    assert found == ""


def test_no_secret_reaches_the_private_home(box: Box) -> None:
    text = box.out('grep -rhs "" "$HOME" || true; cat ~/.npmrc')

    assert "registry=http://mirror.example/" in text
    assert [word for word in ("TOKEN", "SECRET", "PASSWORD", "PRIVATE") if word in text] == []
    assert SECRETS


def test_nothing_outside_of_the_project_can_be_written(box: Box, user_home: Path) -> None:
    (user_home / "src" / "other").mkdir()
    before = sorted(str(path) for path in user_home.rglob("*") if ".cache" not in path.parts)

    box.out(
        """
        # These may be in the private /tmp or /dev/shm, so that only the host tells whether they were written.
        for path in "$1/.bashrc" "$1/src/other/x" "$1/src/x" "$1/new/x"; do
          mkdir -p "$(dirname "$path")"; echo evil > "$path"
        done 2>/dev/null
        for path in /etc/x /usr/bin/x /usr/local/bin/x /opt/x /x /root/x /var/x; do
          if (echo evil > "$path") 2>/dev/null; then echo "wrote $path"; fi
        done | grep . && exit 1
        echo ok > made-inside
        """,
        str(user_home),
    )

    (box.project / "made-inside").unlink()
    (box.project / ".gsd").rmdir()
    (box.project / ".claude").rmdir()
    after = sorted(str(path) for path in user_home.rglob("*") if ".cache" not in path.parts)
    assert [path for path in after if "/call-" not in path] == [p for p in before if "/call-" not in p]


ATTEMPTS = {
    "write": 'echo evil >> "$1"',
    "unlink": 'rm -rf "$1"',
    "rename": 'mv "$1" "$1.old"',
    "rename the parent": 'mv "$(dirname "$1")" "$(dirname "$1").old"',
    "mount over": 'mount --bind /tmp "$1"',
    "unmount": 'umount "$1"; umount "$(dirname "$1")"; umount -l "$1"',
    "remount": 'mount -o remount,rw "$1"',
    "namespace": 'unshare -Urm sh -c "umount -l $1; mount -o remount,bind,rw $1; echo evil >> $1"',
    "hard link": 'ln "$1" ./link && echo evil >> ./link',
    "symlink": 'ln -s "$1" ./slink; echo evil >> ./slink',
    "the other way": 'echo evil >> "/proc/1/root$1"; echo evil >> "/proc/self/root$1"',
    "mode": 'chmod u+w "$1"; chmod 777 "$(dirname "$1")"; echo evil >> "$1"',
}


@pytest.mark.parametrize("name", [".planning/ROADMAP.md", "gsd.toml", ".claude/settings.json"])
def test_the_plan_and_the_settings_cannot_be_changed(box: Box, name: str) -> None:
    path = box.project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("original")
    number, mode = path.stat().st_ino, path.stat().st_mode
    # One process for all: each attempt starts from what the others left.
    box.run("\n".join(f"({attempt}) >/dev/null 2>&1" for attempt in ATTEMPTS.values()), str(path))

    assert path.read_text() == "original"
    assert (path.stat().st_ino, path.stat().st_mode) == (number, mode)
    assert box.project.is_dir()


@pytest.mark.parametrize("name", [".gsd", ".claude"])
def test_a_protected_folder_that_is_missing_cannot_be_made(box: Box, name: str) -> None:
    result = box.run('mkdir -p "$1" && echo evil > "$1/settings.json"', str(box.project / name))

    assert result.returncode != 0
    assert list((box.project / name).iterdir()) == []
    remove_empty(box.project)
    assert not (box.project / name).exists()
    assert (box.project / ".planning" / "ROADMAP.md").exists()


def test_the_real_repository_does_not_change(box: Box) -> None:
    real = box.project / ".git"
    before = contents(real)

    box.out(
        """
        git config core.fsmonitor 'touch /tmp/x'
        git config alias.x '!echo evil'
        printf '#!/bin/sh\\necho evil\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit
        echo 2 >> app.py; git add -A; git commit -qm second
        git branch topic; git tag -a -m v1 v1; git checkout -q topic; git update-ref -d refs/heads/main
        git gc -q --prune=now
        rm -rf .git/refs .git/HEAD .git/index .git/packed-refs
        rm -rf .git/shared/0/* 2>/dev/null; echo evil > .git/shared/0/info/alternates 2>/dev/null
        rm -rf .git 2>/dev/null; true
        """
    )

    assert contents(real) == before
    assert git(box.project, "log", "--format=%s") == "first"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_other_processes_are_invisible(box: Box) -> None:
    names = box.out("cat /proc/[0-9]*/comm; kill -0 $1 2>&1 || true", str(os.getpid()))

    assert set(names.splitlines()[:-1]) == {"bwrap", "bash"}
    assert "No such process" in names


def test_the_environment_of_the_sandbox_itself_is_the_allow_list(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GSD_TEST_SECRET", "only-outside")
    text = box.out("cat /proc/[0-9]*/environ | tr '\\0' '\\n'", environment={"VISIBLE": "inside"})

    assert "VISIBLE=inside" in text
    assert "only-outside" not in text
    assert "GSD_TEST_SECRET" not in text


def test_a_variable_of_the_loader_takes_effect_only_inside(box: Box) -> None:
    # A library that does not exist makes the loader complain in each program that it is given to.
    started = box.confined(("bash", "-c", 'echo "$LD_PRELOAD"'), {"LD_PRELOAD": "/evil.so", "LD_X": "y"})

    assert {"LD_PRELOAD", "LD_X"}.isdisjoint(started.environment)
    result = subprocess.run(
        started.command, env=dict(started.environment), capture_output=True, text=True, check=True
    )
    assert result.stdout == "/evil.so\n"


def test_secrets_of_the_operating_system_are_hidden(box: Box) -> None:
    assert box.out("cat /etc/shadow /etc/gshadow 2>/dev/null || true") == ""


def test_settings_of_the_kernel_are_read_only(box: Box) -> None:
    # Opened for writing, but nothing is written.
    script = """
        opened() {
          find /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/acpi /proc/mtrr -type f 2>/dev/null |
          while read -r file; do (: >>"$file") 2>/dev/null && echo "$file"; done
        }
        opened
        mkdir /tmp/proc
        unshare -U -m -p -f sh -c 'mount -t proc proc /tmp/proc && ls -d /tmp/proc/sys/kernel'
        true
    """

    # The sandbox has new namespaces for IPC and processes, with their own settings.
    own = re.compile(r"/proc/sys/(fs/mqueue/.*|kernel/((auto_)?(msg|sem|shm).*|ns_last_pid|pid_max))")
    assert [line for line in box.out(script).splitlines() if not own.fullmatch(line)] == []


def test_there_is_no_way_to_more_rights(box: Box) -> None:
    status = box.out("grep -E '^(Cap|NoNewPrivs)' /proc/self/status")

    assert {line.split()[1] for line in status.splitlines() if line.startswith("Cap")} == {"0" * 16}
    assert "NoNewPrivs:\t1" in status


WAYS_TO_STAY = {
    "setsid": "setsid sleep 300",
    "two forks": "sh -c '(setsid sh -c \"sleep 300\" &) &'",
    "nohup": "trap '' HUP TERM INT; nohup setsid sleep 300",
}


@pytest.mark.parametrize("way", WAYS_TO_STAY)
def test_no_process_outlives_the_call(box: Box, way: str) -> None:
    mark = f"gsd-test-{os.getpid()}-{time.monotonic_ns()}"
    result = box.run(
        f"{WAYS_TO_STAY[way]} >/dev/null 2>&1 & sleep 0.2; echo done", environment={"MARK": mark}
    )

    assert result.stdout == "done\n"
    assert wait_until(lambda: not marked(mark))


def test_all_processes_end_when_the_caller_is_killed(box: Box) -> None:
    mark = f"gsd-test-{os.getpid()}-{time.monotonic_ns()}"
    started = box.confined(("sh", "-c", "setsid sleep 300 & sleep 300"), {"MARK": mark})
    starter = "import subprocess, sys; subprocess.run(sys.argv[1:], start_new_session=True)"
    caller = subprocess.Popen(
        [sys.executable, "-c", starter, *started.command], env={**started.environment, "MARK": mark}
    )
    assert wait_until(lambda: len([one for one in marked(mark) if one.name() == "sleep"]) == 2)

    caller.kill()
    caller.wait()

    assert wait_until(lambda: not marked(mark))


def marked(mark: str) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_signal_to_the_group_gives_the_process_time_to_end(box: Box) -> None:
    script = "trap 'sleep 0.1; echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    started = box.confined(("bash", "-c", script))
    process = subprocess.Popen(
        started.command,
        env=dict(started.environment),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"

    os.killpg(process.pid, signal.SIGTERM)

    assert process.communicate(timeout=10)[0] == "saved\n"
    assert process.returncode == 7


def test_a_signal_ends_a_process_that_does_not_handle_it(box: Box) -> None:
    started = box.confined(("bash", "-c", "echo ready; exec sleep 300"))
    process = subprocess.Popen(
        started.command,
        env=dict(started.environment),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"

    os.killpg(process.pid, signal.SIGTERM)

    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    process.stdout.close()


def test_descriptors_reach_the_process(box: Box) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"key")
    os.close(writing)
    started = box.confined(("bash", "-c", f"cat <&{reading}"))

    result = subprocess.run(
        started.command, env=dict(started.environment), pass_fds=[reading], capture_output=True, check=True
    )
    os.close(reading)

    assert result.stdout == b"key"


@pytest.mark.parametrize("name", [".planning", ".gsd", ".claude", "gsd.toml", ".mcp.json", ".git"])
def test_a_symlink_in_place_of_a_protected_path_is_refused(box: Box, user_home: Path, name: str) -> None:
    path = box.project / name
    if path.exists():
        path.rename(box.project.parent / f"moved{name}")
    path.symlink_to(user_home / ".ssh")

    with pytest.raises(ProjectError, match="symlink"):
        box.places()


def test_the_target_of_a_protected_symlink_in_the_project_is_read_only(box: Box) -> None:
    target = box.project / "tools" / "agents"
    target.mkdir(parents=True)
    (target / "settings.json").write_text("original")
    (box.project / ".claude").symlink_to("tools/agents")

    box.run("echo evil > .claude/settings.json; echo evil > tools/agents/settings.json; rm -rf tools/agents")

    assert (target / "settings.json").read_text() == "original"


def test_a_symlink_on_the_way_to_a_place_is_refused(box: Box, user_home: Path) -> None:
    (box.project / "link").symlink_to(user_home / ".ssh")
    inner = Place(path=box.project / "link" / "new", source=box.project / "app.py")
    process = ConfinedProcess(
        command=("true",), cwd=box.project, environment={}, places=(*box.places(), inner), home=box.home
    )

    with pytest.raises(Permanent, match="link"):
        bubblewrap.confined(process)

    assert sorted(path.name for path in (user_home / ".ssh").iterdir()) == ["id_ed25519"]


@pytest.mark.parametrize("folder", ["", "/"])
def test_the_home_folder_is_not_a_project(box: Box, user_home: Path, folder: str) -> None:
    box.project = box.tree = Path(folder) if folder else user_home

    with pytest.raises(ProjectError, match="home folder"):
        box.places()


RACE = """
import sys, threading, time
from pathlib import Path
from gsd_core import SandboxUnavailable
from gsd_plugins import bubblewrap

def come_and_go():
    while True:
        for number in range(5):
            path = Path("/etc/private", str(number), "key")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
            path.chmod(0o600)
            time.sleep(0.002)
            path.unlink()
            path.parent.rmdir()

threading.Thread(target=come_and_go, daemon=True).start()
found = []
for _ in range(int(sys.argv[1])):
    bubblewrap.launcher_of.cache_clear()
    try:
        launcher = bubblewrap.launcher_of(bubblewrap.program("bwrap"))
        why = isinstance(launcher, SandboxUnavailable) and launcher.reason
        found.append(f"unavailable: {why}" if why else "works")
    except Exception as error:
        found.append(f"stopped: {error}")
print("\\n".join(found))
"""


@pytest.mark.slow
def test_files_that_vanish_below_etc_do_not_make_the_sandbox_unavailable(box: Box) -> None:
    """In a namespace with its own /etc, where private files come and go all the time."""
    copied = "{ cp -a /etc/. /mnt 2>/dev/null || true; }"
    script = f'mount -t tmpfs tmpfs /mnt && {copied} && mount --move /mnt /etc && exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "-m" if os.geteuid() == 0 else "-rm",
            "sh",
            "-c",
            script,
            "sh",
            sys.executable,
            "-c",
            RACE,
            "12",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no namespace with its own /etc: {done.stderr}")
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert "works" in found, found
    assert [one for one in found if one.startswith("unavailable")] == []
