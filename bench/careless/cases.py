"""Read the cases of the benchmark.

A file in ``data/`` is TOML, and a group. Each of its tables is a case: the story of one phase, from the idea
to the verifier's answer. A case with a *base* is that case with changes:

- keys of the table replace those of the base;
- ``set`` gives values by path (the keys and indexes, separated by spaces: ``"plans 0 tasks 1 check"``);
- ``drop`` lists paths to remove;
- ``change`` lists replacements in written files, each ``[file, old text, new text]``.

A case with *by* is careless, and *by* says who made the mistake. A case with *kind* but without *by* is
honest and unusual. A case with neither is plain: the story that others change.

The other keys are:

``idea``, ``requirements`` (id, statements, text), ``context``, ``criteria``, ``questions``
    the idea and the roadmapper's answer; the text of a question, then its options with the chosen one first.
``start``
    the files before the phase, by path.
``plans``
    ``truths`` (``text``, ``serves``, ``proof``), ``artifacts``, ``links``, ``tasks`` and ``report``. A task
    ``writes`` and ``deletes`` files; ``files`` are those that the plan names, and ``claims`` those that the
    executor names, if these are others; one that is ``skipped`` is never done. A second round of plans is in
    ``gap_plans``.
``verify``
    ``reads``, ``runs``, ``omit``, and ``verdicts`` by id, each with what differs from "it holds, and here is
    the proof". A *proof* is ``file``, ``file:5-9``, ``file:text`` (five lines from the one with that text),
    ``$ command``, or ``! command``, which is cited with exit 0 whatever it returned.
``hidden``, ``broken``
    commands that pass only if the product is right, and a change to the product that good tests notice.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

FOLDER = Path(__file__).parent / "data"
Json: TypeAlias = dict[str, Any]


@attrs.frozen(kw_only=True)
class Case:
    """One case; *wrong* is where the mistake is: ``product``, ``tests`` (or checks), or ``claims``.

    *names* is a regular expression for a complaint that names the mistake; empty if any complaint does.
    """

    name: str
    group: str
    story: Json = attrs.field(repr=False)
    language: str
    base: str = ""
    kind: str = ""
    by: str = ""
    about: str = ""
    wrong: str = ""
    names: str = ""

    @property
    def plans(self) -> list[Json]:
        """The plans of all rounds, in order."""
        return [*self.story["plans"], *self.story.get("gap_plans", ())]

    @property
    def tasks(self) -> list[Json]:
        """The tasks of all plans, in order."""
        return [task for plan in self.plans for task in plan["tasks"]]

    def files(self) -> dict[str, str]:
        """Return the files at the end of the phase, by path."""
        found: dict[str, str] = dict(self.story.get("start", {}))
        for task in self.tasks:
            found |= task.get("writes", {})
            for path in task.get("deletes", ()):
                found.pop(path, None)
        return found


def read_cases(*groups: str) -> list[Case]:
    """Return the cases of the groups whose names begin with one of *groups*; all without any."""
    found: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.toml")):
        for name, given in tomllib.loads(path.read_text("utf-8")).items():
            if name in found:
                raise ValueError(f"{path.name}: there are two cases {name!r}")
            found[name] = _case(name, path.stem, given, found)
    return [case for case in found.values() if not groups or case.group.startswith(groups)]


def _case(name: str, group: str, given: Json, known: Mapping[str, Case]) -> Case:
    fields = {
        key: given.pop(key) for key in ("base", "kind", "by", "about", "wrong", "names") if key in given
    }
    story: Json = copy.deepcopy(known[fields["base"]].story) if "base" in fields else {}
    edits = {key: given.pop(key, ()) for key in ("set", "drop", "change")}
    story |= given
    for path in edits["drop"]:
        *parents, last = path.split(" ")
        del _at(story, parents)[_key(last)]
    for path, value in dict(edits["set"]).items():
        *parents, last = path.split(" ")
        _at(story, parents)[_key(last)] = value
    case = Case(name=name, group=group, story=story, language=story["language"], **fields)
    for path, old, new in edits["change"]:
        places = [task["writes"] for task in case.tasks if old in task.get("writes", {}).get(path, "")]
        if not places:
            raise ValueError(f"{name}: no task writes {old!r} to {path}")
        for writes in places:
            writes[path] = writes[path].replace(old, new)
    return case


def _key(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def _at(story: Json, keys: list[str]) -> Any:
    value: Any = story
    for key in keys:
        value = cast("list[Any]", value)[int(key)] if key.isdecimal() else value.setdefault(key, {})
    return value
