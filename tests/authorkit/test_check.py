"""``gsd plugins check``: a plugin made for it breaks each rule, and every built-in plugin passes."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from gsd_core.testing.check import RULES
from tests.authorkit.bad import BAD, HEAD, NOTIFY, notifying
from tests.cli.bench import call

pytestmark = pytest.mark.slow

PACKAGED = {"declared", "entry-point", "packaged", "tested"}
BUILT_IN = [module.rpartition(".")[2] for module in DEFAULT_PLUGINS]


def checked(target: str | Path, *flags: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and the rules by id."""
    result = call("plugins", "check", str(target), "--json", *flags)
    assert result.stdout, result.stderr
    data = json.loads(result.stdout)
    assert data["schema_version"] == 1
    return result.exit_code, {rule["id"]: rule for rule in data["rules"]}


def broken(rules: dict[str, Any]) -> dict[str, list[str]]:
    return {name: rule["problems"] for name, rule in rules.items() if rule["status"] == "broken"}


def write(path: Path, rest: str) -> Path:
    path.write_text(HEAD + rest, encoding="utf-8")
    return path


def package(folder: Path, project: str) -> Path:
    """Write a package ``bare`` with that ``pyproject.toml`` and one module."""
    (folder / "src" / "bare").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    write(folder / "src" / "bare" / "__init__.py", NOTIFY)
    return folder


def test_every_rule_explains_what_why_and_how_to_fix_it() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES) >= 20
    assert all(rule.what and rule.why and rule.fix for rule in RULES)


def test_each_rule_is_broken_by_a_plugin_in_these_tests() -> None:
    assert {*BAD, *PACKAGED} == {rule.id for rule in RULES}


def test_a_single_file_plugin_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    code, rules = checked(write(tmp_path / "fine.py", NOTIFY))

    assert (code, broken(rules)) == (0, {})
    assert rules["tested"]["status"] == "skipped"
    assert rules["tested"]["reason"]


@pytest.mark.parametrize("rule", BAD)
def test_a_plugin_that_breaks_a_rule_learns_which(rule: str, tmp_path: Path) -> None:
    code, rules = checked(write(tmp_path / "bad.py", BAD[rule]))

    assert code == 1
    assert rule in broken(rules)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("os._exit(3)", "gsd_notify: the process exited with code 3"),
        ("raise SystemExit(3)", "gsd_notify: SystemExit(3)"),
    ],
)
def test_a_plugin_that_ends_the_process_is_blamed(lines: str, problem: str, tmp_path: Path) -> None:
    _, rules = checked(write(tmp_path / "bad.py", f"{NOTIFY}    {lines}\n"))

    assert any(found.startswith(problem) for found in broken(rules)["names-errors"])


def test_the_table_explains_what_is_broken(tmp_path: Path) -> None:
    result = call("plugins", "check", str(write(tmp_path / "loud.py", BAD["says-nothing"])))

    assert result.exit_code == 1
    [rule] = [rule for rule in RULES if rule.id == "says-nothing"]
    shown = [line.strip() for line in result.stdout.splitlines()]
    start = shown.index(f"says-nothing: {rule.what}")
    assert shown[start + 1].startswith("- printed")
    assert shown[start + 2 : start + 4] == [f"why: {rule.why}", f"fix: {rule.fix}"]
    assert re.fullmatch(r"loud \(file\): \d+ rules hold, 1 broken, \d+ skipped", shown[-1])


def test_an_unknown_target_is_an_error_with_a_hint(tmp_path: Path) -> None:
    unknown = call("plugins", "check", "permisions")
    no_package = call("plugins", "check", str(tmp_path))

    assert (unknown.exit_code, no_package.exit_code) == (2, 2)
    assert "did you mean 'permissions'?" in unknown.stderr
    assert "no pyproject.toml in" in no_package.stderr


def test_a_file_with_a_syntax_error_breaks_only_the_rule_on_imports(tmp_path: Path) -> None:
    path = tmp_path / "torn.py"
    path.write_text("def (:\n")
    code, rules = checked(path)

    assert code == 1
    assert set(broken(rules)) == {"imports"}


