"""``gsd report``: one HTML file that shows what was done, and in which no text of others does anything."""

from __future__ import annotations

import os
import re
import shutil
import stat
from html.parser import HTMLParser
from pathlib import Path

import pytest
from attrs import define, field

from gsd_core import Option, Question
from tests.cli.bench import Bench, call
from tests.run.harness import git

STEP = "1/execute/01-01"
HOSTILE = (
    "</bdi></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'><a href=javascript:alert(3)>"
    "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202eevil\u2066\x00 &lt;b&gt; -->"
)
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
PHASE = ".planning/phases/01-core"


@define
class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    elements: list[tuple[str, dict[str, str | None]]] = field(factory=list[tuple[str, dict[str, str | None]]])
    words: list[str] = field(factory=list[str])

    def __attrs_post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def parsed(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


def project(bench: Bench, words: str = "Notes are stored") -> str:
    """Make a project with a requirement, a plan, a commit and a run; return the commit."""
    line = " ".join(words.replace("\x00", "").split())
    phases = f"## Phases\n\n- [ ] **Phase 1: Core** - {line}\n\n## Phase Details\n\n### Phase 1: Core\n"
    head = '---\nphase: 01-core\nplan: "01"\nrequirements: [CORE-01]\n---\n\n'
    task = f'<task type="auto">\n<name>Task 1: {line}</name>\n<verify>true</verify>\n</task>\n'
    plan = f"{head}<objective>\n{line}\n</objective>\n\n<tasks>\n{task}</tasks>\n"
    files = {
        ".planning/PROJECT.md": f"# {line}\n\n## Core Value\n\n{line}\n",
        ".planning/REQUIREMENTS.md": f"# R\n\n## v1 Requirements\n\n### Core\n\n- [ ] **CORE-01**: {line}\n",
        ".planning/ROADMAP.md": f"# Roadmap\n\n{phases}**Goal**: {line}\n**Requirements**: CORE-01\n",
        f"{PHASE}/01-01-PLAN.md": plan,
        f"{line[:20].replace('/', '')}.txt": f"{words}\n{TOKEN}\n",
    }
    for name, content in files.items():
        path = bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    git(bench.root, "add", "-A")
    git(bench.root, "commit", "-q", "-m", f"feat: {line}")
    commit = git(bench.root, "rev-parse", "HEAD").strip()
    bench.start()
    bench.fact("attempt.started", STEP, kind="execute", phase="1", plan="01-01")
    bench.fact("task.committed", STEP, task="01-01/1", name=words, commit=commit, paths=["a"])
    usage = {"input_tokens": 5000, "output_tokens": 10, "dollars": "0.42", "basis": "priced"}
    bench.fact("agent.closed", STEP, key="execute", ended="done", usage=usage)
    question = Question(id="q-1", text=words, options=(Option(label=words), Option(label="Other")))
    bench.ask(question, step=STEP)
    answer = {"question": "q-1", "chosen": [words], "how": "policy", "by": words, "via": "yolo"}
    bench.fact("question.answered", STEP, answer=answer)
    bench.fact("step.completed", STEP, commit=commit, subject=words)
    for step, gaps in (("1/verify", [{"truth": words, "reason": words}]), ("1/verify/r1", [])):
        bench.fact("attempt.started", step, kind="verify", phase="1")
        bench.fact("step.result", step, result={"outcome": {"type": "Verified", "report": {"gaps": gaps}}})
        bench.fact("step.completed", step, commit="0" * 40, subject=words)
    bench.close("gaps", 6, words)
    return commit


def report(bench: Bench) -> str:
    result = call("report", "-C", bench.root, "-o", "-")
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_report_shows_evidence_costs_answers_gaps_and_changes(bench: Bench) -> None:
    commit = project(bench)
    page = parsed(report(bench))

    assert "CORE-01 Notes are stored" in page.text
    assert "about $0.42" in page.text
    assert "1 call estimated from tokens and list prices." in page.text
    assert "? assumed Notes are stored (assumed, by Notes are stored" in page.text
    assert "✓ closed" in page.text
    assert "closed in 1/verify/r1" in page.text
    assert "+Notes are stored" in page.text
    assert ("details", {"id": f"c-{commit}"}) in page.elements
    assert "This commit changed nothing" in page.text  # one that git does not have any more


def test_a_failure_is_named_first_and_a_long_question_is_whole_only_where_it_is_asked(bench: Bench) -> None:
    project(bench)
    output = "\n".join(f"line {n} of the output" for n in range(40))
    bench.ask(Question(id="q-2", text=f"Step 1/plan failed: no plan\n{output}\nWhat now?"), step="1/plan")
    bench.close("failed", 1, f"1/plan: no plan {output}")

    html = call("report", "-o", "-", "-C", bench.root).stdout

    start, evidence, rest = html.partition('id="evidence"')
    top, bottom = parsed(start).text, parsed(evidence + rest).text
    assert "✗ failed" in top
    assert top.index("The run ended (failed): 1/plan") < top.index("Open question: Step 1/plan failed")
    assert "line 39 of the output" not in top
    assert bottom.count("line 39 of the output What now?") == 1
    assert f"{output}\nWhat now?" in html, "its lines stay lines"


def test_text_of_others_is_only_text(bench: Bench) -> None:
    project(bench, HOSTILE)
    html = report(bench)
    page = parsed(html)

    assert {name for name, _ in page.elements}.isdisjoint(
        {"script", "img", "iframe", "object", "link", "form", "base"}
    )
    for name, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "style", "srcset")], (
            name
        )
        assert (attributes.get("href") or "#").startswith("#")
    assert "<script>alert(1)</script>" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)


