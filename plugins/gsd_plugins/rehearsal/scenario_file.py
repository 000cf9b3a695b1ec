"""Scenario files: ``gsd run IDEA --agent rehearsal --script FILE``.

The file is TOML: one table ``[scenario]``, and a table ``[[rule]]`` for each thing that is to happen. The
keys are the fields of :class:`ScenarioFile`, :class:`~gsd_plugins.rehearsal.effects.When` and the effects.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, cast

import attrs

from gsd_core import ConfigError, convert_value

from .effects import EFFECTS, ROLES, Rule, When, key

MAX_BYTES = 1_000_000
STEPS = ("init", "discuss", "research", "plan", "execute", "verify", "complete", "survey", "audit", "close")
"""Kinds of steps to suggest for one that is misspelled; plugins may add others."""
_RULE_KEYS = ("when", "do", "times")

Table: TypeAlias = Mapping[str, object]


@attrs.frozen(kw_only=True)
class ScenarioFile:
    """What a scenario file says: what the scripted model builds, and the rules about what goes wrong."""

    description: str = key("what the file is for", "")
    phases: int = key("number of phases in the roadmap: 1, 2 or 3", 1)
    question: bool = key("whether the first plan (with `wide`, the second) asks how greetings end", False)
    gap: bool = key("whether README.md lacks its usage; the first gap round adds it", False)
    tdd: bool = key("whether the parsing of guests is a test-driven plan", False)
    wide: bool = key(
        "whether the first phase has six plans, four of which can be executed side by side and do not fit: "
        "two change the same lines, and one renames a function that another one calls",
        False,
    )
    rules: tuple[Rule, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.phases not in (1, 2, 3):
            raise ValueError(f"phases: expected 1, 2 or 3, got {self.phases}")


def read_scenario(path: Path) -> ScenarioFile:
    """Read a scenario file; raise ``ConfigError`` with every problem in it."""
    try:
        return _read(path)
    except ConfigError as error:
        raise ConfigError(str(error), hint=_HINT) from error


_HINT = (
    "correct the file, or name another one; for examples see examples/rehearsal in gsd's source code, and "
    "'Rehearse with a scenario' in its documentation"
)


def _read(path: Path) -> ScenarioFile:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(f"{str(path)!r} is larger than {MAX_BYTES // 1_000_000} MB")
        data: Table = tomllib.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read {str(path.absolute())!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{str(path)!r} is not UTF-8 text") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{str(path)!r} is not valid TOML: {error}") from error
    problems: list[str] = []
    found = _scenario(data, problems)
    if problems:
        raise ConfigError("\n  ".join([f"{str(path)!r} is not a valid scenario", *problems]))
    return found


def _scenario(data: Table, problems: list[str]) -> ScenarioFile:
    problems += _unknown(data, ("scenario", "rule"), "")
    about = _table(data.get("scenario", {}), "[scenario]", problems)
    rules = data.get("rule", [])
    if not isinstance(rules, list):
        problems.append("rule: write each rule under [[rule]], with two pairs of brackets")
        rules = []
    listed = [_rule(rule, n, problems) for n, rule in enumerate(cast("list[object]", rules), 1)]
    values = _values(ScenarioFile, about, "[scenario]", problems, but=("rules",))
    found = _build(ScenarioFile, values, "[scenario]", problems) or ScenarioFile()
    return attrs.evolve(found, rules=tuple(rule for rule in listed if rule))


def _rule(raw: object, number: int, problems: list[str]) -> Rule | None:
    """Return one rule; ``None`` if it is invalid, with the problems appended to *problems*."""
    where, before = f"[[rule]] {number}", len(problems)
    table = _table(raw, where, problems)
    when_table = _table(table.get("when", {}), f"{where}: when", problems)
    values = _values(When, when_table, f"{where}: when", problems)
    when: When | None = _build(When, values, f"{where}: when", problems)
    for name, value, known in (("role", when.role, ROLES), ("step", when.step, STEPS)) if when else ():
        # Only what is probably misspelled: a plugin may have its own steps and roles.
        if value and value not in known and (close := get_close_matches(value, known, 1)):
            problems.append(f"{where}: when.{name}: unknown {value!r}; did you mean {close[0]!r}?")
    do = table.get("do", "")
    kind = EFFECTS.get(do) if isinstance(do, str) else None
    if kind is None:
        if table:
            what = f"unknown {do!r}{_suggestion(str(do), EFFECTS)}" if do else f"missing; {_allowed(EFFECTS)}"
            problems.append(f"{where}: do: {what}")
        return None
    own = {name: value for name, value in table.items() if name not in _RULE_KEYS}
    values = _values(kind, own, where, problems, also=_RULE_KEYS)
    effect: Any = _build(kind, values, where, problems)
    times = _convert(table.get("times", kind.times), int, f"{where}: times", problems)
    if when is None or effect is None or len(problems) > before:
        return None
    values = {"number": number, "when": when, "effect": effect, "times": times}
    return cast("Rule | None", _build(Rule, values, where, problems))


def _values(
    kind: type[Any],
    table: Table,
    where: str,
    problems: list[str],
    *,
    also: Iterable[str] = (),
    but: Iterable[str] = (),
) -> dict[str, object]:
    """Return the values of a table by field of *kind*; *also* are other keys that it may have."""
    fields = {f.name: f for f in attrs.fields(attrs.resolve_types(kind)) if f.name not in but}
    problems += _unknown(table, (*fields, *also), where)
    values: dict[str, object] = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _convert(table[name], field.type, f"{where}: {name}", problems)
        elif field.default is attrs.NOTHING:
            problems.append(f"{where}: {name} is missing: {field.metadata['help']}")
            values[name] = _INVALID
    return values


_INVALID = object()


def _convert(value: object, kind: Any, where: str, problems: list[str]) -> object:
    # A setting's string may come from a variable, where everything is text. A file has types.
    wrong_type = kind in (bool, int) and type(value) is not kind
    try:
        if wrong_type:
            expected = "true or false" if kind is bool else "an integer"
            raise ConfigError(f"{where}: expected {expected}, got {value!r}")
        return convert_value(value, kind, where)
    except ConfigError as error:
        problems.append(str(error))
        return _INVALID


def _build(kind: type[Any], values: Mapping[str, object], where: str, problems: list[str]) -> Any:
    """Return an instance, or ``None`` if a value is invalid; what the class itself rejects is a problem."""
    if _INVALID in values.values():
        return None
    try:
        return kind(**values)
    except ValueError as error:
        problems.append(f"{where}: {error}")
        return None


def _table(value: object, where: str, problems: list[str]) -> Table:
    if isinstance(value, dict):
        return cast("Table", value)
    problems.append(f"{where}: expected a table, got {value!r}")
    return {}


def _unknown(table: Table, known: Iterable[str], where: str) -> Iterator[str]:
    names = (*known,)
    for name in table:
        if name not in names:
            yield f"{where or 'the file'}: unknown key {name!r}{_suggestion(name, names)}"


def _suggestion(word: str, known: Iterable[str]) -> str:
    names = (*known,)
    close = get_close_matches(word, names, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; {_allowed(names)}"


def _allowed(names: Iterable[str]) -> str:
    return f"allowed: {', '.join(names)}"
