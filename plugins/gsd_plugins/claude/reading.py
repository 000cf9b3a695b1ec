"""What the SDK's messages mean: activity, the use of tokens, and in the end a result or an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field

from gsd_core import Activity, AgentHost, AgentResult, Ended, Usage

from .failures import of_result, of_retry, reset_time
from .turns import Turns

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, UserMessage

_ENDED: Mapping[str, Ended] = {
    "error_max_turns": "turns",
    "error_max_budget_usd": "dollars",
}
_NO_VALUE = "error_max_structured_output_retries"
_TELLING = ("command", "file_path", "path", "pattern", "query", "url", "description")
_CLIP = 300


@define(kw_only=True)
class Reading:
    """Takes the messages of one call in their order; *result* is there once *ended* is true.

    While the model writes something long, a sign of life is given every *beat* seconds.
    """

    host: AgentHost
    resumed: bool
    time: Callable[[], float]
    beat: float = 20.0
    begun: bool = False
    stop: bool = False
    result: AgentResult | None = None
    _turns: Turns = field(factory=Turns)
    _held: Activity | None = None
    _tools: dict[str, str] = field(factory=dict[str, str])
    _model: str = ""
    _error_class: str = ""
    _until: datetime | None = None
    _last_sign: float = 0.0

    async def take(self, message: Message) -> None:
        """Take one message; raises what the call failed with."""
        import claude_agent_sdk as sdk

        match message:
            case sdk.StreamEvent():
                await self._event(message)
            case sdk.AssistantMessage():
                await self._said(message)
            case sdk.UserMessage():
                await self._results(message)
            case sdk.SystemMessage(subtype="init", data=data):
                await self._start(data)
            case sdk.SystemMessage(subtype="api_retry", data=data):
                await self._retry(data)
            case sdk.RateLimitEvent(rate_limit_info=info):
                self._until = reset_time(info.resets_at) if info.status == "rejected" else None
            case sdk.ResultMessage():
                await self._end(message)
            case _:
                pass

    async def _start(self, data: Mapping[str, Any]) -> None:
        self._model = str(data.get("model", ""))
        if not self.begun:
            await self._tell(Activity(kind="start", text=self._model))
        self.begun = True

    async def _event(self, message: StreamEvent) -> None:
        if usage := self._turns.of_event(message):
            await self._release(usage)
        elif self.time() - self._last_sign >= self.beat:
            await self._tell(Activity(kind="text", text="…"))

    async def _said(self, message: AssistantMessage) -> None:
        self._error_class = message.error or ""
        if not message.error:
            self._model = message.model
        usage = self._turns.of_message(message)
        for activity in self._seen(message):
            await self._release()
            self._held = activity
        if usage:
            await self._release(usage)

    def _seen(self, message: AssistantMessage) -> Iterator[Activity]:
        import claude_agent_sdk as sdk

        for block in message.content:
            match block:
                case sdk.TextBlock(text=text):
                    yield Activity(kind="text", text=_clip(text))
                case sdk.ToolUseBlock(id=use, name=name, input=arguments):
                    self._tools[use] = name
                    yield Activity(kind="tool", text=_summary(arguments), tool=name)
                case _:
                    pass

    async def _release(self, usage: Usage | None = None) -> None:
        """Tell what is held back until the use of its turn is known."""
        held, self._held = self._held, None
        if held or usage:
            await self._tell(held or Activity(kind="text"), usage)

    async def _tell(self, activity: Activity, usage: Usage | None = None) -> None:
        self._last_sign = self.time()
        await self.host.progress(activity, usage)

    async def _results(self, message: UserMessage) -> None:
        import claude_agent_sdk as sdk

        await self._release()
        blocks = message.content if isinstance(message.content, list) else ()
        for block in blocks:
            if isinstance(block, sdk.ToolResultBlock):
                text = ("failed: " if block.is_error else "") + _text(block.content)
                tool = self._tools.pop(block.tool_use_id, "")
                await self._tell(Activity(kind="result", text=_clip(text), tool=tool))

    async def _retry(self, data: Mapping[str, Any]) -> None:
        status, error = data.get("error_status"), str(data.get("error") or "no connection")
        if failure := of_retry(status, error):
            raise failure
        seconds = (data.get("retry_delay_ms") or 0) / 1000
        said = f"{status or ''} {error}: {data.get('attempt')} of {data.get('max_retries')} retries"
        await self._tell(Activity(kind="retry", text=f"{said.strip()} in {seconds:.1f} s"))

    async def _end(self, message: ResultMessage) -> None:
        await self._release()
        ended: Ended = _ENDED.get(message.subtype, "done")
        if message.is_error and ended == "done" and message.subtype != _NO_VALUE:
            raise of_result(message, self._error_class, self._until)
        self.stop = message.is_error
        self.result = AgentResult(
            text=message.result or "; ".join(message.errors or []),
            value=message.structured_output,
            conversation=message.session_id,
            model=self._model,
            usage=self._usage(message),
            ended=ended,
        )

    def _usage(self, message: ResultMessage) -> Usage:
        """The sum of the turns; its dollars as reported, unless they hold those of earlier calls."""
        if self.resumed or message.total_cost_usd is None:
            return self._turns.total
        return evolve(self._turns.total, dollars=Decimal(str(message.total_cost_usd)), basis="reported")


def _summary(arguments: Mapping[str, Any]) -> str:
    told = next((arguments[name] for name in _TELLING if isinstance(arguments.get(name), str)), None)
    return _clip(told if told is not None else json.dumps(arguments, ensure_ascii=False))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content or ())


def _clip(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _CLIP else text[: _CLIP - 1] + "…"
