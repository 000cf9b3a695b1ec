"""Whole runs by scenario files: each example ends with the exit code that its first lines promise."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, ROOT, Done, Project
from tests.run.harness import git

EXAMPLES = sorted((ROOT / "examples" / "rehearsal").glob("*.toml"))
UNUSED = "has not applied"
# Without the sandbox and with short waits, because neither is what these tests are about.
FAST = {"GSD_REHEARSAL_CLI": "false", "GSD_SANDBOX": "off", "GSD_RETRY_WAIT": "0.05"}
NOT_ABOUT_VERIFICATION = ("hang", "usage-limit", "invalid-answers", "dangerous-command")
"""They end sooner without it."""


def run_as_it_says(project: Project, path: Path) -> tuple[Done, int]:
    """Run the command line in an example's first line; return how it ended, and the promised exit code."""
    command, promise = path.read_text("utf-8").splitlines()[:2]
    variables, arguments = dict[str, str](), list[str]()
    for word in shlex.split(command.removeprefix("# ")):
        name, equals, value = word.partition("=")
        if not arguments and equals:
            variables[name] = value
        else:
            arguments.append(word)
    places = {"demo": project.root, "examples/greeter.md": EXAMPLE, path.relative_to(ROOT).as_posix(): path}
    assert arguments.pop(0) == "gsd"
    assert set(places) <= set(arguments)
    if path.stem in NOT_ABOUT_VERIFICATION:
        variables["GSD_SKIP_VERIFY"] = "true"
    project.environment = FAST | variables
    done = project.gsd(*(places.get(word, word) for word in arguments))
    [code] = re.findall(r"^# Exit code (\d+)\b", promise)
    return done, int(code)


def failures(project: Project) -> list[str]:
    return [fact.step for fact in project.facts("attempt.failed")]


def calls(project: Project, step: str) -> int:
    return sum(fact.step == step for fact in project.facts("agent.opened"))


def texts(project: Project, pattern: str) -> str:
    return "\n".join(path.read_text("utf-8") for path in project.root.glob(f".planning/phases/*/{pattern}"))


