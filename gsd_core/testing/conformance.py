"""Checks that a plugin honors the contract of a hook: one function for each hook. They do not need pytest.

Each calls the plugin several times: alone, twice concurrently, and canceled at several points. It raises
``AssertionError`` with an explanation, or returns what the plugin returned, for further assertions. A
plugin is a module, or an object with decorated methods.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import attrs

from gsd_core import hookspecs as specs
from gsd_core.errors import ConfigError, PluginError, StepError, UserError
from gsd_core.hookspecs import ConfigValue, Finding, ProjectInfo, RunInfo
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Permission, ToolUse
from gsd_core.model.event import Event
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.mutant import Mutant, SourceFile
from gsd_core.model.notice import Notice
from gsd_core.model.panel import Panel
from gsd_core.model.question import Answer, Inquiry, refusal
from gsd_core.model.sandbox import ConfinedProcess, SandboxedCommand, SandboxUnavailable
from gsd_core.model.session import SessionHost, SessionRequest
from gsd_core.model.step import RunStep, StepHost, StepRequest, StepResult, StepSituation, StepType
from gsd_core.model.usage import Cap, Pause, Postpone, Spend, Stop
from gsd_core.model.work_unit import Dispatcher
from gsd_core.planning.model import PhaseView
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.contexts import PluginContext, entered
from gsd_core.plugins.isolation import PluginFailure
from gsd_core.plugins.plugin_task import end_tasks
from gsd_core.plugins.validation import fits
from gsd_core.run.step_types import collect_step_types

from .registry import make_hooks

if TYPE_CHECKING:
    import click

T = TypeVar("T")

GRACE = timedelta(seconds=5)
"""How long a canceled plugin may take to stop."""
DECLINE_LIMIT = timedelta(seconds=1)
LIMIT = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)
# In turns of the event loop: before the plugin starts, at its first awaits, and a little later.
_CANCEL_AFTER = (0, 1, 3, 10)


def check_execute_step(
    plugin: object, step: StepRequest, host: StepHost, *, declines: StepRequest | None = None
) -> StepResult | None:
    """Check ``gsd_execute_step``; *declines* is a step that the plugin must leave to others."""
    _check_declines(plugin, specs.gsd_execute_step, declines, host)
    result = _check_call(plugin, specs.gsd_execute_step, step, host, limit=MINUTE)
    for file in result.files if result else ():
        inside = not Path(file.path).is_absolute() and ".." not in Path(file.path).parts
        _require(inside, f"the file {file.path!r} is not relative to the project's root")
    return result


def check_run_agent(
    plugin: object, task: AgentTask, host: AgentHost, *, declines: AgentTask | None = None
) -> AgentResult | None:
    """Check ``gsd_run_agent``; *declines* is a task that the plugin must leave to others."""
    _check_declines(plugin, specs.gsd_run_agent, declines, host)
    result = _check_call(plugin, specs.gsd_run_agent, task, host, limit=MINUTE)
    if result and result.ended == "done" and task.schema is not None:
        _require(result.value is not None, "the task has a schema, but the result has no value")
    return result


def check_wrap_step(plugin: object, step: StepRequest, call_next: RunStep) -> StepResult:
    """Check ``gsd_wrap_step`` around *call_next*, which must return a result."""
    return _check_call(plugin, specs.gsd_wrap_step, step, call_next, limit=MINUTE)


def check_find_gaps(plugin: object, phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Check ``gsd_find_gaps``; it must find the same gaps in the same tree again."""
    first, second = (_check_call(plugin, specs.gsd_find_gaps, phase, limit=MINUTE) for _ in range(2))
    lists = (found.gaps if isinstance(found, GapReport) else found or () for found in (first, second))
    before, after = (sorted(gap.key for gap in gaps) for gaps in lists)
    _require(before == after, f"found {before} at first, but {after} in the same tree later")
    return () if first is None else first


def check_find_mutants(plugin: object, source: SourceFile) -> Sequence[Mutant]:
    """Check ``gsd_find_mutants``; each fault must be within the text, and change it."""
    mutants = _check_call(plugin, specs.gsd_find_mutants, source, limit=MINUTE) or ()
    for mutant in mutants:
        inside = 0 <= mutant.start <= mutant.end <= len(source.text)
        _require(inside, f"{mutant.name!r} is from {mutant.start} to {mutant.end}, which is not in the text")
        _require(mutant.apply(source.text) != source.text, f"{mutant.name!r} changes nothing")
        lines = source.text.count("\n") + 1
        _require(1 <= mutant.first <= mutant.last <= lines, f"{mutant.name!r} is in none of {lines} lines")
    return mutants


