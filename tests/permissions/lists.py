"""The lists of commands under ``data``, and a project where they mean something."""

from __future__ import annotations

import re
from pathlib import Path

DATA = Path(__file__).with_name("data")


def read_list(path: Path, *, until: str = "") -> list[str]:
    """Return the commands of a list, up to the heading that begins with *until*."""
    text = path.read_text("utf-8")
    if until:
        text = text[: text.index(f"# {until}")]
    commands: list[str] = []
    heading = True
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
            heading = False
        elif re.match(r"# [A-Z]", line) and not (commands and "<<" in commands[-1]):
            heading = True
        elif not heading:
            commands[-1] += f"\n{line}"
    return [command.rstrip("\n") for command in commands]


def make_tree(base: Path) -> Path:
    """Return a project with the run's files, and links out of it, next to a home and another folder."""
    project = base / "project"
    for folder in (
        ".git/hooks",
        ".planning/phases/01",
        ".gsd",
        ".claude",
        "src",
        "tests",
        "scripts",
        "packages/core",
    ):
        (project / folder).mkdir(parents=True)
    for name in (
        "gsd.toml",
        ".env",
        "src/app.py",
        ".git/config",
        ".git/HEAD",
        "README.md",
        "package.json",
        "evil.sh",
        "list.txt",
    ):
        (project / name).write_text("x = 1\n")
    for name in (".planning/STATE.md", ".planning/ROADMAP.md", "tests/test_app.py", "packages/core/index.js"):
        (project / name).write_text("- [ ] pending\n")
    for folder in ("home/.ssh", "home/.aws", "outside"):
        (base / folder).mkdir(parents=True)
    for name in (
        "home/canary",
        "home/notes.txt",
        "home/.bashrc",
        "home/.ssh/id_rsa",
        "home/.aws/credentials",
        "outside/canary",
    ):
        (base / name).write_text("canary\n")
    (project / "link-to-git").symlink_to(".git")
    (project / "link-outside").symlink_to("../outside")
    return project
