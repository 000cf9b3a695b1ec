"""The compatibility policy: each hook and each public value has a level, and the levels fit together."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import pytest

from docs import generate
from gsd_core import api, hookspecs
from gsd_core.hook_markers import PROVISIONAL, Level, stability_of
from gsd_core.plugins.validation import HOOKS


def test_what_is_provisional_is_public() -> None:
    assert set(vars(api)) >= PROVISIONAL


@pytest.mark.parametrize("hook", HOOKS)
def test_a_stable_hook_takes_and_returns_stable_values_only(hook: str) -> None:
    spec = getattr(hookspecs, hook)
    signature = inspect.signature(spec)
    annotations = [str(one.annotation) for one in signature.parameters.values()]
    words = set(re.findall(r"\w+", " ".join([*annotations, str(signature.return_annotation)])))

    assert stability_of(spec).level in get_args(Level)
    assert stability_of(spec).level != "stable" or words.isdisjoint(PROVISIONAL)


def test_the_reference_says_the_level_of_each_hook_and_value() -> None:
    pages = generate.pages()
    hooks = re.findall(r"^## (gsd_\w+).*?^- \*\*Level\*\*: \[(\w+)", pages["hooks.md"], re.M | re.S)
    values = dict(re.findall(r"^## (\w+)\n\nLevel: \[(\w+)\]", pages["values.md"], re.M))

    assert dict(hooks) == {name: stability_of(getattr(hookspecs, name)).level for name in HOOKS}
    assert {name for name, level in values.items() if level == "provisional"} <= PROVISIONAL
    assert "FileWrite" in values
    assert "| `Severity` | stable |" in pages["values.md"]
