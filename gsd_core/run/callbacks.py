"""The callbacks that a plugin passes to ``StepHost.run_agent``: ``accept`` and functions for the agent.

They are the plugin's code, but run in the middle of an agent call, on the core's stack: an exception in
one of them would look like a failure of the agent, or of gsd itself. So each call is guarded in the same
way as a call of the plugin's hooks: it ends with a value of the right type, a ``StepError``, or a
``PluginError`` with the plugin's name. Callbacks only get data that matches the task's JSON schemas.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from gsd_core.codec import unstructure
from gsd_core.errors import PluginError, PluginRefused, StepError
from gsd_core.model.agent import AgentResult, AgentTask
from gsd_core.model.step import Accept, Functions
from gsd_core.plugins.call_group import CallGroup
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.isolation import Call, call_blocking, describe, report_failure
from gsd_core.plugins.validation import fits
from gsd_core.sanitize import clip, sanitize

from .timeouts import InactivityTimeout

HOOK = "gsd_execute_step"
MAX_PROBLEMS = 10
MAX_PROBLEM_LENGTH = 300

_valid_schemas: set[str] = set()
"""JSON texts of the schemas that were found to be valid: checking one takes 40 ms."""


@attrs.frozen(kw_only=True)
class Callbacks:
    """The callbacks of *plugin* for one agent call; *limit* is how long a function may be inactive."""

    plugin: str
    hooks: Hooks
    limit: timedelta
    accept: Accept | None = None
    functions: Functions = attrs.field(factory=dict[str, Any])

    def complaints(self, task: AgentTask, result: AgentResult) -> tuple[str, ...]:
        """Return what is wrong with an agent's result: by the task's schema, else by ``accept``.

        A plain function that hangs cannot be stopped; the watchdog names the plugin.
        """
        if task.schema is not None and (problems := self._validate(result.value, task.schema)):
            return problems
        accept = self.accept
        if accept is None:
            return ()
        try:
            found: Any = call_blocking(Call(self.plugin, HOOK), lambda: accept(result))
            if found is None:
                return ()
            if fits(found, Sequence[str]):
                return tuple(found)
            if inspect.iscoroutine(found):
                found.close()  # else Python warns that it was never awaited
            raise self._error(f"accept returned {type(found).__name__}, not a list of strings")
        except (PluginError, StepError) as exc:
            self._report(exc)
            raise

    async def call(self, task: AgentTask, name: str, arguments: Mapping[str, Any]) -> str:
        """Call the function *name* for the agent, and return the text for the model."""
        function = self.functions.get(name)
        if function is None:
            return f"There is no function {name!r}."
        schema = next((known.schema for known in task.functions if known.name == name), None)
        if schema is not None and (problems := self._validate(arguments, schema)):
            return f"Not valid: {'; '.join(problems)}"

        async def call_function() -> str:
            return await function(arguments)

        def check(value: object) -> str:
            return "" if isinstance(value, str) else f"{name} returned {type(value).__name__}, not a string"

        group = CallGroup(HOOK, self.hooks.grace, self.hooks.report, deciding=True)
        timeout = InactivityTimeout(idle=self.limit, hook=HOOK, culprits=lambda: self.plugin)
        try:
            async with timeout.running(), group:
                implementation: Any = _Implementation(plugin_name=self.plugin, function=call_function)
                running = group.add(implementation, {}, check)
                await group.all()
            outcome = group.outcome(running)
        except PluginError as exc:
            self._report(exc)
            raise
        if outcome.error:
            raise outcome.error
        return str(outcome.value)

    def _validate(self, value: object, schema: Mapping[str, Any]) -> tuple[str, ...]:
        """Return where *value* does not match *schema*, a line for each place; empty if it does."""
        from jsonschema import validators  # slow to import
        from referencing import Registry

        try:
            # As the agent sent it: attrs classes as objects, tuples as arrays.
            data = json.loads(json.dumps(unstructure(value), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as exc:
            return (f"not JSON: {describe(exc)[:MAX_PROBLEM_LENGTH]}",)
        try:
            kind: Any = validators.validator_for(schema)
            text = json.dumps(schema, sort_keys=True)
            if text not in _valid_schemas:
                kind.check_schema(schema)
                _valid_schemas.add(text)
            # An empty registry, because jsonschema downloads remote references by default.
            empty: Any = Registry
            errors = list(kind(schema, registry=empty()).iter_errors(data))
        except Exception as exc:  # also an invalid pattern, or a reference that is dangling or circular
            error = self._error(f"passed an invalid JSON schema: {describe(exc)[:MAX_PROBLEM_LENGTH]}")
            self._report(error)
            raise error from exc
        shown = sorted((e.json_path, e.message) for e in errors)[:MAX_PROBLEMS]
        return tuple(clip(sanitize(f"{path}: {text}"), MAX_PROBLEM_LENGTH) for path, text in shown)

    def _error(self, why: str) -> PluginError:
        return PluginError(self.plugin, HOOK, why)

    def _report(self, error: PluginError | StepError) -> None:
        # A StepError is the plugin's verdict on the attempt, not a failure of the plugin. A PluginError may
        # come from another plugin: functions call the core, and the core calls plugins.
        if isinstance(error, PluginError) and not isinstance(error, PluginRefused):
            report_failure(self.hooks.report, error.plugin, error.hook, error)


@attrs.frozen(kw_only=True)
class _Implementation:
    """What a group of calls needs of a pluggy implementation; a callback has not been registered."""

    plugin_name: str
    function: Callable[[], Awaitable[str]]
    argnames: tuple[str, ...] = ()
