"""What a step may do: keyed, durable calls. Asked again after a crash, the answer is the record."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, evolve, field

from gsd_core.agent import AgentResult, AgentTask
from gsd_core.checks import CheckResult
from gsd_core.errors import Parked
from gsd_core.hooks import in_core
from gsd_core.planning.model import Task
from gsd_core.question import Answer, Inquiry
from gsd_core.step import Accept, Effect, Functions, StepRequest, TaskCommit

from .agents import Call, run_agent
from .ask import ask, ask_for_a_while
from .clocks import Clocks
from .commands import check
from .patience import Patience
from .permission import Gate
from .session import Run
from .tasks import commit_task


@define(kw_only=True)
class Host:
    """The host of one attempt; *agents* are the calls under way."""

    run: Run
    step: StepRequest
    gate: Gate
    patience: Patience
    parked: Parked | None = field(default=None, init=False)
    agents: int = field(default=0, init=False)

    @property
    def tree(self) -> Path:
        """Where the step works."""
        return self.step.tree

    @contextmanager
    def _at_work(self) -> Generator[None]:
        """The core is at work: the executor is not to blame for what goes wrong or takes long."""
        with in_core(), self.patience.paused():
            yield

    async def run_agent(
        self, key: str, task: AgentTask, accept: Accept | None = None, functions: Functions | None = None
    ) -> AgentResult:
        """See :class:`gsd_core.StepHost`."""
        with self._at_work():
            return await self._run_agent(key, task, accept, functions or {})

    async def _run_agent(
        self, key: str, task: AgentTask, accept: Accept | None, functions: Functions
    ) -> AgentResult:
        limits = evolve(task.limits, idle=self.run.limits.idle, hard=self.run.limits.hard)
        who = f"the agent {' or '.join(map(repr, self.run.settings.agent))}"
        clocks = Clocks(idle=limits.idle, hard=limits.hard, who=who)
        call = Call(
            run=self.run, step=self.step.id, attempt=self.step.attempt, key=key, gate=self.gate,
            functions=functions, clocks=clocks,
        )  # fmt: skip
        self.agents += 1
        try:
            return await run_agent(call, evolve(task, limits=limits), accept)
        except Parked as exc:
            self.parked = exc
            raise
        finally:
            self.agents -= 1

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer]:
        """See :class:`gsd_core.StepHost`."""
        texts = "\0".join(question.text for question in inquiry.questions)
        occasion = f"{inquiry.kind} {hashlib.sha256(texts.encode()).hexdigest()[:12]}"
        try:
            with self._at_work():
                asks = ask_for_a_while if self.agents else ask
                return await asks(self.run, inquiry, step=self.step.id, occasion=occasion)
        except Parked as exc:
            self.parked = exc
            raise

    async def commit_task(self, task: Task, subject: str, paths: Sequence[str]) -> TaskCommit:
        """See :class:`gsd_core.StepHost`."""
        with self._at_work():
            return await commit_task(self.run, self.step, self.gate, task, subject, paths)

    async def check(self, command: str) -> CheckResult:
        """See :class:`gsd_core.StepHost`."""
        with self._at_work():
            return await check(self.gate, command, self.tree, self.run.limits.check)

    async def declare(self, effect: Effect) -> None:
        """See :class:`gsd_core.StepHost`."""
        self.run.record("attempt.declared", {"effect": effect}, step=self.step.id, attempt=self.step.attempt)
