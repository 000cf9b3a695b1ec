"""The hooks: every point at which the core calls plugins, in the order of a run.

Each hook declares its mode, which says how it is called; :mod:`gsd_core.plugins.calling` describes the
modes. A hook that decides something takes at most a frozen request and a host. New data becomes a field
with a default of the request, never a parameter, so that existing plugins keep working.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from .hook_markers import PROJECT as PROJECT
from .hook_markers import hookimpl as hookimpl
from .hook_markers import hookspec
from .hook_markers import implements as implements
from .model.agent import AgentHost, AgentResult, AgentTask, Permission, ToolUse
from .model.event import Event
from .model.gap import Gap, GapReport
from .model.mutant import Mutant, SourceFile
from .model.notice import Delivery, Notice
from .model.panel import Panel
from .model.question import Answer, Inquiry
from .model.sandbox import ConfinedProcess, SandboxedCommand, SandboxUnavailable
from .model.session import SessionHost
from .model.step import RunStep, StepHost, StepRequest, StepResult, StepType
from .model.usage import Cap, Pause, Postpone, Spend, Stop, Unit
from .model.work_unit import Dispatcher
from .planning.model import PhaseView

if TYPE_CHECKING:
    import click


@attrs.frozen(kw_only=True)
class ConfigValue:
    """One value for GSD's ``config.json``; *key* is dotted (``workflow.research``), *value* is JSON data."""

    key: str
    value: Any
    reason: str = ""


@attrs.frozen(kw_only=True)
class Finding:
    """The result of one check of the environment; *fix* is what to do if it is not *ok*.

    *reports*, of an agent: in what it reports what its calls use. A run whose budget is in dollars or tokens
    only does not start with an agent that does not say so here.
    """

    name: str
    ok: bool
    message: str
    fix: str = ""
    reports: tuple[Unit, ...] = ()


@attrs.frozen(kw_only=True)
class CommandOptions:
    """What every subcommand gets, also one of a plugin, which reads it with ``settings_of(CommandOptions)``.

    *project* is the folder that ``-C`` names, else the current one. *as_json*: ``--json`` was given, so
    standard output is for one JSON document. *plugin_options* are the options ``-p`` and ``--plugins-dir`` of
    the command line, for a command that starts another gsd; their folders are absolute. *session_hosts*
    returns where sessions run, by the name of the plugin: those of the setting ``run.session_host``, and the
    built-in one.
    """

    project: Path = attrs.field(factory=Path)
    as_json: bool = False
    plugin_options: tuple[str, ...] = ()
    session_hosts: Callable[[], Mapping[str, SessionHost]] = dict[str, SessionHost]


