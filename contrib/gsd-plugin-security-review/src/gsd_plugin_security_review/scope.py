"""Which files of a phase are reviewed. Code decides it, never the agent and never the project's files."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import attrs

from gsd_core import PhaseView, protected_part, read_below

MAX_FILE_BYTES = 1_000_000  # a larger file was generated, and no agent reads it as a whole


@attrs.frozen(kw_only=True)
class Scope:
    """The paths to review, in order, and those that are not reviewed, each with the reason."""

    files: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    def batches(self, size: int) -> list[tuple[str, ...]]:
        """Return the files in groups of at most *size*."""
        return [self.files[start : start + size] for start in range(0, len(self.files), size)]


def scope_of(phase: PhaseView, skip: Sequence[str]) -> Scope:
    """Return the files that the phase's commits changed and that still exist, as they are now.

    Planning files and what was deleted are left out. Everything else that is not reviewed is in *skipped*:
    the report lists it, because what nobody looked at must not look like what is safe.
    """
    # The commits of a plan that another tool executed may be unknown: then what the plan lists counts.
    planned = {p for plan in phase.plans if plan.id not in phase.commits for p in plan.files_modified}
    files: list[str] = []
    skipped: list[tuple[str, str]] = []
    for path in sorted({*phase.changed, *planned}):
        if protected_part(path):
            continue
        if pattern := next((one for one in skip if fnmatchcase(path, one)), ""):
            skipped.append((path, f"the setting skip has {pattern}"))
            continue
        try:
            data = read_below(phase.project, path, limit=MAX_FILE_BYTES)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            skipped.append((path, getattr(error, "strerror", "") or str(error)))
            continue
        if b"\0" in data:
            skipped.append((path, "it is a binary file"))
        elif data.strip():
            files.append(path)
    return Scope(files=tuple(files), skipped=tuple(skipped))
