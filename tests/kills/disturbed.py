"""Runs that are disturbed by more than a kill: the machine dies, or a person works in the checkout meanwhile.

For ``bench/kills.py``. Each returns what happened, and yields its defects: what was lost, claimed wrongly, or
ended without a word about the reason.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from tests.e2e.project import EXAMPLE, FAKE, Done, Project
from tests.run.harness import git

from .campaign import PARALLEL, STARTS, all_defects

RUN = ("run", EXAMPLE, *FAKE, "--yes", "--output-format", "stream-json")
UNCLEAR = re.compile(r"Traceback|internal error", re.IGNORECASE)


def prepared(project: Project) -> Project:
    """Return *project* with a repository and the settings of a run of six plans side by side."""
    project.create()
    # From a branch without a commit, a person who switches cannot come back.
    git(project.root, "commit", "--allow-empty", "-qm", "Begin")
    project.environment = {"GSD_FAKE_PHASES": "1", "GSD_RETRY_ATTEMPTS": "2", **PARALLEL}
    return project


def reason_of(done: Done) -> str:
    """Return the last line in which a process says why it ended, for people to read."""
    closed: list[str] = re.findall(r'"name": "run.closed".*?"reason": "(.*?)", "notes"', done.out)
    errors: list[str] = re.findall(r"^error: .*", done.err, re.MULTILINE)
    return (errors or closed or ["nothing was said"])[-1][:300]


def run_on_a_dying_machine(
    project: Project, chance: random.Random, deaths: int
) -> tuple[list[str], list[str]]:
    """Copy all that a run writes while it is written, and continue with the copy; return the defects.

    The copy is of no one moment, as when a disk is lost and a backup of a running machine is restored. What
    is damaged by that, such as a ref without its commit, may be refused, but has to be named.
    """
    prepared(project)
    hit: list[str] = []
    for _ in range(STARTS):
        started = project.start(*RUN)
        if len(hit) < deaths:
            started.until(started.has_lines(chance.randint(2, 40)))
            time.sleep(chance.uniform(0, 0.3))
            copy = project.base.with_name(f"{project.base.name}-copy")
            # Files that vanish meanwhile are no error here.
            subprocess.run(["cp", "-a", project.base, copy], check=False, capture_output=True)
            ended = started.kill(group=True)
            project.clear()
            shutil.rmtree(project.base)
            copy.rename(project.base)
            hit.append("copied")
            continue
        ended = started.wait()
        if ended.exit == 0:
            # In the copy, the log of a branch may name commits whose objects had been copied too soon.
            git(project.root, "reflog", "expire", "--stale-fix", "--expire=now", "--all")
            return hit, [*all_defects(project)]
        said = ended.out + ended.err
        if UNCLEAR.search(ended.err + reason_of(ended)):
            return hit, [f"unclear end: {reason_of(ended)}\n{ended.err[-1500:]}"]
        if "three attempts in a row were lost" not in said:
            return [*hit, f"refused: {reason_of(ended)}"], []
    return hit, [f"not finished after {STARTS} starts"]


@attrs.define
class Person:
    """Somebody who works in the checkout of *root* while a run is active; *marks* are what they wrote."""

    root: Path
    chance: random.Random
    marks: dict[str, str] = attrs.field(factory=dict[str, str], init=False)
    done: list[str] = attrs.field(factory=list[str], init=False)

    def meddle(self) -> None:
        """Do something; what git refuses is not done."""
        actions: list[Callable[[], bool]] = [
            *(self.edit, self.create, self.commit, self.commit_all, self.amend, self.switch, self.stash),
        ]
        action = self.chance.choice(actions)
        if action():
            self.done.append(action.__name__)

    def edit(self) -> bool:
        """Add a line to a file, tracked or not."""
        listed = self.git("ls-files", "-co", "--exclude-standard", "--", ":!.planning").splitlines()
        names = [name for name in listed if (self.root / name).is_file()]
        return bool(names) and self._write(self.chance.choice(names))

    def create(self) -> bool:
        """Create a file."""
        return self._write(f"own-{len(self.marks)}.txt")

    def commit(self) -> bool:
        """Commit a file of their own, and nothing else."""
        name = f"own-{len(self.marks)}.txt"
        self._write(name)
        return self._ok("add", name) and self._ok("commit", "-qm", f"Mine: {name}", "--", name)

    def commit_all(self) -> bool:
        """Edit something and commit all that differs."""
        return self.edit() and self._ok("commit", "-qam", "Mine: all")

    def amend(self) -> bool:
        """Amend the last commit with another file, if it is their own."""
        if not self.git("log", "-1", "--format=%s").startswith("Mine: "):
            return False
        name = f"own-{len(self.marks)}.txt"
        self._write(name)
        return self._ok("add", name) and self._ok("commit", "-q", "--amend", "--no-edit")

    def switch(self) -> bool:
        """Switch to a branch of their own, and back soon."""
        if not self._ok("switch", "-qc", f"person-{len(self.done)}"):
            return False
        time.sleep(self.chance.uniform(0, 1))
        return self.settle_branch()

    def stash(self) -> bool:
        """Edit something and stash it, with what is not tracked."""
        return self.edit() and self._ok("stash", "push", "-qu")

    def settle_branch(self) -> bool:
        """Go back to the branch of the run."""
        return self._ok("switch", "-q", "main")

    def settle(self) -> None:
        """Do what a run asks for that ended: go back to its branch, and commit what is in its way."""
        for _ in range(2):
            back = self.settle_branch()
            if self._ok("add", "-A", "--", ":!.planning"):
                self._ok("commit", "-qm", "Mine: settle")
            if back:
                return
        self._ok("stash", "push", "-qu")
        self.settle_branch()

    def lost(self, said: str) -> Iterator[str]:
        """Yield what they wrote that is in no file, no commit, no stash, and no ref that was *said*."""
        refs = self.git("for-each-ref", "--format=%(refname)").splitlines()
        refs += self.git("stash", "list", "--format=%H").splitlines()
        for mark, where in self.marks.items():
            files = subprocess.run(
                ["grep", "-rqF", mark, ".", "--exclude-dir=.git"], cwd=self.root, check=False
            )
            if files.returncode == 0:
                continue
            having = [ref for ref in refs if self._has(ref, mark)]
            if not having:
                yield f"lost: {mark} in {where}"
            elif all(ref.startswith("refs/gsd/") and ref not in said for ref in having):
                yield f"kept where nobody was told: {mark} in {where}: {having}"

    def git(self, *arguments: str) -> str:
        """Run git; empty if it fails."""
        ran = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=False)
        return ran.stdout if ran.returncode == 0 else ""

    def _has(self, ref: str, mark: str) -> bool:
        # In any commit: the mark may have been removed later, which is no loss.
        return bool(self.git("log", "-1", "--format=%H", "-m", f"-S{mark}", ref))

    def _ok(self, *arguments: str) -> bool:
        ran = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, check=False)
        return ran.returncode == 0

    def _write(self, name: str) -> bool:
        mark = f"mark-{self.chance.getrandbits(64):016x}"
        with (self.root / name).open("a", encoding="utf-8") as file:
            file.write(f"# {mark}\n")
        self.marks[mark] = name
        return True


def run_beside_a_person(project: Project, chance: random.Random, times: int) -> tuple[list[str], list[str]]:
    """Run a project to its end while a person meddles so many times; return what happened, and the defects.

    When the run ends early, the person does what it says: they go back to its branch and commit their files.
    """
    prepared(project)
    person, said, ends = Person(project.root, chance), "", list[str]()
    for _ in range(STARTS):
        started = project.start(*RUN)
        while len(person.done) < times and started.process.poll() is None:
            time.sleep(chance.uniform(0, 6))
            if project.journal_file.exists():
                person.meddle()
        ended = started.wait()
        said += ended.out + ended.err
        if UNCLEAR.search(ended.err + reason_of(ended)):
            return person.done, [f"unclear end: {reason_of(ended)}\n{ended.err[-1500:]}"]
        if reason_of(ended) == "nothing was said" and ended.exit:
            return person.done, [f"ended with {ended.exit} and without a reason: {ended.out[-1000:]}"]
        if "process was killed" in ended.err:
            return person.done, [f"nobody killed a process: {ended.err[-1500:]}"]
        if ended.exit == 0:
            break
        ends.append(f"{ended.exit} {reason_of(ended)}")
        if ends.count(ends[-1]) >= 4:
            return [*person.done, *ends], [f"stuck: {ends[-1]}", *person.lost(said)]
        person.settle()
    found = [*person.lost(said)]
    person.settle()
    return [*person.done, *ends], [*found, *all_defects(project)]
