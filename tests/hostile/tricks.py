"""Repositories that somebody else made: each trick, and how to see that it worked.

A trick plants something in a project and returns the name of its canary. A program that the repository names
appends that name and its own environment to the file *canary*; what must not be read contains a secret, and
what must not be written has a known content.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import attrs

SECRET = "canary-secret-5f1c"
UNTOUCHED = "export PATH=/usr/bin  # a file outside of the project\n"


@attrs.frozen(kw_only=True)
class Hostile:
    """A project *root*, and things *outside* of it that nothing there may run, read or write."""

    root: Path
    outside: Path

    @property
    def ran(self) -> str:
        """What the repository's programs have noted, empty if none ran."""
        notes = self.outside / "ran"
        return notes.read_text() if notes.exists() else ""

    def program(self, name: str, then: str = "cat") -> str:
        """Return a command line that leaves a note and its environment, and then does *then*."""
        script = self.outside / "bin" / name.replace("/", "-")
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\n(echo {name}; env) >> {self.outside / 'ran'}\n{then}\n")
        script.chmod(0o755)
        return str(script)

    def config(self, key: str, value: str) -> None:
        """Set *key* in the repository's own settings."""
        subprocess.run(["git", "config", "--add", key, value], cwd=self.root, check=True)

    def attributes(self, line: str) -> None:
        """Add a line to ``.gitattributes``."""
        with (self.root / ".gitattributes").open("a") as file:
            file.write(f"{line}\n")

    def victim(self, name: str, text: str = UNTOUCHED) -> Path:
        """Return a file outside of the project."""
        path = self.outside / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def changes_outside(self) -> dict[str, str]:
        """Return the files outside that are new or different, except the notes."""
        home = self.outside / "home"
        files = [path for path in home.rglob("*") if path.is_file() or path.is_symlink()]
        return {
            path.relative_to(home).as_posix(): path.read_text("utf-8", "replace")[:200]
            for path in files
            if SECRET not in (text := path.read_text("utf-8", "replace")) and text != UNTOUCHED
        }


Trick = Callable[[Hostile], None]

# Programs


def fsmonitor(at: Hostile) -> None:
    at.config("core.fsmonitor", at.program("fsmonitor"))


def fsmonitor_included(at: Hostile) -> None:
    (at.root / ".gitinclude").write_text(f"[core]\n\tfsmonitor = {at.program('fsmonitor-included')}\n")
    at.config("include.path", "../.gitinclude")


def hooks_of_other_commands(at: Hostile) -> None:
    hooks = at.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "post-index-change",
        "reference-transaction",
        "post-checkout",
        "pre-auto-gc",
        "post-rewrite",
    ):
        shutil.copy(at.program(f"hook-{name}", "true"), hooks / name)


def filters(at: Hostile) -> None:
    at.attributes("*.evil filter=evil")
    for part in ("clean", "smudge"):
        at.config(f"filter.evil.{part}", at.program(f"filter-{part}"))
    at.config("filter.evil.required", "true")


def filter_process(at: Hostile) -> None:
    at.attributes("*.evil2 filter=evil2")
    at.config("filter.evil2.process", at.program("filter-process"))


def diff_programs(at: Hostile) -> None:
    at.attributes("* diff=evil")
    at.config("diff.evil.textconv", at.program("textconv"))
    at.config("diff.evil.command", at.program("diff-command"))
    at.config("diff.external", at.program("diff-external"))


def merge_driver(at: Hostile) -> None:
    at.attributes("* merge=evil")
    at.config("merge.evil.driver", at.program("merge-driver", "true"))
    at.config("merge.default", "evil")


def signing(at: Hostile) -> None:
    at.config("gpg.program", at.program("gpg"))
    at.config("gpg.ssh.program", at.program("gpg-ssh"))
    at.config("gpg.ssh.defaultKeyCommand", at.program("gpg-key"))
    at.config("log.showSignature", "true")


def small_programs(at: Hostile) -> None:
    keys = ("core.editor", "core.pager", "core.askPass", "core.sshCommand", "sequence.editor", "pager.status")
    for key in (*keys, "pager.log", "core.alternateRefsCommand", "trailer.GSD-Run.cmd"):
        at.config(key, at.program(key))
    at.config("credential.helper", at.program("credential"))
    for name in ("status", "commit", "rev-parse", "add", "config"):
        at.config(f"alias.{name}", f"!{at.program(f'alias-{name}')}")


def lazy_fetch(at: Hostile) -> None:
    """A partial clone: git fetches what is missing, with programs that the repository names."""
    at.config("extensions.partialClone", "origin")
    at.config("remote.origin.url", f"ext::{at.program('remote-ext')}")
    at.config("remote.origin.promisor", "true")
    at.config("remote.origin.uploadpack", at.program("uploadpack"))
    at.config("protocol.ext.allow", "always")
    at.config("protocol.allow", "always")


