"""The agent with a scripted command, through its hook."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import gsd_plugin_command_agent as plugin
import pytest
from gsd_plugin_command_agent import CommandAgentSettings

from gsd_core import (
    Activity,
    AgentFunction,
    AgentResult,
    AgentTask,
    Conversation,
    Limits,
    Permanent,
    Question,
    Transient,
    Usage,
    bind_settings,
)
from gsd_core.testing import FakeAgentHost, a_task
from gsd_core.testing.conformance import check_doctor, check_run_agent, check_settings

COMMAND = Path(__file__).with_name("scripted_command.py")
SCHEMA = {
    "type": "object",
    "properties": {"deviations": {"type": "array", "items": {"type": "string"}}},
    "required": ["deviations"],
    "additionalProperties": False,
}
TASK_DONE = AgentFunction(name="task_done", description="Commit a task.", schema={"type": "object"})


@attrs.frozen(kw_only=True)
class Harness:
    """A project tree, a script for the command, and a fake host."""

    tree: Path
    script: Path
    host: FakeAgentHost = attrs.field(factory=FakeAgentHost)

    def settings(self, *args: str, **changes: Any) -> CommandAgentSettings:
        command = (sys.executable, str(COMMAND), str(self.script), *args)
        return attrs.evolve(CommandAgentSettings(command=command), **changes)

    def task(self, **changes: Any) -> AgentTask:
        given: dict[str, Any] = {"prompt": "Implement it.", "tools": (), **changes}
        return a_task(self.tree, **given)

    def run(
        self, *turns: Mapping[str, Any], settings: CommandAgentSettings | None = None, **changes: Any
    ) -> AgentResult:
        """Run a task with a script of these turns."""
        self.script.write_text(json.dumps(turns), encoding="utf-8")
        chosen = settings or self.settings()
        with bind_settings({CommandAgentSettings: chosen}):
            result = asyncio.run(plugin.run_agent(self.task(**changes), self.host))
        assert result is not None
        return result

    def runs(self) -> list[dict[str, Any]]:
        """Return the input of the command, run by run."""
        runs: list[dict[str, Any]] = json.loads(self.script.with_suffix(".runs.json").read_text())
        return runs

    def child(self) -> int:
        return int(self.script.with_suffix(".child").read_text())


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    (tmp_path / "tree").mkdir()
    return Harness(tree=tmp_path / "tree", script=tmp_path / "script.json")


def says(value: object) -> dict[str, str]:
    return {"stdout": json.dumps(value)}


def calls(*numbers: int) -> dict[str, str]:
    return says({"calls": [{"function": "task_done", "arguments": {"task": n}} for n in numbers]})


def ended(pid: int) -> bool:
    """Whether the process ends within two seconds; a zombie has ended."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if sys.platform == "linux" and Path(f"/proc/{pid}/stat").read_text().split()[2] in "ZX":
            return True
        time.sleep(0.02)
    return False


def test_the_command_gets_the_prompt_and_its_output_is_the_text(harness: Harness) -> None:
    result = harness.run({"stdout": "All is well.", "stderr": "thinking"}, system="You are a reader.")

    [run] = harness.runs()
    assert (result.text, result.ended, result.usage.turns) == ("All is well.", "done", 1)
    assert run["prompt"].startswith("You are a reader.\n\nImplement it.\n\n")
    assert "read-only" in run["prompt"]
    assert run["cwd"] == str(harness.tree)
    assert {a.text for a in harness.host.activities} >= {"thinking", "All is well."}
    assert len(harness.host.pids) == 1


@pytest.mark.parametrize(
    "output",
    [
        '{"deviations": ["one"]}',
        '{"value": {"deviations": ["one"]}}',
        'I did it.\n\n```json\n{"deviations": ["one"]}\n```\n',
        'Like {this}?\n[]\nHere it is:\n{"deviations": ["one"]}\nDone.',
    ],
)
def test_a_value_is_found_anywhere_in_the_output(output: str, harness: Harness) -> None:
    result = harness.run({"stdout": output}, schema=SCHEMA)

    assert result.value == {"deviations": ["one"]}
    assert '"deviations"' in harness.runs()[0]["prompt"]


def test_an_invalid_answer_is_corrected_in_the_same_conversation(harness: Harness) -> None:
    result = harness.run(
        {"stdout": "not sure"},
        says({"deviations": [1], "mood": "good"}),
        says({"deviations": []}),
        schema=SCHEMA,
    )

    prompts = [run["prompt"] for run in harness.runs()]
    assert result.value == {"deviations": []}
    assert "no JSON document" in prompts[1]
    assert "$.deviations[0]: 1 is not of type 'string'" in prompts[2]
    assert "'mood' was unexpected" in prompts[2]
    assert "not sure" in prompts[2]


def test_an_answer_that_is_still_invalid_after_two_corrections_is_transient(harness: Harness) -> None:
    with pytest.raises(Transient, match="still invalid"):
        harness.run({"stdout": "not sure"}, schema=SCHEMA)

    assert len(harness.runs()) == 3


