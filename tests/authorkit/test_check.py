"""``gsd plugins check``: each rule is broken by a plugin made for it, and kept by every one of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gsd_core.plugins.discovery import DEFAULT_PLUGINS
from gsd_core.testing.check import RULES
from tests.authorkit.bad import BAD, HEAD, NOTIFY
from tests.cli.bench import call

PACKAGED = {"declared", "entry-point", "packaged", "tested"}
BUILT_IN = [module.rpartition(".")[2] for module in DEFAULT_PLUGINS]


def checked(target: str | Path, *flags: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and the rules by their ids."""
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
    """Write a package ``bare`` with that ``pyproject.toml`` and nothing else."""
    (folder / "src" / "bare").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    write(folder / "src" / "bare" / "__init__.py", NOTIFY)
    return folder


def test_every_rule_says_what_why_and_how_to_mend() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES) >= 20
    assert all(rule.what and rule.why and rule.mend for rule in RULES)


def test_each_rule_is_broken_by_a_plugin_in_these_tests() -> None:
    assert {*BAD, *PACKAGED} == {rule.id for rule in RULES}


def test_a_plugin_in_one_file_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    code, rules = checked(write(tmp_path / "fine.py", NOTIFY))

    assert (code, broken(rules)) == (0, {})
    assert rules["tested"] | {"status": "skipped", "reason": "its package is not here"} == rules["tested"]


@pytest.mark.slow
@pytest.mark.parametrize("rule", BAD)
def test_a_plugin_that_breaks_a_rule_is_told_which(rule: str, tmp_path: Path) -> None:
    code, rules = checked(write(tmp_path / "bad.py", BAD[rule]))

    assert code == 1
    assert rule in broken(rules)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("os._exit(3)", "gsd_notify: it ended the process with 3"),
        ("raise SystemExit(3)", "gsd_notify: SystemExit(3)"),
    ],
)
def test_a_plugin_that_ends_the_process_is_named_for_it(lines: str, told: str, tmp_path: Path) -> None:
    _, rules = checked(write(tmp_path / "bad.py", f"{NOTIFY}    {lines}\n"))

    assert any(problem.startswith(told) for problem in broken(rules)["names-errors"])


def test_the_table_explains_what_is_broken(tmp_path: Path) -> None:
    result = call("plugins", "check", str(write(tmp_path / "loud.py", BAD["says-nothing"])))

    assert result.exit_code == 1
    assert "says-nothing: standard output is for data that programs read" in result.stdout
    assert "mend: use logging, or write to standard error" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("loud (file): ")


def test_what_is_no_plugin_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    unknown = call("plugins", "check", "permisions")
    no_package = call("plugins", "check", str(tmp_path))

    assert (unknown.exit_code, no_package.exit_code) == (2, 2)
    assert "did you mean 'permissions'?" in unknown.stderr
    assert "no pyproject.toml in" in no_package.stderr


def test_a_file_that_is_no_python_breaks_a_rule_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "torn.py"
    path.write_text("def (:\n")
    code, rules = checked(path)

    assert code == 1
    assert set(broken(rules)) == {"imports"}


def test_a_package_without_entry_point_types_and_tests_is_told(tmp_path: Path) -> None:
    project = '[project]\nname = "gsd-plugin-bare"\nversion = "1"\ndependencies = ["attrs"]\n'
    _, rules = checked(package(tmp_path / "bare", project))
    told = broken(rules)

    assert told["entry-point"] == ["pyproject.toml has no entry point in the group gsd"]
    assert told["packaged"] == [
        "requires-python is missing", "gsd-core is not among the dependencies",
        "py.typed is missing beside the module",
    ]  # fmt: skip
    assert any("imports click, and click is no dependency" in problem for problem in told["declared"])
    assert told["tested"] == ["no test imports it"]
    assert "no README beside pyproject.toml" in told["documented"]


def test_a_name_that_is_taken_is_told(tmp_path: Path) -> None:
    project = '[project]\nname = "x"\n[project.entry-points.gsd]\nretry = "bare"\n'
    _, rules = checked(package(tmp_path / "x", project))

    assert broken(rules)["entry-point"] == ["the name 'retry' is taken by gsd itself"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_passes_its_own_check(name: str) -> None:
    code, rules = checked(name)

    assert broken(rules) == {}
    assert code == 0


@pytest.mark.slow
def test_the_packages_in_contrib_pass_theirs() -> None:
    for folder in sorted((Path(__file__).parents[2] / "contrib").glob("gsd-plugin-*")):
        code, rules = checked(folder)

        assert (code, broken(rules)) == (0, {}), folder.name


def test_a_check_of_one_of_ours_in_the_quick_tests_too() -> None:
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
