"""``gsd plugins check``: check a plugin against named rules.

:mod:`.static_checks` reads the plugin's files. :mod:`.runner` imports it and :mod:`.invocation` calls its
hooks, in a separate process and in an empty project.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs

from gsd_core.errors import UserError

from . import static_checks
from .rules import RULES as RULES
from .rules import Rule
from .runner import run_plugin
from .target import Target as Target
from .target import find_target as find_target

SCHEMA_VERSION = 1

Status: TypeAlias = Literal["holds", "broken", "skipped"]


@attrs.frozen(kw_only=True)
class RuleResult:
    """The result for one rule: *problems* if it is broken, a *reason* if little or nothing was checked."""

    rule: Rule
    status: Status
    problems: tuple[str, ...] = ()
    reason: str = ""


def check_plugin(
    target: Target, *, commands: Collection[str] = (), run_agent: bool = False
) -> tuple[RuleResult, ...]:
    """Return a result for each rule; *commands* are the names of built-in subcommands.

    An agent is called only with *run_agent*. The plugin's process is ended after three minutes.
    """
    findings = run_plugin(target, list(commands), run_agent=run_agent)
    try:
        static = _static_problems(target, sorted(findings.hooks))
    except UserError as error:
        static = {"imports": [str(error)]}
    results: list[RuleResult] = []
    for rule in RULES:
        problems = [text for name, text in findings.problems if name == rule.id]
        reason = findings.skipped.get(rule.id, "the plugin has no such hook")
        checked = rule.id in findings.checked
        if rule.id in static:
            found = static[rule.id]
            problems += found or ()
            checked = checked or found is not None
            reason = reason if found is not None else "does not apply to this kind of plugin"
        if problems:
            results.append(RuleResult(rule=rule, status="broken", problems=tuple(problems)))
        elif checked:
            quiet = [hook for hook, answered in findings.answered.items() if not answered]
            hooks = ", ".join(hook for hook in quiet if hook not in _NO_RESULT)
            # Little was checked of a hook that has declined each call.
            note = f"declined everything: {hooks}" if hooks and rule.id == "returns" else ""
            results.append(RuleResult(rule=rule, status="holds", reason=note))
        else:
            results.append(RuleResult(rule=rule, status="skipped", reason=reason))
    return tuple(results)


_NO_RESULT = {"gsd_on_event", "gsd_notify", "gsd_find_gaps", "gsd_find_mutants"}


def _static_problems(target: Target, hooks: Sequence[str]) -> Mapping[str, Sequence[str] | None]:
    """Return the problems in the plugin's files by rule; ``None`` for a rule that does not apply."""
    readable, packaged = bool(target.sources), target.folder is not None
    # The entry point of a built-in plugin is not in a pyproject.toml, and a module may not have one at all.
    installable = packaged and target.kind in ("folder", "installed")
    declares = readable and bool(static_checks.declared_dependencies(target))
    return {
        "public-imports": [*static_checks.private_imports(target)] if readable else None,
        "declared": [*static_checks.undeclared_imports(target)] if declares else None,
        "entry-point": [*static_checks.entry_point_problems(target)] if installable else None,
        "packaged": [*static_checks.packaging_problems(target)] if installable else None,
        "documented": [*static_checks.missing_docs(target)] if readable else None,
        "typed": [*static_checks.missing_types(target)] if readable else None,
        "tested": [*static_checks.untested_hooks(target, hooks)] if packaged else None,
        "no-state": [*static_checks.global_statements(target)] if readable else [],
    }
