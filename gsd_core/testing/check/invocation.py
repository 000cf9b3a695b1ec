"""Call every hook of a plugin with typical arguments, and record what breaks a rule.

Asynchronous hooks are called alone, again with the same arguments, twice concurrently, and canceled.
Hooks that contribute (settings, commands, …) are collected twice. None of the arguments is specific to
the plugin.
"""

from __future__ import annotations

import inspect
import os
import pickle
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import attrs

from gsd_core import hookspecs
from gsd_core.errors import GsdError, Permanent, PluginError
from gsd_core.model.event import EVENT_NAMES
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.mutant import SourceFile
from gsd_core.model.notice import NOTICE_TYPES
from gsd_core.model.sandbox import ConfinedProcess, Place
from gsd_core.model.step import StepRequest, StepResult, StepSituation
from gsd_core.planning.model import Planning
from gsd_core.plugins.call_group import Outcome
from gsd_core.plugins.loading import collect_settings
from gsd_core.settings import Layer, bind_settings, resolve
from gsd_core.testing import conformance, samples
from gsd_core.testing.conformance import Invocation
from gsd_core.testing.fakes import FakeAgentHost, FakeHost, Turn
from gsd_core.testing.registry import make_hooks

from .rules import Findings
from .runner import MAX_PAUSE, Request
from .side_effects import captured_stdout, changed, files_in, leftovers, module_variables, process_state

Arguments: TypeAlias = tuple[Any, ...]

MAX_BLOCK_SECONDS = 0.4
MAX_DECLINE_SECONDS = 1.0
FILES = {"app.py": "def add(a: int, b: int) -> int:\n    return a + b\n", "empty.txt": "", "home/.keep": ""}
_AGENT_SKIPPED = "calling an agent may cost money or need the network; use --run-agent"
_ASYNC_RULES = ("returns", "names-errors", "prompt", "cancels", "does-not-block", "same-twice", "pickles")


def call_hooks(
    plugin: object, request: Request, findings: Findings, state_before_import: Mapping[str, str]
) -> None:
    """Call every hook of *plugin*, then look for side effects."""
    project, home = Path(request.project), Path(request.home)
    module: str = request.module or getattr(plugin, "__name__", "")
    samples.write_files(project, FILES)
    variables, files = module_variables(module), files_in(project, home)
    with captured_stdout() as printed, bind_settings(_settings(plugin, request, findings)):
        for hook in findings.hooks:
            findings.begin(hook)
            with _no_long_pause(hook, findings):
                _call_hook(plugin, hook, request, findings)
            after = files_in(project, home)
            if hook == "gsd_doctor":  # it runs other programs, which store their own files in the home folder
                files |= {path: digest for path, digest in after.items() if Path(path).is_relative_to(home)}
            touched = sorted(path for path in {*files, *after} if files.get(path) != after.get(path))
            findings.add("writes-nothing", [f"{hook} changed {Path(path).name}" for path in touched[:3]])
            files = after
    # The hooks are done: if the process ends from here on, no hook is the cause.
    findings.begin("end")
    findings.add("says-nothing", [f"printed {text!r}" for text in printed])
    now = module_variables(module)
    findings.add("no-state", [f"the hooks changed {name}" for name in changed(variables, now)])
    shared = changed(state_before_import, process_state())
    findings.add("hands-off", [f"the plugin changed {name}" for name in shared])
    findings.add("leaves-nothing", [f"{name} is still running" for name in leftovers()])


def _settings(plugin: object, request: Request, findings: Findings) -> dict[type, object]:
    """Return the plugin's settings with the values that its package gives for the check."""
    if not request.settings:
        return {}
    try:
        classes = collect_settings(make_hooks(**{request.name: plugin}))
        layer = Layer(origin="pyproject.toml [tool.gsd.check]", sections={request.name: request.settings})
        return dict(resolve(classes, [layer]).values)
    except GsdError as error:
        findings.add("settings", [str(error)])
        return {}


