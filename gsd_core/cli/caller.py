"""Who calls: commands that speak for a person refuse to work for the agents and checks of a run."""

from __future__ import annotations

from gsd_core.errors import UserError
from gsd_core.processes import why_not_a_person


def refuse_agents(what: str, *, run_pid: int | None = None) -> None:
    """Raise ``UserError`` if this process descends from a run's agent or check; *what* only a person may do.

    *run_pid* is the process of the run that is active in the project, if any. Without a sandbox, a process
    that hides where it comes from can get past this; see :func:`gsd_core.processes.why_not_a_person`.
    """
    if why := why_not_a_person(run_pid):
        raise UserError(
            f"only a person may {what}, and {why}",
            hint="do it in your own terminal, outside of the run",
        )
