"""What a plugin does besides its work: what an import touches, what changes in its modules and around it."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from attrs import define, field

from gsd_core.processes import processes

_WRITING = {
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.symlink", "os.link", "shutil.rmtree",
    "subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "_thread.start_new_thread", "os.putenv",
}  # fmt: skip


@define
class Audit:
    """Hears, while it listens, what the interpreter does to the world; it cannot be taken off again."""

    heard: list[str] = field(factory=list[str])
    listening: bool = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Note the event if it changes something."""
        if self.listening and (event in _WRITING or (event == "open" and _writes(args))):
            self.heard.append(f"{event} {str(args[0])[:200]}")

    @contextmanager
    def listen(self) -> Generator[None]:
        """Listen."""
        self.listening = True
        try:
            yield
        finally:
            self.listening = False


def _writes(args: tuple[Any, ...]) -> bool:
    """Whether an ``open`` writes; byte code that Python keeps for itself does not count."""
    path, mode, flags = args
    if ".pyc" in str(path):
        return False
    if isinstance(mode, str):
        return any(sign in mode for sign in "wax+")
    return bool(int(flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


@contextmanager
def printed() -> Generator[list[str]]:
    """Give what is printed meanwhile, when it is over."""
    said: list[str] = []
    with redirect_stdout(io.StringIO()) as out:
        yield said
    if text := out.getvalue().strip():
        said.append(text[:200])


def module_state(name: str) -> dict[str, str]:
    """Return the variables of a plugin's modules, as texts to compare."""
    mine = {key: mod for key, mod in sys.modules.items() if key == name or key.startswith(f"{name}.")}
    return {
        f"{key}.{variable}": _text(value)
        for key, module in mine.items()
        for variable, value in vars(module).items()
        if not variable.startswith("__") and not isinstance(value, ModuleType | FunctionType | type)
    }


def _text(value: Any) -> str:
    """Return what tells a value from another; an object's address tells only whether it was replaced."""
    if value is None or type(value).__module__ == "builtins":
        return str(value)
    hidden = isinstance(value, logging.Logger)
    state: Mapping[str, Any] = {} if hidden else getattr(value, "__dict__", {})
    return f"{type(value).__name__} {id(value)} {state!r}"


def surroundings() -> dict[str, str]:
    """Return what belongs to everybody in the process."""
    root = logging.getLogger()
    return {
        "the environment": repr(sorted(os.environ.items())),
        "the current folder": str(Path.cwd()),
        "the signal handlers": repr([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]),
        "the root logger": repr((root.level, [type(handler).__name__ for handler in root.handlers])),
        "sys.path": repr(sys.path),
        "sys.excepthook": repr(sys.excepthook),
    }


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of what is not as it was."""
    return sorted(name for name in before if name in after and before[name] != after[name])


def files_of(*folders: Path) -> dict[str, str]:
    """Return the files in *folders* with digests of what they hold; git's own are left out."""
    found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(found)
        if not {".git", "__pycache__", ".cache"} & set(path.parts)
    }


def left_behind() -> list[str]:
    """Return the threads and processes that are still there."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    children = [str(process.pid) for process in processes("") if process.parent == os.getpid()]
    return [*(f"the thread {name}" for name in threads), *(f"the process {pid}" for pid in children)]
