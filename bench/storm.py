"""Let many agents share a rate limit that changes: ``python bench/storm.py``.

A server on loopback permits so many calls a second: a token bucket, whose rate changes every few seconds. It
refuses the others with the status 429, and in every second period with the header retry-after. Several
processes with several agents each call it as often as they may, through the hooks of the plugins ``governor``
and ``retry``, and wait as the core does. All times, those in the settings too, are a twentieth of those of a
run; so 20 calls a second are one a second.

Printed are for each seed, with the governor and without: which part of the permitted rate was used, how many
calls were given up, and how many requests were refused.

Options: the number of seeds, the seconds for each, the number of processes, and of agents in each.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs

from gsd_core import (
    AgentHost,
    AgentResult,
    AgentTask,
    Outage,
    Postpone,
    Postponed,
    StepRequest,
    StepResult,
    Transient,
    bind_settings,
    implements,
)
from gsd_core.hookspecs import gsd_check_budget, gsd_run_agent, gsd_wrap_step
from gsd_core.testing import FakeAgentHost, a_spend, a_step, a_task, make_hooks
from gsd_plugins import governor, retry

SCALE = 20
LIMIT_USED, LIMIT_GIVEN_UP = 0.9, 0.01
PERIOD = 6.0
"""Seconds until the permitted rate changes, by up to a half or to up to the double."""
LOWEST, HIGHEST = 8.0, 32.0
BURST = 0.5
"""The server saves up so many seconds of its rate."""
WORK = 0.05
"""Seconds that a call takes."""
RETRY = retry.RetrySettings(
    outage=timedelta(minutes=20) / SCALE,
    wait=timedelta(seconds=2) / SCALE,
    max_wait=timedelta(seconds=60) / SCALE,
)
GOVERNOR = governor.GovernorSettings(
    recovery=timedelta(seconds=20) / SCALE, slowest=timedelta(seconds=15) / SCALE
)


@attrs.define
class Server:
    """The service: *rates* are those of its periods; it counts what it *accepted* and *refused*."""

    rates: Sequence[float]
    began: float = attrs.field(factory=time.monotonic)
    accepted: int = 0
    refused: int = 0
    tokens: float = 1.0
    at: float = attrs.field(factory=time.monotonic)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        await reader.readuntil(b"\r\n\r\n")
        now = time.monotonic()
        period = int((now - self.began) / PERIOD) % len(self.rates)
        rate = self.rates[period]
        self.tokens, self.at = min(self.tokens + (now - self.at) * rate, max(1.0, BURST * rate)), now
        if self.tokens >= 1:
            self.tokens -= 1
            self.accepted += 1
            await asyncio.sleep(WORK)
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        else:
            self.refused += 1
            wait = f"retry-after: {(1 - self.tokens) / rate:.3f}\r\n" if period % 2 else ""
            writer.write(f"HTTP/1.1 429 Too Many Requests\r\n{wait}connection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    def permitted(self, seconds: float) -> float:
        """Return how many calls were permitted in so many *seconds*."""
        whole, rest = divmod(seconds, PERIOD)
        rates = list(itertools.islice(itertools.cycle(self.rates), int(whole) + 1))
        return sum(rates[:-1]) * PERIOD + rates[-1] * rest


@attrs.define(eq=False)
class Agent:
    """An agent that sends one request in each call."""

    port: int

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Send the request."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"POST /v1/messages HTTP/1.1\r\n\r\n")
        head = (await reader.read()).decode()
        writer.close()
        if " 429 " not in head:
            return AgentResult(text="done")
        after = head.partition("retry-after: ")[2].partition("\r\n")[0]
        raise Outage("429", datetime.now(UTC) + timedelta(seconds=float(after)) if after else None)


async def call(plugins: dict[str, object], step: StepRequest, until: float) -> bool | None:
    """Make one call, with the waits of the core; return whether it was answered, ``None`` if time is up."""
    hooks = make_hooks(**plugins)

    async def attempt(request: StepRequest, /) -> StepResult:
        spend = a_spend(run=request.run, step=request.id, agents=("agent",))
        for outcome in await hooks.fan_out(gsd_check_budget, timedelta(seconds=2), spend):
            if isinstance(outcome.value, Postpone):
                raise Postponed(outcome.value.reason, outcome.value.until)
            assert outcome.error is None, outcome.error
        host = FakeAgentHost()
        await hooks.pick(gsd_run_agent, ("agent",), AgentResult, a_task(request.project), host)
        return StepResult(subject=request.id)

    while time.time() < until:
        try:
            await hooks.wrap(gsd_wrap_step, attempt, StepResult)(step)
            return True
        except Transient as error:
            if error.until is None:
                return False
            wait = max(0.0, error.until.timestamp() - time.time())
            counts = isinstance(error, Outage)
            step = attrs.evolve(
                step, retries=step.retries + counts, waited=step.waited + timedelta(seconds=wait) * counts
            )
            await asyncio.sleep(min(wait, max(0.0, until - time.time())))
    return None


async def agents(port: int, count: int, until: float, governed: bool) -> dict[str, int]:
    """Let so many agents work in this process; return how many calls they made, and how many they gave up."""
    plugins: dict[str, object] = {"retry": retry, "agent": Agent(port)}
    if governed:
        plugins["governor"] = governor
    made: list[bool] = []

    async def work(number: int) -> None:
        step = attrs.evolve(a_step(Path("/")), run=f"r-{os.getpid()}", id=f"1/execute/01-{number:02}")
        while (answered := await call(plugins, step, until)) is not None:
            made.append(answered)

    with bind_settings({retry.RetrySettings: RETRY, governor.GovernorSettings: GOVERNOR}):
        await asyncio.gather(*(work(number) for number in range(count)))
    return {"made": len(made), "given_up": made.count(False)}


@attrs.frozen(kw_only=True)
class Result:
    """What a storm came to; *used* is a part of what was permitted, *refused* one of the requests."""

    used: float
    given_up: float
    refused: float
    calls: int


async def storm(seed: int, seconds: float, processes: int, count: int, *, governed: bool) -> Result:
    """Let agents work for some *seconds*, and measure."""
    dice = random.Random(seed)
    rates = [dice.uniform(LOWEST, HIGHEST)]
    while len(rates) * PERIOD < seconds:
        rates.append(min(HIGHEST, max(LOWEST, rates[-1] * dice.choice([0.5, 0.7, 1.4, 2.0]))))
    server = Server(rates)
    with tempfile.TemporaryDirectory() as folder:
        async with listening(server) as port:
            workers = [
                await asyncio.create_subprocess_exec(
                    *(sys.executable, __file__, "worker", str(port), str(count), str(int(governed))),
                    env={**os.environ, "GSD_STATE_DIR": folder},
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                for _ in range(processes)
            ]
            for worker in workers:
                assert worker.stdout
                await worker.stdout.readline()
            # All together, once they have imported what they need.
            server.began = server.at = time.monotonic()
            until = f"{time.time() + seconds}\n".encode()
            outputs = await asyncio.gather(*(worker.communicate(until) for worker in workers))
            done = [json.loads(output) for output, _ in outputs]
    made, given_up = (sum(one[key] for one in done) for key in ("made", "given_up"))
    return Result(
        used=server.accepted / server.permitted(seconds),
        given_up=given_up / max(made, 1),
        refused=server.refused / max(server.accepted + server.refused, 1),
        calls=made,
    )


@asynccontextmanager
async def listening(server: Server) -> AsyncGenerator[int]:
    """Let *server* listen on a free port."""
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


def main(arguments: Sequence[str]) -> int:
    """Measure, and print."""
    if arguments[:1] == ["worker"]:
        port, count, governed = map(int, arguments[1:])
        print("ready", flush=True)
        print(json.dumps(asyncio.run(agents(port, count, float(input()), bool(governed)))))
        return 0
    seeds, seconds, processes, count = [*map(int, arguments), *(5, 30, 3, 6)[len(arguments) :]]
    found: dict[bool, list[Result]] = {True: [], False: []}
    for governed, results in found.items():
        print(f"{'with' if governed else 'without'} the governor, {processes} × {count} agents:")
        for seed in range(seeds):
            result = asyncio.run(storm(seed, seconds, processes, count, governed=governed))
            results.append(result)
            print(
                f"  seed {seed}: {result.used:6.1%} of the rate used, {result.given_up:.2%} of "
                f"{result.calls} calls given up, {result.refused:.1%} of the requests refused"
            )
        used = sorted(result.used for result in results)
        print(f"  used: median {statistics.median(used):.1%}, from {used[0]:.1%} to {used[-1]:.1%}")
    good = found[True]
    ok = statistics.median(one.used for one in good) >= LIMIT_USED
    return 0 if ok and all(one.given_up < LIMIT_GIVEN_UP for one in good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
