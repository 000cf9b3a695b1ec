"""From a labeled issue to a pull request: separate processes, real git, a stand-in for GitHub's API."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from github_stand_in import ADA, EVE, TOKEN, GitHubStandIn, git

NAME = "gsd_plugin_github"
SOURCE = Path(__file__).parents[1] / "src"
pytestmark = pytest.mark.slow


def test_an_issue_becomes_a_pull_request_with_an_answer_from_a_comment(tmp_path: Path) -> None:
    with GitHubStandIn(tmp_path).serving() as hub:
        before = hub.branches()
        variables = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCE), *filter(None, sys.path)]),
            "GSD_STATE_DIR": str(tmp_path / "state"),
            "GITHUB_TOKEN": TOKEN,
            f"GSD_{NAME.upper()}_USERS": ADA,
            f"GSD_{NAME.upper()}_API_URL": hub.url,
            f"GSD_{NAME.upper()}_POLL": "0.3",
            "GSD_FAKE_PHASES": "1",
            "GSD_FAKE_GAP": "0",
            "GSD_FAKE_OVERLOADED": "0",
            "GIT_AUTHOR_NAME": "T",
            "GIT_AUTHOR_EMAIL": "t@example.org",
            "GIT_COMMITTER_NAME": "T",
            "GIT_COMMITTER_EMAIL": "t@example.org",
        }
        command = [sys.executable, "-m", "gsd_core", "-p", NAME, "github", "watch", "o/r", "--once", "--"]
        command += ["-p", NAME, "-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--sandbox", "off"]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            hub.asked("How should each")
            hub.comment("Period", user=EVE)
            hub.comment("what does that mean?")
            hub.comment("2")
            output, _ = process.communicate(timeout=90)
        finally:
            process.kill()

        assert process.returncode == 0, output
        [pull] = hub.pulls
        after = hub.branches()
        assert after.pop("gsd/issue-7") != before["main"]
        assert after == before, "the default branch is as it was"
        assert pull["body"].startswith("Closes #7.")
        assert "status: passed" in pull["body"]
        clone = tmp_path / "r-issues" / "issue-7"
        assert "Exclamation mark" in git("log", "-p", "gsd/issue-7", folder=hub.repository) + str(
            hub.comments
        )
        assert "Answered by @ada" in str(hub.comments)
        assert "eve" not in [c["user"]["login"] for c in hub.comments if "refused" in c["body"]]
        assert hub.issue["labels"] == []
        kept = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
        assert TOKEN not in kept + output + str(hub.requests) + git("config", "--list", folder=clone)
