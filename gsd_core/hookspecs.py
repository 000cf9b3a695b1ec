"""The hooks: every place where the core asks plugins. Marked by the way they are called.

A deciding hook takes at most a frozen request and a host. A hook grows by a field with a
default, never by a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from .markers import PROJECT, Mark, hookimpl, hookspec, implements
from .model.agent import AgentHost, AgentResult, AgentTask, Permission, ToolUse
from .model.event import Event
from .model.gap import Gap, GapReport
from .model.notice import Notice
from .model.question import Answer, Inquiry
from .model.step import RunStep, StepHost, StepRequest, StepResult
from .model.usage import Pause, Spend, Stop
from .planning.model import PhaseView

if TYPE_CHECKING:
    import click


@frozen(kw_only=True)
class ConfigValue:
    """One value for GSD's ``config.json``; *key* is dotted (``workflow.research``), *value* is JSON data."""

    key: str
    value: Any
    reason: str = ""


@frozen(kw_only=True)
class Finding:
    """Something that ``gsd doctor`` would tell: *ok*, what was looked at, and how to mend it."""

    name: str
    ok: bool
    message: str
    fix: str = ""


@frozen(kw_only=True)
class RunInfo:
    """A run as plugins see it when it starts: its id, the project's root, and who may be asked.

    *interactive*: a terminal is there and may be used. *yes*, *no_input*: the flags. *command* is how to
    call gsd for this project in hints for the user: ``gsd`` or ``gsd -C DIR``.
    """

    id: str
    project: Path
    interactive: bool = False
    yes: bool = False
    no_input: bool = False
    output: Literal["text", "json", "stream-json"] = "text"
    verbosity: int = 0
    agent: str = ""
    idea: str = ""
    seed: int | None = None
    command: str = "gsd"


@frozen(kw_only=True)
class ProjectInfo:
    """A project as config writers see it: its root and its ``config.json`` as it stands."""

    root: Path
    config: dict[str, Any] = field(factory=dict[str, Any])
    yes: bool = False


@hookspec
async def gsd_execute_step(step: StepRequest, host: StepHost) -> StepResult | None:
    """Turn a step into files, changes and an outcome.

    When: once for each attempt at a step, inside every ``gsd_wrap_step``.
    Return: the result, which the core lands; ``None`` leaves the step to the next plugin listed.
    Calling: pick, in the order of the setting ``run.execute``.
    Failure: ``Transient`` is tried again, ``Permanent`` escalates; anything else is named and escalates.
    Since: 0.1, provisional.

    Do no I/O of your own: read ``step.planning``, use *host*, return files.

    Example::

        @implements(gsd_execute_step)
        async def write_licence(step: StepRequest, host: StepHost) -> StepResult | None:
            if step.kind != "complete":
                return None
            return StepResult(subject="docs: add a licence", files=(FileWrite(path="LICENSE", text="…"),))
    """


