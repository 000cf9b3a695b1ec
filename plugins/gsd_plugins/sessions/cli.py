"""``gsd ps``, ``gsd attach``, ``gsd logs`` and ``gsd rm``."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from gsd_core import Session, safe_text

from . import host
from .output import Chunk

POLL_SECONDS = 0.1
SCHEMA_VERSION = 1


@click.command("ps")
@click.option("--all", "-a", "everything", is_flag=True, help="also sessions that have ended")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def ps(everything: bool, as_json: bool) -> None:
    """List the sessions: runs in the background, of all projects."""
    found = host.list_sessions(everything=everything or as_json)
    if as_json:
        data = {"schema_version": SCHEMA_VERSION, "sessions": [one.as_json() for one in found]}
        click.echo(json.dumps(data, indent=2))
        return
    if not found:
        click.echo(
            "no sessions; start one with: gsd run IDEA --bg" if everything else "no sessions are active"
        )
        return
    now = datetime.now(UTC)
    rows: list[tuple[str, ...]] = [("session", "state", "slot", "since", "project", "command")]
    rows += [_row(one, now) for one in found]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        start = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        click.echo(f"{start}  {row[-1]}".rstrip())
    for one in found:
        if one.checkpoint:
            where = shlex.quote(str(one.project))
            click.echo(f"{one.id} waits for an answer: gsd -C {where} questions")
        elif one.reason:
            click.echo(f"{one.id}: {safe_text(one.reason, multiline=False)}")


def _row(one: Session, now: datetime) -> tuple[str, ...]:
    began = one.ended or one.started or one.created
    command = safe_text(shlex.join(one.command), multiline=False)
    project = safe_text(one.project.name, multiline=False)
    return (one.id, one.state, str(one.slot or "-"), _age(now - began), project, command)


def _age(age: Any) -> str:
    seconds = int(age.total_seconds())
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"


@click.command("logs")
@click.argument("session")
@click.option("--follow", "-f", is_flag=True, help="keep printing until the session ends")
@click.option("--cursor", type=int, default=0, metavar="N", help="from byte N on; negative: the last N bytes")
def logs(session: str, follow: bool, cursor: int) -> None:
    """Print what SESSION printed, byte for byte."""
    stream = sys.stdout.buffer
    for chunk in _chunks(session, cursor, follow=follow):
        if chunk.dropped:
            click.echo(f"(the first {chunk.start} bytes are not kept any more)", err=True)
        stream.write(chunk.data)
        stream.flush()


def _chunks(session: str, cursor: int, *, follow: bool) -> Iterator[Chunk]:
    while True:
        # First the state: what was printed before the end is read after it.
        ended = host.find_session(session).has_ended
        chunk = host.output_of(session, cursor)
        if chunk.data:
            yield chunk
            cursor = chunk.end
        elif not follow or ended:
            return
        else:
            time.sleep(POLL_SECONDS)


@click.command("attach")
@click.argument("session")
def attach(session: str) -> None:
    """Show what SESSION prints, as it prints it, and pass on what you type; Ctrl-] leaves it running."""
    from .attach import attach_terminal

    sys.exit(attach_terminal(session))


@click.command("rm")
@click.argument("sessions", nargs=-1, metavar="SESSION...")
@click.option("--ended", is_flag=True, help="all sessions that have ended")
def rm(sessions: tuple[str, ...], ended: bool) -> None:
    """Forget sessions that have ended, and what they printed; their projects are not touched."""
    names = [*sessions, *(one.id for one in host.list_sessions() if ended and one.has_ended)]
    if not names and not ended:
        raise click.UsageError("name a session, or use --ended")
    for name in dict.fromkeys(names):
        host.remove_session(name)
        click.echo(f"removed {name}")
