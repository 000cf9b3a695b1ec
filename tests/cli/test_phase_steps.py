"""``gsd discuss``, ``gsd verify`` and ``gsd debug`` do one step, and say before the start why they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from gsd_core.cli.global_options import GlobalOptions
from gsd_core.cli.single_steps import debug_step, discuss_step, verify_step
from gsd_core.machine.state import Options
from gsd_core.planning.context import read_decisions
from tests.cli.bench import call
from tests.run import harness as h


@pytest.mark.slow
def test_a_complete_phase_is_discussed_verified_and_debugged_again(tmp_path: Path) -> None:
    root = h.repository(tmp_path / "project")
    assert h.do(h.request(root, h.one_phase(), given=h.idea())).outcome == "done"
    options = GlobalOptions(directory=root, directory_given=True)
    steps = {
        **discuss_step(options, "01", "the order of entries"),
        **verify_step(options, "1"),
        **debug_step(options, "It hangs on empty input"),
    }
    assert list(steps) == ["1/discuss/r1", "1/verify/r1", "debug/it-hangs-on-empty-input"]

    agent = h.Watched(h.one_phase(discuss=True))
    asked = h.request(root, agent, options=Options(only_asked=True, skip_discuss=True))
    for step, words in steps.items():
        end = h.do(evolve(asked, asked={step: words}))
        if step == "1/verify/r1":
            # The new decisions have no plan.
            assert (end.outcome, end.reason) == ("gaps", "1/verify/r1: 2 gaps")
        else:
            assert end.outcome == "done", end.reason

    [context] = root.glob(".planning/phases/*/01-CONTEXT.md")
    tracked = [one for one in read_decisions(context.read_text()) if one.is_tracked]
    # Who asks for a discussion is asked, whatever the settings say; here `--yes` answers.
    assert {one.notes[-1] for one in tracked} == {"Recommended option taken, nobody was asked (--yes)"}
    assert "the order of entries" in agent.of("discusser")[0].prompt
    assert "It hangs on empty input" in agent.of("debugger")[0].prompt
    assert (root / ".planning/debug/it-hangs-on-empty-input.md").is_file()
    # The same words again are another round.
    assert list(debug_step(options, "It hangs on empty input")) == ["debug/it-hangs-on-empty-input/r1"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["discuss", "7"], "phase '7' does not exist; the project has 1"),
        (["verify", "../1"], "phase '../1' does not exist"),
        (["verify", "1"], "phase 1 has no plans"),
        (["debug", " "], "there is no problem to investigate"),
    ],
)
def test_why_it_cannot_be_done_is_said_before_the_start(
    tmp_path: Path, arguments: list[str], error: str
) -> None:
    root = h.repository(tmp_path / "project")
    (root / ".planning").mkdir()
    (root / ".planning/ROADMAP.md").write_text("# Roadmap\n\n### Phase 1: A\n")

    result = call(arguments[0], "-C", root, *arguments[1:])

    assert result.exit_code == 2
    assert error in result.output
    assert not (root / ".git/gsd").exists()


@pytest.mark.parametrize("command", ["discuss", "plan", "execute", "verify", "milestone audit"])
@pytest.mark.parametrize("flag", ["--phases=1", "--only=1", "--skip-verify", "--skip-discuss"])
def test_a_flag_that_decides_which_steps_are_due_is_no_option_of_a_single_step(
    command: str, flag: str
) -> None:
    result = call(*command.split(), flag)

    assert (result.exit_code, f"No such option '{flag.partition('=')[0]}'" in result.stderr) == (2, True)