def test_no_secret_is_in_the_report(bench: Bench) -> None:
    project(bench)

    assert TOKEN not in report(bench)
    assert "[redacted]" in report(bench)


def test_the_policy_of_the_page_allows_nothing_but_its_own_styles(bench: Bench) -> None:
    project(bench)
    page = parsed(report(bench))

    [policy] = [one["content"] for name, one in page.elements if name == "meta" and "http-equiv" in one]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert [name for name, _ in page.elements].count("style") == 1


def test_by_default_the_report_is_beside_the_journal_and_is_replaced(bench: Bench) -> None:
    project(bench)
    before = git(bench.root, "status", "--porcelain")

    first = call("report", "-C", bench.root)
    again = call("report", "-C", bench.root)

    path = Path(first.stdout.strip())
    assert again.stdout == first.stdout
    assert path == bench.root.resolve() / ".git" / "gsd" / "report.html"
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert git(bench.root, "status", "--porcelain") == before


def test_the_report_replaces_a_link_instead_of_what_it_leads_to(bench: Bench, tmp_path: Path) -> None:
    project(bench)
    own = tmp_path / "own.txt"
    own.write_text("mine")
    (tmp_path / "report.html").symlink_to(own)

    assert call("report", "-C", bench.root, "-o", tmp_path / "report.html").exit_code == 0
    assert own.read_text() == "mine"
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) & 0o600 == 0o600


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (".", "is a folder"),
        ("missing/report.html", "cannot write the report"),
        ("/dev/full/x", "cannot write"),
    ],
)
def test_a_target_that_cannot_be_written_is_an_error(
    bench: Bench, tmp_path: Path, target: str, message: str
) -> None:
    project(bench)
    result = call("report", "-C", bench.root, "-o", tmp_path / target)

    assert result.exit_code == 2
    assert message in result.stderr
    assert "hint: " in result.stderr


@pytest.mark.parametrize("kind", ["text", "pipe"])
def test_a_report_replaces_an_earlier_report_and_no_other_file(
    bench: Bench, tmp_path: Path, kind: str
) -> None:
    project(bench)
    target, other = tmp_path / "report.html", tmp_path / "README.md"
    other.write_text("mine") if kind == "text" else os.mkfifo(other)

    assert call("report", "-C", bench.root, "-o", target).exit_code == 0
    assert call("report", "-C", bench.root, "-o", target).exit_code == 0
    refused = call("report", "-C", bench.root, "-o", other)

    assert refused.exit_code == 2
    assert "is not a report" in refused.stderr
    assert other.read_text() == "mine" if kind == "text" else other.is_fifo()
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["README.md", "report.html"]


def test_standard_output_cannot_be_opened_in_a_browser(bench: Bench) -> None:
    assert call("report", "-C", bench.root, "-o", "-", "--open").exit_code == 2


def test_without_a_project_there_is_nothing_to_report(bench: Bench) -> None:
    result = call("report", "-C", bench.root)

    assert result.exit_code == 2
    assert "no project here" in result.stderr


def test_a_project_without_a_run_or_a_repository_has_a_report_too(bench: Bench, tmp_path: Path) -> None:
    project(bench)
    shutil.copytree(bench.root / ".planning", tmp_path / "plain" / ".planning")

    result = call("report", "-C", tmp_path / "plain", "-o", "-")

    assert result.exit_code == 0, result.stderr
    assert "CORE-01" in parsed(result.stdout).text
    assert call("report", "-C", tmp_path / "plain").exit_code == 2