# What shows that the scenario has happened, and not only that the exit code is right.
EVIDENCE: Mapping[str, Callable[[Project, Done], bool]] = {
    "success": lambda project, done: "How should each" in done.err and failures(project) == [],
    "transient-errors": lambda project, _: (
        sorted(failures(project)) == ["1/execute/01-01", "1/plan", "1/verify", "init"]
    ),
    "outage": lambda project, _: set(failures(project)) == {"1/execute/01-01"},
    "hang": lambda project, done: failures(project) == ["1/plan"] and "no activity" in done.out + done.err,
    "lying-executor": lambda project, done: (
        "failed 3 times" in done.out + done.err and project.facts("task.committed") == []
    ),
    "staying-gaps": lambda project, _: "An empty line is not rejected" in texts(project, "*-VERIFICATION.md"),
    "closed-gap": lambda project, _: (
        [fact.step for fact in project.facts("step.completed") if "/verify" in fact.step]
        == ["1/verify", "1/verify/r1", "1/verify/r2"]
    ),
    "unanswered-question": lambda project, done: "Where are the guests kept?" in done.out + done.err,
    "budget": lambda project, done: (
        "of the $0.50 budget is spent" in done.out + done.err
        and Decimal(project.json("status")["cost"]["dollars"]) == Decimal("0.40")
    ),
    "test-first": lambda project, _: (
        [fact.data["check"]["exit"] for fact in project.facts("task.committed")][:3] == [1, 0, 0]
        and "<behavior>" in texts(project, "01-01-PLAN.md")
    ),
    "usage-limit": lambda project, _: len(project.facts("timer.fired")) == 1,
    "invalid-answers": lambda project, _: (calls(project, "init"), calls(project, "1/plan")) == (3, 3),
    "parallel": lambda project, _: (
        sorted((fact.data["paths"], bool(fact.data["check"])) for fact in project.facts("merge.failed"))
        == [([], True), (["NOTES.md"], False)]
        and [fact.step for fact in project.facts("question.answered")] == ["1/execute/01-02"]
    ),
    "dangerous-command": lambda project, _: "Bash was refused: " in texts(project, "01-01-SUMMARY.md"),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_with_the_exit_code_that_it_promises(project: Project, path: Path) -> None:
    project.create()

    done, promised = run_as_it_says(project, path)

    assert done.exit == promised, done.err
    assert EVIDENCE[path.stem](project, done), done.err
    assert UNUSED not in done.err
    # The work on a task that failed for good stays, for the person who is asked what to do.
    assert (git(project.root, "status", "--porcelain") != "") == (path.stem == "lying-executor")


def test_each_example_is_tested_and_listed_with_its_exit_code() -> None:
    page = (ROOT / "docs" / "how-to" / "rehearse-with-a-scenario.md").read_text("utf-8")
    listed = re.findall(r"^\| `([\w-]+)\.toml` \| .* \| (\d+) \|$", page, re.MULTILINE)
    promised = [re.findall(r"^# Exit code (\d+)", path.read_text("utf-8"), re.M) for path in EXAMPLES]

    assert len(EXAMPLES) == 14
    assert {path.stem for path in EXAMPLES} == set(EVIDENCE)
    assert sorted(listed) == [(path.stem, code) for path, [code] in zip(EXAMPLES, promised, strict=True)]


def test_a_bad_script_is_refused_before_anything_is_written(project: Project) -> None:
    script = project.base / "bad.toml"
    script.write_text("[[rule]]\ndo = 'error'\nstats = 529\n")

    done = project.gsd("run", EXAMPLE, "-C", project.root, "--agent", "rehearsal", "--script", script)

    assert done.exit == 2
    assert "--script: " in done.err
    assert "[[rule]] 1: unknown key 'stats'; did you mean 'status'?" in done.err
    assert not project.root.exists()


def test_a_script_for_another_agent_is_refused_before_it_costs_anything(project: Project) -> None:
    project.create()
    script = EXAMPLES[0]
    fake = ("-p", "gsd_plugins.rehearsal.fake", "--agent", "fake")

    done = project.gsd("run", EXAMPLE, *fake, "--script", script, "--yes")

    assert done.exit == 2
    assert "error: " not in done.err
    assert "plugin 'rehearsal' cannot start: --script is for a rehearsal, and the agent is 'fake'" in done.out
    assert "pass --agent rehearsal, or leave --script out" in done.out + done.err
    assert "ConfigError" not in done.err
    assert project.facts("agent.opened") == []


@pytest.mark.slow
def test_a_resumed_run_continues_with_the_rules_that_are_left(project: Project) -> None:
    project.create()
    script = project.base / "login.toml"
    script.write_text(
        "[[rule]]\nwhen = { step = 'init' }\ndo = 'error'\nstatus = 401\n"
        "[[rule]]\nwhen = { step = 'plan', phase = '2' }\ndo = 'hang'\n"
        "[[rule]]\nwhen = { step = 'plan' }\ndo = 'question'\ntext = 'Now?'\noptions = ['a', 'b']\n"
        "[[rule]]\nwhen = { step = 'plan' }\ndo = 'checkpoint'\ntext = 'Log in'\nkind = 'human-action'\n"
    )
    project.environment = FAST
    first = project.gsd("run", EXAMPLE, "--agent", "rehearsal", "--script", script, "--yes")
    resumed = project.gsd("resume", "--yes")

    assert (first.exit, resumed.exit) == (4, 3), first.err + resumed.err
    assert "Log in" in resumed.out + resumed.err
    # The first has applied in the other process; the third cannot, because planners have no such tool.
    assert re.findall(r"warning: rule (\d) ", resumed.err) == ["2", "3"]


@pytest.mark.slow
def test_the_real_cli_plays_the_same_rules(project: Project) -> None:
    project.create()
    script = project.base / "mixed.toml"
    script.write_text(
        "[[rule]]\nwhen = { role = 'roadmapper' }\ndo = 'usage limit'\nresets_in = 1\n"
        "[[rule]]\nwhen = { step = 'plan' }\ndo = 'answer'\nvalue = { plans = 'one' }\n"
        "[[rule]]\nwhen = { step = 'plan' }\ndo = 'checkpoint'\ntext = 'Which license?'\n"
        "kind = 'decision'\noptions = ['MIT', 'Apache']\n"
        "[[rule]]\nwhen = { step = 'plan' }\ndo = 'cost'\ndollars = 0.05\ntimes = 1\n"
        "[[rule]]\nwhen = { task = 1 }\ndo = 'disconnect'\n"
        "[[rule]]\nwhen = { task = 1 }\ndo = 'lie'\nsays = 'All tests pass'\n"
        "[[rule]]\nwhen = { task = 1 }\ndo = 'question'\ntext = 'Storage?'\noptions = ['Text', 'SQLite']\n"
        "[[rule]]\nwhen = { task = 2 }\ndo = 'tool'\ninput = { command = 'git push --force origin main' }\n"
        "[[rule]]\nwhen = { task = 3 }\ndo = 'slow'\nduration = 0.1\n"
        "[[rule]]\nwhen = { step = 'verify' }\ndo = 'lie'\n"
    )
    project.environment = FAST | {"GSD_REHEARSAL_CLI": "true"}
    done = project.gsd("run", EXAMPLE, "--agent", "rehearsal", "--script", script, "--yes")

    assert done.exit == 0, done.err
    assert UNUSED not in done.err
    assert ", $0.05" in done.out.splitlines()[-1]
    assert len(project.facts("timer.fired")) == 1
    asked = re.findall(r"^\? \S+(?: asks)?:? (.*)$", done.err, re.MULTILINE)
    assert {"Storage?", "Which license?"} <= {*asked}, done.err
    assert "Bash was refused: " in texts(project, "01-01-SUMMARY.md")
    # The verifier's lie was sent back to it: nothing that it cited had been read.
    assert calls(project, "1/verify") == 2
