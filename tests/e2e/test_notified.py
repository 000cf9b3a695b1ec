"""``gsd`` as a process tells people: through real services on loopback, once each, also after a kill."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, FAKE, Project, no_problems
from tests.plugins.stand_ins import mail_server, stand_in

SECRET = "hunter2-hunter2"


def test_services_that_cannot_be_used_are_refused_before_anything_is_written(project: Project) -> None:
    urls = ["json://127.0.0.1:1/", f"nosuch://{SECRET}@a.invalid/{SECRET}", f"slack://{SECRET}", SECRET]
    project.environment["GSD_APPRISE_URLS"] = ",".join([*urls, "desktop"])

    ended = project.gsd("run", EXAMPLE, "-C", project.root, *FAKE, "--yes")

    assert ended.exit == 4
    for name in ("--notify 2 (nosuch)", "--notify 3 (slack)", "--notify 4"):
        assert f"{name}: apprise does not support this URL" in ended.err
    assert "--notify 1" not in ended.err
    assert sys.platform == "darwin" or "--notify 5 (desktop): no desktop" in ended.err
    assert SECRET not in ended.out + ended.err
    assert not project.root.exists()


@pytest.mark.slow
def test_after_a_kill_nothing_is_sent_twice_and_people_hear_of_the_crash(
    project: Project, tmp_path: Path
) -> None:
    project.create()
    project.environment = no_problems(PHASES="2")
    with stand_in(tmp_path) as service, mail_server() as mail:
        urls = (
            "--notify",
            service.json_url,
            "--notify",
            mail.url,
            "--notify",
            f"json://{SECRET}@127.0.0.1:1/",
        )
        service.hangs = 60
        started = project.start("run", EXAMPLE, *FAKE, "--yes", *urls)
        assert started.until(lambda: service.received)
        started.kill(group=True)
        before = len(service.received)
        service.hangs = 0
        ended = project.gsd("resume", *FAKE, "--yes", *urls)
        status = project.json("status")
        shown = project.gsd("status").out + project.gsd("log").out

    titles = [one.json["title"].removeprefix("project: ") for one in service.received]
    assert ended.exit == 0, ended.err
    assert before == 1
    assert titles[0] == "phase 1 complete"
    assert sorted(titles[1:]) == ["complete", "phase 2 complete", "resumed after a crash"]
    assert {"project: complete", "project: resumed after a crash"} <= {m["Subject"] for m in mail.messages}
    [failing] = status["not_notified"]
    assert (failing["service"], failing["reason"]) == ("--notify 3 (json)", "no connection")
    assert "not notified: --notify 3 (json): no connection" in shown
    assert "notification (progress) may not have been sent: gsd ended before there was a result" in shown
    assert "notification (complete) sent to --notify 1 (json), --notify 2 (mailto)" in shown
    assert SECRET not in shown + ended.err
    assert ended.seconds < 60