@contextmanager
def _no_long_pause(hook: str, findings: Findings) -> Generator[None]:
    """End the process if *hook* keeps it from going on for long; what was found before is saved."""

    def stop(*_: object) -> None:
        rule = "does-not-block" if inspect.iscoroutinefunction(getattr(hookspecs, hook)) else "prompt"
        what = f"{hook}: blocked the process for {MAX_PAUSE:g} s; the hooks after it were not called"
        findings.add(rule, [what])
        findings.begin("end")
        os._exit(0)

    before = signal.signal(signal.SIGALRM, stop)
    restart_pause()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def restart_pause() -> None:
    """Begin a new pause: the process goes on."""
    signal.setitimer(signal.ITIMER_REAL, MAX_PAUSE)


def _call_hook(plugin: object, hook: str, request: Request, findings: Findings) -> None:
    spec = getattr(hookspecs, hook)
    if not inspect.iscoroutinefunction(spec):
        _check_contributions(plugin, hook, request, findings)
        return
    if hook == "gsd_run_agent" and not request.run_agent:
        for rule in _ASYNC_RULES:
            findings.skipped.setdefault(rule, _AGENT_SKIPPED)
        return
    project = Path(request.project)
    seconds, make = _CASES[hook]

    # Made for each call: a hook may change its host.
    def arguments(number: int) -> Arguments:
        return make(project)[number]

    cases: list[Callable[[], Arguments]] = [partial(arguments, n) for n in range(len(make(project)))]
    if hook == "gsd_execute_step" and "gsd_steps" in findings.hooks:
        # The kinds of steps that the plugin adds itself, as in a project without an agent.
        cases += [partial(_step_and_host, project, one.kind) for one in conformance.check_steps(plugin)]
    limit = timedelta(seconds=seconds)
    for case in cases:
        restart_pause()
        invocation = Invocation(plugin=plugin, spec=spec, limit=limit, tick=restart_pause)
        if not CaseCheck(hook=hook, arguments=case, invocation=invocation, findings=findings).run():
            return  # every further case would take just as long


def _check_contributions(plugin: object, hook: str, request: Request, findings: Findings) -> None:
    rule = "settings" if hook == "gsd_settings" else "contributes"
    try:
        first, second = (_CONTRIBUTION_CHECKS[hook](plugin, Path(request.project)) for _ in range(2))
    except AssertionError as error:
        findings.add(rule, [f"{hook}: {error}"])
        return
    except Exception as error:
        findings.add("names-errors", [f"{hook}: {type(error).__name__}: {error}"])
        return
    problems: list[str] = []
    if hook == "gsd_settings":
        problems = [problem for cls in first for problem in _settings_problems(cls)]
    if hook == "gsd_cli_commands":
        problems = [f"gsd has its own command {c.name!r}" for c in first if c.name in request.commands]
    findings.add(rule, [f"{hook}: {problem}" for problem in problems])
    # Commands and findings have no equality, and a finding may depend on the machine.
    differs = hook in ("gsd_write_config", "gsd_settings") and first != second
    findings.add("same-twice", [f"{hook} contributes something else the second time"] if differs else [])


_CONTRIBUTION_CHECKS: Mapping[str, Callable[[object, Path], Any]] = {
    "gsd_settings": lambda plugin, _: conformance.check_settings(plugin),
    "gsd_cli_commands": lambda plugin, _: conformance.check_cli_commands(plugin),
    "gsd_doctor": lambda plugin, _: conformance.check_doctor(plugin),
    "gsd_steps": lambda plugin, project: conformance.check_steps(
        plugin, samples.a_situation(project), StepSituation(project=project, planning=Planning())
    ),
    "gsd_write_config": lambda plugin, project: conformance.check_write_config(
        plugin, samples.a_project(project)
    ),
    "gsd_panels": lambda plugin, project: conformance.check_panels(plugin, project),
    "gsd_links": lambda plugin, _: conformance.check_links(plugin, samples.a_notice()),
    "gsd_lifespan": lambda plugin, project: conformance.check_lifespan(plugin, samples.a_run(project)),
}


def _settings_problems(cls: type[Any]) -> Generator[str]:
    for field in attrs.fields(cls):
        flag: str = field.metadata.get("flag", "")
        if flag and not flag.startswith("--"):
            yield f"{cls.__name__}: the flag {flag!r} does not start with --"
    if getattr(cls, "__setattr__", None) is getattr(object, "__setattr__", None):
        yield f"{cls.__name__} is not frozen"
    if not (cls.__doc__ or "").strip():
        yield f"{cls.__name__} has no docstring"


