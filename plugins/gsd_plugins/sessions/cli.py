"""``gsd ps``, ``gsd attach``, ``gsd logs`` and ``gsd rm``."""

from __future__ import annotations

import codecs
import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import click

from gsd_core import NotFound, Session, UserError, safe_data, safe_text, settings_of
from gsd_core.hookspecs import CommandOptions

from . import host
from .output import Chunk, cursor_at
from .registry import output_folder

OWN_HOST = "sessions"
POLL_SECONDS = 0.1
SCHEMA_VERSION = 1
MAX_LINE = 1 << 16
"""How many characters without a line end are printed as a line."""


@click.command("ps", epilog="\b\nExamples:\n  gsd ps\n  gsd ps --all")
@click.option("--all", "-a", "everything", is_flag=True, help="also sessions that have ended")
@click.option("--json", "as_json", is_flag=True, help="print JSON, with all sessions")
def ps(everything: bool, as_json: bool) -> None:
    """List the sessions: runs in the background, of all projects."""
    found = host.list_sessions(everything=everything or as_json)
    others = [(name, one) for name, one in _of_other_hosts() if everything or as_json or not one.has_ended]
    from .listing import dollars_of, print_sessions, statuses_of

    if as_json:
        listed = [*((OWN_HOST, one) for one in found), *others]
        statuses = statuses_of([one for _, one in listed])
        data = [{**one.as_json(), "dollars": dollars_of(one, statuses), "host": name} for name, one in listed]
        click.echo(json.dumps(safe_data({"schema_version": SCHEMA_VERSION, "sessions": data}), indent=2))
        return
    if found or others:
        print_sessions([*found, *(one for _, one in others)])
        for name, one in others:
            click.echo(safe_text(f"{one.id} {_where(name, one)}", multiline=False))
    else:
        click.echo("no sessions" if everything else "no sessions are active (ended ones: gsd ps --all)")
        click.echo("start one with: gsd run IDEA --bg")


def _of_other_hosts() -> Iterator[tuple[str, Session]]:
    """Yield the sessions of other plugins' hosts, each with the name of the plugin."""
    for name, other in settings_of(CommandOptions).session_hosts().items():
        if name == OWN_HOST:
            continue
        try:
            yield from ((name, one) for one in other.list())
        except Exception as error:  # a plugin may raise anything, and the other sessions are still of use
            why = safe_text(str(error) or type(error).__name__, multiline=False)
            click.echo(f"cannot list the sessions of the plugin {name}: {why}", err=True)


def _where(name: str, session: Session) -> str:
    folder = shlex.quote(str(session.project))
    return f"is run by the plugin {name}; see how far it is with: gsd -C {folder} status"


def _own(session: str) -> str:
    """Return the id of a session of this host; raise ``UserError`` that says where another one is."""
    try:
        return host.find_session(session).id
    except NotFound:
        for name, one in _of_other_hosts():
            if one.id == session:
                where = safe_text(f"session {session} {_where(name, one)}", multiline=False)
                raise UserError(where.partition("; ")[0], hint=where.partition("; ")[2]) from None
        raise


@click.command("logs", epilog="\b\nExamples:\n  gsd logs s3 --follow\n  gsd logs s3 --since 10m --plain")
@click.argument("session")
@click.option("--follow", "-f", is_flag=True, help="keep printing until the session ends")
@click.option("--cursor", type=int, default=0, metavar="N", help="from byte N on; negative: the last N bytes")
@click.option("--since", default="", metavar="TIME", help="from TIME on, or from a duration like 10m ago")
@click.option("--plain", is_flag=True, help="print text only, without colors and other escape sequences")
def logs(session: str, follow: bool, cursor: int, since: str, plain: bool) -> None:
    """Print what SESSION printed, byte for byte."""
    if since:
        from gsd_core.project import parse_since

        if cursor:
            raise click.UsageError("--since and --cursor cannot be combined")
        cursor = cursor_at(output_folder(_own(session)), parse_since(since, datetime.now(UTC)))
    chunks = _chunks(session, cursor, follow=follow)
    if plain:
        for text in _plain(chunks):
            click.echo(text, nl=False)
        return
    stream = sys.stdout.buffer
    for chunk in chunks:
        stream.write(chunk.data)
        stream.flush()


def _chunks(session: str, cursor: int, *, follow: bool) -> Iterator[Chunk]:
    session = _own(session)
    while True:
        # First the state: what was printed before the end is read after it.
        ended = not follow or host.find_session(session).has_ended
        chunk = host.output_of(session, cursor)
        if chunk.dropped:
            click.echo(f"(older output is not kept; this begins at byte {chunk.start})", err=True)
        if chunk.data:
            yield chunk
            cursor = chunk.end
        elif ended:
            return
        else:
            time.sleep(POLL_SECONDS)


def _plain(chunks: Iterator[Chunk]) -> Iterator[str]:
    """Yield the text in *chunks* by lines, without what controls a terminal."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for chunk in chunks:
        *lines, rest = (rest + decoder.decode(chunk.data)).split("\n")
        yield "".join(f"{safe_text(line.rstrip(chr(13)))}\n" for line in lines)
        if len(rest) > MAX_LINE:
            yield safe_text(rest)
            rest = ""
    if rest := rest + decoder.decode(b"", final=True):
        yield f"{safe_text(rest.rstrip(chr(13)))}\n"


@click.command("attach", epilog="\b\nExamples:\n  gsd attach s3")
@click.argument("session")
def attach(session: str) -> None:
    """Show what SESSION prints, as it prints it, and pass on what you type; Ctrl-] leaves it running."""
    from .attach import attach_terminal

    sys.exit(attach_terminal(_own(session)))


@click.command("rm", epilog="\b\nExamples:\n  gsd rm s3\n  gsd rm --ended")
@click.argument("sessions", nargs=-1, metavar="SESSION...")
@click.option("--ended", is_flag=True, help="all sessions that have ended")
def rm(sessions: tuple[str, ...], ended: bool) -> None:
    """Forget sessions that have ended, and what they printed; their projects are not touched."""
    if bool(sessions) == ended:
        raise click.UsageError("name sessions, or use --ended")
    as_json = settings_of(CommandOptions).as_json
    names = dict.fromkeys(map(_own, sessions))
    removed = [_remove(name, as_json=as_json) for name in names]
    for session in host.list_sessions() if ended else ():
        if session.has_ended:
            with suppress(UserError):  # another process was quicker
                removed.append(_remove(session.id, as_json=as_json))
    if as_json:
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "removed": removed}))
    elif not removed:
        click.echo("no session has ended")


def _remove(session: str, *, as_json: bool) -> str:
    host.remove_session(session)
    if not as_json:
        click.echo(f"removed {session}")
    return session