@attrs.frozen(kw_only=True)
class RunInfo:
    """A run as plugins see it when it starts: its id, the project's root, and how it was started.

    *interactive*: a terminal is available for questions. *yes* and *no_input* are the flags. *command* is
    how to call gsd for this project in hints for the user: ``gsd`` or ``gsd -C DIR``. *plain*: nothing may be
    redrawn on the terminal. *watching*: another process works on the run, and this one only shows it; events
    before *past* happened earlier, and are not to be announced.
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
    plain: bool = False
    watching: bool = False
    past: int = 0


@attrs.frozen(kw_only=True)
class ProjectInfo:
    """A project as config writers see it: its root, its ``config.json``, and whether ``--yes`` was given."""

    root: Path
    config: dict[str, Any] = attrs.field(factory=dict[str, Any])
    yes: bool = False


@hookspec(mode="collect")
def gsd_cli_commands() -> Iterable[click.Command]:
    """Contribute subcommands of ``gsd``.

    When: only when the subcommand is not built in.
    Return: click commands; two plugins cannot contribute the same name. In a command, ``settings_of``
    returns what the environment and the user's own file set, without the project's files. Each command gets
    ``-C``, ``-p``, ``--plugins-dir`` and ``--json`` unless it has them: ``settings_of(CommandOptions)``.
    An ``epilog`` of the form ``"\\b\\nExamples:\\n  gsd hello\\n"`` is shown as the command's examples.
    Failure: the plugin is skipped and reported.
    Since: 0.1.

    Example::

        @implements(gsd_cli_commands)
        def commands() -> Iterable[click.Command]:
            yield click.Command("hello", callback=lambda: click.echo("hello"))
    """
    return ()


@hookspec(mode="collect")
def gsd_settings() -> Iterable[type[Any]]:
    """Contribute settings: attrs classes whose fields all have defaults.

    When: once, before the settings are read.
    Return: classes; their section in ``gsd.toml`` is the plugin's name. Read them with
    ``settings_of(Class)``. A field may declare a flag of ``gsd run``:
    ``setting(default, flag="--notify", help="…")``.
    Failure: the plugin's settings are skipped, and the plugin is reported.
    Since: 0.1.

    Example::

        @implements(gsd_settings)
        def settings() -> Iterable[type]:
            yield SlackSettings
    """
    return ()


@hookspec(mode="collect")
def gsd_doctor() -> Iterable[Finding]:
    """Check whether the environment and the settings allow the plugin to work.

    When: before a run, for the notifiers, and for the agents and executors that the settings ``run.agent``,
    ``run.execute`` and ``run.workflow`` choose; nothing has been written. By ``gsd doctor`` for these and for
    all plugins that are neither agents nor executors. The working directory is the project, if it exists.
    Return: findings; one that is not ``ok`` ends the start with exit code 4, and is a problem for
    ``gsd doctor``, or a warning if no run would check it. Say what works too: ``gsd doctor`` shows it.
    Failure: the plugin's findings are skipped, and the plugin is reported.
    Since: 0.1.

    Example::

        @implements(gsd_doctor)
        def has_git() -> Iterable[Finding]:
            yield Finding(name="git", ok=shutil.which("git") is not None, message="git", fix="install git")
    """
    return ()


@hookspec(mode="collect")
def gsd_lifespan(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
    """Contribute resources that live as long as a run: clients, sockets, a display.

    When: entered before the first step, exited after the last one, in reverse order.
    Return: async context managers.
    Failure: a plugin that raises is skipped and reported; a resource that cannot be entered within 30 s
    ends the start with exit code 2; one that fails on exit is only reported.
    Since: 0.1.

    Example::

        @implements(gsd_lifespan)
        def client(run: RunInfo) -> Iterable[AbstractAsyncContextManager[object]]:
            yield open_client()
    """
    return ()


@hookspec(mode="collect")
def gsd_write_config(project: ProjectInfo) -> Iterable[ConfigValue]:
    """Propose values for GSD's ``config.json``.

    When: once, when a run starts or resumes.
    Return: values; those in the user's own file win. The same key from two plugins, or a key and one
    below it, is an error that names both.
    Failure: the plugin's values are skipped, and the plugin is reported.
    Since: 0.1.

    Example::

        @implements(gsd_write_config)
        def quiet(project: ProjectInfo) -> Iterable[ConfigValue]:
            yield ConfigValue(key="workflow.research", value=False)
    """
    return ()


@hookspec(mode="collect", level="provisional")
def gsd_steps() -> Iterable[StepType]:
    """Add kinds of steps to the lifecycle: where they come, when they are due, what they may write.

    When: once for each process.
    Return: step types; two plugins cannot contribute the same kind, nor one of the core's own.
    Calling: ``StepType.due`` is called each time the project is observed.
    Failure: the plugin's kinds are skipped, and the plugin is reported; a *due* that fails ends the run with
    exit code 2, because a step that might be needed must not be left out.
    Since: 0.1.

    The plugin that adds a kind is asked first to execute its steps, with ``gsd_execute_step``. Gaps that a
    step finds are returned as ``Found``: the phase is then planned again for them.

    Example::

        @implements(gsd_steps)
        def license_review() -> Iterable[StepType]:
            yield StepType(
                kind="license-review",
                before="complete",
                due=lambda now: not any(step.kind == "license-review" for step in now.completed),
                writes=("{phase}/{number}-LICENSES.md",),
            )
    """
    return ()


@hookspec(mode="collect", level="provisional")
def gsd_panels(project: Path) -> Iterable[Panel]:
    """Contribute panels: what the plugin has to show about a project.

    *project* is its folder.

    When: by ``gsd panels``, and again and again while the dashboard shows the project; each time in a new
    process, so nothing that a run has in memory is there.
    Return: panels; ``name`` must be unique within the plugin. Read files of the project or of your own; do
    not write, and do not use the network for longer than a person waits for a page.
    Failure: reported in the plugin's place; the panels of other plugins are shown.
    Since: 0.1, provisional.

    Example::

        @implements(gsd_panels)
        def coverage(project: Path) -> Iterable[Panel]:
            report = project / "coverage.txt"
            if report.exists():
                yield Panel(name="coverage", title="Coverage", figures={"Lines": report.read_text().strip()})
    """
    return ()


@hookspec(mode="wrap")
async def gsd_wrap_step(step: StepRequest, call_next: RunStep) -> StepResult:
    """Do something around running a step: retry, measure, log.

    When: around each step; ``call_next(step)`` is one attempt.
    Return: a result, normally that of ``call_next``.
    Calling: ``tryfirst`` is outermost. The step's identity cannot be changed.
    Failure: the error names the plugin and fails the step. Never retry a cancellation.
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


