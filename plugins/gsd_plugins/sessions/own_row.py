"""The row of a session as its runner keeps it: nothing is lost while the registry cannot be written."""

from __future__ import annotations

import time
from typing import Any

import attrs

from gsd_core import SessionState

from .registry import Registry, RegistryError, Row, ended

CHECK_SECONDS = 1.0
"""How often the runner looks whether the registry is still there, and tries again what it could not write."""
GIVE_UP_SECONDS = 3600.0
"""How long the end of a session is kept for a registry that cannot be written."""


@attrs.define(kw_only=True)
class OwnRow:
    """One session's row: read, and written as soon as that is possible.

    A full disk must not end a session, and neither must a registry that somebody deletes while the session
    runs: then the row is added to the new one.
    """

    registry: Registry
    session: str
    _unsaved: dict[str, Any] = attrs.field(factory=dict[str, Any], init=False)
    _checked: float = attrs.field(default=0.0, init=False)

    def read(self) -> Row:
        """Return the row; raise ``UserError`` if it cannot be read, or has been removed."""
        return self.registry.get(self.session)

    def save(self, **values: Any) -> bool:
        """Set columns, now or at a later :meth:`check`; return whether everything is stored."""
        self._unsaved |= values
        try:
            self.registry.update(self.session, **self._unsaved)
        except RegistryError:
            return False
        self._unsaved.clear()
        return True

    def check(self) -> None:
        """Follow the registry if its file was replaced, and store what could not be stored before."""
        if time.monotonic() - self._checked < CHECK_SECONDS:
            return
        self._checked = time.monotonic()
        if not self.registry.is_current():
            try:
                found = Registry()
                found.copy_from(self.registry, self.session)
            except RegistryError:
                return
            self.registry.close()
            self.registry = found
        if self._unsaved:
            self.save()

    def end(self, state: SessionState, *, exit_code: int | None, reason: str) -> None:
        """Record the end of the session; wait until that is possible."""
        values = ended(state, exit_code, reason)
        latest = time.monotonic() + GIVE_UP_SECONDS
        self.check()
        while not self.save(**values) and time.monotonic() < latest:
            time.sleep(CHECK_SECONDS)
            self.check()
