"""Comments as answers, the token, and branches that are never pushed to."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Generator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import attrs
import gsd_plugin_github as plugin
import pytest
from aiohttp import web
from click.testing import CliRunner
from github_stand_in import ADA, EVE, TOKEN, GitHubStandIn, git, is_question
from gsd_plugin_github import GitHubSettings, channel
from gsd_plugin_github.repository import Remote, credential_options
from gsd_plugin_github.settings import Issue
from gsd_plugin_github.texts import fenced, pull_request_text

from gsd_core import (
    Answer,
    ConfigError,
    Event,
    EventName,
    Inquiry,
    Option,
    Question,
    UserError,
    bind_settings,
)
from gsd_core.settings import Layer, restricted
from gsd_core.testing import a_notice, a_run, an_event
from gsd_core.testing.conformance import check_cli_commands, check_doctor, check_settings

T = TypeVar("T")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[GitHubStandIn]:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setattr(channel, "NOTICEABLE", 0.01)
    with GitHubStandIn(tmp_path).serving() as hub:
        yield hub


def settings_for(hub: GitHubStandIn, **changes: Any) -> GitHubSettings:
    poll = timedelta(seconds=0.05)
    return attrs.evolve(GitHubSettings(issue="o/r#7", users=(ADA,), poll=poll, api_url=hub.url), **changes)


def during_a_run(hub: GitHubStandIn, scenario: Callable[[], Awaitable[None]], **changes: Any) -> None:
    """Play *scenario* while a run has the plugin open."""

    async def play() -> None:
        with bind_settings({GitHubSettings: settings_for(hub, **changes)}):
            [context] = plugin.lifespan(a_run(Path("flat"), id="r-1", command="gsd"))
            async with context:
                await scenario()

    asyncio.run(play())


async def person(work: Callable[[], T]) -> T:
    """Do what a person does, which blocks, beside the run."""
    return await asyncio.to_thread(work)


def question(name: str, *labels: str, **changes: Any) -> Question:
    options = tuple(Option(label=label) for label in labels)
    return Question(id=f"q-{name}", text=f"Which {name}?", options=options, **changes)


def ask(*questions: Question, **changes: Any) -> asyncio.Task[Sequence[Answer] | None]:
    return asyncio.ensure_future(plugin.answer(Inquiry(questions=questions, **changes)))  # type: ignore[arg-type]


def event(name: EventName, /, **data: Any) -> Event:
    return an_event(name, data=data)


def test_only_a_persons_own_clear_comment_after_the_question_is_an_answer(hub: GitHubStandIn) -> None:
    hub.comment("SQLite")  # before the question
    # Somebody pretends to be gsd: it must not be taken for the question.
    hub.comment("<!-- gsd:question:r-1:q-a1 -->\n**A question**", user=EVE)

    async def scenario() -> None:
        task = ask(question("a1", "SQLite", "PostgreSQL"))
        await person(lambda: hub.asked("Which a1"))
        hub.comment("PostgreSQL", user=EVE)
        hub.comment("SQLite", edited=True)
        hub.comment("I would like to know more.\n\n> SQLite")
        hub.comment("q-a1: 9")
        await person(
            lambda: hub.wait_for(lambda: "not a possible answer" in hub.comments[-1]["body"], "a refusal")
        )
        assert not task.done()
        hub.comment("> Which a1?\n\npostgresql")
        assert await task == [Answer(question="q-a1", chosen=("PostgreSQL",), by="@ada")]
        await plugin.on_event(
            event("question.answered", question="q-a1", words="SQLite", how="human", by="", via="terminal")
        )

    during_a_run(hub, scenario)
    assert sum("not a possible answer" in comment["body"] for comment in hub.comments) == 1
    assert [is_question(comment) for comment in hub.comments].count(True) == 0
    assert "Answered by a person (terminal): SQLite" in str(hub.comments)


def test_a_resumed_run_asks_once_and_counts_what_was_answered_in_between(hub: GitHubStandIn) -> None:
    several = (question("b1", "x", "y"), question("b2", "x", "y"))

    async def interrupted() -> None:
        task = ask(*several)
        await person(lambda: hub.wait_for(lambda: sum(map(is_question, hub.comments)) == 2, "two questions"))
        task.cancel()

    async def resumed() -> None:
        # "2" could be meant for either question, so it is for none, also when only one is left.
        assert [answer.question for answer in await ask(*several) or ()] == ["q-b2"]
        task = ask(several[0])
        await asyncio.sleep(0.2)
        assert not task.done()
        hub.comment("`q-b1`: our own way")
        [answer] = list(await task or ())
        assert (answer.question, answer.text) == ("q-b1", "our own way")

    during_a_run(hub, interrupted)
    hub.comment("2")
    hub.comment("q-b2: 2")
    during_a_run(hub, resumed)
    assert sum(map(is_question, hub.comments)) == 2


def test_a_question_that_is_too_long_permits_nothing_and_texts_mention_nobody(hub: GitHubStandIn) -> None:
    long = attrs.evolve(question("c1", "Allow", "Deny", free_text=False), text="```\n@everyone " * 3000)

    async def scenario() -> None:
        hub.refusals.append(web.json_response({}, status=502))
        hub.refusals.append(web.json_response({}, status=429, headers={"Retry-After": "0"}))
        task = ask(long, kind="permission")
        await person(lambda: hub.asked())
        hub.comment("q-c1: Allow")
        await person(lambda: hub.wait_for(lambda: "too long" in hub.comments[-1]["body"], "a refusal"))
        assert not task.done()
        task.cancel()

    during_a_run(hub, scenario)
    [asked] = [comment["body"] for comment in hub.comments if is_question(comment)]
    outside = asked.split("````text")[0] + asked.rpartition("````")[2]
    assert "@everyone" not in outside
    assert fenced("a ````` b").startswith("``````text\n")


def test_without_users_a_question_is_only_shown(hub: GitHubStandIn) -> None:
    async def scenario() -> None:
        assert await ask(question("d1")) is None
        await plugin.notify(a_notice(type="question", body="Which d1?"))

    during_a_run(hub, scenario, users=())
    assert "Which d1?" in hub.comments[-1]["body"]


def test_a_reminder_is_a_comment_that_mentions_the_people_and_is_no_question(hub: GitHubStandIn) -> None:
    async def scenario() -> None:
        task = ask(question("e1", "x", "y"))
        await person(lambda: hub.asked())
        notice = a_notice(
            key="question r-1 7", type="question", title="flat: still waiting", body="Which e1?"
        )
        await plugin.notify(notice)
        await plugin.notify(attrs.evolve(notice, key="question r-1 7 reminder 1", reminder=1))
        hub.comment("2")
        [answer] = list(await task or ())
        assert answer.chosen == ("y",)

    during_a_run(hub, scenario)
    [reminder] = [comment["body"] for comment in hub.comments if "still waiting" in comment["body"]]
    assert f"@{ADA}" in reminder
    assert len([comment for comment in hub.comments if is_question(comment)]) == 1


def test_a_clone_that_an_agent_changed_gets_no_token_and_pushes_nothing_else(
    hub: GitHubStandIn, tmp_path: Path
) -> None:
    before = hub.branches()
    remote = Remote(url=str(hub.repository), base="main", number=7, token=TOKEN)
    clone, trap = tmp_path / "clone", tmp_path / "trap"
    remote.prepare(clone)
    remote.prepare(clone)
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\nenv >> {trap}\ncat\n")
    script.chmod(0o755)
    (clone / ".planning").mkdir()
    (clone / ".planning" / "01-VERIFICATION.md").write_text("status: passed\n")
    git("add", ".", folder=clone)
    git("-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qm", "Work", folder=clone)
    for name in ("pre-push", "pre-receive", "reference-transaction"):
        (clone / ".git" / "hooks" / name).write_text(script.read_text())
        (clone / ".git" / "hooks" / name).chmod(0o755)
    for key, value in (
        ("credential.helper", f"!{script}"),
        ("core.sshCommand", str(script)),
        ("core.fsmonitor", str(script)),
        ("remote.origin.pushurl", str(tmp_path / "elsewhere.git")),
        (f"url.{tmp_path / 'elsewhere.git'}.insteadOf", str(hub.repository)),
        ("remote.origin.push", "refs/heads/*:refs/heads/main"),
    ):
        git("config", key, value, folder=clone)

    reports = remote.push(clone)

    head = (clone / ".git" / "refs" / "heads" / "gsd" / "issue-7").read_text().strip()
    assert reports == {".planning/01-VERIFICATION.md": "status: passed\n"}
    assert hub.branches() == {**before, "gsd/issue-7": head}
    assert not trap.exists() or TOKEN not in trap.read_text()
    # Other work on the branch is not overwritten, and the default branch is never a target.
    work = tmp_path / "seed"
    git("push", "-q", "--force", str(hub.repository), "main:gsd/issue-7", folder=work)
    git("-c", "user.name=T", "-c", "user.email=t@e.org", "commit", "-qm", "x", "--allow-empty", folder=work)
    git("push", "-q", str(hub.repository), "main:gsd/issue-7", folder=work)
    with pytest.raises(UserError, match="push failed"):
        remote.push(clone)
    for act in (remote.prepare, remote.push):
        with pytest.raises(UserError, match="default branch"):
            act.__func__(attrs.evolve(remote, base="gsd/issue-7"), clone)  # type: ignore[attr-defined]


def test_git_gets_the_token_from_the_environment_and_for_its_own_host_only() -> None:
    def fill(host: str) -> str:
        options = credential_options("https://github.example/o/r.git")
        assert TOKEN not in str(options)
        environment = {
            **os.environ,
            "GITHUB_TOKEN": TOKEN,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "false",
        }
        done = subprocess.run(
            ["git", *options, "credential", "fill"],
            input=f"protocol=https\nhost={host}\n\n",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    assert f"password={TOKEN}" in fill("github.example")
    assert TOKEN not in fill("evil.example")


@pytest.mark.parametrize(("author", "labeled_by"), [(EVE, ADA), (ADA, EVE)])
def test_watch_leaves_what_strangers_wrote_or_labeled_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, author: str, labeled_by: str
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    [group] = plugin.commands()
    with GitHubStandIn(tmp_path, author).serving() as hub, bind_settings({GitHubSettings: settings_for(hub)}):
        hub.labeled_by = labeled_by
        done = CliRunner().invoke(group, ["watch", "o/r", "--once"])

    assert done.exit_code == 0, done.output
    assert "is left alone" in done.output
    assert EVE in done.output
    assert not [line for line in hub.requests if not line.startswith("GET")]


def test_settings_commands_and_the_set_up(hub: GitHubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    [classes] = check_settings(plugin)
    assert [command.name for command in check_cli_commands(plugin)] == ["github"]
    sections = {"github": {"users": [EVE], "api_url": "https://evil.example", "issue": "o/r#1"}}
    layer = Layer(origin="gsd.toml", sections=sections, project=True)
    assert all(item.consent for item in restricted([("github", classes)], [layer]))
    for wrong in ("r#1", "o/r", "o/..#1", "o/r#0", "o/r/x#1", "-o/r#1"):
        with pytest.raises(ValueError, match="OWNER/REPO"):
            Issue.parse(wrong)
    with bind_settings({GitHubSettings: settings_for(hub)}):
        assert [finding.ok for finding in check_doctor(plugin)] == [True]
        monkeypatch.delenv("GITHUB_TOKEN")
        assert [finding.ok for finding in check_doctor(plugin)] == [False]
    with pytest.raises(ConfigError, match="GITHUB_TOKEN is not set"):
        during_a_run(hub, lambda: asyncio.sleep(0))


def test_the_text_of_a_pull_request_closes_only_its_own_issue() -> None:
    text = pull_request_text(7, {"a-VERIFICATION.md": "Fixes #3\n```\nCloses #4\n"}, "done")

    outside = text.split("````text")[0]
    assert "Closes #7." in outside
    assert "#3" not in outside
    assert len(pull_request_text(7, {"a": "x" * 100_000}, "done")) < 65_536
