"""Side effects of a plugin: what it changes in its modules, in the process, and around it."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import attrs

from gsd_core.processes import processes

_CHANGES = re.compile(
    r"os\.(remove|rename|mkdir|rmdir|truncate|symlink|link|system|posix_spawn|fork|exec|putenv)"
    r"|shutil\.rmtree|subprocess\.Popen|socket\.(connect|bind|getaddrinfo)|_thread\.start_new_thread"
)
"""Audit events of the interpreter that change something outside it."""


@attrs.define
class AuditHook:
    """Records the interpreter's audit events that change something, while it is *listening*.

    Python cannot remove an audit hook, so this one is switched on and off instead.
    """

    events: list[str] = attrs.field(factory=list[str])
    listening: bool = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Record the event if it changes something."""
        if self.listening and (_CHANGES.fullmatch(event) or (event == "open" and _opens_for_writing(args))):
            self.events.append(f"{event} {str(args[0])[:200]}")

    @contextmanager
    def listen(self) -> Generator[None]:
        """Record events in the ``with`` block."""
        self.listening = True
        try:
            yield
        finally:
            self.listening = False


def _opens_for_writing(args: tuple[Any, ...]) -> bool:
    path, mode, flags = args
    if ".pyc" in str(path):  # Python's own cache of byte code, not the plugin's doing
        return False
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(int(flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


@contextmanager
def captured_stdout() -> Generator[list[str]]:
    """Yield a list that holds what was printed, if anything, once the block is left.

    By whatever means: child processes, and ``os.write``, use the descriptor.
    """
    printed: list[str] = []
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            with redirect_stdout(file):
                yield printed
        finally:
            file.flush()
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        if text := file.read().strip():
            printed.append(text[:200])


def module_variables(name: str) -> dict[str, str]:
    """Return the variables of the module *name* and its submodules, each as text that can be compared."""
    modules = {key: mod for key, mod in sys.modules.items() if key == name or key.startswith(f"{name}.")}
    return {
        f"{key}.{variable}": _fingerprint(value)
        for key, module in modules.items()
        for variable, value in vars(module).items()
        if not variable.startswith("__") and not isinstance(value, ModuleType | FunctionType | type)
    }


def _fingerprint(value: Any) -> str:
    if value is None or type(value).__module__ == "builtins":
        return str(value)
    # The repr of an object may show only its address, so compare its attributes too. A logger is left out:
    # others attach state to it.
    hidden = isinstance(value, logging.Logger)
    state: Mapping[str, Any] = {} if hidden else getattr(value, "__dict__", {})
    return f"{type(value).__name__} {id(value)} {state!r}"


def process_state() -> dict[str, str]:
    """Return the state that everything in the process shares, as text that can be compared."""
    root = logging.getLogger()
    return {
        "the environment": repr(sorted(os.environ.items())),
        "the working directory": str(Path.cwd()),
        "the signal handlers": repr([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]),
        "the root logger": repr((root.level, [type(handler).__name__ for handler in root.handlers])),
        "sys.path": repr(sys.path),
        "sys.excepthook": repr(sys.excepthook),
    }


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names whose values differ; new names do not count."""
    return sorted(name for name in before if name in after and before[name] != after[name])


def files_in(*folders: Path) -> dict[str, str]:
    """Return the digests of the files in *folders*, except those of git and of caches."""
    found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    kept = sorted(path for path in found if not {".git", "__pycache__", ".cache"} & set(path.parts))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def leftovers() -> list[str]:
    """Return the threads and child processes that are still running."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    children = [str(process.pid) for process in processes("") if process.parent == os.getpid()]
    return [*(f"the thread {name}" for name in threads), *(f"the process {pid}" for pid in children)]