@hookspec(mode="pick", level="provisional")
async def gsd_workspace(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
    """Provide the folder that a step works in.

    When: once for each attempt.
    Return: an async context manager that yields the folder's path; ``None`` leaves the step to the next
    plugin listed.
    Calling: in the order of the setting ``run.workspace``.
    Failure: the error names the plugin and fails the attempt.
    Since: 0.1.

    Example::

        @implements(gsd_workspace)
        async def here(step: StepRequest) -> AbstractAsyncContextManager[Path] | None:
            return nullcontext(step.project)
    """
    return None


@hookspec(mode="pick")
async def gsd_session_host() -> SessionHost | None:
    """Provide the place where sessions run: commands of gsd that nobody waits for.

    When: by ``gsd run --bg`` and the other commands with ``--bg``, after everything was checked that a run
    checks before it starts; and by ``gsd stop SESSION``.
    Return: a host; ``None`` leaves it to the next plugin listed.
    Calling: in the order of the setting ``run.session_host``.
    Failure: the error names the plugin; nothing has started.
    Since: 0.1, provisional.

    Example::

        @implements(gsd_session_host)
        async def cluster() -> SessionHost | None:
            return Cluster(settings_of(ClusterSettings).address)
    """
    return None


@hookspec(mode="pick", level="provisional")
async def gsd_dispatch() -> Dispatcher | None:
    """Provide the place where plans are executed, if that is not the process of the run.

    When: once for each plan, if the setting ``run.dispatch`` lists a plugin.
    Return: a dispatcher; ``None`` leaves it to the next plugin listed.
    Calling: in the order of the setting ``run.dispatch``.
    Failure: the error names the plugin and fails the step.
    Since: 0.1, provisional.

    Example::

        @implements(gsd_dispatch)
        async def cluster() -> Dispatcher | None:
            return Cluster(settings_of(ClusterSettings).address)
    """
    return None


@hookspec(mode="fan_out")
async def gsd_find_mutants(source: SourceFile) -> Sequence[Mutant] | None:
    """Return small faults of a file, to see whether a test notices them.

    When: before each verify step and by ``gsd gaps``, for each file that a plan's commits changed and that is
    no test. Each fault costs a run of the plan's checks, so only some are tried.
    Return: faults in the order of the text; nothing, or ``None``, for a file that you do not know.
    Calling: at most 10 minutes for each plugin (setting ``limits.detector``).
    Failure: the faults of this plugin are left out.
    Since: 0.1.

    The file has to stay valid: a test that fails because its program cannot be read shows nothing.

    Example::

        @implements(gsd_find_mutants)
        async def each_limit(source: SourceFile) -> Sequence[Mutant]:
            if not source.path.endswith(".ini"):
                return []
            return [
                Mutant(
                    kind="value",
                    name=found[0],
                    first=(line := source.text.count("\\n", 0, found.start()) + 1),
                    last=line,
                    start=found.start(),
                    end=found.end(),
                    text=str(int(found[0]) + 1),
                )
                for found in re.finditer(r"(?<== )\\d+$", source.text, re.MULTILINE)
            ]
    """
    return ()


@hookspec(mode="fan_out")
async def gsd_find_gaps(phase: PhaseView) -> Sequence[Gap] | GapReport | None:
    """Report the phase's promises that the current tree does not meet.

    When: before each verify step, and by ``gsd gaps``.
    Return: gaps, or a report if you also have evidence that truths hold, or checks that only a human can
    do. Nothing, or ``None``, means that you found no gap.
    Calling: at most 10 minutes for each plugin (setting ``limits.detector``).
    Failure: the report is incomplete, and the phase does not pass.
    Since: 0.1.

    Look at ``phase.project``, never at an earlier verdict.

    Example::

        @implements(gsd_find_gaps)
        async def license_is_there(phase: PhaseView) -> Sequence[Gap]:
            if not (phase.project / "LICENSE").exists():
                return [Gap(truth="The project has a license", reason="no LICENSE in the root")]
            return []
    """
    return ()


@hookspec(mode="pick", level="provisional")
async def gsd_execute_step(step: StepRequest, host: StepHost) -> StepResult | None:
    """Turn a step into files, changes and an outcome.

    When: once for each attempt at a step, inside every ``gsd_wrap_step``.
    Return: the result, which the core applies; ``None`` leaves the step to the next plugin listed.
    Calling: in the order of the setting ``run.execute``.
    Failure: ``Transient`` is retried; anything else fails the step and names the plugin.
    Since: 0.1.

    Do not do I/O yourself: read ``step.planning``, use *host*, return files. In ``.planning/``, a step may
    only return files of its phase: a PLAN from plan, a SUMMARY from execute, a VERIFICATION from verify;
    shared files are edited by changes. A verify step has to report on each requirement, criterion and truth:
    one about which its report says nothing becomes a gap.

    Example::

        @implements(gsd_execute_step)
        async def write_license(step: StepRequest, host: StepHost) -> StepResult | None:
            if step.kind != "complete":
                return None
            return StepResult(subject="docs: add a license", files=(FileWrite(path="LICENSE", text="…"),))
    """


@hookspec(mode="fan_out")
async def gsd_check_budget(spend: Spend) -> Stop | Pause | Postpone | Cap | None:
    """Decide whether the run may continue to spend.

    When: before each agent call, and after each turn that reports its usage; with ``spend.wanted``, also
        before a run starts a plan beside others, every two seconds while one waits, and when it needs fewer.
    Return: ``Stop(reason)`` ends the run (exit code 5), ``Pause(reason)`` asks a human, ``None`` allows.
        ``Cap(dollars, turns)`` allows too, and is the most that the next call may use: the agent ends it
        there, and the run with it (5). ``Postpone(reason, until)`` lets the step wait, and run again then.
        After a turn, these two have no effect. With ``spend.wanted``, only ``Cap(agents)`` has one: the most
        plans to execute side by side.
    Calling: at most 2 s for each plugin; Stop beats Postpone, that beats Pause, and the lowest cap counts.
    Failure: fails closed, as Stop; with ``spend.wanted``, no further plan starts.
    Since: 0.1.

    Example::

        @implements(gsd_check_budget)
        async def ten_calls(spend: Spend) -> Stop | Pause | None:
            return Stop(reason="ten calls are enough") if spend.calls >= 10 else None
    """
    return None


@hookspec(mode="pick", level="provisional")
async def gsd_run_agent(task: AgentTask, host: AgentHost) -> AgentResult | None:
    """Have a model do a task.

    When: for each agent call of a step, after the budget was checked and the call was recorded.
    Return: text or value with the usage of this call; ``None`` leaves the task to the next plugin listed.
    Calling: in the order of the setting ``run.agent``.
    Failure: as ``gsd_execute_step``. When cancelled, end your processes within 5 s.
    Since: 0.1.

    Ask ``host.permit`` before every use of a tool, report each turn with ``host.progress``, and pass
    ``host.environment`` to every process: those that still run when the call ends are ended.

    Example::

        @implements(gsd_run_agent)
        async def echo(task: AgentTask, host: AgentHost) -> AgentResult | None:
            return AgentResult(text=task.prompt)
    """


@hookspec(mode="pick", level="provisional")
async def gsd_sandbox(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
    """Return the command line that starts a process confined to what it may see and change.

    When: before each process that runs something a model or a repository wrote: agents, the plans'
    commands, the verifier's commands, hooks of the repository.
    Return: the command to start instead; ``SandboxUnavailable`` if the sandbox does not work on this
    machine; ``None`` if it is not meant for it.
    Calling: in the order of the setting ``run.sandboxes``; the first that works is used for the whole run.
    Failure: the process is not started, and the error names the plugin.
    Since: 0.1.

    All processes that the confined one starts have to end with it.

    Example::

        @implements(gsd_sandbox)
        async def box(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
            if shutil.which("box") is None:
                return SandboxUnavailable(reason="box is not installed", fix="install box")
            writable = [f"--write={place.path}" for place in process.places if place.writable]
            command = ("box", *writable, "--", *process.command)
            return SandboxedCommand(command=command, environment=process.environment, sandbox="box")
    """


@hookspec(mode="fan_out")
async def gsd_permit_tool(use: ToolUse) -> Permission | None:
    """Decide whether a tool may be used in this way.

    When: before each use of a tool by an agent, and before each command of a plan.
    Return: ``Allow()``, ``Deny(reason)`` or ``Ask(reason)``; ``None`` if you have no opinion.
    Calling: at most 2 s for each plugin; Deny beats Ask beats Allow. If no plugin has an opinion, a human
    is asked.
    Failure: fails closed, as Deny; three failures in a row fail the step and name the plugin.
    Since: 0.1.

    Example::

        @implements(gsd_permit_tool)
        async def no_curl(use: ToolUse) -> Permission | None:
            if use.name == "Bash" and "curl" in str(use.input.get("command")):
                return Deny(reason="no downloads here")
            return None
    """
    return None


@hookspec(mode="race")
async def gsd_answer(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Answer questions: bring them to a human, or decide in a human's place.

    When: whenever a run needs an answer; again with the remaining questions after a partial answer.
    Return: answers to some or all of the questions; ``None`` immediately if you cannot answer any.
    Calling: the first valid answer wins. The others are cancelled: withdraw your prompt then.
    Failure: recorded; the other plugins continue.
    Since: 0.1.

    Example::

        @implements(gsd_answer)
        async def always_postgres(inquiry: Inquiry) -> Sequence[Answer] | None:
            found = [q for q in inquiry.questions if "database" in q.text]
            return [Answer(question=q.id, text="PostgreSQL", how="policy") for q in found] or None
    """
    return None


@hookspec(mode="subscribe")
async def gsd_on_event(event: Event) -> None:
    """Observe a run.

    When: for each public event, in order.
    Return: nothing.
    Calling: each plugin has a queue of limited size; a slow plugin misses events, see ``seq``.
    Failure: recorded; the run continues. After three failures in a row, or ten in all, the plugin
    receives no more events.
    Since: 0.1.

    Example::

        @implements(gsd_on_event)
        async def count(event: Event) -> None:
            if event.name == "step.completed":
                log.info("%s is completed", event.step)
    """


@hookspec(mode="fan_out")
async def gsd_notify(notice: Notice) -> Sequence[Delivery] | None:
    """Notify someone.

    When: a question is open or still open, a phase is done, something failed, the run ended or crashed.
    Return: what was sent to which service; an empty sequence if nothing was to be sent. ``None`` means that
    the plugin has sent it.
    Calling: at most 10 s for each plugin; no step waits for it.
    Failure: recorded; the run continues. It is not sent again.
    Since: 0.1.

    Example::

        @implements(gsd_notify)
        async def beep(notice: Notice) -> None:
            if notice.type == "question":
                print("\\a", end="", file=sys.stderr)
    """


@hookspec(mode="collect", level="provisional")
def gsd_links(notice: Notice) -> Iterable[str]:
    """Contribute links to pages that show what a notification is about.

    When: before each notification is sent; notifiers find them in ``notice.links``.
    Return: URLs with ``http`` or ``https``. They leave this machine, so they must not contain a token.
    Calling: at once, in the run's process: do not block.
    Failure: reported; the notification is sent without them.
    Since: 0.1, provisional.

    Example::

        @implements(gsd_links)
        def page_of_the_build(notice: Notice) -> Iterable[str]:
            if url := os.environ.get("BUILD_URL"):
                yield url
    """
    return ()