@attrs.frozen(kw_only=True)
class CaseCheck:
    """Checks the asynchronous *hook* with one case: *arguments* makes new ones for each call."""

    hook: str
    arguments: Callable[[], Arguments]
    invocation: Invocation
    findings: Findings

    def run(self) -> bool:
        """Call the hook in every way; return whether it kept its time limit."""
        first, seconds, blocked = self._call()
        rule, problem = self._judge(first)
        for name in ("returns", "names-errors", "prompt", "cancels"):
            self._add(name, [problem] if name == rule else [])
        self._add("pickles", [] if self._can_be_pickled(first) else ["the result cannot be pickled"])
        in_time = rule not in ("prompt", "cancels")
        if in_time:
            second, _, blocked_again = self._call()
            declined_late = first.value is None and first.error is None and seconds > MAX_DECLINE_SECONDS
            self._add("prompt", [f"took {seconds:.1f} s to decline"] if declined_late else [])
            # A busy machine may delay a call or two; a plugin that blocks does so every time.
            blocked = min(blocked, blocked_again)
            if blocked > MAX_BLOCK_SECONDS:
                blocked = min(blocked, self._call()[2])
            too_long = blocked > MAX_BLOCK_SECONDS
            self._add("does-not-block", [f"blocked the event loop for {blocked:.1f} s"] if too_long else [])
            differs = not first.error and not second.error and self._value(first) != self._value(second)
            self._add("same-twice", ["returned something else the second time"] if differs else [])
            self._check("leaves-nothing", self.invocation.twice)
        self._check("cancels", self.invocation.cancelled)
        return in_time

    def _call(self) -> tuple[Outcome[Any], float, float]:
        try:
            called = self.invocation.once(*self.arguments())
            took_part = called[0].value is not None or called[0].error is not None
            self.findings.answered[self.hook] = self.findings.answered.get(self.hook, False) or took_part
            return called
        except AssertionError as error:
            self._add("leaves-nothing", [str(error)])
            return Outcome(plugin=""), 0.0, 0.0

    def _check(self, rule: str, call: Callable[..., None]) -> None:
        # A call may wait for its limit here, which blocks nothing.
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            call(*self.arguments())
        except AssertionError as error:
            # A wrong result or exception has been recorded by the first call.
            text = str(error)
            self._add(rule, [text] if "did not stop within" in text or "left tasks" in text else [])
        else:
            self._add(rule, [])

    def _judge(self, outcome: Outcome[Any]) -> tuple[str, str]:
        """Return the rule that the outcome breaks, and how; both empty if it breaks none."""
        error = outcome.error
        if not isinstance(error, PluginError):
            return "", ""
        if outcome.reason == "timeout":
            limit = self.invocation.limit.total_seconds()
            # A human may take any time to answer.
            may_wait = self.hook == "gsd_answer"
            return ("", "") if may_wait else ("prompt", f"no result within {limit:g} s")
        if outcome.reason == "ignored cancellation":
            return "cancels", "keeps running when canceled"
        if outcome.reason == "invalid":
            return "returns", error.cause_text
        return "names-errors", error.cause_text

    def _value(self, outcome: Outcome[Any]) -> Any:
        """Return the part of a value that must be the same when the hook is called again."""
        value = outcome.value
        if value is None or self.hook not in _REPEATABLE:
            return None
        if self.hook == "gsd_find_gaps":
            gaps: tuple[Gap, ...] = value.gaps if isinstance(value, GapReport) else tuple(value)
            return sorted((gap.key, gap.reason) for gap in gaps)
        return value

    def _can_be_pickled(self, outcome: Outcome[Any]) -> bool:
        if self.hook == "gsd_workspace" and not outcome.error:
            return True  # a context manager, which is used once and not kept
        given: Any = outcome.error or outcome.value
        try:
            copy = pickle.loads(pickle.dumps(given))
        except Exception:
            return False
        return type(copy) is type(given) and str(copy) == str(given)

    def _add(self, rule: str, problems: list[str]) -> None:
        self.findings.add(rule, [f"{self.hook}: {problem}" for problem in problems])


