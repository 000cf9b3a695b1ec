"""Notifications link to the pages of servers that run, and only to those."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gsd_core.testing import a_notice
from gsd_plugins import web
from gsd_plugins.web.access import Tokens, server_folder, write_token_file


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("GSD_SESSION", raising=False)


def links(question: str = "") -> list[str]:
    return [*web.links_to_pages(a_notice(question=question))]


def test_a_run_with_its_own_page_links_to_it_without_the_token() -> None:
    tokens = Tokens()
    write_token_file(tokens, f"http://127.0.0.1:3847/#token={tokens.control}", 3847)

    assert links() == ["http://127.0.0.1:3847/#/s/run"]
    assert links("q-5") == ["http://127.0.0.1:3847/#/q/q-5"]


def test_a_session_links_to_the_server_of_all_sessions_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as server:
        path = write_token_file(Tokens(), "https://gsd.example.net/#token=t", 3333)
        data = json.loads(path.read_text())
        fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
        path.write_text(json.dumps({**data, "pid": server.pid, "started": fields[19]}))

        assert links("q-5") == []
        monkeypatch.setenv("GSD_SESSION", "s7")
        assert links() == ["https://gsd.example.net/#/s/s7"]
        assert links("q-5") == ["https://gsd.example.net/#/q/q-5"]
        server.kill()
        server.wait()
        assert links() == []


def test_a_damaged_file_and_one_of_an_earlier_process_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_SESSION", "s7")
    folder = server_folder()
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{")
    (folder / "2.json").write_text("[]")
    old = {"url": "http://127.0.0.1:3/#token=t", "pid": os.getpid(), "started": "1"}
    (folder / "3.json").write_text(json.dumps(old))

    assert links() == []
