"""Run one command of a plan, through the permission gate, and leave no process of it behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import attrs

from gsd_core.errors import PluginRefused, ProjectError
from gsd_core.files import read_below
from gsd_core.model.agent import Allow, Permission, ToolUse
from gsd_core.model.checks import CheckResult
from gsd_core.model.sandbox import Place, SandboxedCommand
from gsd_core.processes import end_marked
from gsd_core.programs import find_program
from gsd_core.sanitize import one_line, redact, sanitize
from gsd_core.supervise import ENDED

from .check_output import NO_TESTS, does_nothing, flaw_in, hidden_failure, scripts_in
from .sandbox import Confinement, Sandbox
from .test_cases import REPORTERS, keeping_variables, read_cases, some_failed, variables

OUTPUT_LIMIT = 4000
"""Characters of a command's output that are kept: the last ones, where errors are reported."""
READ_LIMIT = 1_000_000
"""Bytes of the output that are searched for the summaries of test runners: a workspace has many."""
SCRIPT_LIMIT = 20_000
"""Bytes of a shell script that are read to see whether it does anything."""
TRIES = 3
"""How often a command is run that a signal from outside ends."""
MARK = "GSD_CHECK"
"""The variable that marks the processes of one command, those too that leave its process group."""
PASSED_ON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL", "TZ"),
    *("VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "JAVA_HOME", "GOPATH", "CARGO_HOME", "RUSTUP_HOME"),
    *("NVM_DIR", "PYENV_ROOT"),
)
"""The variables that a command gets. A list of what is allowed, because an agent wrote the command and
the environment holds API keys."""


class CommandGate(Protocol):
    """Decides whether a command may run: the gate of a step, or a human at the terminal.

    *mark* is the value of ``GSD_RUN`` in the command's environment. The command runs in the *sandbox*.
    """

    @property
    def step(self) -> str: ...

    @property
    def mark(self) -> str: ...

    @property
    def sandbox(self) -> Sandbox: ...

    async def decide(self, use: ToolUse) -> Permission:
        """Return whether the tool may be used; ``Ask`` counts as no."""
        ...


async def check(
    gate: CommandGate,
    command: str,
    tree: Path,
    limit: timedelta,
    *,
    places: Sequence[Place] = (),
    judged_as: Callable[[ToolUse], ToolUse] = lambda use: use,
    reports: Path | None = None,
) -> CheckResult:
    """Run *command* in *tree* if the gate allows it; if refused or too slow, the result has no exit code.

    *judged_as* returns the use of a tool that the gate decides about instead. *reports* is an empty folder
    where test runners report their cases.

    In a sandbox, it sees *places* in addition to the tree. The command ends when its shell does: what it left
    running is ended, and does not count as output. It has no terminal, and its standard input is empty.
    """
    use = ToolUse(
        step=gate.step,
        name="Bash",
        input={"command": command},
        asked_by="plan",
        tree=tree,
        confined=bool(gate.sandbox.name),
    )
    verdict = await gate.decide(judged_as(use))
    if not isinstance(verdict, Allow):
        refused = f"refused: {verdict.reason}"
        return CheckResult(command=command, exit=None, output=refused, unusable=f"it was {refused}")
    bash = shutil.which("bash", path="/bin:/usr/bin") or find_program("bash", tree)
    if bash is None:
        return CheckResult(command=command, exit=None, unusable="bash, which runs checks, is not installed")
    # The policies and all that judges a check read it as bash does, so another shell must not run it.
    shell = (
        *(str(bash), "--noprofile", "--norc", "-c"),
        keeping_variables(command) if reports else command,
    )
    given, began = environment(gate.mark), time.time()
    if reports:
        given |= variables(reports, command)
        own = Place(path=REPORTERS, source=REPORTERS)
        places = (*places, own, Place(path=reports, source=reports, writable=True))
    try:
        async with gate.sandbox.around(tree, places=places, new_home=True) as inside:
            ran = await run_inside(inside, shell, given, limit)
    except OSError as exc:
        ran = Ran(problems=(f"could not be started: {exc}",))
    result = await asyncio.to_thread(_result, command, tree, ran)
    if reports:
        cases = await asyncio.to_thread(read_cases, reports, tree, ran.output, began)
        outcomes = {case.outcome for case in cases}
        flaw = result.flaw or (NO_TESTS if outcomes == {"skipped"} else "")
        if (
            not flaw
            and "failed" in outcomes
            and await asyncio.to_thread(some_failed, reports, tree, ran.output)
        ):
            flaw = hidden_failure(command, result.exit)
        result = attrs.evolve(result, cases=cases, flaw=flaw)
    return result


@attrs.frozen(kw_only=True)
class Ran:
    """How a command ended: without an *exit* code because of *problems*; *output* is not cleaned."""

    exit: int | None = None
    output: str = ""
    problems: tuple[str, ...] = ()