def submodule(at: Hostile) -> None:
    """A submodule with its own settings, which git reads when it looks for changes in it."""
    inner = at.root / "inner"
    inner.mkdir()
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "x"],
        ["config", "user.email", "x@example.invalid"],
        ["commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=inner, check=True)
    (inner / "a.txt").write_text("a\n")
    subprocess.run(["git", "add", "a.txt"], cwd=inner, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "a"], cwd=inner, check=True)
    (at.root / ".gitmodules").write_text(
        '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n'
    )
    at.config("submodule.inner.url", str(inner))
    at.config("submodule.inner.ignore", "none")
    at.config("submodule.inner.update", f"!{at.program('submodule-update')}")
    subprocess.run(["git", "add", ".gitmodules", "inner"], cwd=at.root, check=True, capture_output=True)
    subprocess.run(["git", "commit", "-q", "-m", "sub"], cwd=at.root, check=True)
    inside = attrs.evolve(at, root=inner)
    inside.config("core.fsmonitor", at.program("inner-fsmonitor"))
    inside.config("filter.evil.clean", at.program("inner-filter"))
    inside.attributes("* filter=evil")
    os.utime(inner / "a.txt", (1, 1))


PROGRAMS: tuple[Trick, ...] = (
    fsmonitor,
    fsmonitor_included,
    hooks_of_other_commands,
    diff_programs,
    merge_driver,
    signing,
    small_programs,
    lazy_fetch,
    submodule,
)
"""Programs in the repository's own settings; gsd works as if they were not there."""

FILTERS: tuple[Trick, ...] = (filters, filter_process)
"""Programs without which files would be committed otherwise; a run refuses to start."""

# Places that git must not be run in


def pointer_to_another_repository(at: Hostile) -> None:
    victim = at.outside / "home" / "victim"
    shutil.rmtree(victim, ignore_errors=True)
    shutil.copytree(at.root / ".git", victim / ".git")
    shutil.rmtree(at.root / ".git")
    (at.root / ".git").write_text(f"gitdir: {victim / '.git'}\n")


def work_tree_elsewhere(at: Hostile) -> None:
    at.config("core.worktree", str(at.outside / "home"))


def bare_repository(at: Hostile) -> None:
    for path in (at.root / ".git").iterdir():
        with suppress(FileExistsError):
            path.rename(at.root / path.name)
    shutil.rmtree(at.root / ".git")
    at_config = at.root / "config"
    at_config.write_text(at_config.read_text() + f"[core]\n\tfsmonitor = {at.program('bare-fsmonitor')}\n")


def _git_link(name: str) -> Trick:
    def plant(at: Hostile) -> None:
        path = at.root / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        victim = at.victim(f"linked-{name.replace('/', '-')}")
        if path.is_file():
            shutil.move(path, victim)
            victim.write_bytes(victim.read_bytes())
        path.symlink_to(victim)

    plant.__name__ = f"link_in_git_{name.replace('/', '_')}"
    return plant


def _git_pipe(name: str) -> Trick:
    def plant(at: Hostile) -> None:
        path = at.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    plant.__name__ = f"pipe_{name.replace('/', '_')}"
    return plant


def journal_folder_elsewhere(at: Hostile) -> None:
    folder = at.outside / "home" / "journal"
    folder.mkdir(parents=True)
    (at.root / ".git" / "gsd").symlink_to(folder)


LAYOUTS: tuple[Trick, ...] = (
    pointer_to_another_repository,
    work_tree_elsewhere,
    bare_repository,
    journal_folder_elsewhere,
    *map(_git_link, ("COMMIT_EDITMSG", "logs/HEAD", "gsd/journal.db", "ORIG_HEAD")),
    *map(
        _git_pipe,
        (".git/config.worktree", ".git/info/exclude", ".gitignore", ".gitattributes", "src/.gitignore"),
    ),
)
"""Repositories where every command refuses to work."""

# Files and links in the project


def _planning_link(name: str) -> Trick:
    def plant(at: Hostile) -> None:
        path = at.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        target = at.victim(
            f"planning-{name.replace('/', '-')}", f"# {SECRET}\n\n- [ ] **{SECRET}-01**: {SECRET}\n"
        )
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    plant.__name__ = f"link_{name.replace('/', '_')}"
    return plant


def planning_folder_elsewhere(at: Hostile) -> None:
    shutil.rmtree(at.root / ".planning", ignore_errors=True)
    folder = at.victim("planning/ROADMAP.md", f"# Roadmap: {SECRET}\n").parent
    at.victim("planning/PROJECT.md", f"# {SECRET}\n")
    (at.root / ".planning").symlink_to(folder)


def phases_elsewhere(at: Hostile) -> None:
    shutil.rmtree(at.root / ".planning" / "phases", ignore_errors=True)
    (at.root / ".planning").mkdir(exist_ok=True)
    folder = at.victim("phases/01-first/01-01-PLAN.md", f"---\nphase: 01\n---\n{SECRET}\n").parent.parent
    (at.root / ".planning" / "phases").symlink_to(folder)