@hookspec
async def gsd_run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Have a model do a task.

    When: for each agent call of a step, after the budget was checked and the call was journaled.
    Return: text or value with the usage of this call; ``None`` leaves it to the next plugin listed.
    Calling: pick, in the order of the setting ``run.agent``.
    Failure: as ``gsd_execute_step``. When cancelled, end your processes within the grace (5 s).
    Since: 0.1, provisional.

    Ask ``host.permit`` before every use of a tool, report each turn by ``host.progress``, give
    ``host.environment`` to every process.

    Example::

        @implements(gsd_run_agent)
        async def echo(task: AgentTask, host: AgentHost) -> AgentResult | None:
            return AgentResult(text=task.prompt)
    """


@hookspec
async def gsd_wrap_step(step: StepRequest, call_next: RunStep) -> StepResult:
    """Do something around running a step: retry, time, log.

    When: around each step; ``call_next(step)`` is one attempt.
    Return: a result; normally that of ``call_next``.
    Calling: wrap; ``tryfirst`` is outermost. The step's identity cannot be changed.
    Failure: propagates with the plugin's name; never retry a cancellation.
    Since: 0.1.

    Example::

        @implements(gsd_wrap_step)
        async def timed(step: StepRequest, call_next: RunStep) -> StepResult:
            began = time.monotonic()
            try:
                return await call_next(step)
            finally:
                log.info("%s took %.1f s", step.id, time.monotonic() - began)
    """
    return await call_next(step)


@hookspec
async def gsd_find_gaps(phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Find what the phase promised and the tree as it is now does not hold.

    When: before each verify step, and by ``gsd gaps``.
    Return: gaps (empty: you saw nothing missing), or a report if you also have evidence that
    truths hold or checks that only a human can make.
    Calling: fan out, at most 10 minutes for each plugin.
    Failure: a detector that failed makes the report incomplete: the phase does not pass.
    Since: 0.1.

    Look at ``phase.project``; never at an earlier verdict.

    Example::

        @implements(gsd_find_gaps)
        async def license_is_there(phase: PhaseView) -> Sequence[Gap]:
            if not (phase.project / "LICENSE").exists():
                return [Gap(truth="The project has a licence", reason="no LICENSE in the root")]
            return []
    """
    return ()


