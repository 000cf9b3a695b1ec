"""The journal's records as JSON, and what a reader may ask for."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from gsd_core.errors import UserError
from gsd_core.machine.facts import Record, Recorded
from gsd_core.serializer import ANY, SCHEMA_VERSION, Serializer, table

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d+)([smhd])")


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time that *text* means: ISO 8601, local unless it has a zone, or ``10m`` before *now*."""
    if match := _DURATION.fullmatch(text.strip()):
        return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        hint = "use a time like 2026-01-31T09:30, or a duration like 90s, 10m, 2h, 1d"
        raise UserError(f"not a time: {text!r}", hint=hint) from error
    return time if time.tzinfo else time.astimezone()


RECORD = Serializer(Recorded, "seq at run epoch kind v step? attempt? data", data=table(ANY))


def log_json(record: Record) -> dict[str, Any]:
    """Return *record* as JSON data."""
    return {"schema_version": SCHEMA_VERSION, **RECORD.dump(record)}
