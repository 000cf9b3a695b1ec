"""What each key of ``config.json`` does here, and what is said about values and unknown keys."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any, cast

import pytest

from gsd_core.errors import ConfigError
from gsd_core.planning.config import default_config, max_parallel
from gsd_core.planning.config_keys import KEYS, key_of, unknown_keys, validate_config
from tests.peer.reader import TOOL, needs_gsd

SHARED = TOOL.parent / "shared"


def peer_keys() -> set[str]:
    """Return all keys of the peer: of its schema, of its defaults, and those its capabilities add."""
    schema = json.loads((SHARED / "config-schema.manifest.json").read_text())
    keys = {*schema["validKeys"], *schema["runtimeStateKeys"]}
    for pattern in schema["dynamicKeyPatterns"]:
        # One key for each alternative of `models\.(planning|discuss)`, or `agent_skills\.[a-z]+`.
        source = re.sub(r"\\\.\\d\+.*", ".3.1", pattern["source"].strip("^$"))
        source = re.sub(r"\(\\\*\|\[[^]]+\]\+\)|\[[^]]+\]\+", "name", source)
        keys |= alternatives(source.replace("\\.", "."))
    script = "console.log(JSON.stringify(Object.keys(require(process.argv[1]).configSchema)))"
    registry = ["node", "-e", script, str(TOOL.parent / "lib/capability-registry.cjs")]
    keys |= set(json.loads(subprocess.run(registry, capture_output=True, check=True, timeout=60).stdout))
    defaults = json.loads((SHARED / "config-defaults.manifest.json").read_text())
    return keys | {name for name in leaves(defaults) if not name.startswith("_")}


def alternatives(source: str) -> set[str]:
    """Return the keys of a pattern, with each of its innermost alternatives in turn."""
    if not (group := re.search(r"\(([^()]*)\)", source)):
        return {source}
    found: set[str] = set()
    for word in group[1].split("|"):
        found |= alternatives(source[: group.start()] + word + source[group.end() :])
    return found


def leaves(config: dict[str, Any], prefix: str = "") -> set[str]:
    """Return the dotted keys of values that are not objects."""
    found: set[str] = set()
    for name, value in config.items():
        if isinstance(value, dict):
            found |= leaves(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            found.add(f"{prefix}{name}")
    return found


@needs_gsd
def test_each_key_of_gsd_is_honored_or_has_a_reason() -> None:
    keys = peer_keys()

    assert len(keys) > 200, len(keys)
    assert {"workflow.research", "models.planning", "phase_commit_docs.3.1", "mempalace.wing"} <= keys
    assert sorted(name for name in keys if key_of(name) is None) == []


def test_each_key_says_what_it_does_and_no_key_is_listed_twice() -> None:
    names = [name for key in KEYS for name in (key.name, *key.legacy)]

    assert len(names) == len(set(names))
    assert all(len(key.effect) > 15 for key in KEYS)
    assert all(key.allowed for key in KEYS if key.status == "honored")


def test_the_config_of_a_new_project_is_valid_and_known() -> None:
    validate_config(default_config(), "config.json")

    assert unknown_keys(default_config()) == ()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_profile": "best"}, "model_profile: expected one of 'quality', 'balanced'"),
        ({"workflow": {"verifier": "no"}}, "workflow.verifier: expected true or false, got 'no'"),
        ({"verifier": 0}, "verifier: expected true or false, got 0"),
        ({"depth": "deep"}, "depth: expected one of 'quick'"),
        ({"git": {"branching_strategy": "trunk"}}, "git.branching_strategy: expected one of 'none', 'phase'"),
        ({"git": {"protected_branches": "main"}}, "git.protected_branches: expected a list"),
        ({"model_overrides": {"gsd-planner": 4}}, "model_overrides.gsd-planner: expected a string"),
        ({"phase_commit_docs": {"2.1": "x"}}, "phase_commit_docs.2.1: expected true or false"),
        ({"gates": {"confirm_plan": 1}}, "gates.confirm_plan: expected true or false"),
    ],
)
def test_an_invalid_value_names_the_file_the_key_and_what_is_allowed(
    config: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_config(config, ".planning/config.json")

    assert f".planning/config.json: {expected}" in str(caught.value)


@pytest.mark.parametrize(
    "config",
    [
        {"model_profile": None, "workflow": {"verifier": None}},
        {"sub_repos": "odd", "workflow": {"ui_phase": 7}, "novel": {"x": [1]}},
        {"granularity": "fine", "planning": {"commit_docs": False}, "commit_docs": True},
    ],
)
def test_null_and_values_that_nothing_reads_are_no_error(config: dict[str, Any]) -> None:
    validate_config(config, ".planning/config.json")


def test_unknown_keys_are_named_with_what_they_resemble() -> None:
    config = {"novel": [1, 2], "workflow": {"researches": True, "research": True}, "own": {"a": {"b": 1}}}

    assert unknown_keys(config) == (
        "'novel'",
        "'workflow.researches' (did you mean 'workflow.research'?)",
        "'own'",
    )


def test_a_section_that_is_not_an_object_is_named() -> None:
    assert unknown_keys({"workflow": "odd"}) == ("'workflow'",)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, 3),
        ({"parallelization": False}, 1),
        ({"parallelization": True}, 3),
        ({"parallelization": {"enabled": False, "max_concurrent_agents": 5}}, 1),
        ({"parallelization": {"plan_level": False}}, 1),
        ({"parallelization": {"max_concurrent_agents": 5}}, 5),
        ({"parallelization": {"max_concurrent_agents": 0}}, 1),
        ({"parallelization": "odd"}, 3),
    ],
)
def test_the_config_says_how_many_plans_are_executed_at_once(config: dict[str, Any], expected: int) -> None:
    assert max_parallel(config) == expected
