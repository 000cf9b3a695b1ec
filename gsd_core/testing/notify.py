"""A channel for notices that keeps them."""

from __future__ import annotations

import attrs

from gsd_core.hookspecs import gsd_notify
from gsd_core.markers import implements
from gsd_core.model.notice import Notice


@attrs.define(eq=False)
class RecordingNotifier:
    """A plugin that keeps every notice, in their order."""

    notices: list[Notice] = attrs.field(init=False, factory=list[Notice])

    @implements(gsd_notify)
    async def notify(self, notice: Notice) -> None:
        """Keep it."""
        self.notices.append(notice)
