"""Settings: what may be written for each type, and errors that name the place, the key and the form."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from gsd_core.errors import ConfigError
from gsd_core.settings import (
    CORE_SECTIONS,
    LimitSettings,
    RunSettings,
    environment_layer,
    planning_layer,
    resolve,
    setting,
    toml_layer,
)
from tests.cli.bench import Bench, call


@attrs.frozen(kw_only=True)
class Server:
    """A table within a section."""

    host: str
    port: int = 80


@attrs.frozen(kw_only=True)
class Everything:
    """One field of each type."""

    text: str = setting("")
    number: int = setting(0)
    ratio: float = setting(0.0)
    switch: bool = setting(False)
    amount: Decimal | None = setting(None)
    time: timedelta = setting(timedelta(0))
    path: Path = setting(Path())
    choice: Literal["a", "b"] = setting("a")
    texts: tuple[str, ...] = setting(())
    numbers: tuple[int, ...] = setting(())
    names: frozenset[str] = setting(frozenset[str]())
    server: Server | None = setting(None)
    _hidden: int = setting(0)
    anything: Any = setting(None)


CLASSES = (*CORE_SECTIONS, ("everything", Everything))


def from_toml(tmp_path: Path, text: str) -> Everything:
    path = tmp_path / "gsd.toml"
    path.write_text(text, encoding="utf-8")
    value: Everything = resolve(CLASSES, [toml_layer(path, "gsd.toml")]).of(Everything)
    return value


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("text = 'x'", "x"),
        ("text = 3", "3"),
        ("number = -3", -3),
        ("number = '3'", 3),
        ("ratio = 0.5", 0.5),
        ("switch = true", True),
        ("switch = 'off'", False),
        ("amount = 0.1", Decimal("0.1")),
        ("amount = ''", None),
        ("time = 90", timedelta(seconds=90)),
        ("time = '1.5 h'", timedelta(minutes=90)),
        ("path = 'a/b'", Path("a/b")),
        ("choice = 'b'", "b"),
        ("texts = ['x', 3]", ("x", "3")),
        ("texts = 'x, y,'", ("x", "y")),
        ("numbers = []", ()),
        ("names = ['x', 'x']", frozenset({"x"})),
        ("server = {host = 'x'}", Server(host="x")),
        ("_hidden = 3", 3),
        ("anything = [{a = 1}]", [{"a": 1}]),
    ],
)
def test_a_file_sets_a_value(tmp_path: Path, line: str, value: object) -> None:
    found = from_toml(tmp_path, f"[everything]\n{line}\n")

    assert getattr(found, line.partition(" = ")[0]) == value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("text = true", "everything.text: expected a string, got True"),
        ("number = 1.5", "everything.number: expected an integer, got 1.5"),
        ("number = true", "everything.number: expected an integer, got True"),
        ("ratio = 'x'", "everything.ratio: expected a number, got 'x'"),
        ("switch = 'maybe'", "everything.switch: expected true or false, got 'maybe'"),
        ("amount = -1", "everything.amount: expected a number of at least 0, got -1"),
        ("amount = 'nan'", "everything.amount: expected a number of at least 0, got 'nan'"),
        ("time = '-1s'", "everything.time: expected seconds or a duration such as '10m', got '-1s'"),
        ("path = 3", "everything.path: expected a path, got 3"),
        ("choice = 'c'", "everything.choice: expected one of 'a', 'b', got 'c'"),
        ("texts = 3", "everything.texts: expected a list, got 3"),
        ("texts = {a = 1}", "everything.texts: expected a list, got {'a': 1}"),
        ("texts = ['x', []]", "everything.texts[1]: expected a string, got []"),
        ("server = {host = 'x', port = 'y'}", "everything.server.port: expected an integer, got 'y'"),
        ("server = {host = 'x', prot = 1}", "everything.server: extra fields found (prot)"),
        ("server = {port = 1}", "everything.server.host: required field missing"),
    ],
)
def test_a_wrong_value_is_reported_with_its_key_and_the_expected_form(
    tmp_path: Path, line: str, expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        from_toml(tmp_path, f"[everything]\n{line}\n")

    assert expected in str(caught.value)
    assert "gsd.toml: everything." in str(caught.value)


def test_every_error_of_every_source_is_reported_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / "idea.md").write_text("# An idea")
    (bench.root / "gsd.toml").write_text("[run]\nmodle = 'x'\ngap_rounds = 'many'\n[limits]\nidle = [1, 2]\n")
    (bench.root / ".planning").mkdir()
    (bench.root / ".planning/config.json").write_text('{"model_profile": "best"}')
    monkeypatch.setenv("GSD_LIMITS_HARD", "forever")
    monkeypatch.setenv("GSD_COMMIT_DOCS", "perhaps")

    result = call(
        "run", bench.root / "idea.md", "-C", bench.root, "--agent", "rehearsal", "--max-budget-usd", "many"
    )

    assert result.exit_code == 2
    for problem in (
        "--max-budget-usd: expected a number, got 'many'",
        "GSD_LIMITS_HARD: expected seconds or a duration such as '10m', got 'forever'",
        "GSD_COMMIT_DOCS: expected true or false, got 'perhaps'",
        "gsd.toml: unknown key run.modle; did you mean 'model'?",
        "gsd.toml: run.gap_rounds: expected an integer, got 'many'",
        "gsd.toml: limits.idle: expected seconds or a duration such as '10m', got [1, 2]",
        ".planning/config.json: model_profile: expected one of 'quality', 'balanced', 'budget', 'adaptive', "
        "'inherit', got 'best'",
    ):
        assert problem in result.stderr


def test_a_stronger_source_wins() -> None:
    classes = CORE_SECTIONS
    environment = environment_layer(
        classes, {"GSD_DEPTH": "quick", "GSD_LIMITS_IDLE": "5m", "GSD_AGENT": "a, b"}
    )
    planning = planning_layer({"depth": "fine", "model_profile": "budget"})

    settings = resolve(classes, [environment, planning])

    run: RunSettings = settings.of(RunSettings)
    limits: LimitSettings = settings.of(LimitSettings)
    assert (run.depth, run.profile, run.agent, run.gap_rounds) == ("quick", "budget", ("a", "b"), 3)
    assert limits.idle == timedelta(minutes=5)
    assert settings.origins["run.depth"] == "environment"
    assert settings.origins["run.profile"] == ".planning/config.json"
    assert "run.gap_rounds" not in settings.origins


def test_a_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gsd.toml"
    path.write_text("[run")

    with pytest.raises(ConfigError, match=r"cannot read gsd\.toml"):
        toml_layer(path, "gsd.toml")


PLUGIN = """
import sys
import attrs
from gsd_core import implements, setting
from gsd_core.hookspecs import gsd_settings

