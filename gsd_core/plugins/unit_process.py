"""Work on a unit: a clone of the repository, and a gsd in it that executes one plan.

That gsd has a journal of its own. So it can be killed and continued like any run, and what it does, asks and
spends is read from there. Its commits are pushed before anybody is told about them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from gsd_core.codec import unstructure
from gsd_core.errors import GsdError
from gsd_core.exit_codes import ExitCode
from gsd_core.git import data_directory, remote
from gsd_core.git.command import Command
from gsd_core.git.errors import GitError
from gsd_core.journal.lock import owner
from gsd_core.machine.facts import KIND_OF, StepCompleted, TaskCommitted
from gsd_core.model.question import Answer
from gsd_core.model.work_unit import UnitEnd, UnitFact, WorkUnit
from gsd_core.processes import end_marked
from gsd_core.programs import own_command
from gsd_core.sanitize import safe_text

if TYPE_CHECKING:
    from gsd_core.journal.store import Journal

POLL = 0.1
GRACE = timedelta(seconds=1.5)
WAIT_FOR_ANSWERS = "10m"
"""How long an agent is kept for an answer. Later, the conversation is continued."""
MAX_OUTPUT = 4_000
MAX_KILLED = 3
"""How many gsd of a unit may be killed before the work is given up."""


@attrs.define(kw_only=True)
class UnitProcess:
    """The work on a *unit* in *folder*, by one process at a time; use it in one event loop.

    *environment* is that of its gsd, without the unit's settings.
    """

    unit: WorkUnit
    folder: Path
    environment: dict[str, str] = attrs.field(factory=lambda: dict(os.environ), repr=False)
    _work: asyncio.Task[UnitEnd] | None = attrs.field(default=None, init=False)
    _answered: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    @property
    def project(self) -> Path:
        """The project's folder in the clone."""
        return self.folder / "tree" / self.unit.folder

    @property
    def git(self) -> Command:
        """git in the clone."""
        return Command(root=self.folder / "tree")

    def start(self) -> None:
        """Work on the unit, if nobody does."""
        if self._work is None or self._work.cancelled():
            self._work = asyncio.create_task(self._do(), name=f"gsd:unit {self.unit.id}")

    async def wait(self) -> UnitEnd:
        """Return how the work ended."""
        self.start()
        assert self._work
        return await asyncio.shield(self._work)

    async def facts(self, after: int = 0) -> AsyncGenerator[UnitFact]:
        """Yield the unit's facts with ``seq > after`` as they come; a commit is pushed before its fact."""
        self.start()
        assert self._work
        while True:
            is_over = self._work.done()
            for fact in await asyncio.to_thread(self._read, after):
                yield fact
                after = fact.seq
            if is_over:
                return
            await asyncio.wait([self._work], timeout=POLL)

    async def answer(self, answer: Answer) -> None:
        """Give an answer; the work continues if it waits for one."""
        from gsd_core.journal.inbox import put

        await asyncio.to_thread(put, self._journal, "answer", unstructure(answer), answer.by)
        self._answered.set()

    async def cancel(self) -> None:
        """End the work, with all its processes; what is committed stays, and it can be continued."""
        if self._work:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        if left := owner(self._journal.parent):
            with suppress(ProcessLookupError):
                os.kill(left.pid, signal.SIGINT)

    @property
    def _journal(self) -> Path:
        return (data_directory(self.project) or self.folder) / "journal.db"

    def _read(self, after: int) -> list[UnitFact]:
        found: list[UnitFact] = []
        if not self._journal.is_file():
            return found
        with self._read_journal() as journal:
            records = list(journal.events(after, run=self.unit.run, step=self.unit.step))
        for one in records:
            if one.kind == KIND_OF[TaskCommitted] and (commit := one.data.get("commit")):
                self._push(str(commit))
            found.append(UnitFact(seq=one.seq, kind=one.kind, at=one.at, attempt=one.attempt, data=one.data))
        return found

    def _push(self, commit: str) -> None:
        unit, tip = self.unit, remote.tip(self.git, self.unit.remote, self.unit.branch)
        with suppress(GitError):
            if tip and self.git.succeeds("merge-base", "--is-ancestor", commit, tip):
                return
        remote.publish(self.git, unit.remote, commit, unit.branch, expected=tip)

    async def _do(self) -> UnitEnd:
        try:
            await asyncio.to_thread(self._prepare)
            killed = 0
            while not await self._is_done():
                self._answered.clear()
                code, said = await self._run()
                if code < 0 and (killed := killed + 1) < MAX_KILLED:
                    continue
                if code == ExitCode.QUESTION:
                    await self._answered.wait()
                    continue
                if code != ExitCode.OK:
                    return UnitEnd(problem=said or f"gsd ended with exit code {code}")
            return UnitEnd()
        except GsdError as error:
            return UnitEnd(problem=str(error), hint=error.hint)

    async def _is_done(self) -> bool:
        """Whether the plan is executed, once a gsd that an earlier process has left is done."""
        while True:
            if not owner(self._journal.parent):
                break
            await asyncio.sleep(POLL)
        if not self._journal.is_file():
            return False
        with self._read_journal() as journal:
            return any(journal.facts(StepCompleted, run=self.unit.run, step=self.unit.step))

    def _read_journal(self) -> Journal:
        # Not when a plugin is loaded, for `gsd --help`.
        from gsd_core.journal.store import Journal

        return Journal.open(self._journal, clock=lambda: datetime.now(UTC), writable=False)

    def _prepare(self) -> None:
        """Make the clone, unless there is one, and check the unit's branch out."""
        unit, tree = self.unit, self.folder / "tree"
        if (tree / ".git" / "gsd").is_dir():
            return
        tree.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--template=")
        tip = remote.fetch(self.git, unit.remote, unit.branch)
        self.git("checkout", "--quiet", "--force", "-B", unit.branch, tip)
        (tree / ".git" / "gsd").mkdir()

    async def _run(self) -> tuple[int, str]:
        """Run gsd in the clone; return its exit code and its last words."""
        unit, output = self.unit, self.folder / "output.txt"
        options = (
            "-C",
            str(self.project),
            "--workspace",
            "inplace",
            "--no-input",
            "--trust",
            "--accept-branch",
        )
        command = [*own_command(), "execute", unit.phase, "--plan", unit.plan, "--as-run", unit.run, *options]
        environment = {k: v for k, v in self.environment.items() if k not in ("GSD_RUN", "GSD_DISPATCH")}
        environment |= {"GSD_WAIT_FOR_ANSWERS": WAIT_FOR_ANSWERS, **unit.settings}
        with output.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await self._end(process)
            raise
        lines = safe_text(output.read_text("utf-8", "replace")[-MAX_OUTPUT:]).strip().splitlines()
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return code, next(iter([*errors, *lines[-1:]]), "")

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """End a gsd and everything that it has started; it may have been killed already."""
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE.total_seconds())
        if process.returncode is None:
            process.kill()
            await process.wait()
        if self._journal.is_file():
            with self._read_journal() as journal:
                marks = {journal.mark_of(self.unit.run)}
            await asyncio.to_thread(end_marked, marks)


@attrs.frozen(kw_only=True)
class UnitProcesses:
    """A :class:`gsd_core.Dispatcher` for this machine: each unit has a folder below *folder*.

    Another process that is given the same unit continues it.
    """

    folder: Path
    _units: dict[str, UnitProcess] = attrs.field(factory=dict[str, UnitProcess], init=False)

    async def submit(self, unit: WorkUnit) -> None:
        """Work on *unit*, unless it is worked on already."""
        if unit.id not in self._units:
            self._units[unit.id] = UnitProcess(unit=unit, folder=self.folder / unit.id)
        self._units[unit.id].start()

    def facts(self, unit: str, after: int = 0) -> AsyncIterator[UnitFact]:
        """See :meth:`UnitProcess.facts`."""
        return self._units[unit].facts(after)

    async def wait(self, unit: str) -> UnitEnd:
        """See :meth:`UnitProcess.wait`."""
        return await self._units[unit].wait()

    async def answer(self, unit: str, answer: Answer) -> None:
        """See :meth:`UnitProcess.answer`."""
        await self._units[unit].answer(answer)

    async def cancel(self, unit: str) -> None:
        """See :meth:`UnitProcess.cancel`."""
        await self._units[unit].cancel()
