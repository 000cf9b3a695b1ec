"""A stand-in for GitHub's API on loopback, with a bare repository, and people who write comments.

It answers as GitHub's reference says: ids that increase, times in seconds, pages, refusals with a message.
"""

from __future__ import annotations

import asyncio
import copy
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

T = TypeVar("T")
TOKEN = "ghp_" + "standIn0" * 4 + "abcd"
BOT, ADA, EVE = "gsd-bot", "ada", "eve"


class GitHubStandIn:
    """The stand-in: the repository ``o/r`` with one issue, ``#7``."""

    def __init__(self, folder: Path, author: str = ADA) -> None:
        self.repository = folder / "remote.git"
        self.issue: dict[str, Any] = {
            "number": 7,
            "title": "Ledger",
            "body": "Shared costs of a flat.",
            "user": {"login": author},
            "labels": [{"name": "gsd"}],
            "state": "open",
        }
        self.labeled_by = ADA
        self.comments: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.refusals: list[web.Response] = []
        self.url = ""
        self._id = 1000
        self._loop = asyncio.new_event_loop()
        work = folder / "seed"
        work.mkdir()
        git("init", "-q", "-b", "main", folder=work)
        (work / "README.md").write_text("# Flat\n")
        git("add", ".", folder=work)
        git("-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-qm", "Begin", folder=work)
        git("clone", "-q", "--bare", str(work), str(self.repository), folder=folder)

    @contextmanager
    def serving(self) -> Generator[GitHubStandIn]:
        """Serve in a thread until the block ends."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        runner = self._do(self._start())
        try:
            yield self
        finally:
            self._do(runner.cleanup())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(5)
            self._loop.close()

    # People and looking.

    def comment(self, body: str, user: str = ADA, *, edited: bool = False) -> None:
        """Write a comment."""
        comment = self._comment(body, user)
        if edited:
            comment["updated_at"] = "2099-01-01T00:00:00Z"

    def wait_for(self, condition: Callable[[], T], what: str, seconds: float = 20) -> T:
        """Return the first true value of *condition*."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.02)
        raise AssertionError(f"{what} did not happen: {self.comments}")

    def asked(self, containing: str = "") -> dict[str, Any]:
        """Return the newest open question."""

        def find() -> dict[str, Any] | None:
            return next(
                (c for c in reversed(self.comments) if is_question(c) and containing in c["body"]), None
            )

        found = self.wait_for(find, f"a question {containing!r}")
        assert found is not None
        return copy.deepcopy(found)

    def branches(self) -> dict[str, str]:
        """Return the commits of the remote's branches."""
        lines = git("for-each-ref", "--format=%(refname:short) %(objectname)", folder=self.repository)
        return dict(line.split() for line in lines.splitlines())

    # The server.

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        [(_, port)] = [address[:2] for address in runner.addresses]
        self.url = f"http://127.0.0.1:{port}"
        return runner

    def _comment(self, body: str, user: str) -> dict[str, Any]:
        self._id += 1
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        person = {"login": user, "type": "User"}
        comment = {"id": self._id, "body": body, "user": person, "created_at": now, "updated_at": now}
        self.comments.append(comment)
        return comment

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(f"{request.method} {request.path_qs}")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"message": "Bad credentials"}, status=401)
        if self.refusals:
            return self.refusals.pop(0)
        data: Any = await request.json() if request.can_read_body else {}
        match request.method, request.path.removeprefix("/").split("/"):
            case "GET", ["user"]:
                return web.json_response({"login": BOT})
            case "GET", ["repos", "o", "r"]:
                return web.json_response({"clone_url": str(self.repository), "default_branch": "main"})
            case "GET", ["repos", "o", "r", "issues"]:
                wanted = request.query.get("labels") in [label["name"] for label in self.issue["labels"]]
                return web.json_response([self.issue] if wanted and request.query["page"] == "1" else [])
            case "GET", ["repos", "o", "r", "issues", "7"]:
                return web.json_response(self.issue)
            case "GET", ["repos", "o", "r", "issues", "7", "events"]:
                event = {"event": "labeled", "label": {"name": "gsd"}, "actor": {"login": self.labeled_by}}
                return web.json_response([event])
            case "GET", ["repos", "o", "r", "issues", "7", "comments"]:
                first = (int(request.query["page"]) - 1) * 100
                since = request.query.get("since", "")
                found = [comment for comment in self.comments if comment["updated_at"] >= since]
                return web.json_response(found[first : first + 100])
            case "POST", ["repos", "o", "r", "issues", "7", "comments"]:
                if len(data["body"]) > 65536:
                    return web.json_response({"message": "Validation Failed"}, status=422)
                return web.json_response(self._comment(data["body"], BOT), status=201)
            case "PATCH", ["repos", "o", "r", "issues", "comments", number]:
                [comment] = [c for c in self.comments if c["id"] == int(number)]
                comment["body"] = data["body"]
                comment["updated_at"] = "2099-01-01T00:00:00Z"
                return web.json_response(comment)
            case "DELETE", ["repos", "o", "r", "issues", "7", "labels", name]:
                self.issue["labels"] = [label for label in self.issue["labels"] if label["name"] != name]
                return web.json_response(self.issue["labels"])
            case "GET", ["repos", "o", "r", "pulls"]:
                return web.json_response(self.pulls if request.query["page"] == "1" else [])
            case "POST", ["repos", "o", "r", "pulls"]:
                if data["head"] not in self.branches() or data["base"] != "main":
                    return web.json_response({"message": "Validation Failed"}, status=422)
                number = len(self.pulls) + 8
                head = {"ref": data["head"]}
                self.pulls.append({**data, "number": number, "head": head, "html_url": f"x/pull/{number}"})
                return web.json_response(self.pulls[-1], status=201)
            case "PATCH", ["repos", "o", "r", "pulls", number]:
                [pull] = [p for p in self.pulls if p["number"] == int(number)]
                pull.update(data)
                return web.json_response(pull)
            case _:
                return web.json_response({"message": "Not Found"}, status=404)


def is_question(comment: dict[str, Any]) -> bool:
    """Whether a comment is an open question of gsd."""
    return comment["user"]["login"] == BOT and "**A question**" in comment["body"]


def git(*arguments: str, folder: Path) -> str:
    """Run git and return its output."""
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout
