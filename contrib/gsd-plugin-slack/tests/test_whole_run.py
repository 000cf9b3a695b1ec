"""A real run whose questions are answered in Slack: a separate process, real Bolt, a stand-in for Slack."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from slack_stand_in import ADA, APP, BOT, CHANNEL, EVE, SlackStandIn, is_open, text_of

NAME = "gsd_plugin_slack"
SOURCE = Path(__file__).parents[1] / "src"
pytestmark = pytest.mark.slow


class Project:
    """A project for which a test starts gsd."""

    def __init__(self, folder: Path, slack: SlackStandIn) -> None:
        self.folder = folder
        (folder / "project").mkdir()
        (folder / "idea.md").write_text("# Ledger\n\nShared costs of a flat.\n")
        for command in (
            ["init", "-q"],
            ["config", "user.name", "T"],
            ["config", "user.email", "t@example.org"],
        ):
            subprocess.run(["git", *command], cwd=folder / "project", check=True)
        self.variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCE), *filter(None, sys.path)]),
            "GSD_STATE_DIR": str(folder / "state"),
            "SLACK_BOT_TOKEN": BOT,
            "SLACK_APP_TOKEN": APP,
            f"GSD_{NAME.upper()}_CHANNEL": CHANNEL,
            f"GSD_{NAME.upper()}_USERS": ADA,
            f"GSD_{NAME.upper()}_API_URL": slack.url,
            "GSD_FAKE_PHASES": "1",
            "GSD_FAKE_GAP": "0",
            "GSD_FAKE_OVERLOADED": "0",
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start gsd."""
        plugins = ("-p", NAME, "-p", "gsd_plugins.rehearsal.fake")
        command = [sys.executable, "-m", "gsd_core", "-C", "project", *arguments, *plugins]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def output(self, *arguments: str) -> str:
        """Return the output of a command of gsd."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        return output


def test_a_run_is_killed_while_it_asks_and_gets_its_answer_in_slack_when_resumed(tmp_path: Path) -> None:
    with SlackStandIn().serving() as slack:
        project = Project(tmp_path, slack)
        first = project.start("run", "idea.md", "--no-input", "--agent", "fake", "--sandbox", "off")
        try:
            slack.question("How should each")
        finally:
            first.kill()
            first.communicate(timeout=10)
        # Without its own files, the run finds the thread in the channel.
        shutil.rmtree(tmp_path / "state" / "slack")
        second = project.start("resume", "--no-input")
        try:
            slack.wait_for(lambda: "Resumed" in str(slack.messages), "the resumed run in the thread")
            asked = slack.question("How should each")
            assert slack.click(asked, "gsd_choose_1", user=EVE)
            slack.wait_for(lambda: slack.told, "a refusal of somebody who may not answer")
            assert is_open(slack.question())
            assert slack.click(asked, "gsd_choose_1")
            output, _ = second.communicate(timeout=60)
        finally:
            second.kill()
        assert second.returncode == 0, output
        [root] = slack.roots()
        [question] = slack.questions()
        assert {message["thread_ts"] for message in slack.messages} == {"", root["ts"]}
        assert "Status: Complete" in text_of(root)
        assert "Answered by ada (U0ADA) in Slack: Exclamation mark" in text_of(question)
        assert not is_open(question)
        shown = "\n".join(text_of(message) for message in slack.messages)
        assert "Task 01-01/1 committed" in shown
        assert (slack.problems, slack.too_fast) == ([], 0)
        log = project.output("log", "--json")
        assert "ada (U0ADA)" in log
        assert BOT not in shown + output + log