def test_functions_are_called_between_runs(harness: Harness) -> None:
    result = harness.run(
        {**calls(1), "write": {"one.py": "1"}},
        {**calls(2), "write": {"two.py": "2"}},
        says({"value": {"deviations": []}}),
        schema=SCHEMA,
        functions=(TASK_DONE,),
        writable=True,
    )

    assert harness.host.calls == [("task_done", {"task": 1}), ("task_done", {"task": 2})]
    assert "`task_done` replied:\nTask 1 is committed (abc1234)." in harness.runs()[1]["prompt"]
    assert (result.value, result.usage.turns) == ({"deviations": []}, 3)
    assert {path.name for path in harness.tree.iterdir()} == {"one.py", "two.py"}


def test_a_function_is_called_before_the_work_on_the_next_task_starts(harness: Harness) -> None:
    seen: list[set[str]] = []

    def record_files(function: str, arguments: Mapping[str, Any]) -> str:
        seen.append({path.name for path in harness.tree.iterdir()})
        return "committed"

    harness.host.replies = record_files
    harness.run(
        {**calls(1), "write": {"one.py": "1"}},
        {**calls(2), "write": {"two.py": "2"}},
        says({"deviations": []}),
        schema=SCHEMA,
        functions=(TASK_DONE,),
        writable=True,
    )

    assert seen == [{"one.py"}, {"one.py", "two.py"}]


def test_a_call_of_an_unknown_function_is_reported_to_the_command(harness: Harness) -> None:
    harness.run(
        says({"calls": [{"function": "push"}]}),
        says({"deviations": []}),
        schema=SCHEMA,
        functions=(TASK_DONE,),
    )

    prompt = harness.runs()[1]["prompt"]
    assert "no function 'push'" in prompt
    assert "functions: task_done" in prompt


def test_the_command_can_ask_a_human_if_the_task_allows_it(harness: Harness) -> None:
    asked = {"function": "ask_human", "arguments": {"question": "Which?", "options": ["This", "That"]}}
    harness.run(says({"calls": [asked]}), says({"deviations": []}), schema=SCHEMA, tools=("AskUserQuestion",))

    [question] = harness.host.questions
    assert isinstance(question, Question)
    assert [option.label for option in question.options] == ["This", "That"]
    assert "`ask_human` replied:\nThis" in harness.runs()[1]["prompt"]


def test_a_resumed_conversation_sends_the_whole_transcript(harness: Harness) -> None:
    settings = harness.settings()
    started = Conversation(id="c-1", cwd="")
    harness.run({"stdout": "First."}, settings=settings, conversation=started)
    again = attrs.evolve(started, resume=True)
    result = harness.run({"stdout": "Second."}, settings=settings, conversation=again, prompt="Fix it.")

    prompt = harness.runs()[1]["prompt"]
    assert (result.text, result.conversation) == ("Second.", "c-1")
    assert prompt.index("Implement it.") < prompt.index("First.") < prompt.index("Fix it.")


def test_a_lost_conversation_starts_again_with_the_prompt(harness: Harness) -> None:
    harness.run({"stdout": "Yes."}, conversation=Conversation(id="c-2", cwd="", resume=True))

    assert harness.runs()[0]["prompt"].startswith("Implement it.")


def test_placeholders_are_replaced_and_arguments_without_a_value_left_out(harness: Harness) -> None:
    args = ("--model={model}", "--dir={tree}", "--schema={schema}", "--answer={answer}")
    harness.run(
        {"answer": "from the file", "stdout": "noise"}, settings=harness.settings(*args), model="small"
    )
    result = harness.run({"answer": '{"deviations": []}'}, settings=harness.settings(*args), schema=SCHEMA)

    first, second = (run["args"] for run in harness.runs())
    assert first[:2] == ["--model=small", f"--dir={harness.tree}"]
    assert len(first) == 3
    assert [arg.partition("=")[0] for arg in second] == ["--dir", "--schema", "--answer"]
    assert result.value == {"deviations": []}


def test_read_only_tasks_have_their_own_command(harness: Harness) -> None:
    settings = harness.settings("--write", read_only=(*harness.settings().command, "--read"))
    harness.run({"stdout": "."}, settings=settings)
    harness.run({"stdout": "."}, settings=settings, writable=True)

    assert [run["args"] for run in harness.runs()] == [["--read"], ["--write"]]


def test_json_output_is_read_by_its_answer_key(harness: Harness) -> None:
    settings = harness.settings(output="json", answer_key="result.text")

    assert harness.run({"stdout": '{"result": {"text": "Yes."}}'}, settings=settings).text == "Yes."


