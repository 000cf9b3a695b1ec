"""The agent with a script in the place of a command-line agent, through its hook."""

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

import gsd_plugin_command_agent as plugin
import pytest
from attrs import evolve, field, frozen
from gsd_plugin_command_agent import CommandAgentSettings

from gsd_core import (
    AgentFunction,
    AgentResult,
    AgentTask,
    Conversation,
    Limits,
    Permanent,
    Question,
    Transient,
    bind_settings,
)
from gsd_core.testing import FakeAgentHost, a_task
from gsd_core.testing.conformance import check_doctor, check_run_agent, check_settings

STAND_IN = Path(__file__).with_name("stand_in.py")
SCHEMA = {
    "type": "object",
    "properties": {"deviations": {"type": "array", "items": {"type": "string"}}},
    "required": ["deviations"],
    "additionalProperties": False,
}
TASK_DONE = AgentFunction(name="task_done", description="Have a task committed.", schema={"type": "object"})


@frozen(kw_only=True)
class Bench:
    """A tree to work in, and a script beside it."""

    tree: Path
    script: Path
    host: FakeAgentHost = field(factory=FakeAgentHost)

    def settings(self, *args: str, **changes: Any) -> CommandAgentSettings:
        command = (sys.executable, str(STAND_IN), str(self.script), *args)
        return evolve(CommandAgentSettings(command=command), **changes)

    def task(self, **changes: Any) -> AgentTask:
        given: dict[str, Any] = {"prompt": "Carry it out.", "tools": (), **changes}
        return a_task(self.tree, **given)

    def run(
        self, *turns: Mapping[str, Any], settings: CommandAgentSettings | None = None, **changes: Any
    ) -> AgentResult:
        """Have a task done by a script with these turns."""
        self.script.write_text(json.dumps(turns), encoding="utf-8")
        chosen = settings or self.settings()
        with bind_settings({CommandAgentSettings: chosen}):
            result = asyncio.run(plugin.run_agent(self.task(**changes), self.host))
        assert result is not None
        return result

    def heard(self) -> list[dict[str, Any]]:
        """Return what the command was told, run by run."""
        found: list[dict[str, Any]] = json.loads(self.script.with_suffix(".heard.json").read_text())
        return found

    def child(self) -> int:
        return int(self.script.with_suffix(".child").read_text())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "tree").mkdir()
    return Bench(tree=tmp_path / "tree", script=tmp_path / "script.json")


def says(value: object) -> dict[str, str]:
    return {"say": json.dumps(value)}


def calls(*numbers: int) -> dict[str, str]:
    return says({"calls": [{"function": "task_done", "arguments": {"task": n}} for n in numbers]})


