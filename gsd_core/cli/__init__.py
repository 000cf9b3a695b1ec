"""The command line: one module for each subcommand. No other package uses click or rich.

The modules of subcommands import what is slow to import, such as the journal, inside their functions, so
that `--help` need not wait for it.
"""

# Python has imported these two before our first line: until `main` runs, Ctrl+C prints a traceback.
import io
import sys

UNSUPPORTED = """\
error: gsd does not run on native Windows
cause: it needs POSIX signals, file locks and process groups
hint: use WSL: run `wsl --install`, then install and start gsd inside it
"""


def main() -> None:
    """Run ``gsd`` with this process's arguments and exit."""
    if message := why_unsupported(sys.platform):
        sys.stderr.write(message)
        sys.exit(2)
    try:
        import signal

        # During an import, a KeyboardInterrupt may become another error, or be printed and ignored. Nothing
        # has begun yet, so Ctrl+C may end the process. A shell makes background processes ignore it.
        on_interrupt = signal.getsignal(signal.SIGINT)
        if on_interrupt is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.unraisablehook = interrupt_again
        from .streams import open_closed_streams

        open_closed_streams()
        from gsd_core.own_process import kept_alive

        from .app import gsd

        if on_interrupt is signal.default_int_handler:
            signal.signal(signal.SIGINT, on_interrupt)
        for stream in (sys.stdout, sys.stderr):
            # A character that the terminal cannot show must not end a run.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with kept_alive():
            gsd.main(prog_name="gsd")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def interrupt_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more where Python has dropped a Ctrl+C: in a finalizer, or in a weakref's callback."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    import os
    import signal
    import threading

    # Raised at once, it would be dropped here too.
    threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()


def why_unsupported(platform: str) -> str:
    """Return why gsd does not run on *platform* (a value of ``sys.platform``); empty if it does."""
    return UNSUPPORTED if platform in ("win32", "cygwin", "msys") else ""
