"""Whether a plugin keeps the contract of a hook: one function for each hook, without pytest.

Each runs the plugin several times: alone, with another run in the same loop, and cancelled at
several points. It raises ``AssertionError`` with a clear text, or returns what the plugin
returned, for assertions of your own. A plugin is a module, or an object with marked methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from gsd_core import hookspecs as specs
from gsd_core.hookspecs import ConfigValue, Finding, ProjectInfo, RunInfo
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Permission, ToolUse
from gsd_core.model.event import Event
from gsd_core.model.gap import Gap, GapReport
from gsd_core.model.notice import Notice
from gsd_core.model.question import Answer, Inquiry, refusal
from gsd_core.model.step import RunStep, StepHost, StepRequest, StepResult
from gsd_core.model.usage import Pause, Spend, Stop
from gsd_core.planning.model import PhaseView

from .conformance_runs import check_call, check_contexts, check_declines, contributed, holds

if TYPE_CHECKING:
    import click

T = TypeVar("T")
MINUTE = timedelta(minutes=1)


def check_execute_step(
    plugin: object, step: StepRequest, host: StepHost, *, declines: StepRequest | None = None
) -> StepResult | None:
    """Check ``gsd_execute_step``; *declines* is a step that must be left to others."""
    if declines is not None:
        check_declines(plugin, specs.gsd_execute_step, declines, host)
    result: StepResult | None = check_call(plugin, specs.gsd_execute_step, step, host, limit=MINUTE)
    for file in result.files if result else ():
        inside = not Path(file.path).is_absolute() and ".." not in Path(file.path).parts
        holds(inside, f"the file {file.path!r} is not relative to the project's root")
    return result


def check_run_agent(
    plugin: object, task: AgentTask, host: AgentHost, *, declines: AgentTask | None = None
) -> AgentResult | None:
    """Check ``gsd_run_agent``; *declines* is a task that must be left to others."""
    if declines is not None:
        check_declines(plugin, specs.gsd_run_agent, declines, host)
    result: AgentResult | None = check_call(plugin, specs.gsd_run_agent, task, host, limit=MINUTE)
    if result and result.ended == "done" and task.schema is not None:
        holds(result.value is not None, "the task has a schema, and the result has no value")
    return result


def check_wrap_step(plugin: object, step: StepRequest, call_next: RunStep) -> StepResult:
    """Check ``gsd_wrap_step`` around *call_next*, which must return a result."""
    result: StepResult = check_call(plugin, specs.gsd_wrap_step, step, call_next, limit=MINUTE)
    return result


def check_find_gaps(plugin: object, phase: PhaseView) -> Sequence[Gap] | GapReport:
    """Check ``gsd_find_gaps``; what it finds in the same tree twice must be the same."""
    first: Sequence[Gap] | GapReport = check_call(plugin, specs.gsd_find_gaps, phase, limit=MINUTE)
    again: Sequence[Gap] | GapReport = check_call(plugin, specs.gsd_find_gaps, phase, limit=MINUTE)
    holds(_keys(first) == _keys(again), f"found {_keys(first)}, and in the same tree {_keys(again)}")
    return first


def check_answer(plugin: object, inquiry: Inquiry, *, declines: Inquiry | None = None) -> Sequence[Answer]:
    """Check ``gsd_answer``; *declines* is an inquiry of which it can answer nothing."""
    if declines is not None:
        check_declines(plugin, specs.gsd_answer, declines)
    answers: Sequence[Answer] = check_call(plugin, specs.gsd_answer, inquiry) or ()
    questions = {question.id: question for question in inquiry.questions}
    for answer in answers:
        holds(answer.question in questions, f"answered {answer.question!r}, which was not asked")
        problem = refusal(questions[answer.question], answer)
        holds(not problem, f"the answer to {answer.question!r} does not fit: {problem}")
    return answers


def check_notify(plugin: object, notice: Notice) -> None:
    """Check ``gsd_notify``."""
    check_call(plugin, specs.gsd_notify, notice)


def check_permit_tool(plugin: object, use: ToolUse) -> Permission | None:
    """Check ``gsd_permit_tool``; it has 2 s."""
    permission: Permission | None = check_call(plugin, specs.gsd_permit_tool, use, limit=timedelta(seconds=2))
    return permission


def check_check_budget(plugin: object, spend: Spend) -> Stop | Pause | None:
    """Check ``gsd_check_budget``."""
    verdict: Stop | Pause | None = check_call(plugin, specs.gsd_check_budget, spend)
    return verdict


def check_workspace(plugin: object, step: StepRequest, *, declines: StepRequest | None = None) -> Path | None:
    """Check ``gsd_workspace``: the tree that it gives is there."""
    if declines is not None:
        check_declines(plugin, specs.gsd_workspace, declines)
    made: AbstractAsyncContextManager[Path] | None = check_call(plugin, specs.gsd_workspace, step)
    if made is None:
        return None
    [tree] = check_contexts([made], during=lambda trees: _are_folders(trees))
    return Path(str(tree))


def check_on_event(plugin: object, event: Event) -> None:
    """Check ``gsd_on_event``."""
    check_call(plugin, specs.gsd_on_event, event)


def check_lifespan(plugin: object, run: RunInfo) -> None:
    """Check ``gsd_lifespan``: what it gives can be entered and left, and leaves no task."""
    check_contexts(contributed(plugin, specs.gsd_lifespan, run))


def check_write_config(plugin: object, project: ProjectInfo) -> tuple[ConfigValue, ...]:
    """Check ``gsd_write_config``: it proposes a key once only."""
    values: tuple[ConfigValue, ...] = contributed(plugin, specs.gsd_write_config, project)
    return _once(values, [value.key for value in values])


def check_settings(plugin: object) -> tuple[type[Any], ...]:
    """Check ``gsd_settings``: each class can be made without arguments."""
    classes: tuple[type[Any], ...] = contributed(plugin, specs.gsd_settings)
    for kind in classes:
        holds(attrs.has(kind), f"{kind.__name__} is not an attrs class")
        bare = [f.name for f in attrs.fields(kind) if f.init and f.default is attrs.NOTHING]
        holds(not bare, f"{kind.__name__}: no default for {', '.join(bare)}")
        kind()
    return classes


def check_cli_commands(plugin: object) -> tuple[click.Command, ...]:
    """Check ``gsd_cli_commands``: each command has a name of its own and a help text."""
    commands: tuple[click.Command, ...] = contributed(plugin, specs.gsd_cli_commands)
    for command in commands:
        holds(bool(command.help), f"the command {command.name!r} has no help")
    return _once(commands, [str(command.name) for command in commands])


def check_doctor(plugin: object) -> tuple[Finding, ...]:
    """Check ``gsd_doctor``: whatever is not well comes with a fix."""
    findings: tuple[Finding, ...] = contributed(plugin, specs.gsd_doctor)
    for finding in findings:
        holds(finding.ok or bool(finding.fix), f"the finding {finding.name!r} is not ok and has no fix")
    return findings


def _keys(found: Sequence[Gap] | GapReport) -> list[str]:
    gaps = found.gaps if isinstance(found, GapReport) else found
    return sorted(gap.key for gap in gaps)


def _are_folders(trees: Sequence[object]) -> None:
    for tree in trees:
        holds(isinstance(tree, Path) and tree.is_dir(), f"the workspace {tree!r} is not a folder")


def _once(values: tuple[T, ...], names: Sequence[str]) -> tuple[T, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    holds(not twice, f"contributed more than once: {', '.join(twice)}")
    return values
