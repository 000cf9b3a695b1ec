"""A permission is given by a person who has seen all of it, and by nothing in the project."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, evolve, field

from gsd_core import Inquiry, Option, Question
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_answer
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, Deny, Permission, ToolUse
from gsd_core.model.question import Answer
from gsd_core.plugins.loading import PluginInfo
from gsd_plugins.terminal.prompt import pages_of, prompt_lines
from tests.cli.bench import Bench, call
from tests.run import harness as h
from tests.terminal.pseudo_terminal import on_a_terminal

PUBLISH = "npm publish"


@define(eq=False)
class Publishing:
    """Asks for a permission before it executes, and keeps what was decided."""

    command: str = PUBLISH
    decided: list[Permission] = field(factory=list[Permission])

    async def __call__(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not self.decided:
            use = ToolUse(
                step=task.step, name="Bash", input={"command": self.command}, asked_by="agent", tree=task.tree
            )
            self.decided.append(await host.confirm(use, "it publishes"))
        return None


@define(eq=False)
class Answerer:
    """An answer plugin that permits everything."""

    how: str = "human"
    by: str = "a friend"

    @implements(gsd_answer)
    async def answer(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        if inquiry.kind != "permission":
            return None
        return [
            Answer(question=question.id, chosen=("Allow",), how=self.how, by=self.by)  # type: ignore[arg-type]
            for question in inquiry.questions
        ]


def decide(
    root: Path, answerer: Answerer, *, from_project: bool = False, command: str = PUBLISH
) -> tuple[int, list[Permission]]:
    """Run a project whose agent asks for a permission; return the exit code and the decisions."""
    publishing = Publishing(command)
    asked = h.request(root, h.Watched(h.one_phase(), publishing), given=h.idea(), yes=False)
    asked.hooks.manager.register(answerer, name="answerer")
    info = PluginInfo(name="answerer", source="directory", from_project=from_project)
    end = h.do(evolve(asked, plugins=(*asked.plugins, info)))
    return end.exit, publishing.decided


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "by", "from_project", "permitted"),
    [
        ("human", "a friend", False, True),
        ("human", "a friend", True, False),
        ("policy", "a policy", False, False),
        ("timeout", "", False, False),
        ("file", "{base}/outside.json", False, True),
        ("file", "{base}/project/inside.json", False, False),
        ("file", "{base}/project/link.json", False, False),
        ("file", "{base}/link-into-project.json", False, False),
    ],
)
def test_only_people_permit(tmp_path: Path, how: str, by: str, from_project: bool, permitted: bool) -> None:
    root = h.repository(tmp_path / "project")
    for name in ("outside.json", "project/inside.json"):
        (tmp_path / name).write_text("{}")
    (root / "link.json").symlink_to(tmp_path / "outside.json")
    (tmp_path / "link-into-project.json").symlink_to(root / "inside.json")

    code, decided = decide(root, Answerer(how, by.format(base=tmp_path)), from_project=from_project)

    assert ([type(one) for one in decided], code) == (([Allow], 0) if permitted else ([], 3))


@pytest.mark.slow
def test_a_command_is_asked_about_in_full_or_not_at_all(tmp_path: Path) -> None:
    long, longer = (f"npm publish {'x' * size} # the end" for size in (10_000, 50_000))
    root, other = h.repository(tmp_path / "project"), h.repository(tmp_path / "other")

    _, asked = decide(root, Answerer(), command=long)
    _, refused = decide(other, Answerer(), command=longer)

    [fact] = h.facts(root, "question.asked")
    assert long in fact.data["inquiry"]["questions"][0]["text"]
    assert [type(one) for one in (*asked, *refused)] == [Allow, Deny]
    assert not h.facts(other, "question.asked")


LONG = Question(
    id="q-1",
    text="Allow Bash?\n" + "\n".join(f"echo {number}" for number in range(50)) + "\nrm -rf ~/everything",
    options=(Option(label="Deny", recommended=True), Option(label="Allow")),
    free_text=False,
)


def test_gsd_answer_and_gsd_questions_show_all_of_a_permission(bench: Bench) -> None:
    bench.start()
    inquiry = {"kind": "permission", "step": "2/execute/02-02", "reason": "it writes"}
    question = {
        "id": LONG.id,
        "text": LONG.text,
        "options": [{"label": option.label, "recommended": option.recommended} for option in LONG.options],
    }
    bench.fact(
        "question.asked", "2/execute/02-02", inquiry={**inquiry, "questions": [question]}, occasion="1"
    )

    for arguments in (("questions",), ("answer", "q-1", "Allow")):
        shown = call(*arguments, "-C", bench.root)
        assert shown.exit_code == 0, shown.stderr
        assert "echo 0\n" in shown.stdout
        assert "rm -rf ~/everything" in shown.stdout


def test_pages_contain_every_line_and_fit_the_screen() -> None:
    inquiry = Inquiry(kind="permission", questions=(evolve(LONG, text=LONG.text + "\n" + "漢" * 3000),))
    glyphs = {"question": "?"}

    pages = list(pages_of(prompt_lines(inquiry, inquiry.questions[0], glyphs), 80, 24))

    texts = ["".join(text for text, _ in line) for page in pages for line in page]
    assert texts[3:54] == LONG.text.split("\n")[1:]
    assert "".join(texts).count("漢") == 3000
    assert len(pages) > 3


ASK = """
import asyncio, json
from pathlib import Path
from gsd_core import Inquiry, RunInfo
from gsd_plugins.terminal.session import TerminalSession
from tests.trust.test_permissions import LONG

async def main():
    run = RunInfo(id="r-1", project=Path("/nowhere"), interactive=True, no_input=False)
    async with TerminalSession().open(run) as session:
        answers = await session.ask(Inquiry(kind="permission", questions=(LONG,)))
    print("RESULT", json.dumps([answer.words for answer in answers]))

asyncio.run(main())
"""


def test_the_terminal_takes_an_answer_only_after_it_showed_a_permission_to_its_end(tmp_path: Path) -> None:
    script = tmp_path / "asks.py"
    script.write_text(ASK)
    with on_a_terminal(str(script), NO_COLOR="1") as screen:
        first = screen.until("Press Enter to see more.")
        screen.type("2\n2\n2\n2\n2\n2\n")  # "Allow", too early
        second = screen.until("Press Enter to see more.")
        screen.until("> ")
        screen.type("\n")
        third = screen.until("Esc: later")
        screen.until("> ")
        screen.type("1\n")
        result = screen.until("]")

    assert "echo 0\r\n" in first
    assert ["everything" in page for page in (first, second, third)] == [False, False, True]
    assert '["Deny"]' in result
