"""The ``GSD_*`` variables of the environment that nothing reads, which are often misspelled settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches

from gsd_core.settings import variables_of

from .options import classes_of
from .plugin_loading import Loaded

NOT_SETTINGS = frozenset(
    {
        *("GSD_CONFIG", "GSD_STATE_DIR", "GSD_PLUGINS", "GSD_STRICT_PLUGINS", "GSD_PAGER", "GSD_WORKSTREAM"),
        # What a run gives its own processes.
        *("GSD_RUN", "GSD_STEP", "GSD_CALL", "GSD_CHECK", "GSD_SESSION"),
    }
)
"""Variables of gsd that are not settings."""


def unread_variables(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """Yield the name of each, with ``; did you mean …?`` if a setting has a similar one."""
    known = variables_of(classes_of(loaded)) | NOT_SETTINGS
    # Plugins read variables of their own, and those of plugins that are not loaded are unknown.
    prefixes = tuple(f"GSD_{info.name.upper()}_" for info in loaded.infos)
    for name in sorted(os.environ):
        if name.startswith("GSD_") and name not in known and not name.startswith(prefixes):
            close = get_close_matches(name, sorted(known), 1)
            yield name, f"; did you mean {close[0]}?" if close else ""
