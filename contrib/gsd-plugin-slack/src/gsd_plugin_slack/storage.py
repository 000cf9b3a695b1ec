"""What outlives a process: the thread of each run, and clicks that another process received for it.

Slack sends each click to one of the app's connections, whichever it likes. If two runs use the same app,
each receives clicks of the other. On one machine they pass them on through the user's own folder, signed
with the bot token, which agents do not have: without it a file there would be an answer that nobody gave.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs
import platformdirs

from gsd_core import read_below

_RUN = re.compile(r"[A-Za-z0-9-]{1,80}")
MAX_BYTES = 1_000_000


@attrs.frozen(kw_only=True)
class Thread:
    """The thread of a run: its channel, and the timestamp of its first message, which identifies it."""

    channel: str
    ts: str


@attrs.frozen(kw_only=True)
class Storage:
    """The plugin's files, all in *folder*; *key* signs what processes send to one another."""

    folder: Path
    key: bytes = attrs.field(repr=False)

    @classmethod
    def open(cls, token: str) -> Storage:
        """Return the storage in the user's own folder, or in ``GSD_STATE_DIR``."""
        own = os.environ.get("GSD_STATE_DIR")
        base = Path(own) if own else platformdirs.user_state_path("gsd")
        return cls(folder=base / "slack", key=hashlib.sha256(f"gsd {token}".encode()).digest())

    def read_thread(self, run: str) -> Thread | None:
        """Return the thread of *run*, if it is known."""
        data = _read(self.folder, f"{run}.json")
        if data is None or not all(isinstance(data.get(key), str) for key in ("channel", "ts")):
            return None
        return Thread(channel=data["channel"], ts=data["ts"])

    def write_thread(self, run: str, thread: Thread) -> None:
        """Keep the thread of *run*; raise ``OSError`` if that is not possible."""
        _write(self.folder, f"{run}.json", attrs.asdict(thread))

    def run_of(self, thread: Thread) -> str:
        """Return the run with that thread; empty if there is none."""
        runs = (path.stem for path in self.folder.glob("*.json"))
        return next((run for run in runs if self.read_thread(run) == thread), "")

    def forward(self, run: str, kind: str, body: Mapping[str, Any]) -> bool:
        """Pass a payload on to the process of *run*; return whether one listens for them."""
        # The name comes from outside, so it is checked before it becomes a path.
        if not _RUN.fullmatch(run) or not (inbox := self._inbox(run)).is_dir():
            return False
        text = json.dumps({"kind": kind, "body": body})
        with suppress(OSError):
            _write(inbox, f"{secrets.token_hex(8)}.json", {"text": text, "signature": self._sign(run, text)})
            return True
        return False

    def listen(self, run: str) -> None:
        """Accept payloads for *run* from now on."""
        self._inbox(run).mkdir(parents=True, exist_ok=True, mode=0o700)

    def stop_listening(self, run: str) -> None:
        """Accept no more payloads for *run*."""
        inbox = self._inbox(run)
        with suppress(OSError):
            for path in inbox.iterdir():
                path.unlink()
            inbox.rmdir()

    def received(self, run: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the payloads that other processes passed on, with their kind, each once."""
        inbox = self._inbox(run)
        for path in sorted(inbox.glob("*.json")):
            data = _read(inbox, path.name)
            with suppress(OSError):
                path.unlink()
            if data is None:
                continue
            text, signature = str(data.get("text")), str(data.get("signature"))
            if hmac.compare_digest(signature.encode(), self._sign(run, text).encode()):
                payload = json.loads(text)
                yield payload["kind"], payload["body"]

    def _inbox(self, run: str) -> Path:
        return self.folder / f"{run}.inbox"

    def _sign(self, run: str, text: str) -> str:
        return hmac.new(self.key, f"{run}\0{text}".encode(), "sha256").hexdigest()


def _read(folder: Path, name: str) -> dict[str, Any] | None:
    try:
        data = json.loads(read_below(folder, Path(name), limit=MAX_BYTES))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _write(folder: Path, name: str, data: Mapping[str, Any]) -> None:
    """Replace a file as a whole: another process may read it at any time."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, draft = tempfile.mkstemp(dir=folder, suffix=".draft")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file)
        Path(draft).replace(folder / name)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
