"""The process that owns one session: ``python -m gsd_plugins.sessions.runner ID SETTINGS``.

It waits for a slot, runs the session's command in a terminal of its own, and records how it ended. It is no
child of the command that started it, so that a session outlives the terminal, ``gsd serve``, and everything
else that watches it.

If the runner is killed, the kernel closes the terminal, and the session's command ends as if its window had
been closed: with SIGHUP, and everything recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import time
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

import attrs

from gsd_core import GsdError, SessionState, UserError, boot_id, process_start
from gsd_core.project import Project

from . import MEGABYTE, SessionsSettings
from .barriers import Work, work_of
from .own_row import OwnRow
from .queue import gate, settle_lost, take_slot
from .registry import ACTIVE, Registry, RegistryError
from .state import read_status, unanswered
from .terminal import SIGNALS, SessionTerminal

QUEUE_SECONDS = 0.3
"""How often a waiting session looks whether something has changed."""
SETTLE_SECONDS = 2.0
"""How often it also looks for sessions whose processes are gone, and for phases that are verified now."""
ANSWER_SECONDS = 0.5
NOBODY_ANSWERED = 3
"""The exit code of a command that has a question which nobody could answer."""
HUNG_UP, INTERRUPTED, TERMINATED = 129, 130, 143
READY = b"1"


def main(arguments: list[str]) -> int:
    """Run the session named on the command line to its end.

    The process that was started ends as soon as the session has its runner, which is a child of it; so
    whoever starts sessions need not wait for their ends, or leave zombies.
    """
    parser = argparse.ArgumentParser(prog="gsd session runner")
    parser.add_argument("session")
    parser.add_argument("settings", type=lambda text: SessionsSettings(**json.loads(text)))
    options = parser.parse_args(arguments)
    # Until somebody can take them. A signal that arrives while the runner starts would kill it otherwise.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    waiting, ready = os.pipe()
    if os.fork():
        os.close(ready)
        os._exit(0 if os.read(waiting, 1) == READY else 1)
    os.close(waiting)
    with Registry() as registry:
        row = OwnRow(registry=registry, session=options.session)
        with registry.transaction():
            if row.read().session.has_ended:
                raise UserError(f"session {options.session} has ended before it began")
            if row.read().runner_lives:  # after a restart, two commands may give it one at the same time
                os.write(ready, READY)
                return 0
            mine = {"runner": os.getpid(), "runner_started": process_start(os.getpid()), "boot": boot_id()}
            registry.update(options.session, **mine)
        os.write(ready, READY)
        os.close(ready)
        try:
            Runner(row=row, settings=options.settings).run()
        except BaseException as error:
            row.end("failed", exit_code=None, reason=f"its runner failed: {type(error).__name__}: {error}")
            raise
        finally:
            row.registry.close()
    return 0


@attrs.define
class Wakeup:
    """Signals as something to wait for."""

    descriptor: int

    @classmethod
    def install(cls) -> Wakeup:
        """Take the signals of this process from now on."""
        descriptor, waker = os.pipe()
        for end in (descriptor, waker):
            os.set_blocking(end, False)
            os.set_inheritable(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _ignore)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return cls(descriptor)

    def wait(self, seconds: float) -> bool:
        """Wait at most *seconds*; return whether this process was asked to end."""
        select.select([self.descriptor], [], [], seconds)
        return self.was_asked_to_end()

    def was_asked_to_end(self) -> bool:
        """Return whether a signal to end has arrived since the last call."""
        with suppress(BlockingIOError):
            return any(number != signal.SIGCHLD for number in os.read(self.descriptor, 1000))
        return False


@attrs.define(kw_only=True)
class Runner:
    """A session from the queue to its end."""

    row: OwnRow
    settings: SessionsSettings
    _wakeup: Wakeup = attrs.field(factory=Wakeup.install, init=False)

    def run(self) -> None:
        """Run the command; again, if it had to end because nobody could answer, once somebody has."""
        # One that waited without a process when the machine was restarted.
        if self.row.read().session.state == "waiting_checkpoint" and not self._wait_for_answer():
            return
        while self._wait_for_slot():
            terminal = SessionTerminal(
                row=self.row,
                wakeup=self._wakeup,
                keep_bytes=self.settings.keep_megabytes * MEGABYTE,
                is_to_park=self._is_to_park,
            )
            status = terminal.run()
            if not self._is_parked(status, was_asked=terminal.was_parked):
                self._record_end(status, terminal.lost_output)
                return
            if not self._wait_for_answer():
                return

    def _wait_for_slot(self) -> bool:
        """Wait until the session has a slot; return false if it was stopped before."""
        version, checked = -1, 0.0
        while True:
            if self._is_stopped("stopped before it started"):
                return False
            registry = self.row.registry
            with suppress(RegistryError):
                due = time.monotonic() - checked > SETTLE_SECONDS
                if due or version != registry.version():
                    version, checked = registry.version(), time.monotonic() if due else checked
                    if due:
                        settle_lost(registry)
                    why = gate(registry, self.row.read(), self.settings.plan_ahead)
                    why = why or take_slot(registry, self.row.session, self.settings.slots)
                    if not why:
                        return True
                    if self.row.read().session.reason != f"waits for {why}":
                        self.row.save(reason=f"waits for {why}")
            if self._wakeup.wait(QUEUE_SECONDS):
                self.row.save(stop=1)

    def _is_stopped(self, reason: str) -> bool:
        """Return whether the session, which has no process, is to stop; then its end is recorded."""
        self.row.check()
        try:
            found = self.row.read()
        except RegistryError:
            return False
        if found.stop_asked:
            self.row.end("stopped", exit_code=None, reason=reason)
        return found.stop_asked

    def _is_to_park(self) -> bool:
        """Whether the session only waits for an answer, for some time now, and others wait for its slot."""
        with suppress(GsdError, OSError):
            row, registry = self.row.read(), self.row.registry
            if row.session.state != "waiting_checkpoint" or work_of(row.session.command) == Work():
                return False
            others = [other for other in registry.all(["idle"]) if not other.gate]
            others += [other for other in registry.all(ACTIVE) if other.asked]
            is_alone = all(other.session.project == row.session.project for other in others)
            if is_alone or registry.slots_in_use() < self.settings.slots:
                return False
            status = read_status(row.session.project)
            open_ones = [one for one in status["questions"] if not one["answer_given"]]
            limit = datetime.now(UTC) - timedelta(seconds=self.settings.park_seconds)
            steps = {one["step"] for one in open_ones if datetime.fromisoformat(one["asked_at"]) < limit}
            return bool(steps) and all(
                step["status"] not in ("running", "parked") or step["id"] in steps
                for step in status["steps_in_progress"]
            )
        return False

    def _is_parked(self, status: int, *, was_asked: bool) -> bool:
        """Whether the command ended because of an open question; then the slot is for another session.

        *was_asked*: this runner asked it to end, because others wait for the slot.
        """
        if not (was_asked or status == NOBODY_ANSWERED) or status == 0 or self.row.read().stop_asked:
            return False
        question = next(iter(unanswered(read_status(self.row.read().session.project))), "")
        if not question:
            return False
        why = "its slot is for others until then" if was_asked else "nobody could answer"
        self.row.save(
            state="waiting_checkpoint",
            slot=0,
            agents=0,
            asked="",
            pid=0,
            pid_started="",
            control="",
            checkpoint=question,
            reason=f"{why}; it continues when the question is answered",
        )
        return True

    def _wait_for_answer(self) -> bool:
        """Wait until the open questions are answered, from wherever, and return true; or false at the end."""
        with closing(Project(self.row.read().session.project)) as project:
            while not self._is_stopped("stopped while it waited for an answer"):
                with suppress(GsdError, OSError):
                    project.poll(backlog=0)
                    status = project.status()
                    question = next(iter(unanswered(status)), "")
                    if question and question != self.row.read().session.checkpoint:
                        self.row.save(checkpoint=question)
                    if not question and not status["owner"]:
                        if status["status"] == "done":
                            self.row.end("completed", exit_code=0, reason="continued by another process")
                            return False
                        self.row.save(state="idle", checkpoint="", reason="")
                        return True
                if self._wakeup.wait(ANSWER_SECONDS):
                    self.row.save(stop=1)
            return False

    def _record_end(self, status: int, lost_output: str) -> None:
        code = status if status >= 0 else 128 - status
        row = self.row.read()
        cut_off = ""
        with suppress(GsdError, OSError):
            # What can end a process in this way is a plugin.
            if code == 0 and work_of(row.session.command) != Work():
                is_open = read_status(row.session.project)["status"] == "interrupted"
                cut_off = "it ended without recording the end of its run; continue with: gsd resume" * is_open
        code = code or int(bool(cut_off))
        asked = row.stop_asked or code in (HUNG_UP, INTERRUPTED, TERMINATED)
        state: SessionState = "completed" if code == 0 else "stopped" if asked else "failed"
        killed = "" if status >= 0 or asked else f"killed by signal {-status}"
        # What it waited for when it was killed is not why it ended.
        reason = "" if row.asked else row.session.reason
        said = "; ".join(filter(None, [killed or cut_off or reason, lost_output]))
        self.row.end(state, exit_code=code, reason=said)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: the number of the signal is read from the pipe."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
