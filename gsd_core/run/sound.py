"""Whether what a plugin returned can be kept: every field, down to the last, is what its type says."""

from __future__ import annotations

import json
from typing import Any

from gsd_core.border import text_of
from gsd_core.journal.codec import structure, unstructure


def unsound(value: Any, kind: type[Any]) -> str:
    """Say why *value* is no good *kind*; empty if it is one, and comes back from the journal as it went."""
    try:
        structure(json.loads(json.dumps(unstructure(value, kind))), kind)
    except Exception as exc:  # whatever a plugin may have put into a field
        return f"returned a {kind.__name__} that cannot be kept: {text_of(exc)}"
    return ""
