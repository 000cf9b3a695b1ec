"""The process of gsd itself, in which plugins run: they can neither end it nor write into its data.

It is imported before anything else of gsd, so it imports little.
"""

from __future__ import annotations

import os
import posix
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TextIO, cast

exit_at_once = os._exit
"""Ends this process without any cleanup, for gsd's own code."""


class ProcessEnd(SystemExit):
    """Code that is not gsd's tried to end or replace this process.

    No ``Exception``, because such code often catches those; and a subclass, because a thread that ends with a
    plain ``SystemExit`` ends silently.
    """


@contextmanager
def kept_alive() -> Generator[None]:
    """Let ``os._exit`` and ``os.exec…`` raise :class:`ProcessEnd`, except in processes forked from this one.

    A plugin that ends the process during a run would also choose its exit code, and 0 means that the run is
    done. When the block is left with ``SystemExit``, its code stays that of the process, whatever threads do.
    """
    owner, code = os.getpid(), list[int]()

    def guarded(name: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() != owner:
                return original(*args, **kwargs)
            if code:
                exit_at_once(code[0])
            raise ProcessEnd(f"os.{name} would have ended gsd")

        return call

    for name in ("_exit", "execv", "execve"):
        function = guarded(name)
        for module in (os, posix):
            setattr(module, name, function)
    try:
        yield
    except SystemExit as end:
        code.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


_is_output: ContextVar[bool] = ContextVar("gsd_is_output", default=False)


@contextmanager
def printing_output() -> Generator[None]:
    """Let what is printed in the block be output also while it is diverted: threads of others stay so."""
    token = _is_output.set(True)
    try:
        yield
    finally:
        _is_output.reset(token)


class Diverted:
    """What ``sys.stdout`` is while standard output is kept for *data*: standard error, whatever that is."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.data if _is_output.get() else sys.stderr, name)


def data_output(*, reserve: bool = False) -> TextIO:
    """Return the stream for the output of this command that programs read.

    With *reserve*, or ``--json``, only what is written to this stream is on standard output from then on:
    what plugins print, and the processes that they start, is on standard error.
    """
    out: Any = sys.stdout
    if reserve:
        _is_output.set(False)
    if isinstance(out, Diverted):
        out = out.data
    elif reserve:
        out.flush()
        with suppress(OSError, ValueError):  # a stream in memory has no descriptor
            descriptor = out.fileno()
            kept = os.dup(descriptor)
            out = open(kept, "w", encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115
            os.dup2(2, descriptor)
        sys.stdout = cast("TextIO", Diverted(out))
    return cast("TextIO", out)


@contextmanager
def stdout_reserved() -> Generator[None]:
    """Reserve standard output for the block: what is printed in it is on standard error."""
    before, is_output = sys.stdout, _is_output.get()
    data = data_output(reserve=True)
    try:
        yield
    finally:
        _is_output.set(is_output)
        if isinstance(sys.stdout, Diverted) and sys.stdout is not before:
            if data is not before:
                os.dup2(data.fileno(), before.fileno())
                os.close(data.fileno())
            sys.stdout = before
