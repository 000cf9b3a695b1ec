"""Notifications through the real apprise library, to stand-ins of services on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gsd_core import Delivery, Notice, bind_settings
from gsd_plugins import apprise
from gsd_plugins.apprise import AppriseSettings
from tests.plugins.stand_ins import MailServer, StandIn, mail_server, stand_in

NOTICE = Notice(key="k", type="progress", title="Phase 1 is done", body="3 plans <b>2</b> commits")
QUESTION = Notice(
    key="q",
    type="question",
    level="warning",
    title="Which?",
    body="q-1: Which?",
    answer_with="gsd answer q-1 CHOICE",
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[StandIn]:
    with stand_in(tmp_path) as running:
        yield running


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as running:
        yield running


@pytest.fixture
def dead_url() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return f"json://user:hunter2-hunter2@127.0.0.1:{port}/secret-token"


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apprise, "RETRY_SECONDS", 0.05)


def send(notice: Notice, *urls: str) -> Sequence[Delivery]:
    with bind_settings({AppriseSettings: AppriseSettings(urls=urls)}):
        return asyncio.run(apprise.send(notice)) or ()


def test_a_notification_arrives_with_title_and_body(service: StandIn) -> None:
    assert send(NOTICE, service.json_url) == [Delivery(service="--notify 1 (json)")]

    assert [(r.json["title"], r.json["message"], r.json["type"]) for r in service.received] == [
        ("Phase 1 is done", "3 plans <b>2</b> commits", "info")
    ]


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
def test_every_type_of_notification_is_sent(kind: Any, level: Any, sent: str, service: StandIn) -> None:
    send(Notice(key="k", type=kind, title="t", body="b", level=level), service.json_url)

    assert [received.json["type"] for received in service.received] == [sent]


def test_a_question_reaches_slack_teams_discord_ntfy_mail_and_a_webhook_with_its_command(
    service: StandIn, mail: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)

    sent = send(
        QUESTION,
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "workflows://teams.example.invalid:443/643e69ff83/hunter2-signature/",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        f"ntfy://127.0.0.1:{service.port}/topic",
        mail.url,
        service.json_url,
    )

    services = ("slack", "workflows", "discord", "ntfy", "mailto", "json")
    names = [f"--notify {number} ({service})" for number, service in enumerate(services, 1)]
    assert sent == [Delivery(service=name) for name in names]
    requests = {(one.host, one.path.split("?")[0]): one.body.decode() for one in service.received}
    for address in (
        ("hooks.slack.com", "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"),
        ("discord.com", "/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js"),
        ("127.0.0.1", "/secret-token"),
    ):
        assert "gsd answer q-1 CHOICE" in requests[address], address
    assert len(requests) == 5
    [teams] = [body for (host, _), body in requests.items() if host == "teams.example.invalid"]
    # Teams reads Markdown, in which a backslash keeps the next character from being a bullet.
    assert "gsd answer q-1 CHOICE" in teams.replace("\\", "")
    [message] = mail.messages
    payload = message.get_payload(decode=True)
    parts = [part.get_payload(decode=True) for part in message.walk()] if payload is None else [payload]
    assert any(b"gsd answer q-1 CHOICE" in part for part in parts if isinstance(part, bytes))
    assert [line.upper() for line in mail.recipients] == ["RCPT TO:<ANN@EXAMPLE.INVALID>"]
    assert mail.logins == ["\0robot\0hunter2-hunter2"]


def test_text_of_a_model_mentions_nobody(service: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)

    send(
        Notice(key="k", type="progress", title="@everyone", body="<@U1> <!channel> @here"),
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
    )

    texts = [repr(received.json) for received in service.received]
    assert len(texts) == 2
    assert not [
        text for text in texts for call in ("@everyone", "<@U1", "<!channel", "@here") if call in text
    ]


def test_a_dead_service_is_named_without_its_secrets_and_the_others_are_notified(
    service: StandIn, dead_url: str
) -> None:
    dead, fine = send(NOTICE, dead_url, service.json_url)

    assert dead == Delivery(service="--notify 1 (json)", ok=False, reason="no connection", tries=2)
    assert fine.ok
    assert len(service.received) == 1


def test_a_notification_that_is_only_a_title_is_sent_too(service: StandIn) -> None:
    assert send(Notice(key="k", type="error", title="It failed"), service.json_url)[0].ok


@pytest.mark.parametrize("status", [403, 429, 500])
def test_a_service_that_refuses_is_tried_once_more_and_named_with_the_reason(
    status: int, service: StandIn
) -> None:
    service.statuses = [status]

    [refused] = send(NOTICE, service.json_url)

    assert (refused.ok, refused.reason, refused.tries) == (False, f"HTTP {status}", 2)
    assert len(service.received) == 2


def test_a_service_that_is_back_after_a_moment_gets_the_notification_once(service: StandIn) -> None:
    service.statuses = [503, 200]

    assert send(NOTICE, service.json_url) == [Delivery(service="--notify 1 (json)", tries=2)]


def test_a_service_that_answers_byte_by_byte_delays_neither_the_others_nor_the_exit(
    service: StandIn, tmp_path: Path
) -> None:
    service.hangs = 60
    script = (
        "import asyncio; from gsd_core import Notice, bind_settings; from gsd_plugins import apprise\n"
        "apprise.LIMIT_SECONDS = 0.5\n"
        f"urls = apprise.AppriseSettings(urls=({service.json_url!r},))\n"
        "with bind_settings({apprise.AppriseSettings: urls}):\n"
        "    print(asyncio.run(apprise.send(Notice(key='k', type='error', title='t'))))\n"
    )
    began = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment())

    assert "no answer within 0.5 seconds" in ran.stdout, ran.stderr
    assert time.monotonic() - began < 20
    assert len(service.received) == 1


def test_an_unsupported_url_is_named_without_its_secrets() -> None:
    [refused] = send(NOTICE, "nosuch://user:hunter2-hunter2@host")

    assert (refused.service, refused.ok) == ("--notify 1 (nosuch)", False)
    assert "hunter2" not in repr(refused)


def test_the_doctor_finds_unsupported_urls(service: StandIn) -> None:
    with bind_settings({AppriseSettings: AppriseSettings(urls=(service.json_url, "hunter2"))}):
        findings = list(apprise.check_urls())

    assert [(finding.name, finding.ok) for finding in findings] == [
        ("--notify 1 (json)", True),
        ("--notify 2", False),
    ]


@pytest.mark.skipif(sys.platform == "darwin", reason="notify-send is for Linux")
def test_the_desktop_shows_the_text_and_no_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = program(tmp_path, "notify-send", f'printf "%s\\n" "$@" > {tmp_path}/shown')
    monkeypatch.setenv("PATH", str(shown.parent), prepend=os.pathsep)
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")

    assert send(NOTICE, "desktop") == [Delivery(service="--notify 1 (desktop)")]

    assert (tmp_path / "shown").read_text().splitlines() == [
        "--app-name=gsd",
        "--urgency=low",
        "--",
        "Phase 1 is done",
        "3 plans &lt;b&gt;2&lt;/b&gt; commits",
    ]


@pytest.mark.skipif(sys.platform == "darwin", reason="notify-send is for Linux")
def test_a_machine_without_a_desktop_is_found_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(program(tmp_path, "notify-send", "exit 1").parent), prepend=os.pathsep)

    def found() -> str:
        with bind_settings({AppriseSettings: AppriseSettings(urls=("desktop",))}):
            [finding] = apprise.check_urls()
        return "" if finding.ok else finding.message

    assert "no desktop session" in found()
    (tmp_path / "bus").touch()
    assert found() == ""
    [refused] = send(NOTICE, "desktop")
    assert refused.reason == "notify-send ended with exit code 1"


def program(folder: Path, name: str, script: str) -> Path:
    """Write a program and return its path."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def environment() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}


def test_without_a_url_the_library_is_not_imported() -> None:
    script = (
        "import asyncio, sys; from gsd_core import Notice; from gsd_plugins.apprise import *;"
        "list(check_urls()); asyncio.run(send(Notice(key='k', type='error', title='t')));"
        "print('apprise' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment()
    )

    assert ran.stdout.strip() == "False"


def test_the_settings_are_contributed() -> None:
    assert list(apprise.settings()) == [AppriseSettings]
