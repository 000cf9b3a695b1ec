"""The SDK's messages, read as activity, token usage and finally a result or an error."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from gsd_core import Activity, AgentHost, AgentResult, Ended, Usage, safe_text

from .failures import api_error, result_error
from .usage import UsageCounter

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, Message, ResultMessage, UserMessage

_ENDED: Mapping[str, Ended] = {"error_max_turns": "turns", "error_max_budget_usd": "dollars"}
_NO_VALUE = "error_max_structured_output_retries"
_SUMMARY_ARGUMENTS = (
    *("command", "file_path", "notebook_path", "pattern", "query", "url", "path", "skill", "description"),
)
_MAX_TEXT = 300


@attrs.define(kw_only=True)
class MessageReader:
    """Reads the messages of one call in order; *result* is set by the last one.

    *tree* is the folder that the agent works in: paths are reported relative to it.
    *started* is true once the CLI has opened the conversation, *failed* once the result is an error
    and no further message is worth waiting for. While the model writes a long text, an activity is
    reported every *heartbeat* seconds, so that the call does not count as inactive.
    """

    host: AgentHost
    tree: Path
    resumed: bool
    time: Callable[[], float]
    heartbeat: float = 20.0
    started: bool = False
    failed: bool = False
    result: AgentResult | None = None
    _usage: UsageCounter = attrs.field(factory=UsageCounter)
    _pending: Activity | None = None
    _tool_names: dict[str, str] = attrs.field(factory=dict[str, str])
    _model: str = ""
    _message_error: str = ""
    _limit_until: datetime | None = None
    _retry_after: timedelta | None = None
    _last_report: float = 0.0

    async def read(self, message: Message) -> None:
        """Read one message; raises the error that the call failed with."""
        import claude_agent_sdk as sdk

        match message:
            case sdk.StreamEvent():
                if usage := self._usage.add_event(message):
                    await self._report_pending(usage)
                elif self.time() - self._last_report >= self.heartbeat:
                    await self._report(Activity(kind="text", text="…"))
            case sdk.AssistantMessage():
                await self._assistant(message)
            case sdk.UserMessage():
                await self._tool_results(message)
            case sdk.SystemMessage(subtype="init", data=data):
                # May arrive more than once in a call.
                self._model = str(data.get("model", ""))
                if not self.started:
                    await self._report(Activity(kind="start", text=self._model))
                self.started = True
            case sdk.SystemMessage(subtype="api_retry", data=data):
                await self._api_retry(data)
            case sdk.RateLimitEvent(rate_limit_info=info):
                until = info.resets_at if info.status == "rejected" else None
                self._limit_until = datetime.fromtimestamp(until, UTC) if until else None
            case sdk.ResultMessage():
                await self._finish(message)
            case _:
                pass

    async def _assistant(self, message: AssistantMessage) -> None:
        import claude_agent_sdk as sdk

        self._message_error = message.error or ""
        if not message.error:
            self._model = message.model
        usage = self._usage.add_message(message)
        for block in message.content:
            if isinstance(block, sdk.TextBlock):
                await self._report_later(Activity(kind="text", text=_clip(block.text)))
            elif isinstance(block, sdk.ToolUseBlock):
                self._tool_names[block.id] = block.name
                text = self._summary(block.input)
                await self._report_later(Activity(kind="tool", text=text, tool=block.name))
        if usage:
            await self._report_pending(usage)

    async def _tool_results(self, message: UserMessage) -> None:
        import claude_agent_sdk as sdk

        await self._report_pending()
        for block in message.content if isinstance(message.content, list) else ():
            if isinstance(block, sdk.ToolResultBlock):
                text = ("failed: " if block.is_error else "") + _text(block.content)
                tool = self._tool_names.pop(block.tool_use_id, "")
                await self._report(Activity(kind="result", text=_clip(text), tool=tool))

    async def _api_retry(self, data: Mapping[str, Any]) -> None:
        status, error = data.get("error_status"), str(data.get("error") or "no connection")
        if status in (401, 403):
            # The CLI retries bad credentials like any other error: measured, three minutes with the
            # default of ten retries. Raising ends the call immediately.
            raise api_error(status, error)
        seconds = (data.get("retry_delay_ms") or 0) / 1000
        # The CLI follows the header retry-after up to a minute, but does not report the header itself.
        self._retry_after = timedelta(seconds=seconds)
        retry = f"{status or ''} {error}: retry {data.get('attempt')} of {data.get('max_retries')}"
        await self._report(Activity(kind="retry", text=f"{retry.strip()} in {seconds:.1f} s"))

    async def _finish(self, message: ResultMessage) -> None:
        await self._report_pending()
        ended: Ended = _ENDED.get(message.subtype, "done")
        # A failed request also has the subtype "success": only is_error shows it. Limits and a missing
        # value are results; the core decides what to do about them.
        if message.is_error and ended == "done" and message.subtype != _NO_VALUE:
            raise result_error(message, self._message_error, self._limit_until, self._retry_after)
        self.failed = message.is_error
        usage = self._usage.total
        if not self.resumed and message.total_cost_usd is not None:
            # After a resume the reported cost includes earlier calls of the conversation.
            cost = Decimal(str(message.total_cost_usd))
            usage = attrs.evolve(usage, dollars=cost, basis="reported")
        self.result = AgentResult(
            text=message.result or "; ".join(message.errors or []),
            value=message.structured_output,
            conversation=message.session_id,
            model=self._model,
            usage=usage,
            ended=ended,
        )

    def _summary(self, arguments: Mapping[str, Any]) -> str:
        """Return the most informative argument of a tool call, else all of them as JSON."""
        for name in _SUMMARY_ARGUMENTS:
            if isinstance(text := arguments.get(name), str):
                is_path = name.endswith("path")
                return _clip(text.removeprefix(f"{self.tree}{os.sep}") if is_path else text)
        return _clip(json.dumps(arguments, ensure_ascii=False))

    async def _report_later(self, activity: Activity) -> None:
        """Report *activity* with the usage of its turn, which is known only at the turn's end."""
        await self._report_pending()
        self._pending = activity

    async def _report_pending(self, usage: Usage | None = None) -> None:
        pending, self._pending = self._pending, None
        if pending or usage:
            await self._report(pending or Activity(kind="text"), usage)

    async def _report(self, activity: Activity, usage: Usage | None = None) -> None:
        self._last_report = self.time()
        await self.host.progress(activity, usage)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content or ())


def _clip(text: str) -> str:
    # Before it is cut: the core would not recognize half a secret.
    text = safe_text(text.strip())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
