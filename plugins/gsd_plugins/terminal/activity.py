"""What an agent does, in words: ``edits src/app.py``, ``runs pytest -q``.

Agents report the names of their tools and the most informative argument (:class:`gsd_core.Activity`). The
names are those of Claude Code, which other agents use as well; an unknown tool is called by its name.
"""

from __future__ import annotations

from collections.abc import Mapping

from gsd_core import Event

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("Bash", "run_command"), "runs"),
    **dict.fromkeys(("Read", "NotebookRead"), "reads"),
    **dict.fromkeys(("Edit", "MultiEdit", "NotebookEdit"), "edits"),
    **dict.fromkeys(("Task", "Agent"), "starts an agent:"),
    "Write": "writes",
    "Grep": "searches for",
    "Glob": "looks for",
    "LS": "lists",
    "WebFetch": "fetches",
    "WebSearch": "searches the web for",
    "Skill": "uses the skill",
    "SlashCommand": "runs the command",
}
_WHOLE: Mapping[str, str] = {
    "TodoWrite": "updates its list of tasks",
    "AskUserQuestion": "asks a question",
    "StructuredOutput": "gives its answer",
    "task_done": "reports a finished task",
    "BashOutput": "reads the output of a command",
    "KillShell": "ends a command",
}
"""Tools whose arguments say nothing in one line."""


def activity_text(event: Event) -> str:
    """Return the text of an ``agent.activity`` event; empty if there is nothing to say about it."""
    kind, text = str(event.data.get("kind") or ""), str(event.data.get("text") or "").strip()
    name = str(event.data.get("tool") or "")
    # "mcp__SERVER__TOOL" is how Claude Code calls the tools of others.
    tool = name.rpartition("__")[2] if name.startswith("mcp__") else name
    match kind:
        case "start":
            return f"starts ({text})" if text else "starts"
        case "retry":
            return f"waits for the model: {text}"
        case "result":
            return f"result of {tool}: {text}" if tool and text and tool not in _WHOLE else text
        case _ if not tool:
            return text if text.strip("…") else "thinks"
        case _ if tool in _WHOLE:
            return _WHOLE[tool]
        # Without an informative argument, agents report all of them as JSON.
        case _ if not text or text.startswith(("{", "[")):
            return f"uses {tool}"
        case _:
            return f"{_WORDS[tool]} {text}" if tool in _WORDS else f"uses {tool}: {text}"
