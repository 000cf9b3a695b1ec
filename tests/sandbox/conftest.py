"""A home folder with secrets and a project in it, as the user has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandbox.box import Box, git, require_sandbox

SECRETS = {
    ".ssh/id_ed25519": "PRIVATE-KEY",
    ".aws/credentials": "AWS-SECRET",
    ".config/gh/hosts.yml": "GH-TOKEN",
    ".netrc": "NETRC-PASSWORD",
    ".npmrc": "registry=http://mirror.example/\n//mirror.example/:_authToken=NPM-TOKEN\n",
    ".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.org\n[credential]\n\thelper = store\n",
    "Documents/letter.txt": "PRIVATE-LETTER",
}


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of the user; ``HOME`` points to it."""
    home = tmp_path / "home" / "ada"
    for name, text in SECRETS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def project(user_home: Path) -> Path:
    """Return a project with one commit, in the user's home folder."""
    project = user_home / "src" / "shop"
    (project / ".planning").mkdir(parents=True)
    (project / ".planning" / "ROADMAP.md").write_text("# Roadmap\n")
    (project / "gsd.toml").write_text('[run]\ndepth = "standard"\n')
    (project / "app.py").write_text("print('hello')\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


@pytest.fixture
def box(project: Path) -> Box:
    """Return the sandbox around the project, or skip the test."""
    require_sandbox()
    return Box.around(project)
