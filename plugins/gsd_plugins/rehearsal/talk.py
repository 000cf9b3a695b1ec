"""A conversation as the API sees it: what was told, which tools were used, and what came back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from attrs import frozen

from .api import ApiRequest, text_of
from .message import Json


@frozen(kw_only=True)
class Use:
    """A tool that was used: its *input*, and the *result*, unless it was an error or is not there."""

    name: str
    input: Mapping[str, Any]
    result: str | None
    error: str = ""

    @property
    def path(self) -> str:
        """The file that it was about, if any."""
        return str(self.input.get("file_path", ""))


@frozen(slots=False)
class Talk:
    """The messages of a request, read."""

    request: ApiRequest

    @cached_property
    def told(self) -> str:
        """Everything that the model was told by its user, without the results of tools."""
        spoken = [block for block in self._blocks("user") if block["type"] == "text"]
        return "\n".join(str(block["text"]) for block in spoken)

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The tools that were used, in their order."""
        results = {b["tool_use_id"]: b for b in self._blocks("user") if b["type"] == "tool_result"}
        used = [block for block in self._blocks("assistant") if block["type"] == "tool_use"]
        return tuple(_use(block, results.get(block["id"])) for block in used)

    def used(self, name: str) -> tuple[Use, ...]:
        """Return the uses of the tool *name*; of a function of ours the last part of its name will do."""
        return tuple(use for use in self.uses if use.name == name or use.name.endswith(f"__{name}"))

    def about(self, path: str) -> tuple[Use, ...]:
        """Return the uses of tools for the file at *path*."""
        return tuple(use for use in self.uses if use.path == path)

    def tool(self, name: str) -> str:
        """Return the tool's full name; empty if the model may not use it."""
        return next((t for t in self.request.tools if t == name or t.endswith(f"__{name}")), "")

    @property
    def ended(self) -> bool:
        """The last message says that the structured answer was taken."""
        last = self.request.messages[-1] if self.request.messages else {}
        ids = {b["id"] for b in self._blocks("assistant") if b.get("name") == "StructuredOutput"}
        return any(b.get("tool_use_id") in ids and not b.get("is_error") for b in _content(last))

    def _blocks(self, role: str) -> Iterator[Json]:
        for message in self.request.messages:
            if message["role"] == role:
                yield from _content(message)


def _content(message: Json) -> Sequence[Json]:
    content: object = message.get("content", ())
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("Sequence[Json]", content)


def _use(block: Json, result: Json | None) -> Use:
    text = text_of(result.get("content")) if result else None
    failed = bool(result and result.get("is_error"))
    return Use(
        name=block["name"],
        input=block["input"],
        result=None if failed else text,
        error=(text or "it failed") if failed else "",
    )


def as_text(value: Any) -> str:
    """Return *value* as JSON text, for a model that has no tool for its answer."""
    return json.dumps(value, ensure_ascii=False, indent=2)