def check_answer(plugin: object, inquiry: Inquiry, *, declines: Inquiry | None = None) -> Sequence[Answer]:
    """Check ``gsd_answer``; *declines* is an inquiry that the plugin cannot answer at all.

    A channel that waits for a person needs one who answers during the check: twice, and a second time while
    the question is open already.
    """
    _check_declines(plugin, specs.gsd_answer, declines)
    invocation = Invocation(plugin=plugin, spec=specs.gsd_answer)
    outcome, _, _ = invocation.once(inquiry)
    if outcome.reason == "timeout":
        # A channel may wait forever: then only its end is left to check.
        invocation.cancelled(inquiry)
        seconds = f"{LIMIT.total_seconds():g} s"
        raise AssertionError(
            f"nobody answered within {seconds}: if the plugin waits for a person, answer in its channel "
            "during the check, or await its hook in a task and cancel that"
        )
    answers = _check_call(plugin, specs.gsd_answer, inquiry) or ()
    questions = {question.id: question for question in inquiry.questions}
    for answer in answers:
        _require(answer.question in questions, f"answered {answer.question!r}, which was not asked")
        problem = refusal(questions[answer.question], answer)
        _require(not problem, f"the answer to {answer.question!r} is invalid: {problem}")
    return answers


def check_notify(plugin: object, notice: Notice) -> None:
    """Check ``gsd_notify``."""
    _check_call(plugin, specs.gsd_notify, notice)


def check_sandbox(
    plugin: object, process: ConfinedProcess, *, starts: bool = False
) -> SandboxedCommand | SandboxUnavailable | None:
    """Check ``gsd_sandbox``. With *starts*, processes in the place of *process* are really started.

    These have to be able to write in the places that are writable, and nowhere else; they have to get the
    environment, and their exit code has to arrive.
    """
    value = _check_call(plugin, specs.gsd_sandbox, process, limit=MINUTE)
    if isinstance(value, SandboxUnavailable):
        explained = bool(value.reason and value.fix)
        _require(explained, "it is not available, but the reason or the fix is missing")
    if isinstance(value, SandboxedCommand):
        _require(bool(value.command), "the command is empty")
    if starts:
        _require(isinstance(value, SandboxedCommand), f"nothing can be started: {value}")
        _check_confined(plugin, process)
    return value


def _check_confined(plugin: object, process: ConfinedProcess) -> None:
    name = f"gsd-{secrets.token_hex(4)}"

    def run(script: str) -> subprocess.CompletedProcess[bytes]:
        shell = attrs.evolve(process, command=("/bin/sh", "-c", f"{script} 2>/dev/null"))
        [outcome] = _run(Invocation(plugin=plugin, spec=specs.gsd_sandbox).call(shell))
        confined: SandboxedCommand = _value(outcome)
        environment = dict(confined.environment)
        return subprocess.run(
            confined.command, cwd=process.cwd, env=environment, check=False, stderr=subprocess.PIPE
        )

    ended = run("exit 7")
    said = ended.stderr.decode(errors="replace").strip()[-500:]
    wrote = f", and wrote: {said}" if said else ""
    wrong = f"the exit code of the process does not arrive: 'exit 7' ended with {ended.returncode}{wrote}"
    _require(ended.returncode == 7, wrong)
    for key, value in process.environment.items():
        is_set = run(f'test "${key}" = {shlex.quote(value)}').returncode == 0
        _require(is_set, f"the variable {key} is not {value!r} inside")
    for place in process.places:
        if place.source.is_dir():
            run(f"echo x > {shlex.quote(str(place.path / name))}")
            written = (place.source / name).exists()
            (place.source / name).unlink(missing_ok=True)
            can = "can" if written else "cannot"
            _require(written == place.writable, f"the process {can} write to {place.path}")
    for folder in {Path.home(), Path(tempfile.gettempdir()), Path("/var/tmp")}:
        if not any(folder.is_relative_to(place.path) for place in process.places):
            run(f"echo x > {shlex.quote(str(folder / name))}")
            written = (folder / name).exists()
            (folder / name).unlink(missing_ok=True)
            _require(not written, f"the process can write to {folder}")


def check_permit_tool(plugin: object, use: ToolUse) -> Permission | None:
    """Check ``gsd_permit_tool``; the plugin has 2 s."""
    return _check_call(plugin, specs.gsd_permit_tool, use, limit=timedelta(seconds=2))


