"""A real run whose agent emits every secret and every escape sequence in each channel: none comes out."""

from __future__ import annotations

import json
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.project import EXAMPLE, Done, Project, no_problems
from tests.plugins.stand_ins import stand_in
from tests.sanitize.corpus import shapes
from tests.secrets.leaking_agent import ENVIRONMENT_SECRET
from tests.terminal.pseudo_terminal import on_a_terminal

pytestmark = pytest.mark.slow

SECRETS = {**{name: secret for name, (_, secret) in shapes().items()}, "environment": ENVIRONMENT_SECRET}
AGENT = "from tests.secrets.leaking_agent import on_event, run_agent\n"
READERS = (
    ("status",),
    ("status", "--json"),
    ("log",),
    ("log", "--json"),
    ("log", "--kind", "activity", "--kind", "agent"),
    ("cost", "--by", "model"),
    ("report", "-o", "-"),
    ("questions",),
    ("phases",),
    ("requirements",),
    ("requirements", "--json"),
    ("gaps", "1", "--json"),
    ("health",),
)


def run(project: Project, *more: str, fails: bool = False) -> Done:
    folder = project.base / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(AGENT)
    settings = {"GSD_RETRY_WAIT": "0.1s", "GSD_RETRY_OUTAGE": "0.1s", "MY_API_TOKEN": ENVIRONMENT_SECRET}
    project.environment = no_problems() | settings
    loads = ("--plugins-dir", str(folder), "--agent", "own", "--yes")
    return project.gsd("run", EXAMPLE, *loads, *more, LEAKING_AGENT_FAILS="1" if fails else "")


def leaks(text: str) -> set[str]:
    """Return the names of the secrets that *text* shows enough of to be useful."""
    shown = {name: text.find(s[3:15]) for name, s in SECRETS.items() if s[3:15] in text}
    return {f"{name}: {text[max(0, at - 40) : at + 60]!r}" for name, at in shown.items()}


def controls(text: str) -> set[str]:
    """Return the characters in *text* that control a terminal or are invisible."""
    found = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"}
    return found | ({"\u2028", "\u2029"} & set(text))


def written(project: Project) -> Iterator[tuple[str, str]]:
    """Yield everything that the run left: its files, the journal's records, all objects of git."""
    for path in sorted(project.root.rglob("*")):
        inside = path.relative_to(project.root)
        if path.is_file() and (inside.parts[0] != ".git" or inside.parts[1] == "gsd"):
            yield str(inside), path.read_bytes().decode("utf-8", "replace")
    for fact in project.facts():
        yield f"journal {fact.seq} {fact.kind}", json.dumps(dict(fact.data), ensure_ascii=False)
    git = ("git", "cat-file", "--batch-all-objects", "--batch")
    objects = subprocess.run(git, cwd=project.root, capture_output=True, check=True).stdout
    yield "git objects", objects.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done, list[str]]:
    """Return a finished project, its run's end, and what its notification service received."""
    project = Project(tmp_path_factory.mktemp("leaks"))
    project.create()
    with stand_in(project.base) as service:
        done = run(project, "-vv", "--notify", service.json_url)
    return project, done, [json.dumps(one.json, ensure_ascii=False) for one in service.received]


def test_the_run_used_every_channel(finished: tuple[Project, Done, list[str]]) -> None:
    project, done, notices = finished
    kinds = {fact.kind for fact in project.facts()}
    plan = "".join(path.read_text("utf-8") for path in project.root.glob(".planning/phases/*/*.md"))

    assert done.exit == 0, done.err
    assert {"question.answered", "plugin.failed", "attempt.failed", "agent.activity"} <= kinds
    assert "log line" in done.err
    assert "[redacted]" in done.err
    assert "[redacted]" in plan
    assert (
        "[redacted]"
        in subprocess.run(
            ["git", "log", "--format=%B"], cwd=project.root, capture_output=True, text=True, check=True
        ).stdout
    )
    assert notices


def test_no_secret_is_in_anything_that_the_run_wrote(finished: tuple[Project, Done, list[str]]) -> None:
    project, _, _ = finished

    assert {where: found for where, text in written(project) if (found := leaks(text))} == {}


def test_no_secret_and_no_sequence_is_printed_or_sent(finished: tuple[Project, Done, list[str]]) -> None:
    project, done, notices = finished
    printed = {" ".join(args): project.gsd(*args) for args in READERS}
    texts = {"run": done.out + done.err, "notices": "\n".join(notices)}
    texts |= {name: shown.out + shown.err for name, shown in printed.items()}

    assert {name: shown.err for name, shown in printed.items() if shown.exit not in (0, 1)} == {}
    assert {name: found for name, text in texts.items() if (found := leaks(text))} == {}
    assert {name: found for name, text in texts.items() if (found := controls(text))} == {}


def test_no_sequence_is_in_a_planning_file_or_a_commit(finished: tuple[Project, Done, list[str]]) -> None:
    project, _, _ = finished
    paths = [p for p in project.root.glob(".planning/**/*") if p.is_file()]
    messages = subprocess.run(
        ["git", "log", "--format=%B"], cwd=project.root, capture_output=True, check=True
    ).stdout.decode("utf-8")

    assert {str(p): found for p in paths if (found := controls(p.read_text("utf-8")))} == {}
    assert controls(messages) == set()


@pytest.mark.parametrize("output", [("-q",), ("--output-format", "stream-json"), ("--output-format", "json")])
def test_no_secret_is_in_any_other_output(tmp_path: Path, output: tuple[str, ...]) -> None:
    project = Project(tmp_path)
    project.create()
    done = run(project, *output)

    assert done.exit == 0, done.err
    assert leaks(done.out + done.err) == set()
    assert controls(done.out + done.err) == set()
    assert controls("".join(map(str, done.lines))) == set() if output[-1] == "json" else True


@pytest.mark.parametrize("output", [("-v",), ("--output-format", "json")])
def test_no_secret_is_in_the_report_of_a_failure(tmp_path: Path, output: tuple[str, ...]) -> None:
    project = Project(tmp_path)
    project.create()
    done = run(project, *output, fails=True)

    assert done.exit not in (0, 2), done.err
    assert leaks(done.out + done.err) == set()
    assert controls(done.out + done.err) == set()
    assert {where: found for where, text in written(project) if (found := leaks(text))} == {}


def test_the_live_view_shows_no_secret(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.create()
    folder = project.base / "plugins"
    folder.mkdir()
    (folder / "own.py").write_text(AGENT)
    settings = {"GSD_RETRY_WAIT": "0.1s", "GSD_RETRY_OUTAGE": "0.1s", "MY_API_TOKEN": ENVIRONMENT_SECRET}
    environment = project.environ(no_problems() | settings)
    command = (
        *("gsd_core", "-C", str(project.root), "run", str(EXAMPLE)),
        *("--plugins-dir", str(folder), "--agent", "own", "--yes", "-v"),
    )
    with on_a_terminal(*command, **environment) as screen:
        shown = screen.until("done:", 120)
        assert screen.ended() == 0

    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "[redacted]" in plain
    assert leaks(plain) == set()
    assert not re.search(r"\x1b[\]P_^X]", shown)