def test_json_output_that_cannot_be_read_is_permanent(harness: Harness) -> None:
    settings = harness.settings(output="json", answer_key="result.text")

    with pytest.raises(Permanent, match="not one JSON document"):
        harness.run({"stdout": "Yes."}, settings=settings)
    with pytest.raises(Permanent, match=r"no field 'result\.text'") as caught:
        harness.run({"stdout": '{"text": "Yes."}'}, settings=settings)
    assert "answer_key" in caught.value.hint


def test_the_command_gets_only_the_allowed_and_the_runs_variables(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    monkeypatch.setenv("MY_API_KEY", "key")
    harness.run({"stdout": "."}, settings=harness.settings(environment=("MY_API_*",)))

    environment = harness.runs()[0]["env"]
    assert "MY_SECRET" not in environment
    assert (environment["MY_API_KEY"], environment["GSD_RUN"]) == ("key", "r-test")


@pytest.mark.parametrize(
    ("turn", "kind", "message"),
    [
        ({"exit": 2, "stderr": "unknown flag"}, Permanent, "exited with 2: unknown flag"),
        ({"exit": 75}, Transient, "exited with 75"),
        ({"exit": 1, "stderr": "HTTP 429: Rate limit reached"}, Transient, "Rate limit"),
        ({"kill": True}, Transient, "signal 9"),
    ],
)
def test_a_failure_is_transient_or_permanent(
    turn: dict[str, Any], kind: type[Exception], message: str, harness: Harness
) -> None:
    with pytest.raises(kind, match=message) as caught:
        harness.run(turn)

    assert type(caught.value) is kind


def test_a_missing_program_is_permanent(harness: Harness) -> None:
    with pytest.raises(Permanent, match="cannot start 'no-such-program-here'"):
        harness.run(settings=CommandAgentSettings(command=("no-such-program-here",)))


def test_a_command_over_its_time_limit_is_ended(harness: Harness) -> None:
    with pytest.raises(Transient, match="took longer than"):
        harness.run({"hang": True}, settings=harness.settings(patience=timedelta(seconds=1)))

    assert ended(harness.host.pids[0])


def test_the_number_of_turns_is_limited(harness: Harness) -> None:
    result = harness.run(calls(1), functions=(TASK_DONE,), schema=SCHEMA, limits=Limits(turns=3))

    assert (result.ended, len(harness.runs())) == ("turns", 3)


def test_background_processes_of_the_command_are_ended(harness: Harness) -> None:
    result = harness.run({"stdout": "Yes.", "background": True})

    assert result.text == "Yes."
    assert ended(harness.child())


def test_an_exception_of_the_host_is_raised_as_it_is(harness: Harness) -> None:
    class Stopped(Exception):
        pass

    @attrs.define(kw_only=True)
    class StoppingHost(FakeAgentHost):
        async def progress(self, activity: Activity, usage: Usage | None = None) -> None:
            if activity.text == "stop now":
                raise Stopped

    host = StoppingHost()
    with pytest.raises(Stopped):
        attrs.evolve(harness, host=host).run({"stderr": "stop now", "stdout": "Yes."})

    assert ended(host.pids[0])


def test_cancellation_ends_the_whole_process_group(harness: Harness) -> None:
    hangs = harness.script.with_suffix(".hangs")

    async def cancel_when(ready: Callable[[], bool]) -> None:
        work = asyncio.create_task(plugin.run_agent(harness.task(), harness.host))
        async with asyncio.timeout(20):
            while not ready():  # noqa: ASYNC110 - the signal is a file of another process
                await asyncio.sleep(0.01)
            work.cancel()
            await asyncio.wait({work})
        assert work.cancelled()

    harness.script.write_text(json.dumps([{"hang": True}]))
    with bind_settings({CommandAgentSettings: harness.settings()}):
        asyncio.run(cancel_when(hangs.exists))

    assert ended(harness.host.pids[0])
    assert ended(harness.child())


def test_without_a_command_the_agent_declines_and_the_doctor_reports_it(harness: Harness) -> None:
    assert check_run_agent(plugin, harness.task(), harness.host, declines=harness.task()) is None
    [finding] = check_doctor(plugin)

    assert (finding.ok, finding.message) == (False, "no command is set")


def test_the_doctor_checks_that_the_program_exists(harness: Harness) -> None:
    with bind_settings({CommandAgentSettings: harness.settings()}):
        assert [finding.ok for finding in check_doctor(plugin)] == [True]
    with bind_settings({CommandAgentSettings: CommandAgentSettings(command=("no-such-program-here",))}):
        [finding] = check_doctor(plugin)

    assert finding.fix == "install no-such-program-here"


def test_the_plugin_passes_the_conformance_checks(harness: Harness) -> None:
    harness.script.write_text(json.dumps([says({"deviations": []})]))
    with bind_settings({CommandAgentSettings: harness.settings()}):
        result = check_run_agent(plugin, harness.task(schema=SCHEMA), harness.host)

    assert result is not None
    assert result.value == {"deviations": []}
    assert check_settings(plugin) == (CommandAgentSettings,)
