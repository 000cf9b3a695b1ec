"""What summaries claim, compared with the files and the commits, through the hook."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gsd_core import Artifact, Gap, GapReport, History, MustHaves, PhaseView, Plan, Verdict
from gsd_plugins.history import summaries_are_true

KNOWN = "4f0c2a9d7be1863355aa90217c64de0b19f8e372"
OTHER = "9b61d0c"
FOLDER = ".planning/phases/01-greet"


def find(root: Path, *summaries: str, **about: Any) -> list[Gap]:
    return [*judge(root, *summaries, **about).gaps]


def judge(
    root: Path,
    *summaries: str,
    files: tuple[str, ...] = ("app.py",),
    history: History | None = None,
    requirements: tuple[str, ...] = (),
    ticked: bool = False,
    verdict: Verdict | None = None,
    later: str = "",
) -> GapReport:
    plans: list[Plan] = []
    for number, text in enumerate(summaries, start=1):
        path = f"{FOLDER}/01-0{number}-SUMMARY.md"
        write(root, path, text)
        promised = MustHaves(artifacts=tuple(Artifact(path=path) for path in files))
        plans.append(
            Plan(
                id=f"01-0{number}",
                phase="1",
                summary=path,
                must_haves=promised,
                files_modified=files,
                requirements=requirements,
            )
        )
    if later:
        write(root, ".planning/phases/02-more/02-01-SUMMARY.md", later)
    phase = PhaseView(
        number="1",
        name="Greet",
        project=root,
        plans=tuple(plans),
        history=history,
        ticked=ticked,
        verdict=verdict,
    )
    found = asyncio.run(summaries_are_true(phase))
    assert isinstance(found, GapReport)
    return found


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def summary(*hashes: str, created: str = "", body: str = "", completed: str = "") -> str:
    commits = "\n".join(
        f"{n}. **Task {n}: Do it** - `{name}` (feat)" for n, name in enumerate(hashes, start=1)
    )
    head = f"key-files:\n  created: [{created}]\nrequirements-completed: [{completed}]"
    return f"---\n{head}\n---\n\n# Summary\n\n## Task Commits\n\n{commits}\n\n{body}\n"


def in_head(*files: str) -> History:
    return History(files=frozenset(files), commits=frozenset({KNOWN}))


def test_a_file_that_was_never_written_is_a_gap(tmp_path: Path) -> None:
    [gap] = find(tmp_path, summary(created="gone.py"))

    assert (gap.about, gap.missing) == ("gone.py", ("gone.py",))


def test_a_file_of_the_list_in_the_body_counts_too(tmp_path: Path) -> None:
    body = "## Files Created/Modified\n\n- `gone.py` - the greeting\n- `old.py` - deleted\n"

    assert [gap.about for gap in find(tmp_path, summary(body=body))] == ["gone.py"]


@pytest.mark.parametrize("line", ["- Removed gone.py, which nothing used", "- `src/gone.py` moved to app.py"])
def test_a_file_that_a_later_plan_deleted_is_not_a_gap(line: str, tmp_path: Path) -> None:
    assert find(tmp_path, summary(created="src/gone.py"), later=f"# Summary\n\n{line}\n") == []


def test_a_file_in_no_commit_is_a_gap_unless_a_plan_lists_it(tmp_path: Path) -> None:
    for path in ("app.py", "extra.py"):
        write(tmp_path, path, "x = 1\n")

    gaps = find(tmp_path, summary(created="app.py, extra.py"), history=in_head())

    assert [gap.about for gap in gaps] == ["extra.py"]
    assert find(tmp_path, summary(created="app.py, extra.py"), history=None) == []


def test_an_unknown_commit_beside_known_ones_is_a_gap(tmp_path: Path) -> None:
    [gap] = find(tmp_path, summary(KNOWN[:7], OTHER), history=in_head("app.py"), ticked=True)

    assert gap.about == "01-01:commits"
    assert OTHER in gap.reason
    assert KNOWN[:7] not in gap.reason


def test_unknown_commits_of_an_unverified_phase_are_a_gap(tmp_path: Path) -> None:
    assert len(find(tmp_path, summary(OTHER), history=in_head("app.py"))) == 1


def test_after_a_squash_merge_the_old_hashes_of_a_verified_phase_are_not_a_gap(tmp_path: Path) -> None:
    squashed = (summary(OTHER), summary("77aa21e", "0d9c3b1"))
    passed = Verdict(status="passed")

    assert find(tmp_path, *squashed, history=in_head("app.py"), ticked=True) == []
    assert find(tmp_path, *squashed, history=in_head("app.py"), verdict=passed) == []


def test_unknown_commits_whose_files_are_not_in_head_are_a_gap_even_if_the_phase_is_ticked(
    tmp_path: Path,
) -> None:
    assert len(find(tmp_path, summary(OTHER), history=in_head("README.md"), ticked=True)) == 1


def test_a_made_up_hash_is_a_gap_even_after_a_squash(tmp_path: Path) -> None:
    assert len(find(tmp_path, summary("abc1234"), history=in_head("app.py"), ticked=True)) == 1


def test_without_a_repository_commits_are_unknown(tmp_path: Path) -> None:
    assert find(tmp_path, summary("abc1234")) == []


def test_the_commit_of_the_summary_itself_is_not_judged(tmp_path: Path) -> None:
    text = summary(KNOWN[:7], body="").replace(
        "\n\n\n", "\n\n**Plan metadata:** `1f2e3d4` (docs: complete)\n"
    )

    assert find(tmp_path, text, history=in_head("app.py")) == []


@pytest.mark.parametrize(
    ("body", "failed"),
    [
        ("## Self-Check: FAILED\n", True),
        ("**Self-Check: FAILED** - app.py is missing\n", True),
        ("## Self-Check: FAILED\n\nfixed\n\n## Self-Check: PASSED\n", False),
        ("The self-check of the program can print FAILED.\n", False),
    ],
)
def test_a_failed_self_check_is_a_gap_until_a_later_one_passes(
    body: str, failed: bool, tmp_path: Path
) -> None:
    assert bool(find(tmp_path, summary(body=body))) is failed


def test_a_completed_requirement_that_was_never_planned_is_a_gap(tmp_path: Path) -> None:
    [gap] = find(tmp_path, summary(completed="CORE-01, CORE-09"), requirements=("CORE-01",))

    assert "CORE-09" in gap.reason
    # Plans of early versions list no requirements.
    assert find(tmp_path, summary(completed="CORE-09")) == []


@pytest.mark.parametrize("text", ["", "---\nkey-files: [\n---\n", "\0\xff", "# Summary\n\n## Task Commits\n"])
def test_a_summary_without_claims_or_with_faults_is_no_error(text: str, tmp_path: Path) -> None:
    assert find(tmp_path, text, history=in_head("app.py")) == []


def test_a_summary_outside_of_the_project_is_not_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(tmp_path, "secret.md", summary(created="gone.py"))
    plan = Plan(id="01-01", phase="1", summary="../secret.md")
    phase = PhaseView(number="1", name="Greet", project=project, plans=(plan,))

    assert asyncio.run(summaries_are_true(phase)) == GapReport()


def test_test_cases_that_no_file_contains_are_named_until_the_phase_is_done(tmp_path: Path) -> None:
    write(tmp_path, "tests/test_app.py", "def test_greets(): ...\n")
    text = summary(body="Added test_greets and test_empty_name in test_app.py, and TestGreetingOfNobody")
    known = in_head("app.py", "tests/test_app.py")

    [seen] = judge(tmp_path, text, history=known).observations

    path = f"{FOLDER}/01-01-SUMMARY.md"
    assert seen.text == (
        f"{path} names test cases that no file contains: test_empty_name, TestGreetingOfNobody"
    )
    assert judge(tmp_path, text, history=known, ticked=True).observations == ()
