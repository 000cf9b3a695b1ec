"""What the journal holds, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from attrs import frozen

from gsd_core.errors import JournalError

Upcaster: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]

ACTIVITY: frozenset[str] = frozenset({"agent.activity", "log.line"})
"""The kinds that are committed in groups, give no promise and are never folded."""


@frozen(kw_only=True)
class Record:
    """One event; *seq* orders records and is a cursor: ``after=N`` means ``seq > N``.

    *epoch* counts the processes that opened the run; *v* is the version of the payload *data*.
    """

    seq: int
    run: str
    epoch: int
    at: datetime
    kind: str
    v: int
    step: str
    attempt: int
    data: Mapping[str, Any]


@frozen(kw_only=True)
class InboxItem:
    """Something that another process wants of the run: *kind* (``answer``, ``stop`` …), *by* whom, *at*."""

    id: int
    kind: str
    data: Mapping[str, Any]
    by: str
    at: datetime


def read_record(row: tuple[Any, ...], upcasters: Mapping[tuple[str, int], Upcaster]) -> Record:
    """Return a row of the table as a record, its payload made current; ``ValueError`` if it is damaged."""
    seq, run, epoch, at, kind, v, step, attempt, text = row
    data, time = json.loads(text), datetime.fromisoformat(at)
    while upcast := upcasters.get((kind, v)):
        data, v = upcast(data), v + 1
    return Record(
        seq=seq, run=run, epoch=epoch, at=time, kind=kind, v=v, step=step, attempt=attempt, data=data
    )


def to_json(data: Mapping[str, Any]) -> str:
    """Return *data* as JSON text, in ASCII so that lone surrogates survive."""
    try:
        return json.dumps(dict(data), allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        hint = "unstructure values before they are recorded"
        raise JournalError(f"not JSON data: {error}", hint=hint) from error
