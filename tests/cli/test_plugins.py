"""``gsd plugins``: the installed plugins, and why one of them is not used."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from tests.cli.bench import Bench, call, said, trust_everything

DETECTOR = """
from pathlib import Path
from gsd_core import Gap, implements
from gsd_core.hookspecs import gsd_find_gaps

Path(__file__).with_name("imported").touch()

@implements(gsd_find_gaps)
async def look(phase):
    return []
"""


def _local_plugin(root: Path) -> Path:
    path = root / ".gsd" / "plugins" / "licence.py"
    path.parent.mkdir(parents=True)
    path.write_text(DETECTOR)
    return path


def _by_name(*args: str | Path) -> dict[str, dict[str, object]]:
    return {plugin["name"]: plugin for plugin in said("plugins", *args)["plugins"]}


def test_every_built_in_plugin_is_listed_with_its_hooks() -> None:
    found = _by_name()

    assert [name.rpartition(".")[2] for name in DEFAULT_PLUGINS] == list(found)[: len(DEFAULT_PLUGINS)]
    assert found["terminal"]["hooks"] == [
        "gsd_answer",
        "gsd_lifespan",
        "gsd_notify",
        "gsd_on_event",
        "gsd_settings",
    ]
    assert (found["terminal"]["status"], found["terminal"]["source"]) == ("active", "default")


def test_the_table_shows_the_plugins() -> None:
    shown = call("plugins").stdout

    assert shown.split()[:5] == ["plugin", "source", "status", "version", "hooks"]
    assert "terminal" in shown


def test_a_hook_limits_the_list_to_the_plugins_that_implement_it() -> None:
    found = _by_name("--hook", "gsd_answer")

    assert set(found) == {"terminal", "answers", "yolo"}
    assert _by_name("--hook", "answer") == found


def test_an_unknown_hook_is_an_error_with_a_suggestion() -> None:
    result = call("plugins", "--hook", "gsd_anwser")

    assert result.exit_code == 2
    assert "'gsd_anwser'" in result.stderr
    assert "did you mean 'gsd_answer'?" in result.stderr


def test_a_blocked_plugin_is_listed_with_the_reason() -> None:
    found = _by_name("-p", "no:apprise")["apprise"]

    assert (found["status"], found["reason"], found["hooks"]) == ("blocked", "-p no:apprise", [])


def test_a_broken_plugin_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "shaky.py").write_text("raise RuntimeError('no luck')\n")

    found = _by_name("--plugins-dir", tmp_path)["shaky"]

    assert found["status"] == "broken"
    assert "no luck" in str(found["reason"])


def test_a_plugin_in_the_project_is_listed_but_not_imported(bench: Bench) -> None:
    path = _local_plugin(bench.root)

    found = _by_name("-C", bench.root)["licence"]

    assert found["status"] == "untrusted"
    assert found["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not path.with_name("imported").exists()


def test_a_trusted_plugin_in_the_project_is_not_imported_either(bench: Bench) -> None:
    path = _local_plugin(bench.root)
    trust_everything(bench.root)

    found = _by_name("-C", bench.root)["licence"]

    assert found["status"] == "active"
    assert "trusted" in str(found["reason"])
    assert not path.with_name("imported").exists()


def test_an_unknown_plugin_is_an_error() -> None:
    result = call("plugins", "-p", "no-such-plugin")

    assert result.exit_code == 2
    assert "unknown plugin 'no-such-plugin'" in result.stderr


WORKSPACE = """
from gsd_core import StepType, implements
from gsd_core.hookspecs import gsd_execute_step, gsd_steps, gsd_workspace

@implements(gsd_workspace)
async def here(step):
    return None

@implements(gsd_steps)
def steps():
    return ()

@implements(gsd_execute_step)
async def execute(step, host):
    return None
"""


def test_a_plugin_that_no_setting_lists_has_a_note_that_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here.py").write_text(WORKSPACE)
    args = ("--plugins-dir", tmp_path)

    # It executes the steps that it adds without being listed.
    assert _by_name(*args)["here"]["notes"] == [
        "gsd_workspace is called only if the setting run.workspace lists the plugin (now: worktree)"
    ]
    assert "run.workspace lists the plugin" in call("plugins", "--plugins-dir", str(tmp_path)).stdout

    monkeypatch.setenv("GSD_WORKSPACE", "here,inplace")
    assert _by_name(*args)["here"]["notes"] == []

    monkeypatch.setenv("GSD_IDLE", "not a duration")
    assert _by_name(*args)["here"]["status"] == "active"


ALL = """'''Greets.'''
import attrs, click
from gsd_core import StepResult, StepType, implements, setting
from gsd_core.hookspecs import gsd_cli_commands, gsd_execute_step, gsd_settings, gsd_steps, gsd_wrap_step

@attrs.frozen(kw_only=True)
class S:
    words: tuple[str, ...] = setting(("hello",))
    token: str = setting("", secret=True)

@implements(gsd_settings)
def settings():
    yield S

@implements(gsd_cli_commands)
def commands():
    yield click.Command("greet", callback=lambda: None)

@implements(gsd_steps)
def steps():
    yield StepType(kind="greeting", before="complete", title="Greet")

@implements(gsd_execute_step)
async def execute(step, host):
    return None

@implements(gsd_wrap_step, tryfirst=True)
async def wrap(step, call_next):
    return await call_next(step)
"""


def test_everything_about_one_plugin_is_shown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.root / ".gsd" / "plugins" / "greeter.py"
    path.parent.mkdir(parents=True)
    path.write_text(ALL)
    info = ("plugins", "info", "greeter", "-C", bench.root)
    unknown = said(*info)
    assert (unknown["status"], unknown["hooks"], unknown["turn_on"]) == ("untrusted", [], "gsd trust")

    trust_everything(bench.root)
    monkeypatch.setenv("GSD_GREETER_TOKEN", "s3cret-value")
    (bench.root / "gsd.toml").write_text('[greeter]\nwords = ["hi"]\n')
    trust_everything(bench.root)
    found = said(*info)
    assert (found["status"], found["path"], found["about"]) == ("active", str(path), "Greets.")
    assert found["provides"] == ["command", "executor", "step", "step wrapper"]
    assert found["commands"] == ["gsd greet"]
    assert found["steps"] == [{"kind": "greeting", "before": "complete", "title": "Greet"}]
    hooks = {one["hook"]: one for one in found["hooks"]}
    assert (hooks["gsd_wrap_step"]["mode"], hooks["gsd_wrap_step"]["order"]) == ("wrap", "first")
    assert hooks["gsd_execute_step"]["used"] == "if run.execute lists it"
    words, token = found["settings"]
    assert words == {
        "name": "greeter.words",
        "type": "tuple[str, ...]",
        "value": ["hi"],
        "default": ["hello"],
        "origin": "gsd.toml",
    }
    assert (token["value"], token["origin"]) == ("(hidden)", "environment")
    shown = call(*info).stdout
    assert 'greeter.words (type tuple[str, ...], value ["hi"], default ["hello"], origin gsd.toml)' in shown
    assert "turn off: -p no:greeter" in shown
    assert "s3cret" not in shown + str(found)
    # A plugin that is left out, one that is not installed, and one that does not exist.
    assert said(*info, "-p", "no:greeter")["turn_on"] == "-p greeter"
    assert "gsd-plugin-slack" in call("plugins", "info", "slack").stderr
    assert "did you mean 'budget'?" in call("plugins", "info", "budgt").stderr
