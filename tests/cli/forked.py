"""A process that has imported gsd, and runs each command in a fork of itself, with real streams.

Starting Python and importing gsd takes longer than most commands. The interpreter starts with the environment
of the test, so its locale and encodings are real; the streams of each command are made for it.

The arguments are two file descriptors. Each line on the first is a request, a JSON list: the arguments, the
folder, and the streams ("pipe", "terminal", "narrow" or "closed"). The answer, a line on the second, has
``exit``, ``out``, ``err``, the ``seconds`` it took, and the ``peak`` of its memory in bytes.
"""

from __future__ import annotations

import fcntl
import importlib
import io
import json
import os
import pkgutil
import pty
import selectors
import struct
import sys
import termios
import time
import tty
from typing import Any

LIMIT = 20.0
ROWS = 24


def main() -> None:
    """Answer requests until there are no more."""
    preload()
    reading, writing = map(int, sys.argv[1:])
    with (
        os.fdopen(reading, encoding="utf-8") as requests,
        os.fdopen(writing, "w", encoding="utf-8") as answers,
    ):
        for line in requests:
            args, folder, streams = json.loads(line)
            answers.write(json.dumps(run(args, folder, streams)) + "\n")
            answers.flush()


def preload() -> None:
    """Import what the commands import, once for all forks."""
    import gsd_core
    import gsd_plugins

    for package in (gsd_core, gsd_plugins):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and ".testing" not in module.name:
                importlib.import_module(module.name)
    for name in ("rich.table", "claude_agent_sdk", "apprise", "jsonschema"):
        importlib.import_module(name)


def run(args: list[str], folder: str, streams: str) -> dict[str, Any]:
    """Run a command to its end."""
    columns = {"terminal": 80, "narrow": 40}.get(streams)
    ours, theirs = zip(*(_stream(columns) for _ in range(2)), strict=True)
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            _command(args, folder, theirs, streams)
        finally:
            os._exit(99)
    for descriptor in theirs:
        os.close(descriptor)
    texts = [bytearray(), bytearray()]
    with selectors.DefaultSelector() as selector:
        for descriptor, text in zip(ours, texts, strict=True):
            selector.register(descriptor, selectors.EVENT_READ, text)
        end = time.monotonic() + LIMIT
        while selector.get_map() and time.monotonic() < end:
            for key, _ in selector.select(1):
                try:
                    part = os.read(key.fd, 65_536)
                except OSError:  # Linux fails the read when the last process on the terminal has ended.
                    part = b""
                key.data.extend(part)
                if not part:
                    selector.unregister(key.fd)
    for descriptor in ours:
        os.close(descriptor)
    if time.monotonic() >= end:
        os.killpg(pid, 9)
    _, status, usage = os.wait4(pid, 0)
    out, err = (bytes(text).decode("utf-8", "backslashreplace") for text in texts)
    measured = {"seconds": time.monotonic() - began, "peak": usage.ru_maxrss * _UNIT}
    return {"exit": os.waitstatus_to_exitcode(status), "out": out, "err": err, **measured}


_UNIT = 1 if sys.platform == "darwin" else 1024
"""The unit of ``ru_maxrss``."""


def _stream(columns: int | None) -> tuple[int, int]:
    """Return both ends of a pipe, or of a terminal that is so wide."""
    if columns is None:
        return os.pipe()
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # a line ends as it was written
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    return ours, theirs


def _command(args: list[str], folder: str, theirs: tuple[int, ...], streams: str) -> None:
    from gsd_core.cli import main as gsd

    os.setsid()
    out, err = theirs
    if streams == "closed":
        os.close(0)
    elif streams != "pipe":
        os.dup2(out, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, 256)
    # As Python opens them when it starts.
    sys.stdin = None if streams == "closed" else _text(0, "r", sys.stdin)
    sys.stdout, sys.stderr = _text(1, "w", sys.stdout), _text(2, "w", sys.stderr)
    sys.argv = ["gsd", *args]
    os.chdir(folder)
    code = 99
    try:
        gsd()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _text(descriptor: int, mode: str, like: Any) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, mode, closefd=False)
    buffer: Any = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    lines = os.isatty(descriptor) or descriptor == 2
    return io.TextIOWrapper(buffer, encoding=like.encoding, errors=like.errors, line_buffering=lines)


if __name__ == "__main__":
    main()