@hookspec
async def gsd_answer(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer questions, as a human's channel or in a human's place.

    When: whenever a run has to know something; again with the rest after a partial answer.
    Return: answers to some or all of the questions; ``None`` at once if you cannot answer any.
    Calling: race; the first valid answer wins, the others are cancelled: retract your prompt then.
    Failure: logged and recorded; the others go on.
    Since: 0.1.

    Example::

        @implements(gsd_answer)
        async def always_postgres(inquiry: Inquiry) -> Sequence[Answer] | None:
            found = [q for q in inquiry.questions if "database" in q.text]
            return [Answer(question=q.id, text="PostgreSQL", how="policy") for q in found] or None
    """
    return None


@hookspec
async def gsd_notify(notice: Notice) -> None:
    """Tell someone that something happened.

    When: a question is open, a phase is done, something failed, the run ended or crashed.
    Return: nothing.
    Calling: fan out, at most 10 s for each plugin; a run never waits for it.
    Failure: logged and recorded; the run goes on.
    Since: 0.1.

    Example::

        @implements(gsd_notify)
        async def beep(notice: Notice) -> None:
            if notice.type == "question":
                print("\\a", end="", file=sys.stderr)
    """


@hookspec
def gsd_write_config(project: ProjectInfo) -> Iterable[ConfigValue]:
    """Propose values for GSD's ``config.json``.

    When: once when a run opens, and when init writes the file.
    Return: values; what the user's own file says wins over them.
    Calling: collect; the same key from two plugins is an error that names both.
    Failure: the plugin is dropped and named.
    Since: 0.1.

    Example::

        @implements(gsd_write_config)
        def quiet(project: ProjectInfo) -> Iterable[ConfigValue]:
            yield ConfigValue(key="workflow.research", value=False)
    """
    return ()


@hookspec
async def gsd_permit_tool(use: ToolUse) -> Permission | None:
    """Say whether a tool may be used as it is about to be.

    When: before each use of a tool by an agent, and before each command of a plan.
    Return: ``Allow()``, ``Deny(reason)`` or ``Ask(reason)``; ``None`` for no opinion.
    Calling: fan out, at most 2 s for each plugin; Deny beats Ask beats Allow; no opinion at all is Ask.
    Failure: fails closed, as Deny; three times in a row parks the step with the plugin's name.
    Since: 0.1.

    Example::

        @implements(gsd_permit_tool)
        async def no_curl(use: ToolUse) -> Permission | None:
            if use.name == "Bash" and "curl" in str(use.input.get("command")):
                return Deny(reason="no downloads here")
            return None
    """
    return None


@hookspec
async def gsd_check_budget(spend: Spend) -> Stop | Pause | None:
    """Say whether the run may go on spending.

    When: before each agent call.
    Return: ``Stop(reason)`` ends the run (exit 5), ``Pause(reason)`` asks a human, ``None`` goes on.
    Calling: fan out; Stop beats Pause.
    Failure: fails closed, as Stop.
    Since: 0.1.

    Example::

        @implements(gsd_check_budget)
        async def ten_calls(spend: Spend) -> Stop | Pause | None:
            return Stop(reason="ten calls are enough") if spend.calls >= 10 else None
    """
    return None


@hookspec
async def gsd_workspace(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Make the tree that a step works in.

    When: once for each attempt.
    Return: an async context manager that gives the tree's path; ``None`` leaves it to the next plugin listed.
    Calling: pick, in the order of the setting ``run.workspace``.
    Failure: propagates, naming the plugin; a tree is kept, and its path reported, if the step fails.
    Since: 0.1, provisional.

    Example::

        @implements(gsd_workspace)
        async def here(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
            return nullcontext(step.project)
    """
    return None


@hookspec
async def gsd_on_event(event: Event) -> None:
    """Watch a run.

    When: for each public event, in their order.
    Return: nothing.
    Calling: subscribe; a bounded queue for each plugin. If you are slow you miss events: see ``seq``.
    Failure: logged; the run goes on.
    Since: 0.1.

    Example::

        @implements(gsd_on_event)
        async def count(event: Event) -> None:
            if event.name == "step.completed":
                print(event.step)
    """


@hookspec
def gsd_lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Contribute resources that live as long as a run: clients, sockets, a screen.

    When: entered before the first step, left after the last, in reverse order.
    Return: async context managers.
    Calling: collect.
    Failure: the plugin is dropped and named.
    Since: 0.1.

    Example::

        @implements(gsd_lifespan)
        def client(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
            yield open_client()
    """
    return ()


@hookspec
def gsd_settings() -> Iterable[type[Any]]:
    """Contribute settings: attrs classes whose fields all have defaults.

    When: before a run, once.
    Return: classes; their section in ``gsd.toml`` is the plugin's name.
    Calling: collect; read them by ``settings_of(Class)``. A field may declare a flag of ``gsd run``
    by ``setting(default, flag="--notify", help="…")``.
    Failure: the plugin is dropped and named.
    Since: 0.1.

    Example::

        @implements(gsd_settings)
        def settings() -> Iterable[type]:
            yield SlackSettings
    """
    return ()


@hookspec
def gsd_cli_commands() -> Iterable[click.Command]:
    """Contribute subcommands of ``gsd``.

    When: only if a verb is none of ours.
    Return: click commands; a name belongs to one plugin only.
    Calling: collect.
    Failure: the plugin is dropped and named.
    Since: 0.1.

    Example::

        @implements(gsd_cli_commands)
        def commands() -> Iterable[click.Command]:
            yield click.Command("hello", callback=lambda: click.echo("hello"))
    """
    return ()


@hookspec
def gsd_doctor() -> Iterable[Finding]:
    """Say what is wrong with this machine or these settings, and how to mend it.

    When: before a run whose settings list the plugin, before anything is written; and by the doctor.
    Return: findings; one that is not ``ok`` for a listed agent ends the start with exit 4.
    Calling: collect.
    Failure: the plugin is dropped and named.
    Since: 0.1.

    Example::

        @implements(gsd_doctor)
        def has_git() -> Iterable[Finding]:
            yield Finding(name="git", ok=shutil.which("git") is not None, message="git", fix="install git")
    """
    return ()


__all__ = [
    "PROJECT",
    "ConfigValue",
    "Finding",
    "Mark",
    "ProjectInfo",
    "RunInfo",
    "gsd_answer",
    "gsd_check_budget",
    "gsd_cli_commands",
    "gsd_doctor",
    "gsd_execute_step",
    "gsd_find_gaps",
    "gsd_lifespan",
    "gsd_notify",
    "gsd_on_event",
    "gsd_permit_tool",
    "gsd_run_agent",
    "gsd_settings",
    "gsd_workspace",
    "gsd_wrap_step",
    "gsd_write_config",
    "hookimpl",
    "hookspec",
    "implements",
]