def check_check_budget(plugin: object, spend: Spend) -> Stop | Pause | Postpone | Cap | None:
    """Check ``gsd_check_budget``."""
    return _check_call(plugin, specs.gsd_check_budget, spend)


def check_workspace(plugin: object, step: StepRequest, *, declines: StepRequest | None = None) -> Path | None:
    """Check ``gsd_workspace``: the path that it yields must be an existing folder."""
    _check_declines(plugin, specs.gsd_workspace, declines)
    context = _check_call(plugin, specs.gsd_workspace, step)
    if context is None:
        return None

    def check_folder(yielded: Sequence[object]) -> None:
        [tree] = yielded
        _require(isinstance(tree, Path) and tree.is_dir(), f"the workspace {tree!r} is not a folder")

    [tree] = _check_contexts(specs.gsd_workspace, [context], during=check_folder)
    return Path(str(tree))


def check_on_event(plugin: object, event: Event) -> None:
    """Check ``gsd_on_event``."""
    _check_call(plugin, specs.gsd_on_event, event)


def check_lifespan(plugin: object, run: RunInfo) -> None:
    """Check ``gsd_lifespan``: its context managers can be entered and exited, and leave no task."""
    _check_contexts(specs.gsd_lifespan, _contributions(plugin, specs.gsd_lifespan, run))


def check_write_config(plugin: object, project: ProjectInfo) -> tuple[ConfigValue, ...]:
    """Check ``gsd_write_config``: it must not propose a key twice."""
    values = _contributions(plugin, specs.gsd_write_config, project)
    _require_unique(value.key for value in values)
    return values


def check_settings(plugin: object) -> tuple[type[Any], ...]:
    """Check ``gsd_settings``: each class has defaults for all its fields, of the declared types."""
    classes = _contributions(plugin, specs.gsd_settings)
    for cls in classes:
        _require(attrs.has(cls), f"{cls.__name__} is not an attrs class")
        missing = [f.name for f in attrs.fields(cls) if f.init and f.default is attrs.NOTHING]
        _require(not missing, f"{cls.__name__}: no default for {', '.join(missing)}")
        made = cls()
        for field in attrs.fields(attrs.resolve_types(cls)):
            value = getattr(made, field.name)
            wrong = f"{cls.__name__}.{field.name}: the default {value!r} is not of the type {field.type}"
            _require(not field.init or fits(value, field.type), wrong)
    return classes


def check_steps(plugin: object, *situations: StepSituation) -> tuple[StepType, ...]:
    """Check ``gsd_steps``: the kinds are valid, and whether a step is due is the same when asked again.

    :func:`check_execute_step` checks that the plugin executes a step.
    """
    types = _contributions(plugin, specs.gsd_steps)
    _require_unique(one.kind for one in types)
    try:
        collect_step_types(make_hooks(plugin))
    except ConfigError as exc:
        raise AssertionError(str(exc)) from exc
    for one in types:
        _require(bool(one.title.strip()), f"the kind {one.kind!r} has no title")
        for path in one.writes:
            # Filled in as in a run: "{phase}" begins with ".planning/phases/".
            shown = path.replace("{phase}", ".planning/phases/01-one").replace("{number}", "01")
            inside = bool(path) and not Path(shown).is_absolute() and ".." not in Path(shown).parts
            _require(inside, f"{one.kind!r} writes {path!r}, which is not relative to the project's root")
            unknown = f"{one.kind!r} writes {path!r}: only {{phase}} and {{number}} are known"
            _require("{" not in shown, unknown)
        for situation in situations:
            began = time.monotonic()
            # As objects, because an author may have returned anything.
            answers: list[object] = [one.due(situation) for _ in range(2)]
            first, second = answers
            _require(isinstance(first, bool), f"due of {one.kind!r} returned {first!r}, not a bool")
            _require(first == second, f"due of {one.kind!r} returned {first}, then {second}")
            seconds = (time.monotonic() - began) / 2
            quick = seconds < DECLINE_LIMIT.total_seconds()
            _require(quick, f"due of {one.kind!r} took {seconds:.1f} s; it is asked again and again")
    return types


def check_dispatch(plugin: object) -> Dispatcher | None:
    """Check ``gsd_dispatch``: it returns a dispatcher; no unit is submitted."""
    found: Any = _check_call(plugin, specs.gsd_dispatch)
    if found is None or isinstance(found, Dispatcher):
        return found
    names = "submit, facts, wait, answer and cancel"
    raise AssertionError(f"{found!r} is not a dispatcher: it needs the methods {names}")


