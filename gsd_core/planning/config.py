"""``.planning/config.json``: read it, and write a new one with the defaults of GSD v1.20.5.

Later versions of GSD moved and renamed keys. The new and the old forms are read; keys that we do
not know are kept, as other tools may use them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from gsd_core.errors import PlanningError

from .markdown import read_text

T = TypeVar("T")

CONFIG = ".planning/config.json"

# The flat keys of early versions, and granularity, which is the name of depth since v1.22.3.
_LEGACY = {
    "workflow.research": "research",
    "workflow.plan_check": "plan_checker",
    "workflow.verifier": "verifier",
    "planning.commit_docs": "commit_docs",
    "planning.search_gitignored": "search_gitignored",
    "git.branching_strategy": "branching_strategy",
    "depth": "granularity",
}
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
        "gates": {
            "confirm_project": True,
            "confirm_phases": True,
            "confirm_roadmap": True,
            "confirm_breakdown": True,
            "confirm_plan": True,
            "execute_next_plan": True,
            "issues_review": True,
            "confirm_transition": True,
        },
        "safety": {"always_confirm_destructive": True, "always_confirm_external_services": True},
        "model_profile": "balanced",
    }


def get(config: Mapping[str, Any], key: str, default: T) -> T:
    """Return the value of a dotted *key*, nested or in its flat legacy form.

    A value of another type than *default* counts as absent; with ``None`` any type is accepted.
    """
    nested: object = config
    for part in key.split("."):
        nested = cast("Mapping[str, object]", nested).get(part) if isinstance(nested, Mapping) else None
    legacy = _LEGACY.get(key, "")
    for found in (nested, config.get(legacy) if legacy else None):
        value = _GRANULARITY.get(str(found), found) if key == "depth" else found
        if value is not None and (default is None or type(value) is type(default)):
            return cast("T", value)
    return default


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
