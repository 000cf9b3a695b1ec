"""Call the executor through its hook, with an in-memory host."""

from __future__ import annotations

from pathlib import Path

from gsd_core.testing import FakeHost, a_step
from gsd_core.testing.conformance import check_execute_step

from . import execute_step as plugin


def test_discuss_writes_the_context_and_other_steps_are_declined(tmp_path: Path, gsd_host: FakeHost) -> None:
    step = a_step(tmp_path, "discuss")

    result = check_execute_step(plugin, step, gsd_host, declines=a_step(tmp_path, "plan"))

    assert result is not None
    assert result.subject == "docs(01): capture phase context"
    [file] = result.files
    assert file.path.endswith("/01-CONTEXT.md")
    assert "- it works" in file.text


def test_no_agent_and_no_human_is_asked(tmp_path: Path, gsd_host: FakeHost) -> None:
    check_execute_step(plugin, a_step(tmp_path, "discuss"), gsd_host)

    assert (gsd_host.tasks, gsd_host.inquiries) == ([], [])