def gone(pid: int) -> bool:
    """Whether the process has ended, or is about to be buried."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if sys.platform == "linux" and Path(f"/proc/{pid}/stat").read_text().split()[2] in "ZX":
            return True
        time.sleep(0.02)
    return False


def test_the_prompt_goes_in_and_the_text_comes_out(bench: Bench) -> None:
    result = bench.run({"say": "All is well.", "mutter": "thinking"}, system="You are a reader.")

    [told] = bench.heard()
    assert (result.text, result.ended, result.usage.turns) == ("All is well.", "done", 1)
    assert told["prompt"].startswith("You are a reader.\n\nCarry it out.\n\nChange no file")
    assert told["cwd"] == str(bench.tree)
    assert {a.text for a in bench.host.activities} >= {"thinking", "All is well."}
    assert len(bench.host.pids) == 1


@pytest.mark.parametrize(
    "said",
    [
        '{"deviations": ["one"]}',
        '{"value": {"deviations": ["one"]}}',
        'I did it.\n\n```json\n{"deviations": ["one"]}\n```\n',
        'Like {this}?\n[]\nHere it is:\n{"deviations": ["one"]}\nDone.',
    ],
)
def test_a_value_is_found_wherever_it_stands(said: str, bench: Bench) -> None:
    result = bench.run({"say": said}, schema=SCHEMA)

    assert result.value == {"deviations": ["one"]}
    assert '"deviations"' in bench.heard()[0]["prompt"]


def test_an_answer_that_does_not_fit_is_mended_in_the_same_conversation(bench: Bench) -> None:
    result = bench.run(
        {"say": "no idea"}, says({"deviations": [1], "mood": "good"}), says({"deviations": []}), schema=SCHEMA
    )

    prompts = [told["prompt"] for told in bench.heard()]
    assert result.value == {"deviations": []}
    assert "there is no JSON document in it" in prompts[1]
    assert "the value.deviations[0]: string is expected, not int" in prompts[2]
    assert "the value: 'mood' is not asked for" in prompts[2]
    assert "no idea" in prompts[2]


def test_an_answer_that_stays_invalid_is_transient(bench: Bench) -> None:
    with pytest.raises(Transient, match="stays invalid"):
        bench.run({"say": "no idea"}, schema=SCHEMA)

    assert len(bench.heard()) == 3


def test_a_function_is_called_between_two_runs(bench: Bench) -> None:
    result = bench.run(
        {**calls(1), "write": {"one.py": "1"}},
        {**calls(2), "write": {"two.py": "2"}},
        says({"value": {"deviations": []}}),
        schema=SCHEMA, functions=(TASK_DONE,), writable=True,
    )  # fmt: skip

    assert bench.host.calls == [("task_done", {"task": 1}), ("task_done", {"task": 2})]
    assert "`task_done` replied:\nTask 1 is committed (abc1234)." in bench.heard()[1]["prompt"]
    assert (result.value, result.usage.turns) == ({"deviations": []}, 3)
    assert {path.name for path in bench.tree.iterdir()} == {"one.py", "two.py"}


def test_each_task_is_done_when_only_its_own_files_are_there(bench: Bench) -> None:
    seen: list[set[str]] = []

    def look(function: str, arguments: Mapping[str, Any]) -> str:
        seen.append({path.name for path in bench.tree.iterdir()})
        return "committed"

    bench.host.replies = look
    bench.run(
        {**calls(1), "write": {"one.py": "1"}},
        {**calls(2), "write": {"two.py": "2"}},
        says({"deviations": []}),
        schema=SCHEMA, functions=(TASK_DONE,), writable=True,
    )  # fmt: skip

    assert seen == [{"one.py"}, {"one.py", "two.py"}]


def test_a_call_of_an_unknown_function_is_answered(bench: Bench) -> None:
    bench.run(
        says({"calls": [{"function": "push"}]}), says({"deviations": []}),
        schema=SCHEMA, functions=(TASK_DONE,),
    )  # fmt: skip

    assert "There is no function 'push'; there are: task_done." in bench.heard()[1]["prompt"]


def test_a_human_is_asked_where_the_task_allows_it(bench: Bench) -> None:
    asked = {"function": "ask_human", "arguments": {"question": "Which?", "options": ["This", "That"]}}
    bench.run(says({"calls": [asked]}), says({"deviations": []}), schema=SCHEMA, tools=("AskUserQuestion",))

    [question] = bench.host.questions
    assert isinstance(question, Question)
    assert [option.label for option in question.options] == ["This", "That"]
    assert "`ask_human` replied:\nThis" in bench.heard()[1]["prompt"]


def test_complaints_of_the_core_reach_the_command_with_all_that_was_said(bench: Bench) -> None:
    settings = bench.settings()
    begun = Conversation(id="c-1", cwd="")
    bench.run({"say": "First."}, settings=settings, conversation=begun)
    again = evolve(begun, resume=True)
    result = bench.run({"say": "Second."}, settings=settings, conversation=again, prompt="Mend it.")

    prompt = bench.heard()[1]["prompt"]
    assert (result.text, result.conversation) == ("Second.", "c-1")
    assert prompt.index("Carry it out.") < prompt.index("First.") < prompt.index("Mend it.")


def test_a_conversation_that_is_not_known_any_more_begins_with_its_prompt(bench: Bench) -> None:
    bench.run({"say": "Yes."}, conversation=Conversation(id="c-2", cwd="", resume=True))

    assert bench.heard()[0]["prompt"].startswith("Carry it out.")


def test_words_in_the_command_are_filled_in_and_empty_ones_left_out(bench: Bench) -> None:
    args = ("--model={model}", "--dir={tree}", "--schema={schema}", "--answer={answer}")
    bench.run({"answer": "from the file", "say": "noise"}, settings=bench.settings(*args), model="small")
    result = bench.run({"answer": '{"deviations": []}'}, settings=bench.settings(*args), schema=SCHEMA)

    first, second = (told["args"] for told in bench.heard())
    assert first[:2] == ["--model=small", f"--dir={bench.tree}"]
    assert len(first) == 3
    assert [arg.partition("=")[0] for arg in second] == ["--dir", "--schema", "--answer"]
    assert result.value == {"deviations": []}


def test_reading_work_has_a_command_of_its_own(bench: Bench) -> None:
    settings = bench.settings("--write", read_only=(*bench.settings().command, "--read"))
    bench.run({"say": "."}, settings=settings)
    bench.run({"say": "."}, settings=settings, writable=True)

    assert [told["args"] for told in bench.heard()] == [["--read"], ["--write"]]


def test_output_in_json_is_read_by_its_key(bench: Bench) -> None:
    settings = bench.settings(output="json", answer_key="result.text")

    assert bench.run({"say": '{"result": {"text": "Yes."}}'}, settings=settings).text == "Yes."


def test_the_command_sees_what_it_needs_and_what_marks_its_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    monkeypatch.setenv("MY_API_KEY", "key")
    bench.run({"say": "."}, settings=bench.settings(environment=("MY_API_*",)))

    seen = bench.heard()[0]["env"]
    assert "MY_SECRET" not in seen
    assert (seen["MY_API_KEY"], seen["GSD_RUN"]) == ("key", "r-test")


@pytest.mark.parametrize(
    ("turn", "kind", "told"),
    [
        ({"exit": 2, "mutter": "unknown flag"}, Permanent, "exited with 2: unknown flag"),
        ({"exit": 75}, Transient, "exited with 75"),
        ({"exit": 1, "mutter": "HTTP 429: Rate limit reached"}, Transient, "Rate limit"),
        ({"kill": True}, Transient, "was ended by signal 9"),
    ],
)
def test_a_command_that_fails_says_whether_trying_again_may_help(
    turn: dict[str, Any], kind: type[Exception], told: str, bench: Bench
) -> None:
    with pytest.raises(kind, match=told) as caught:
        bench.run(turn)

    assert type(caught.value) is kind


def test_a_program_that_is_not_there_is_permanent(bench: Bench) -> None:
    with pytest.raises(Permanent, match="cannot start 'no-such-program-here'"):
        bench.run(settings=CommandAgentSettings(command=("no-such-program-here",)))


def test_a_command_that_takes_too_long_is_ended(bench: Bench) -> None:
    with pytest.raises(Transient, match="took longer than"):
        bench.run({"hang": True}, settings=bench.settings(patience=timedelta(seconds=1)))

    assert gone(bench.host.pids[0])


def test_turns_are_limited(bench: Bench) -> None:
    result = bench.run(calls(1), functions=(TASK_DONE,), schema=SCHEMA, limits=Limits(turns=3))

    assert (result.ended, len(bench.heard())) == ("turns", 3)


def test_what_the_command_leaves_running_is_ended_with_it(bench: Bench) -> None:
    result = bench.run({"say": "Yes.", "leave": True})

    assert result.text == "Yes."
    assert gone(bench.child())


def test_cancellation_ends_the_whole_process_group(bench: Bench) -> None:
    hangs = bench.script.with_suffix(".hangs")

    async def cancel_when(ready: Callable[[], bool]) -> None:
        work = asyncio.create_task(plugin.run_agent(bench.task(), bench.host))
        async with asyncio.timeout(20):
            while not ready():  # noqa: ASYNC110 - another process says so
                await asyncio.sleep(0.01)
            work.cancel()
            await asyncio.wait({work})
        assert work.cancelled()

    bench.script.write_text(json.dumps([{"hang": True}]))
    with bind_settings({CommandAgentSettings: bench.settings()}):
        asyncio.run(cancel_when(hangs.exists))

    assert gone(bench.host.pids[0])
    assert gone(bench.child())


def test_without_a_command_it_declines_and_the_doctor_says_so(bench: Bench) -> None:
    assert check_run_agent(plugin, bench.task(), bench.host, declines=bench.task()) is None
    [finding] = check_doctor(plugin)

    assert (finding.ok, finding.message) == (False, "no command is set")


def test_the_doctor_finds_the_program(bench: Bench) -> None:
    with bind_settings({CommandAgentSettings: bench.settings()}):
        assert [finding.ok for finding in check_doctor(plugin)] == [True]
    with bind_settings({CommandAgentSettings: CommandAgentSettings(command=("no-such-program-here",))}):
        [finding] = check_doctor(plugin)

    assert finding.fix == "install no-such-program-here"


def test_it_keeps_the_contract_of_its_hook(bench: Bench) -> None:
    bench.script.write_text(json.dumps([says({"deviations": []})]))
    with bind_settings({CommandAgentSettings: bench.settings()}):
        result = check_run_agent(plugin, bench.task(schema=SCHEMA), bench.host)

    assert result is not None
    assert result.value == {"deviations": []}
    assert check_settings(plugin) == (CommandAgentSettings,)
