"""The sandbox with a stand-in for docker, which checks the arguments and runs the command here."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import gsd_plugin_docker as docker
import pytest

from gsd_core import Place, SandboxedCommand, SandboxUnavailable
from gsd_core.testing import a_process, a_run
from gsd_core.testing.conformance import check_lifespan, check_sandbox, check_settings
from gsd_core.testing.pytest_plugin import UseSettings

pytest_plugins = ["gsd_core.testing.pytest_plugin"]
STAND_IN = Path(__file__).with_name("docker_stand_in.py")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gsd_use_settings: UseSettings) -> Path:
    """Return the stand-in as a program that the settings name; its calls are in ``calls.jsonl``."""
    monkeypatch.setenv("HOME", str(tmp_path))
    program = tmp_path / "docker"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program.chmod(0o755)
    gsd_use_settings(docker.DockerSettings(image="tools:1", program=str(program)))
    return program


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "a project, with a comma"
    tree.mkdir()
    return tree


def started(process: Any) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Start *process* in the sandbox; return how it ended, and the arguments of docker."""
    found = asyncio.run(docker.confine(process))
    assert isinstance(found, SandboxedCommand)
    done = subprocess.run(
        found.command, cwd="/", env=dict(found.environment), capture_output=True, text=True, check=False
    )
    return done, list(found.command[1:])


def test_the_command_runs_with_its_environment_and_exit_code(program: Path, tree: Path) -> None:
    script = 'pwd; echo "$WORD $HOME"; exit 7'
    process = a_process(tree, "sh", "-c", script)
    done, _ = started(process)

    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [str(tree), f"hello {process.home}"]


def test_values_of_variables_are_not_on_the_command_line(program: Path, tree: Path) -> None:
    process = a_process(tree)
    _, arguments = started(attrs.evolve(process, environment={**process.environment, "KEY": "hush"}))

    assert "KEY" in arguments
    assert not any("hush" in argument for argument in arguments)


def test_places_are_mounted_and_a_covered_one_is_not(program: Path, tree: Path) -> None:
    process = a_process(tree)
    plan = Place(path=tree / ".planning", source=tree / ".planning")
    git = Place(path=tree / ".git", source=tree.parent / "copy", writable=True)
    hidden = Place(path=tree / "sub", source=tree / "other")
    _, arguments = started(attrs.evolve(process, places=(hidden, *process.places, plan, git)))

    mounts = [value for flag, value in pairwise(arguments) if flag == "--mount"]
    assert f'type=bind,"source={tree}","target={tree}"' in mounts
    assert f'type=bind,"source={tree}/.planning","target={tree}/.planning",readonly' in mounts
    assert f'type=bind,source={tree.parent}/copy,"target={tree}/.git"' in mounts
    assert len(mounts) == 4


def test_the_container_has_no_rights_and_the_users_id(program: Path, tree: Path) -> None:
    _, arguments = started(a_process(tree))
    options = " ".join(arguments)

    for option in ("--rm", "--init", "--cap-drop ALL", "--security-opt no-new-privileges", "--user "):
        assert option in options


def test_an_open_file_cannot_be_passed_and_the_fix_is_named(program: Path, tree: Path) -> None:
    found = asyncio.run(docker.confine(a_process(tree, descriptors=(5,))))

    assert isinstance(found, SandboxUnavailable)
    assert "ANTHROPIC_API_KEY" in found.fix


def test_without_an_image_or_a_program_it_is_not_available(tree: Path, gsd_use_settings: UseSettings) -> None:
    gsd_use_settings(docker.DockerSettings())
    found = check_sandbox(docker, a_process(tree))
    assert isinstance(found, SandboxUnavailable)
    assert "docker.image" in found.fix

    gsd_use_settings(docker.DockerSettings(image="tools:1", program="no-such-docker"))
    assert isinstance(check_sandbox(docker, a_process(tree)), SandboxUnavailable)


def test_containers_that_were_left_are_removed(program: Path, tree: Path, tmp_path: Path) -> None:
    check_lifespan(docker, a_run(tree))

    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [call[0] for call in calls] == ["ps", "rm", "ps", "rm"]
    assert calls[1] == ["rm", "--force", "0123456789ab"]
    assert f"volume={tree}" in calls[0]


def test_settings_have_defaults() -> None:
    assert check_settings(docker) == (docker.DockerSettings,)
