"""A run's questions in the comments of its issue, and people's comments as answers.

Everything that has to survive a restart is in the issue: a comment of ours begins with a marker that names
its question. So a question is posted once, and an answer that was written while no process was active counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs

from gsd_core import Answer, Event, Inquiry, Notice, Question, RunInfo, Transient

from .api import Data, GitHub, Refused, login_of
from .settings import GitHubSettings, Issue, token
from .texts import (
    answered_text,
    describe_answer,
    fenced,
    is_complete,
    marked,
    marker_of,
    question_text,
    read_answer,
)

NOTICEABLE = 1.0
"""Seconds before a question is posted: with ``--yes`` most are answered at once."""
CLOSE_LIMIT = 3.0
ATTEMPTS = 3

log = logging.getLogger(__name__)


@attrs.frozen
class _Posted:
    """A question in the issue: the number and the time (ISO 8601) of its comment."""

    comment: int
    created: str
    question: Question


@attrs.define(kw_only=True, eq=False)
class IssueChannel:
    """The comments of *issue*, for *run*."""

    run: RunInfo
    settings: GitHubSettings
    issue: Issue
    github: GitHub
    problem: str = ""
    _login: str | None = attrs.field(default=None, init=False)
    _posted: dict[str, _Posted] = attrs.field(factory=lambda: dict[str, _Posted](), init=False)
    _tasks: set[asyncio.Task[None]] = attrs.field(factory=set[asyncio.Task[None]], init=False)
    _posting: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    @classmethod
    @asynccontextmanager
    async def open(cls, run: RunInfo, settings: GitHubSettings) -> AsyncGenerator[None]:
        """Use the issue for as long as *run* lasts; raise ``ConfigError`` if the token is missing."""
        async with GitHub.connect(settings.api_url, token()) as github:
            channel = cls(run=run, settings=settings, issue=Issue.parse(settings.issue), github=github)
            settings.keep(channel)
            try:
                yield
            finally:
                settings.keep(None)
                if channel._tasks:
                    _, late = await asyncio.wait(channel._tasks, timeout=CLOSE_LIMIT)
                    for task in late:
                        task.cancel()
                    await asyncio.gather(*late, return_exceptions=True)

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Wait for a comment that answers one of the questions; ``None`` if nobody may answer."""
        if not self.settings.users:
            return None
        await asyncio.sleep(NOTICEABLE)
        while True:
            try:
                comments = await self._comments(inquiry)
                for question in inquiry.questions:
                    # One at a time: two inquiries of a run may look for their comments at once.
                    async with self._posting:
                        await self._post(question, inquiry, comments)
                if answers := await self._answers(inquiry, comments):
                    return answers
                self.problem = ""
            except (Transient, Refused) as error:
                if str(error) != self.problem:
                    log.warning("github: %s; trying again until it works", error)
                self.problem = str(error)
            await asyncio.sleep(self.settings.poll.total_seconds())

    def see(self, event: Event) -> None:
        """Show in a question's comment that it takes no more answers."""
        if event.name == "question.answered":
            self._close(str(event.data["question"]), describe_answer(event.data))
        elif event.name == "question.withdrawn":
            for question in event.data["questions"]:
                self._close(str(question), "Withdrawn: no answer is needed any more.")

    async def notify(self, notice: Notice) -> None:
        """Post a question that nobody can answer here, and reminders; raise ``Transient`` if GitHub fails."""
        if notice.type == "question" and (notice.reminder or not self.settings.users):
            people = " ".join(f"@{user}" for user in self.settings.users)
            text = f"{people}\n\n{fenced(notice.title)}\n\n{fenced(notice.body)}".strip()
            await self._comment(marked(f"notice:{notice.key}".replace(" ", ":"), text))
        elif self.problem:
            raise Transient(f"github: {self.problem}")

    async def _comments(self, inquiry: Inquiry) -> list[Data]:
        """Return the comments since the first of the questions; all of them if one may not be posted yet."""
        if self._login is None:
            try:
                self._login = str((await self.github.call("GET", "/user"))["login"])
            except Refused:
                self._login = ""  # the token of an app, which has no user
        posted = [self._posted.get(question.id) for question in inquiry.questions]
        times = [found.created for found in posted if found]
        since = f"?since={min(times)}" if times and all(posted) else ""
        path = f"{self.issue.path}/issues/{self.issue.number}/comments{since}"
        return [comment async for comment in self.github.pages(path)]

    def _marker(self, comment: Data) -> str:
        """Return what one of our own comments is about; a marker that somebody else wrote is none."""
        user: Data = comment.get("user") or {}
        ours = user.get("login") == self._login if self._login else user.get("type") == "Bot"
        return marker_of(str(comment.get("body") or "")) if ours else ""

    async def _post(self, question: Question, inquiry: Inquiry, comments: list[Data]) -> None:
        """Post *question*, unless one of the *comments* is it."""
        marker = f"question:{self.run.id}:{question.id}"
        text = question_text(question, inquiry, self.run.command)
        found = [comment for comment in comments if self._marker(comment).startswith(marker)]
        if found:
            self._keep(question, found[-1])
            return
        if question.id in self._posted:
            return
        together = ":together" if len(inquiry.questions) > 1 else ""
        comment = await self._comment(marked(marker + together, text))
        self._keep(question, comment)
        comments.append(comment)

    def _keep(self, question: Question, comment: Data) -> None:
        self._posted[question.id] = _Posted(int(comment["id"]), str(comment["created_at"]), question)

    async def _answers(self, inquiry: Inquiry, comments: list[Data]) -> list[Answer]:
        """Return the answers in *comments*, at most one for each question: the first one that is valid."""
        answers: list[Answer] = []
        markers = {int(comment["id"]): self._marker(comment) for comment in comments}
        for question in inquiry.questions:
            own = self._posted[question.id].comment
            for comment in comments:
                number, user = int(comment["id"]), login_of(comment)
                # The repository's maintainers can edit what others wrote, so what was edited does not count.
                edited = comment.get("updated_at") != comment.get("created_at")
                if number <= own or markers[number] or edited or not self.settings.may_answer(user):
                    continue
                last = max(
                    n for n, marker in markers.items() if marker.startswith("question:") and n < number
                )
                only_named = last != own or markers[own].endswith(":together")
                body = str(comment.get("body") or "")
                if marker_of(body):
                    continue
                found = read_answer(body, question, only_named=only_named)
                if (
                    isinstance(found, Answer)
                    and inquiry.kind == "permission"
                    and not is_complete(question, inquiry)
                ):
                    found = "It is too long to be shown here; answer it with gsd answer."
                if isinstance(found, Answer):
                    answers.append(attrs.evolve(found, by=f"@{user}"))
                    break
                if found and not any(marker == f"refused:{number}" for marker in markers.values()):
                    text = f"@{user}, this is not a possible answer to `{question.id}`:\n\n{fenced(found)}"
                    refusal = await self._comment(marked(f"refused:{number}", text))
                    markers[int(refusal["id"])] = f"refused:{number}"
        return answers

    async def _comment(self, body: str) -> Data:
        path = f"{self.issue.path}/issues/{self.issue.number}/comments"
        comment: Data = await self.github.call("POST", path, {"body": body})
        return comment

    def _close(self, question: str, outcome: str) -> None:
        if question in self._posted:
            posted = self._posted.pop(question)
            marker = f"question:{self.run.id}:{question}"
            body = marked(marker, answered_text(posted.question, outcome))
            path = f"{self.issue.path}/issues/comments/{posted.comment}"
            self._start(self._change(path, body))

    async def _change(self, path: str, body: str) -> None:
        for attempt in range(ATTEMPTS):
            with suppress(Transient, Refused):
                await self.github.call("PATCH", path, {"body": body})
                return
            await asyncio.sleep(2**attempt)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="github:change")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
