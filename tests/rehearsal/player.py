"""Simulates Claude Code: executes the tool calls of the scripted model and keeps the conversation."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import define, field

from gsd_plugins.rehearsal.api import ApiRequest, Block, Blocks, Json, Reply, ToolUseBlock, as_json
from tests.rehearsal.task_host import TaskHost

TOOLS = ("Read", "Write", "Edit", "Bash", "AskUserQuestion", "mcp__gsd__task_done", "StructuredOutput")


@define
class Player:
    """One conversation about *step*; *seen* are the files that it has read or written."""

    script: Callable[[ApiRequest], Reply]
    tree: Path
    step: str
    role: str
    prompt: str = ""
    task_host: TaskHost | None = None
    tools: tuple[str, ...] = TOOLS
    messages: list[Json] = field(factory=list[Json])
    seen: set[str] = field(factory=set[str])
    failures: list[int] = field(factory=list[int])
    value: Any = None

    def request(self) -> ApiRequest:
        said = {"step": self.step, "role": self.role, "tree": str(self.tree)}
        headers = {f"x-gsd-{name}": quote(value) for name, value in said.items()}
        tools = [{"name": name} for name in self.tools]
        opening: Json = {"role": "user", "content": self.prompt}
        return ApiRequest(headers=headers, body={"messages": [opening, *self.messages], "tools": tools})

    def play(self, most: int = 20) -> list[Block]:
        """Continue until the model uses no more tools; return everything it said."""
        said: list[Block] = []
        for _ in range(most):
            blocks = self.turn()
            said += blocks
            if not any(isinstance(block, ToolUseBlock) for block in blocks):
                return said
        raise AssertionError(f"still using tools after {most} turns: {said[-3:]}")

    def turn(self) -> list[Block]:
        reply = self.script(self.request())
        while not isinstance(reply, Blocks):
            self.failures.append(getattr(reply, "status", 0))
            reply = self.script(self.request())
        self.messages.append({"role": "assistant", "content": [as_json(block) for block in reply.content]})
        results = [self._result(block) for block in reply.content if isinstance(block, ToolUseBlock)]
        if results:
            self.messages.append({"role": "user", "content": results})
        return list(reply.content)

    def _result(self, block: ToolUseBlock) -> Json:
        try:
            text, failed = self._do(block.name, dict(block.input)), False
        except (OSError, ValueError) as error:
            text, failed = str(error), True
        content = [{"type": "text", "text": text}]
        return {"type": "tool_result", "tool_use_id": block.id, "content": content, "is_error": failed}

    def _do(self, name: str, given: dict[str, Any]) -> str:
        match name:
            case "Read":
                self.seen.add(given["file_path"])
                return Path(given["file_path"]).read_text()
            case "Write":
                return self._write(given["file_path"], given["content"])
            case "Edit":
                text = Path(given["file_path"]).read_text()
                if text.count(given["old_string"]) != 1:
                    raise ValueError("String to replace not found, or more than once")
                return self._write(given["file_path"], text.replace(given["old_string"], given["new_string"]))
            case "Bash":
                ran = subprocess.run(
                    given["command"], shell=True, cwd=self.tree, capture_output=True, check=False
                )
                return f"exit {ran.returncode}"
            case "AskUserQuestion":
                text = given["questions"][0]["question"]
                assert self.task_host is not None
                return (
                    f'User has answered your questions: "{text}"="{self.task_host.answer.words}". Continue.'
                )
            case "mcp__gsd__task_done":
                assert self.task_host is not None
                return self.task_host.function("task_done", given)
            case "StructuredOutput":
                self.value = given
                return "Structured output provided successfully"
            case _:
                raise AssertionError(f"no such tool: {name}")

    def _write(self, path: str, text: str) -> str:
        if Path(path).exists() and path not in self.seen:
            raise ValueError("File has not been read yet. Read it first before writing to it.")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
        self.seen.add(path)
        return "done"
