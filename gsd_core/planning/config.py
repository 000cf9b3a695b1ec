"""``.planning/config.json``: read it, and write a new one with the defaults of GSD v1.20.5.

Later versions of GSD moved and renamed keys. The new and the old forms are read; keys that we do
not know are kept, as other tools may use them. :mod:`.config_keys` says what each key does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from gsd_core.errors import ConfigError, PlanningError

from .config_keys import GATES, key_of
from .markdown import read_text

T = TypeVar("T")

CONFIG = ".planning/config.json"

_GRANULARITY = {"coarse": "quick", "standard": "standard", "fine": "comprehensive"}


def default_config(depth: str = "standard", mode: str = "interactive") -> dict[str, Any]:
    """Return the config that v1.20.5 writes for a new project."""
    return {
        "mode": mode,
        "depth": depth,
        "workflow": {"research": True, "plan_check": True, "verifier": True, "auto_advance": False},
        "planning": {"commit_docs": True, "search_gitignored": False},
        "parallelization": {
            "enabled": True,
            "plan_level": True,
            "task_level": False,
            "skip_checkpoints": True,
            "max_concurrent_agents": 3,
            "min_plans_for_parallel": 2,
        },
        "gates": dict.fromkeys(GATES, True),
        "safety": {"always_confirm_destructive": True, "always_confirm_external_services": True},
        "model_profile": "balanced",
    }


def get(config: Mapping[str, Any], key: str, default: T) -> T:
    """Return the value of a dotted *key*, under its own name or one of its older ones.

    A value of another type than *default* counts as absent; with ``None`` any type is accepted.
    """
    entry = key_of(key)
    # Some keys have moved. The name of today wins, as in gsd-core.
    names = (entry.name, *entry.legacy) if entry and "<" not in entry.name else (key,)
    for name in names:
        value: Any = config
        for part in name.split("."):
            value = cast("Mapping[str, Any]", value).get(part) if isinstance(value, Mapping) else None
        if "depth" in names:
            value = _GRANULARITY.get(str(value), value)
        if value is not None and (default is None or type(value) is type(default)):
            return cast("T", value)
    return default


MAX_PARALLEL = 3
"""How many plans are executed at the same time, unless the config says something else; as in v1.20.5."""


def max_parallel(config: Mapping[str, Any]) -> int:
    """Return how many plans may be executed at the same time."""
    switches = [get(config, f"parallelization.{name}", True) for name in ("enabled", "plan_level")]
    if config.get("parallelization") is False or not all(switches):
        return 1
    return max(1, get(config, "parallelization.max_concurrent_agents", MAX_PARALLEL))


BRANCH_TEMPLATES = {
    "phase": ("gsd/phase-{phase}-{slug}", ("{phase}", "{slug}")),
    "milestone": ("gsd/{milestone}-{slug}", ("{milestone}", "{slug}")),
    "quick": ("", ("{num}", "{quick}", "{slug}")),
}
"""For each kind of branch, the default template, and the parts of which a template has at least one."""


def branch_template(config: Mapping[str, Any], kind: str) -> str:
    """Return the template for branches of a *kind*, a key of :data:`BRANCH_TEMPLATES`, or an empty text.

    Raises :class:`ConfigError` for one that would give all of them the same name.
    """
    (default, parts), key = BRANCH_TEMPLATES[kind], f"git.{kind}_branch_template"
    template = get(config, key, default)
    if template and not any(part in template for part in parts):
        message = f"{CONFIG}: {key}: expected {' or '.join(parts)} in it, got {template!r}"
        raise ConfigError(message, hint="without it, all would share one branch")
    return template


def check_branch_templates(config: Mapping[str, Any]) -> None:
    """Raise :class:`ConfigError` for a template of branches that *config* asks for and nobody can use."""
    for kind in ("quick", *({get(config, "git.branching_strategy", "none")} & {"phase", "milestone"})):
        branch_template(config, kind)


def read_config(root: Path) -> dict[str, Any]:
    """Return the project's config as it is in the file, empty if there is none."""
    if not (root / CONFIG).is_file():
        return {}
    hint = "fix it, or delete it to use the defaults"
    try:
        config: object = json.loads(read_text(root, CONFIG))
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise PlanningError("is not valid JSON", path=CONFIG, line=line, hint=hint) from error
    if not isinstance(config, dict):
        raise PlanningError("is not a JSON object ({...})", path=CONFIG, line=1, hint=hint)
    return cast("dict[str, Any]", config)


def render_config(config: Mapping[str, Any]) -> str:
    """Return config.json."""
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def merge_config(defaults: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return *defaults*, overridden by *overrides*; tables are merged key by key."""
    result = dict(defaults)
    for key, value in overrides.items():
        default = result.get(key)
        if isinstance(value, dict) and isinstance(default, dict):
            result[key] = merge_config(cast("dict[str, Any]", default), cast("dict[str, Any]", value))
        else:
            result[key] = value
    return result