def positive(instance, attribute, value):
    if value < 1:
        raise ValueError("must be positive")

@attrs.frozen(kw_only=True)
class PickySettings:
    rounds: int = setting(3)
    size: int = attrs.field(default=1, validator=positive)
    low: int = 0
    high: int = 9
    small: int = attrs.field(default=0, validator=attrs.validators.le(7))

    def __attrs_post_init__(self):
        if self.rounds == 13:
            raise ZeroDivisionError("unlucky")
        if self.rounds == 14:
            sys.exit(99)
        if self.low > self.high:
            raise ValueError("low is above high")

@implements(gsd_settings)
def gsd_settings():
    return [PickySettings]
"""


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["size = 0"], "gsd.toml: picky.size: must be positive"),
        (["low = 1", "size = 0"], "gsd.toml: picky.size: must be positive"),
        (["small = 8"], "gsd.toml: picky.small: 'small' must be <= 7: 8"),
        (["rounds = 13"], "gsd.toml: picky.rounds: ZeroDivisionError: unlucky"),
        (["rounds = 14"], "gsd.toml: picky.rounds: SystemExit: 99"),
        (["low = 8", "high = 7"], "section 'picky': low is above high"),
        (["size = 'x'", "rounds = 'y'"], "gsd.toml: picky.rounds: expected an integer, got 'y'"),
    ],
)
def test_values_that_a_plugin_refuses_are_errors_that_name_the_key_and_the_plugin(
    bench: Bench, tmp_path: Path, lines: list[str], problem: str
) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "picky.py").write_text(PLUGIN)
    (bench.root / "idea.md").write_text("# An idea")
    (bench.root / "gsd.toml").write_text("\n".join(["[picky]", *lines]))

    result = call(
        *("run", bench.root / "idea.md", "-C", bench.root, "--agent", "rehearsal"),
        *("--plugins-dir", plugins, "--trust"),
    )

    assert result.exit_code == 2
    assert problem in result.stderr
    assert "expected" in problem or "plugin 'picky'" in result.stderr
    assert not (bench.root / ".git" / "gsd").exists()


def test_a_class_that_cannot_be_built_at_all_is_an_error_that_names_the_plugin() -> None:
    @attrs.frozen
    class Broken:
        text: str = "x"

        def __attrs_post_init__(self) -> None:
            raise RuntimeError("no display")

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    @attrs.frozen
    class Mute:
        text: str = "x"

        def __attrs_post_init__(self) -> None:
            raise Silent

    layer = environment_layer([("broken", Broken)], {"GSD_BROKEN_TEXT": "y"})
    with pytest.raises(ConfigError) as caught:
        resolve((*CORE_SECTIONS, ("broken", Broken), ("mute", Mute)), [layer])

    assert "section 'broken': RuntimeError: no display (plugin 'broken'" in str(caught.value)
    assert "section 'mute': Silent (plugin 'mute'" in str(caught.value)


def test_a_field_of_a_type_that_cannot_be_resolved_is_an_error_that_names_the_plugin() -> None:
    @attrs.frozen
    class Odd:
        text: "Nowhere" = 1  # type: ignore[name-defined]  # noqa: F821, UP037

    with pytest.raises(ConfigError, match=r"section 'odd'.*Nowhere.*plugin 'odd'"):
        resolve((*CORE_SECTIONS, ("odd", Odd)), [toml_layer(Path("no.toml"), "no.toml")])


def test_settings_are_declared_without_cattrs() -> None:
    code = "import sys, gsd_core.settings; sys.exit('cattrs' in sys.modules)"
    root = str(Path(__file__).parents[2])

    assert (
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": root}).returncode == 0
    )


def test_the_commands_in_the_hint_about_invalid_settings_repair_them(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.toml"
    monkeypatch.setenv("GSD_CONFIG", str(own))
    (bench.root / "gsd.toml").write_text('[run]\ndepth = "deep"\ndepht = "quick"\nmodel = "opus"\n')
    own.write_text('[limits]\nidle = "soon"\n')

    refused = call("settings", "show", "-C", bench.root)
    commands = refused.stderr.splitlines()[-1].partition("remove it with: ")[2].split(" && ")
    repaired = [call(*shlex.split(command)[1:]).exit_code for command in commands]
    shown = call("settings", "show", "run.model", "-C", bench.root)

    assert refused.exit_code == 2
    assert (len(commands), repaired) == (3, [0, 0, 0])
    assert shown.stdout == 'run.model = "opus"\n'


def test_the_hint_about_an_invalid_variable_unsets_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_DEPTH", "deep")

    refused = call("settings", "show", "-C", bench.root)

    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1].endswith("remove it with: unset GSD_DEPTH")