def phase_elsewhere(at: Hostile) -> None:
    folder = at.victim(f"one/01-01-{SECRET}-PLAN.md", f"---\nphase: 01\n---\n{SECRET}\n").parent
    (at.root / ".planning" / "phases").mkdir(parents=True, exist_ok=True)
    (at.root / ".planning" / "phases" / "01-linked").symlink_to(folder)


def logs_elsewhere(at: Hostile) -> None:
    folder = at.outside / "home" / "autopilot"
    folder.mkdir(parents=True)
    (at.root / ".planning").mkdir(exist_ok=True)
    (at.root / ".planning" / "autopilot").symlink_to(folder)


def state_file_elsewhere(at: Hostile) -> None:
    (at.root / ".planning" / "autopilot").mkdir(parents=True, exist_ok=True)
    for name in ("autopilot-state.json", "autopilot-state.tmp"):
        (at.root / ".planning" / "autopilot" / name).symlink_to(at.victim(f"state-{name}"))


def link_loop(at: Hostile) -> None:
    (at.root / ".planning" / "phases").mkdir(parents=True, exist_ok=True)
    (at.root / ".planning" / "phases" / "02-loop").symlink_to("../phases")
    (at.root / "loop").symlink_to("loop")
    (at.root / ".planning" / "STATE.md").unlink(missing_ok=True)
    (at.root / ".planning" / "STATE.md").symlink_to("STATE.md")


def _planning_pipe(name: str) -> Trick:
    def plant(at: Hostile) -> None:
        path = at.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)

    plant.__name__ = f"pipe_{name.replace('/', '_')}"
    return plant


def planning_device(at: Hostile) -> None:
    path = at.root / ".planning" / "REQUIREMENTS.md"
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def planning_socket(at: Hostile) -> None:
    path = at.root / ".planning" / "PROJECT.md"
    path.unlink(missing_ok=True)
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket may have a hundred characters
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


LINKS: tuple[Trick, ...] = (
    *map(
        _planning_link,
        (
            *(
                ".planning/ROADMAP.md",
                ".planning/REQUIREMENTS.md",
                ".planning/STATE.md",
                ".planning/PROJECT.md",
            ),
            *(".planning/IDEA.md", ".planning/config.json", "gsd.toml", "CLAUDE.md"),
        ),
    ),
    planning_folder_elsewhere,
    phases_elsewhere,
    phase_elsewhere,
    logs_elsewhere,
    state_file_elsewhere,
    link_loop,
    *map(
        _planning_pipe,
        (
            *(".planning/ROADMAP.md", ".planning/REQUIREMENTS.md", ".planning/IDEA.md", "gsd.toml"),
            *(".planning/config.json", "CLAUDE.md", ".planning/phases/01-p/01-01-PLAN.md"),
        ),
    ),
    planning_device,
    planning_socket,
)
"""Links out of the project, pipes and devices in place of files that gsd reads or writes."""

# Contents


def _content(name: str, path: str, data: Callable[[], bytes]) -> Trick:
    def plant(at: Hostile) -> None:
        file = at.root / ".planning" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data())

    plant.__name__ = f"content_{name}"
    return plant


def endless_file(at: Hostile) -> None:
    """Ten gigabytes that take no space on disk."""
    file = at.root / ".planning" / "REQUIREMENTS.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with file.open("wb") as sparse:
        sparse.truncate(10 << 30)


_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)

CONTENTS: tuple[Trick, ...] = (
    endless_file,
    _content("anchors", "phases/01-p/01-01-PLAN.md", lambda: f"---\nphase: 01\n{_LAUGHS}---\n".encode()),
    _content(
        "deep_yaml",
        "phases/01-p/01-01-PLAN.md",
        lambda: b"---\nphase: 01\nmust_haves: " + b"[" * 20_000 + b"]" * 20_000 + b"\n---\n",
    ),
    _content("deep_json", "config.json", lambda: b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    _content("headings", "ROADMAP.md", lambda: b"# Roadmap\n" + b"### Phase 1: x\n**Goal**: y\n" * 100_000),
    _content(
        "nul", "ROADMAP.md", lambda: b"# Roadmap\0\n\n- [ ] **Phase 1: \0x**\n### Phase 1: \0x\n**Goal**: y\n"
    ),
    _content("not_utf8", "PROJECT.md", lambda: b"# \xff\xfe\x80\n"),
    _content(
        "crlf",
        "ROADMAP.md",
        lambda: b"# Roadmap\r\n\r\n- [ ] **Phase 1: x**\r\n### Phase 1: x\r\n**Goal**: y\r\n",
    ),
    _content("long_line", "STATE.md", lambda: b"# State " + b"x" * 1_900_000 + b"\n"),
)
"""Planning files that cost a careless reader its memory or its time."""


def plant(at: Hostile, tricks: tuple[Trick, ...]) -> None:
    """Plant every trick, each over the others' traces."""
    for trick in tricks:
        with suppress(FileExistsError):
            trick(at)


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return variables that hold secrets, and *more*."""
    return {"ANTHROPIC_API_KEY": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, **more}