_REPEATABLE = {
    *("gsd_sandbox", "gsd_find_gaps", "gsd_find_mutants", "gsd_permit_tool"),
    *("gsd_check_budget", "gsd_execute_step"),
}


def _no_agent(turn: Turn) -> None:
    raise Permanent("no agent is available in a check")


def _step_and_host(project: Path, kind: str) -> Arguments:
    return samples.a_step(project, kind), FakeHost(agent=_no_agent)


def _agent_tasks(project: Path) -> list[Arguments]:
    with_schema = samples.a_task(project, "Summarize the project in one word.", schema=samples.SCHEMA)
    return [(samples.a_task(project, "Say OK."), FakeAgentHost()), (with_schema, FakeAgentHost())]


def _wrapped_steps(project: Path) -> list[Arguments]:
    async def attempt(step: StepRequest, /) -> StepResult:
        return StepResult(subject=step.id)

    return [(samples.a_step(project), attempt)]


def _phases(project: Path) -> list[Arguments]:
    with_files = samples.a_phase(project, plans=(samples.a_plan(*FILES, "gone.py"),))
    return [(samples.a_phase(project),), (with_files,)]


def _inquiries(project: Path) -> list[Arguments]:
    database = samples.an_inquiry("Which database?", "SQLite", "PostgreSQL")
    action = samples.a_question("Has the API key been created?", human_only=True)
    return [(database,), (attrs.evolve(database, questions=(action,)),)]


def _tool_uses(project: Path) -> list[Arguments]:
    tools = ("Bash", "Read", "Write", "WebFetch", "mcp__any__thing")
    # Models produce input like this; a policy must not fail on it.
    commands: tuple[object, ...] = ("", "rm -rf / 'unfinished", "x" * 20_000, None)
    uses = [samples.a_use(project, tool) for tool in tools]
    uses.append(samples.a_use(project, input={}))
    uses += [samples.a_use(project, input={"command": command}) for command in commands]
    return [(use,) for use in uses]


def _processes(project: Path) -> list[Arguments]:
    home = project / "home"
    places = (Place(path=project, source=project, writable=True), Place(path=home, source=home))
    env = {"HOME": str(home)}
    process = ConfinedProcess(command=("true",), cwd=project, environment=env, places=places, home=home)
    return [(process,), (attrs.evolve(process, command=("sh", "-c", "exit 1"), descriptors=(0,)),)]


def _sources(project: Path) -> list[Arguments]:
    adder = "def add(a, b):\n    return a + b if b > 0 else 20\n"
    texts = {"adder.py": adder, "empty.js": "", "data.bin": "\0"}
    return [(SourceFile(root=project, path=path, text=text),) for path, text in texts.items()]


def _spends(project: Path) -> list[Arguments]:
    much = samples.a_spend(spent=Decimal(10**6), calls=10**6, unknown_calls=3)
    return [(samples.a_spend(calls=0, spent=Decimal(0)),), (much,)]


_KINDS = ("init", "discuss", "plan", "execute", "verify", "complete", "research")
_CASES: Mapping[str, tuple[float, Callable[[Path], list[Arguments]]]] = {
    "gsd_execute_step": (30, lambda project: [_step_and_host(project, kind) for kind in _KINDS]),
    "gsd_run_agent": (60, _agent_tasks),
    "gsd_wrap_step": (10, _wrapped_steps),
    "gsd_find_gaps": (60, _phases),
    "gsd_find_mutants": (60, _sources),
    "gsd_answer": (2, _inquiries),
    "gsd_notify": (10, lambda project: [(samples.a_notice(type=name),) for name in NOTICE_TYPES]),
    "gsd_sandbox": (10, _processes),
    "gsd_permit_tool": (2, _tool_uses),
    "gsd_check_budget": (2, _spends),
    "gsd_session_host": (10, lambda project: [()]),
    "gsd_dispatch": (10, lambda project: [()]),
    "gsd_workspace": (10, lambda project: [(samples.a_step(project),)]),
    "gsd_on_event": (2, lambda project: [(samples.an_event(name),) for name in EVENT_NAMES]),
}
"""The time limit of each hook in seconds, and its arguments."""