def test_a_package_without_entry_point_types_and_tests_is_reported(tmp_path: Path) -> None:
    project = '[project]\nname = "gsd-plugin-bare"\nversion = "1"\ndependencies = ["attrs"]\n'
    _, rules = checked(package(tmp_path / "bare", project))
    problems = broken(rules)

    assert problems["entry-point"] == ["pyproject.toml has no entry point in the group gsd"]
    for missing, problem in zip(
        ("requires-python", "gsd-core", "py.typed"), problems["packaged"], strict=True
    ):
        assert missing in problem
    assert any("imports click" in problem for problem in problems["declared"])
    assert problems["tested"] == ["no test imports the plugin"]
    assert any("README" in problem for problem in problems["documented"])


def test_a_name_that_is_taken_is_reported(tmp_path: Path) -> None:
    project = '[project]\nname = "x"\n[project.entry-points.gsd]\nretry = "bare"\n'
    _, rules = checked(package(tmp_path / "x", project))

    [problem] = broken(rules)["entry-point"]
    assert "'retry'" in problem


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_plugin_passes(name: str) -> None:
    code, rules = checked(name)

    assert broken(rules) == {}
    assert code == 0


def test_the_packages_in_contrib_pass() -> None:
    for folder in sorted((Path(__file__).parents[2] / "contrib").glob("gsd-plugin-*")):
        code, rules = checked(folder)

        assert (code, broken(rules)) == (0, {}), folder.name


def test_a_built_in_plugin_passes() -> None:
    assert checked("gsd_plugins.budget")[0] == 0


def test_an_agent_is_called_only_if_asked_for(tmp_path: Path) -> None:
    agent = (
        "from gsd_core import AgentHost, AgentResult, AgentTask\n"
        "from gsd_core.hookspecs import gsd_run_agent\n\n\n"
        "@implements(gsd_run_agent)\nasync def run(task: AgentTask, host: AgentHost) -> AgentResult | None:\n"
        "    '''Fail.'''\n    raise ValueError('called')\n"
    )
    path = write(tmp_path / "agent.py", agent)

    assert checked(path)[0] == 0
    assert "names-errors" in broken(checked(path, "--run-agent")[1])


ANSWERS = """
@frozen(kw_only=True)
class ShownSettings:
    '''Settings.'''

    answer: str = setting("")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    '''Settings.'''
    yield ShownSettings


@implements(gsd_answer)
async def answer(inquiry: Inquiry) -> Sequence[Answer] | None:
    '''Answer as the settings say.'''
    text = settings_of(ShownSettings).answer
    return [Answer(question=q.id, text=text) for q in inquiry.questions] if text else None
"""


def test_a_plugin_that_declines_everything_is_named_and_the_package_can_give_it_settings(
    tmp_path: Path,
) -> None:
    project = (
        '[project]\nname = "gsd-plugin-bare"\nversion = "1"\n[project.entry-points.gsd]\nshown = "bare"\n'
    )
    folder = package(tmp_path / "bare", project)
    module = folder / "src" / "bare" / "__init__.py"
    module.write_text(HEAD.replace("setting\n", "setting, settings_of\n", 1) + ANSWERS, encoding="utf-8")

    _, rules = checked(folder)
    assert rules["returns"]["reason"] == "declined everything: gsd_answer"
    (folder / "pyproject.toml").write_text(project + '[tool.gsd.check]\nanswer = "yes"\n')
    _, rules = checked(folder)
    assert (rules["returns"]["status"], rules["returns"]["reason"]) == ("holds", None)
    (folder / "pyproject.toml").write_text(project + "[tool.gsd.check]\nanswr = 1\n")
    _, rules = checked(folder)
    assert any("unknown key shown.answr" in problem for problem in rules["settings"]["problems"])


def test_a_plugin_that_never_returns_is_ended_after_fifteen_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    code, rules = checked(write(tmp_path / "stuck.py", notifying("time.sleep(10_000)")))

    assert time.monotonic() - began < 60
    assert code == 1
    assert any("gsd_notify: blocked the process for 15 s" in p for p in broken(rules)["does-not-block"])
    waits = "time.sleep(4)\n" + NOTIFY
    assert "waiting" in broken(checked(write(tmp_path / "waits.py", waits))[1])["cheap-import"][0]