def check_session_host(plugin: object) -> SessionHost | None:
    """Check ``gsd_session_host``: it returns a host, whose list of sessions can be read.

    A command that cannot be done yet has to be refused, since no other session will do what is missing: the
    command is ``gsd --version`` in a new folder.
    """
    host: Any = _check_call(plugin, specs.gsd_session_host)
    if host is None:
        return None
    if not isinstance(host, SessionHost):
        raise AssertionError(f"{host!r} is not a session host: it needs the methods start, stop and list")
    ids = [session.id for session in host.list()]
    _require_unique(ids)
    with tempfile.TemporaryDirectory() as name:
        request = SessionRequest(
            arguments=("--version",), folder=Path(name), project=Path(name), not_yet="phase 1 has no plans"
        )
        try:
            session = host.start(request)
        except UserError:
            return host
    raise AssertionError(f"start ignores not_yet of the request: it started session {session.id!r}")


def check_cli_commands(plugin: object) -> tuple[click.Command, ...]:
    """Check ``gsd_cli_commands``: each command has a unique name and a help text."""
    commands = _contributions(plugin, specs.gsd_cli_commands)
    for command in commands:
        _require(bool(command.help), f"the command {command.name!r} has no help")
    _require_unique(str(command.name) for command in commands)
    return commands


def check_doctor(plugin: object) -> tuple[Finding, ...]:
    """Check ``gsd_doctor``: each problem comes with a fix."""
    findings = _contributions(plugin, specs.gsd_doctor)
    for finding in findings:
        _require(finding.ok or bool(finding.fix), f"the finding {finding.name!r} is not ok and has no fix")
    return findings


def check_panels(plugin: object, project: Path) -> tuple[Panel, ...]:
    """Check ``gsd_panels``: each panel has a unique name and a title, and consists of texts."""
    panels = _contributions(plugin, specs.gsd_panels, project)
    for panel in panels:
        fits = all(len(row) == len(panel.columns) for row in panel.rows)
        _require(fits, f"the panel {panel.name!r} has a row that does not fit its columns")
        _require(bool(panel.title), f"the panel {panel.name!r} has no title")
        cells = itertools.chain(panel.columns, *panel.rows, *panel.figures.items())
        texts: list[object] = [panel.name, panel.title, panel.text, *cells]
        _require(all(isinstance(one, str) for one in texts), f"the panel {panel.name!r} has not only texts")
    _require_unique(panel.name for panel in panels)
    return panels


def check_links(plugin: object, notice: Notice) -> tuple[str, ...]:
    """Check ``gsd_links``: each is a URL of a page, without user or password."""
    links = _contributions(plugin, specs.gsd_links, notice)
    for link in links:
        parts = urlsplit(link)
        _require(parts.scheme in ("http", "https") and bool(parts.hostname), f"not a URL of a page: {link!r}")
        _require(not parts.username and not parts.password, "a link contains a user name or a password")
    return links


@attrs.frozen(kw_only=True)
class Invocation:
    """Calls one asynchronous hook of a plugin in various ways, each in a new event loop.

    *limit* is the time limit of the hook. *tick* is called again and again while a call by :meth:`once` does
    not block the event loop. Each method raises ``AssertionError`` if a task is left behind.
    """

    plugin: object
    spec: Callable[..., Any]
    limit: timedelta = LIMIT
    tick: Callable[[], None] = lambda: None

    def once(self, *args: object) -> tuple[Outcome[Any], float, float]:
        """Call it once; return the outcome, its seconds, and how many of them it blocked the loop at most."""
        return _run(self._timed(args))

    def twice(self, *args: object) -> None:
        """Call it twice concurrently; raise ``AssertionError`` if a call fails."""

        async def call() -> None:
            for [outcome] in await asyncio.gather(self.call(*args), self.call(*args)):
                _value(outcome)

        _run(call())

    def cancelled(self, *args: object) -> None:
        """Cancel it at several points; raise ``AssertionError`` if it does not stop."""
        for turns in _CANCEL_AFTER:
            _run(self._cancel_after(turns, args))

    def hooks(self) -> Hooks:
        """Return hooks with this plugin only."""
        hooks = attrs.evolve(make_hooks(self.plugin), grace=GRACE)
        _require(bool(hooks.plugins_of(self.spec)), f"the plugin does not implement {self.spec.__name__}")
        return hooks

    async def call(self, *args: object) -> list[Outcome[Any]]:
        """Call it in the running event loop; return the outcome."""
        return await self.hooks().try_out(self.spec, self.limit, *args)

    async def _timed(self, args: tuple[object, ...]) -> tuple[Outcome[Any], float, float]:
        clock = asyncio.get_running_loop().time
        ticks = [clock()]

        async def tick() -> None:
            while True:
                self.tick()
                await asyncio.sleep(0.01)
                ticks.append(clock())

        ticking = asyncio.create_task(tick())
        try:
            [outcome] = await self.call(*args)
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])
        ticks.append(clock())
        # While the plugin blocks the loop, there are no ticks.
        blocked = max(later - earlier for earlier, later in itertools.pairwise(ticks))
        return outcome, ticks[-1] - ticks[0], blocked

    async def _cancel_after(self, turns: int, args: tuple[object, ...]) -> None:
        failures: list[PluginFailure] = []
        hooks = attrs.evolve(self.hooks(), report=failures.append)
        # The limit must not end the call before the cancellation does.
        task = asyncio.create_task(hooks.try_out(self.spec, timedelta(hours=1), *args))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        stuck = any(failure.reason == "ignored cancellation" for failure in failures)
        _require(not stuck, f"{self.spec.__name__} did not stop within {GRACE} when canceled")


