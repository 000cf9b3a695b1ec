"""``.planning/config.json``: its defaults and its legacy forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_core import PlanningError
from gsd_core.planning.config import default_config, get, read_config, render_config


def written(root: Path, text: str) -> Path:
    """A project with this config."""
    (root / ".planning").mkdir()
    (root / ".planning/config.json").write_text(text, encoding="utf-8")
    return root


def test_a_rendered_config_is_read_back(tmp_path: Path) -> None:
    config = default_config("quick", "yolo")

    assert read_config(written(tmp_path, render_config(config))) == config
    assert (config["depth"], config["mode"]) == ("quick", "yolo")


def test_no_config_is_an_empty_one(tmp_path: Path) -> None:
    assert read_config(tmp_path) == {}


@pytest.mark.parametrize(
    ("config", "key", "default", "value"),
    [
        ({}, "workflow.research", True, True),
        ({"workflow": {"research": False}}, "workflow.research", True, False),
        ({"research": False}, "workflow.research", True, False),
        ({"plan_checker": False}, "workflow.plan_check", True, False),
        ({"commit_docs": False}, "planning.commit_docs", True, False),
        ({"workflow": {"research": True}, "research": False}, "workflow.research", False, True),
        ({"workflow": "odd"}, "workflow.research", True, True),
        ({"workflow": {"research": "yes"}}, "workflow.research", True, True),
        ({"granularity": "fine"}, "depth", "standard", "comprehensive"),
        ({"depth": "quick"}, "depth", "standard", "quick"),
        ({"mode": "yolo"}, "mode", "interactive", "yolo"),
        ({"parallelization": True}, "parallelization", None, True),
    ],
)
def test_a_key_is_found_in_its_place_or_in_its_legacy_form(
    config: dict[str, Any], key: str, default: object, value: object
) -> None:
    assert get(config, key, default) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [('{\n"a": }', r"config\.json:2: not JSON"), ("[1]", r"config\.json:1: not a JSON object")],
)
def test_a_broken_config_is_an_error_that_names_the_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PlanningError, match=said):
        read_config(written(tmp_path, text))


def test_the_defaults_are_plain_json() -> None:
    assert json.loads(json.dumps(default_config())) == default_config()
