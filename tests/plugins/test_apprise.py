"""Notifications through the real apprise library to a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gsd_core import Notice, bind_settings
from gsd_plugins import apprise
from gsd_plugins.apprise import AppriseSettings


class Service:
    """A service that records what it receives and answers with *status*."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.status = 200
        received, service = self.received, self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(service.status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"json://user:hunter2@127.0.0.1:{self.server.server_port}/secret-token"


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    thread = threading.Thread(target=running.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()


@pytest.fixture
def dead_url() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return f"json://user:hunter2@127.0.0.1:{port}/secret-token"


def send(notice: Notice, *urls: str) -> None:
    with bind_settings({AppriseSettings: AppriseSettings(urls=urls)}):
        asyncio.run(apprise.send(notice))


NOTICE = Notice(key="k", type="progress", title="Phase 1 is done", body="3 plans <b>2</b> commits")


def test_a_notification_arrives_with_title_and_body(service: Service) -> None:
    send(NOTICE, service.url)

    assert [(r["title"], r["message"], r["type"]) for r in service.received] == [
        ("Phase 1 is done", "3 plans <b>2</b> commits", "info")
    ]


def test_a_question_includes_how_to_answer_it(service: Service) -> None:
    send(Notice(key="q", type="question", title="Which?", answer_with="gsd answer q-1"), service.url)

    assert service.received[0]["message"] == "Answer with: gsd answer q-1"


@pytest.mark.parametrize(
    ("kind", "level", "sent"),
    [
        ("question", "warning", "warning"),
        ("progress", "info", "info"),
        ("error", "error", "failure"),
        ("crash", "error", "failure"),
        ("complete", "info", "success"),
        ("complete", "error", "failure"),
    ],
)
def test_every_type_of_notification_is_sent(kind: Any, level: Any, sent: str, service: Service) -> None:
    send(Notice(key="k", type=kind, title="t", body="b", level=level), service.url)

    assert [received["type"] for received in service.received] == [sent]


def test_an_unreachable_service_is_named_without_its_secrets_and_the_others_are_notified(
    service: Service, dead_url: str
) -> None:
    with pytest.raises(ConnectionError) as error:
        send(NOTICE, dead_url, service.url)

    assert str(error.value).startswith("--notify 1, json://… (JSON) ")
    assert "hunter2" not in str(error.value)
    assert len(service.received) == 1


def test_a_service_that_refuses_is_named(service: Service) -> None:
    service.status = 403

    with pytest.raises(ConnectionError, match="--notify 1"):
        send(NOTICE, service.url)


def test_an_unsupported_url_is_named_without_its_secrets() -> None:
    with pytest.raises(ConnectionError) as error:
        send(NOTICE, "nosuch://user:hunter2@host")

    assert str(error.value).startswith("--notify 1, nosuch://…")
    assert "hunter2" not in str(error.value)


def test_the_doctor_finds_unsupported_urls(service: Service) -> None:
    with bind_settings({AppriseSettings: AppriseSettings(urls=(service.url, "hunter2"))}):
        findings = list(apprise.check_urls())

    assert [(finding.name, finding.ok) for finding in findings] == [
        ("--notify 1, json://…", True),
        ("--notify 2", False),
    ]


def test_without_a_url_the_library_is_not_imported() -> None:
    script = (
        "import asyncio, sys; from gsd_core import Notice; from gsd_plugins.apprise import *;"
        "list(check_urls()); asyncio.run(send(Notice(key='k', type='error', title='t')));"
        "print('apprise' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
    )

    assert ran.stdout.strip() == "False"


def test_the_settings_are_contributed() -> None:
    assert list(apprise.settings()) == [AppriseSettings]