def _check_call(
    plugin: object, spec: Callable[..., Coroutine[Any, Any, T]], *args: object, limit: timedelta = LIMIT
) -> T:
    """Call the plugin alone, twice concurrently, and canceled; return its value."""
    invocation = Invocation(plugin=plugin, spec=spec, limit=limit)
    outcome, _, _ = invocation.once(*args)
    value: T = _value(outcome)
    invocation.twice(*args)
    invocation.cancelled(*args)
    return value


def _check_declines(plugin: object, spec: Callable[..., Any], declines: object, *args: object) -> None:
    """Check that the plugin leaves *declines* to others, if the caller names one."""
    if declines is None:
        return
    outcome, _, _ = Invocation(plugin=plugin, spec=spec, limit=DECLINE_LIMIT).once(declines, *args)
    value = _value(outcome)
    _require(value is None, f"{spec.__name__} should decline by returning None, but returned {value!r}")


def _check_contexts(
    spec: Callable[..., Any],
    contexts: Iterable[AbstractAsyncContextManager[object]],
    during: Callable[[Sequence[object]], None] = lambda _: None,
) -> Sequence[object]:
    """Enter and exit *contexts*; return what they yielded."""

    async def enter() -> Sequence[object]:
        async with AsyncExitStack() as stack:
            yielded: list[object] = []
            for context in contexts:
                # Entered as in a run, so that even a context that ignores its cancellation ends.
                isolated = PluginContext(plugin="plugin", hook=spec.__name__, context=context, grace=GRACE)
                yielded.append(await stack.enter_async_context(entered(isolated, 2 * GRACE)))
            during(yielded)
        return yielded

    try:
        return _run(enter())
    except (PluginError, StepError) as exc:
        raise AssertionError(f"{spec.__name__}: {getattr(exc, 'cause_text', exc)}") from exc


def _contributions(plugin: object, spec: Callable[..., Iterable[T]], *args: object) -> tuple[T, ...]:
    """Return what the plugin contributes, which must be as many items the second time."""
    hooks = Invocation(plugin=plugin, spec=spec).hooks()
    # Unique names, so that duplicates are not refused here: the check of the hook names them.
    number = itertools.count()
    first, second = (hooks.collect(spec, lambda _: str(next(number)), *args) for _ in range(2))
    for failure in (*first.failures, *second.failures):
        raise AssertionError(str(failure)) from failure
    same = len(first.items) == len(second.items)
    _require(same, f"{spec.__name__} contributes something else the second time")
    return tuple(item for _, item in first.items)


def _run(main: Coroutine[Any, Any, T]) -> T:
    """Run *main* in a new event loop; raise ``AssertionError`` if it leaves a task behind."""

    async def run() -> T:
        try:
            value = await main
            left = sorted(task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()})
            _require(not left, f"left tasks behind: {', '.join(left)}")
            return value
        finally:
            await end_tasks(DECLINE_LIMIT)

    return asyncio.run(run())


def _value(outcome: Outcome[Any]) -> Any:
    if outcome.error:
        raise AssertionError(str(outcome.error)) from outcome.error
    return outcome.value


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _require_unique(names: Iterable[str]) -> None:
    listed = list(names)
    duplicates = sorted({name for name in listed if listed.count(name) > 1})
    _require(not duplicates, f"contributed more than once: {', '.join(duplicates)}")