async def run_inside(
    inside: Confinement, command: Sequence[str], variables: Mapping[str, str], limit: timedelta
) -> Ran:
    """Run *command* to its end, within *limit*, and leave no process of it behind.

    One that is ended by a signal that others send is run again: a person or the system may have ended it, and
    that says nothing about the project. If it happens each time, or gsd ended it because of a
    limit, it is the command's own result. Raise
    ``PluginRefused`` if the sandbox starts nothing any more: its exit code is no result of the command.
    """
    ended = [signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM]
    # A shell and a sandbox add 128 to the number.
    names = {sign: number.name for number in ended for sign in (-number, 128 + number)}
    ran = Ran()
    for _ in range(TRIES):
        ran = await _run_once(inside, command, variables, limit)
        if ran.exit not in names or ENDED in ran.output:
            break
    else:
        problem = f"{names.get(ran.exit or 0)} ended it {TRIES} times"
        ran = attrs.evolve(ran, problems=(*ran.problems, problem))
    if ran.exit and inside.home is not None:
        trial = await _run_once(inside, ("/bin/sh", "-c", ":"), variables, limit)
        if trial.exit:
            name, said = inside.sandbox.name, one_line(trial.output, OUTPUT_LIMIT)
            why = f"the sandbox worked when the run began, and starts nothing any more: {said or trial.exit}"
            raise PluginRefused(name, "gsd_sandbox", why, "see what changed with: gsd doctor")
    return ran


async def _run_once(
    inside: Confinement, command: Sequence[str], variables: Mapping[str, str], limit: timedelta
) -> Ran:
    mark = uuid.uuid4().hex
    tail = bytearray()
    code: int | None = None
    problems: list[str] = []
    try:
        async with asyncio.timeout(limit.total_seconds()):
            started = await inside.command(command, {**variables, MARK: mark})
            code = await _run(started, inside.tree, tail)
    except TimeoutError:
        problems.append(f"timed out after {limit}")
    except (OSError, ValueError) as exc:
        # No process left, a command that is too long, or one that contains a NUL.
        problems.append(f"could not be started: {exc}")
    finally:
        # Processes may have left the command's process group.
        try:
            await asyncio.to_thread(end_marked, [mark], env_name=MARK)
        except ProjectError as exc:
            problems.append(str(exc))
    output = bytes(tail[-READ_LIMIT:]).decode("utf-8", "replace")
    return Ran(exit=code, output=output, problems=tuple(problems))


def environment(mark: str) -> dict[str, str]:
    """Return the environment of a plan's command; *mark* is for finding its processes after a crash."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"GSD_RUN": mark}


def _result(command: str, tree: Path, ran: Ran) -> CheckResult:
    """Return the result of a command with its output. A megabyte takes a second: not for the event loop."""
    output = sanitize(ran.output)
    flaw = flaw_in(command, ran.exit, output) or (_empty_script(command, tree) if ran.exit == 0 else "")
    # More than is shown, so that no secret is cut in two before it can be recognized.
    end = redact(output[-4 * OUTPUT_LIMIT :])[-OUTPUT_LIMIT:].strip()
    shown = "\n".join(part for part in (end, *ran.problems) if part)
    return CheckResult(command=command, exit=ran.exit, output=shown, flaw=flaw)


def _take(pipe: int, tail: bytearray) -> int | None:
    """Add what the pipe contains now to the *tail* of the output, without blocking.

    Return the number of bytes, 0 at its end, ``None`` if it waits.
    """
    try:
        chunk = os.read(pipe, 65536)
    except BlockingIOError:
        return None
    tail += chunk
    if len(tail) > 2 * READ_LIMIT:
        del tail[:-READ_LIMIT]
    return len(chunk)


async def _run(command: SandboxedCommand, tree: Path, tail: bytearray) -> int:
    """Run the shell to its end, and end its process group; return its exit code."""
    # Our own pipe: asyncio's would be waited for until every process that inherited it has closed it, and
    # a server in the background never does.
    reader, writer = os.pipe()
    loop = asyncio.get_running_loop()
    try:
        os.set_blocking(reader, False)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.command,
                cwd=tree,
                env=dict(command.environment),
                # Its own session: it has no terminal, and one process group that can be killed as a whole.
                start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
            )
        finally:
            os.close(writer)

        def take() -> None:
            # At its end the pipe stays readable, and the loop would spin.
            if _take(reader, tail) == 0:
                loop.remove_reader(reader)

        loop.add_reader(reader, take)
        try:
            code = await process.wait()
        finally:
            loop.remove_reader(reader)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            # If the time is up, nobody else waits for it, and it would stay a zombie.
            await process.wait()
        # What was written before the shell ended is in the pipe, at most its capacity.
        for _ in range(64):
            if not _take(reader, tail):
                break
        return code
    finally:
        os.close(reader)


def _empty_script(command: str, tree: Path) -> str:
    """Return what is wrong if the command runs a shell script of the project that cannot fail."""
    for name in scripts_in(command):
        with suppress(OSError, ValueError):
            if data := read_below(tree, name, limit=SCRIPT_LIMIT):
                text = data.decode("utf-8", "replace")
                is_shell = not text.startswith("#!") or "sh" in text.partition("\n")[0]
                if is_shell and "\0" not in text and does_nothing(text):
                    return f"proves nothing, because {name} does nothing that can fail"
    return ""
