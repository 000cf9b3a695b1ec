"""One run's connection to Slack: shows the run in its thread, and takes answers from there.

Clicks, dialogs and replies come over the socket. Each is judged alone: by the user's id, which Slack
vouches for, by the question it belongs to, and by what the question accepts.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import attrs
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from gsd_core import (
    Answer,
    Event,
    Inquiry,
    Notice,
    Question,
    RunInfo,
    Transient,
    UserError,
    parse_typed_answer,
    redact,
    refusal,
    safe_text,
)

from .messages import (
    Address,
    Message,
    answered_message,
    chosen_answer,
    clipped,
    describe_answer,
    escaped,
    is_complete,
    outcome_words,
    own_words_view,
    plain,
    progress_line,
    question_message,
    reminder_message,
    typed_text,
)
from .settings import SlackSettings, tokens
from .storage import Storage, Thread
from .thread import FIRST_PAUSE, LONGEST_PAUSE, ROOT, RunThread, library_log

Ack: TypeAlias = Callable[..., Awaitable[object]]

NOTICEABLE = 1.0
"""Seconds before a question is posted: with ``--yes`` most are answered at once."""
NOTIFY_LIMIT = 8.0
CLOSE_LIMIT = 3.0
"""Seconds; the core allows 5 to leave."""
CHECK_EVERY = 1.0
PING = 5.0
"""Seconds between two pings, and for which the library pauses after a failure."""

log = logging.getLogger(__name__)


@attrs.define
class _Asked:
    """A question that was posted: what it is, and how it ended (``outcome``), if it did."""

    question: Question
    inquiry: Inquiry
    waiting: asyncio.Future[Answer] | None = None
    answer: Answer | None = None
    taken: bool = False
    outcome: str = ""


@attrs.define(kw_only=True, eq=False)
class SlackSession:
    """The connection of *run*; *settings* say where it is shown and who may answer."""

    run: RunInfo
    settings: SlackSettings
    client: Any  # an AsyncWebClient, whose methods have incomplete types
    app_token: str = attrs.field(repr=False)
    storage: Storage
    thread: RunThread
    _asked: dict[str, _Asked] = attrs.field(factory=dict[str, _Asked], init=False)
    _early: dict[str, tuple[str, Mapping[str, Any]]] = attrs.field(
        factory=dict[str, tuple[str, Mapping[str, Any]]], init=False
    )

    @classmethod
    @asynccontextmanager
    async def open(cls, run: RunInfo, settings: SlackSettings) -> AsyncGenerator[None]:
        """Connect for as long as *run* lasts; whether Slack can be reached makes no difference.

        Raises ``ConfigError`` if a token is missing.
        """
        bot_token, app_token = tokens()
        client = AsyncWebClient(
            token=bot_token, base_url=settings.api_url, timeout=10, logger=library_log, retry_handlers=[]
        )
        storage = Storage.open(bot_token)
        thread = RunThread(client=client, channel=settings.channel, run=run.id, storage=storage)
        session = cls(
            run=run, settings=settings, client=client, app_token=app_token, storage=storage, thread=thread
        )
        session._show_status("Starting")
        settings.keep(session)
        tasks = [asyncio.create_task(thread.send_forever(), name="slack:send")]
        if settings.users:
            tasks.append(asyncio.create_task(session._keep_connected(), name="slack:socket"))
            tasks.append(asyncio.create_task(session._receive_forwarded(), name="slack:forwarded"))
        try:
            yield
        finally:
            settings.keep(None)
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_LIMIT):
                    await thread.settled()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # What the core says.

    async def ask(self, inquiry: Inquiry) -> Sequence[Answer] | None:
        """Wait for an answer to one of the questions; ``None`` if nobody may answer, or not in time."""
        if not self.settings.users:
            return None
        ids = [question.id for question in inquiry.questions]
        if not all(self.thread.is_shown(question) for question in ids):
            await asyncio.sleep(NOTICEABLE)
        # Answers that came while the core did not wait for them: between two calls, or to several at once.
        if early := [answer for question in ids if (answer := self._take_early(question))]:
            return early
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        for question in inquiry.questions:
            self._asked[question.id] = _Asked(question, inquiry, waiting)
            address = Address(run=self.run.id, question=question.id)
            message = question_message(
                address, question, inquiry, users=self._mentioned, command=self.run.command
            )
            self.thread.show(question.id, message)
        for name in ids:
            if name in self._early and not waiting.done():
                await self._handle(*self._early.pop(name))
        self._show_status("Waiting for an answer")
        limit = self.settings.wait
        try:
            async with asyncio.timeout(limit.total_seconds() if limit else None):
                answer = await waiting
                self._asked[answer.question].taken = True
                return [answer]
        except TimeoutError:
            return None
        finally:
            waiting.cancel()

    def see(self, event: Event) -> None:
        """Show what *event* says in the thread."""
        data = event.data
        match event.name:
            case "question.answered":
                question = str(data["question"])
                asked = self._asked.get(question)
                # The plugin's own name depends on how it was loaded, so the answer itself is compared.
                given = asked.answer if asked else None
                own = given is not None and (given.by, given.words) == (data["by"], data["words"])
                self._end_question(question, describe_answer(data, own=own))
            case "question.withdrawn":
                for question in data["questions"]:
                    self._end_question(str(question), "Withdrawn: no answer is needed any more.")
            case "step.started":
                self._show_status(f"Working on {event.step}")
            case "run.closed":
                outcome = outcome_words(str(data["outcome"]))
                self._show_status(outcome)
                for question, asked in self._asked.items():
                    if not asked.outcome:
                        self._end_question(question, self._paused(question), final=False)
            case _:
                pass
        if line := progress_line(event, self.settings.progress):
            self.thread.add_line(safe_text(line))

    async def notify(self, notice: Notice) -> None:
        """Wait until what *notice* is about is shown; raise ``Transient`` if Slack does not take it."""
        if notice.type == "question" and not self.settings.users:
            self.thread.add_line(f"{notice.title}\n{notice.body}")
        elif notice.reminder:
            # A message of its own, because a change of the question's message would notify nobody.
            self.thread.show(notice.key, reminder_message(self.run.id, notice, users=self._mentioned))
        try:
            async with asyncio.timeout(NOTIFY_LIMIT):
                await self.thread.settled()
        except TimeoutError:
            problem = self.thread.problem or "it takes messages too slowly"
            raise Transient(f"slack: the message was not sent yet: {problem}") from None

    @property
    def _mentioned(self) -> tuple[str, ...]:
        return self.settings.users if self.settings.mention else ()

    def _paused(self, question: str) -> str:
        gsd = self.run.command
        return f"Not answered; the run is not active. Resume it ({gsd} resume), or: {gsd} answer {question} …"

    def _end_question(self, question: str, outcome: str, *, final: bool = True) -> None:
        asked = self._asked.get(question)
        if asked is None:
            return  # never posted
        asked.outcome = outcome if final else ""
        address = Address(run=self.run.id, question=question)
        self.thread.show(question, answered_message(address, asked.question, outcome))

    def _show_status(self, status: str) -> None:
        idea = next((line.strip("# ") for line in self.run.idea.splitlines() if line.strip("# ")), "")
        title = safe_text(f"{self.run.project.name}: {clipped(idea, 150)}".rstrip(": "), multiline=False)
        lines = (title, f"Run {self.run.id}", f"Status: {status}")
        about = {"run": self.run.id}
        text = escaped(f"{title} ({status})")
        message = Message(text=text, blocks=(plain("\n".join(lines)),), kind="gsd_run", about=about)
        self.thread.show(ROOT, message)

    # What people say.

    def _take_early(self, question: str) -> Answer | None:
        asked = self._asked.get(question)
        if asked is None or asked.taken or asked.outcome:
            return None
        asked.taken = asked.answer is not None
        return asked.answer

    def _accept(self, address: Address, answer: Answer, user: Mapping[str, Any]) -> str:
        """Take *answer* by *user*; return why it is refused, in words for that person, or nothing."""
        asked = self._asked.get(address.question)
        if asked is None or address.run != self.run.id:
            return "The run is not asking this any more."
        if asked.outcome:
            return asked.outcome
        if asked.answer is not None:
            return "Somebody was faster. The message will show their answer."
        if asked.inquiry.kind == "permission" and not is_complete(asked.question):
            return "This is too long to be shown here completely: answer it with gsd answer."
        if why := refusal(asked.question, answer):
            return f"This is not a possible answer: {why}."
        answer = attrs.evolve(answer, by=_name(user))
        asked.answer = answer
        if asked.waiting is not None and not asked.waiting.done():
            asked.waiting.set_result(answer)
        return ""

    def _may_answer(self, user: Mapping[str, Any]) -> bool:
        return str(user.get("id", "")) in self.settings.users

    async def _handle(self, kind: str, body: Mapping[str, Any]) -> str:
        """Handle a click, a dialog or a reply; return why it is refused, in words for the person."""
        match kind:
            case "action":
                return await self._handle_action(body)
            case "view":
                user, view = body["user"], body["view"]
                address = Address.parse(str(view["private_metadata"]))
                if address is None or not self._may_answer(user):
                    return "Only the people in slack.users can answer."
                if address.question not in self._asked:
                    return self._keep_early(address.question, kind, body)
                text = str(view["state"]["values"]["gsd_text"]["gsd_text"]["value"] or "").strip()
                answer = Answer(question=address.question, text=text)
                return self._accept(address, answer, user)
            case _:
                return self._handle_reply(body["event"])

    async def _handle_action(self, body: Mapping[str, Any]) -> str:
        action = body["actions"][0]
        address = Address.parse(str(action.get("block_id", "")))
        if address is None or action.get("action_id") == "gsd_menu":
            return ""
        if not self._may_answer(body["user"]):
            return "Only the people in slack.users can answer."
        asked = self._asked.get(address.question)
        if asked is None:
            return self._keep_early(address.question, "action", body)
        if asked.outcome:
            return asked.outcome
        if action.get("action_id") == "gsd_own_words":
            await self.client.views_open(
                trigger_id=body["trigger_id"], view=own_words_view(address, asked.question)
            )
            return ""
        answer = chosen_answer(asked.question, action, body.get("state") or {})
        return self._accept(address, answer, body["user"]) if answer else "Choose an option first."

    def _keep_early(self, question: str, kind: str, body: Mapping[str, Any]) -> str:
        """Keep a click on a question of an earlier process, which this one has not asked again yet."""
        actions: Sequence[Mapping[str, Any]] = body.get("actions") or [{}]
        if question not in self._early and actions[0].get("action_id") != "gsd_own_words":
            self._early[question] = (kind, body)
        return "The run is not asking this at the moment. Your answer counts if it asks again."

    def _handle_reply(self, event: Mapping[str, Any]) -> str:
        """Take a reply in the thread as an answer.

        People also talk in a thread. So a reply counts if it begins with the question's id, names an option,
        or if the only open question has no options.
        """
        user = {"id": event.get("user", "")}
        open_ones = [asked for asked in self._asked.values() if not asked.outcome and asked.answer is None]
        text = typed_text(str(event.get("text", "")))
        named = re.match(r"(q-[0-9a-f]+)\b[:,]?\s*", text)
        if named:
            open_ones = [asked for asked in open_ones if asked.question.id == named[1]]
            text = text[named.end() :]
        if len(open_ones) != 1:
            return "Several questions are open: begin with the question's id." if len(open_ones) > 1 else ""
        [asked] = open_ones
        if not self._may_answer(user):
            return "Only the people in slack.users can answer."
        try:
            answer = parse_typed_answer(asked.question, text)
        except UserError as error:
            return f"This is not a possible answer: {error}. {error.hint}".strip()
        if answer.text and asked.question.options and not named:
            hint = f"begin with {asked.question.id}, or use the button"
            return f"This is not one of the options. To answer in your own words, {hint}."
        return self._accept(Address(run=self.run.id, question=asked.question.id), answer, user)

    async def _tell(self, user: str, text: str) -> None:
        """Tell one person why their answer does not count; nobody else sees it."""
        try:
            await self.client.chat_postEphemeral(
                channel=self.thread.channel, user=user, thread_ts=self.thread.ts, text=escaped(redact(text))
            )
        except Exception as exc:
            log.info("slack: a reply could not be sent: %s", type(exc).__name__)

    # The socket.

    async def _keep_connected(self) -> None:
        """Keep a connection open, and make a new one whenever it is lost.

        The library reconnects by itself, but may do so with an address that Slack accepts only once. So a
        connection that stays lost is replaced.
        """
        pause = FIRST_PAUSE
        while True:
            handler = AsyncSocketModeHandler(
                self._make_app(), self.app_token, logger=library_log, ping_interval=PING
            )
            client: Any = handler.client  # large parts of it have no types
            try:
                async with asyncio.timeout(30):
                    await client.connect()
                lost = 0
                while lost < 2:
                    await asyncio.sleep(CHECK_EVERY)
                    connected = await client.is_connected()
                    lost, pause = (0, FIRST_PAUSE) if connected else (lost + 1, pause)
            except Exception as exc:
                log.debug("slack: no connection: %s", type(exc).__name__)
            finally:
                await _close(client)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _make_app(self) -> AsyncApp:
        app = AsyncApp(client=self.client, logger=library_log, request_verification_enabled=False)

        async def on_action(ack: Ack, body: dict[str, Any]) -> None:
            actions: Sequence[Mapping[str, Any]] = body.get("actions") or [{}]
            address = Address.parse(str(actions[0].get("block_id", "")))
            if address and address.run != self.run.id:
                # Without an acknowledgment, Slack shows the person that the click had no effect.
                if await asyncio.to_thread(self.storage.forward, address.run, "action", body):
                    await ack()
                return
            await ack()
            if why := await self._handle("action", body):
                await self._tell(str(body["user"]["id"]), why)

        async def on_view(ack: Ack, body: dict[str, Any]) -> None:
            address = Address.parse(str(body["view"].get("private_metadata", "")))
            if address and address.run != self.run.id:
                if await asyncio.to_thread(self.storage.forward, address.run, "view", body):
                    await ack()
                return
            if why := await self._handle("view", body):
                await ack(response_action="errors", errors={"gsd_text": why})
            else:
                await ack()

        async def on_message(body: dict[str, Any]) -> None:
            event: Mapping[str, Any] = body["event"]
            thread = str(event.get("thread_ts") or "")
            if event.get("bot_id") or event.get("subtype") or not thread:
                return
            found = Thread(channel=str(event.get("channel")), ts=thread)
            if found == Thread(channel=self.thread.channel, ts=self.thread.ts):
                if why := await self._handle("message", body):
                    await self._tell(str(event.get("user")), why)
            elif run := await asyncio.to_thread(self.storage.run_of, found):
                await asyncio.to_thread(self.storage.forward, run, "message", body)

        register: Any = app  # the types of its decorators are incomplete
        register.action(re.compile("^gsd_"))(on_action)
        register.view("gsd_own_words")(on_view)
        register.event("message")(on_message)
        return app

    async def _receive_forwarded(self) -> None:
        """Handle what the processes of other runs received for this one."""
        with suppress(OSError):
            await asyncio.to_thread(self.storage.listen, self.run.id)
        try:
            while True:
                for kind, body in await asyncio.to_thread(lambda: list(self.storage.received(self.run.id))):
                    user: Mapping[str, Any] = body.get("user") or {"id": body.get("event", {}).get("user")}
                    try:
                        why = await self._handle(kind, body)
                    except Exception as exc:
                        why = "This did not work; please try again."
                        log.info("slack: a forwarded answer failed: %s", type(exc).__name__)
                    if why:
                        await self._tell(str(user.get("id")), why)
                await asyncio.sleep(CHECK_EVERY)
        finally:
            self.storage.stop_listening(self.run.id)


async def _close(client: Any) -> None:
    """Close a connection and wait for its tasks, at most as long as the run's end can wait for it."""
    tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_LIMIT / 2):
            await client.close()
    started: list[asyncio.Future[Any]] = [task for task in tasks if task is not None]
    for task in started:
        task.cancel()
    with suppress(Exception):
        await client.aiohttp_client_session.close()
    await asyncio.gather(*started, return_exceptions=True)


def _name(user: Mapping[str, Any]) -> str:
    """Return a person as ``name (U0123)``: a name can be chosen freely, the id cannot."""
    name = safe_text(str(user.get("username") or user.get("name") or ""), multiline=False)
    return f"{clipped(name, 80)} ({user['id']})" if name else str(user["id"])
