"""Events as lines of text, for the scroll-back of a terminal and for log files."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, TextIO, TypeAlias

import attrs

from gsd_core import Event, Option, counted, safe_text

from .activity import activity_text

Data: TypeAlias = Mapping[str, Any]
Segments: TypeAlias = "list[tuple[str, str]]"
"""One line as texts, each with its style."""

MAX_GAPS = 5
MAX_FILES = 5


class Level(IntEnum):
    """How detailed a line is; an output prints lines up to its own level.

    A line of level ``LOG`` repeats what a live view shows.
    """

    QUIET = 0
    NORMAL = 1
    LOG = 2
    VERBOSE = 3
    DEBUG = 4


def level_of(verbosity: int) -> Level:
    """Return the level for a number of ``-v``; negative for ``-q``."""
    return (Level.LOG, Level.VERBOSE, Level.DEBUG)[min(verbosity, 2)] if verbosity >= 0 else Level.QUIET


@attrs.frozen
class Line:
    """A line to print: the name of its glyph (empty: indented instead), its text, level and style."""

    glyph: str
    text: str
    level: Level = Level.NORMAL
    style: str = ""


def lines_of(event: Event, command: str = "gsd") -> list[Line]:
    """Return the lines for *event*; many events have none. *command* is how to call gsd in hints."""
    data, step = event.data, event.step
    commit = str(data.get("commit") or "")[:9]
    phase, name, reason = (str(data.get(key) or "") for key in ("number", "name", "reason"))
    match event.name:
        case "run.opened":
            verb = "resumed" if data.get("resumed") else "started"
            agent = data.get("agent") or ()
            agents = agent if isinstance(agent, str) else ", ".join(map(str, agent))
            sandbox: Mapping[str, Any] = data.get("sandbox") or {}
            used = f"agent: {agents}, sandbox: {sandbox.get('name') or 'none'}"
            about = f"gsd {data.get('version') or ''}, {used}"
            return [Line("run", f"run {event.run} {verb} ({about})", style="dim")]
        case "phase.started":
            return [Line("phase", f"phase {phase}: {name}", style="bold")]
        case "phase.completed":
            return [Line("completed", f"phase {phase} complete: {name}", style="bold green")]
        case "phase.skipped":
            return [Line("skipped", f"phase {phase} skipped: {reason}", Level.QUIET, "yellow")]
        case "step.started":
            attempt = int(data.get("attempt") or 1)
            return [Line("step", step + (f" (attempt {attempt})" if attempt > 1 else ""), Level.LOG)]
        case "step.completed":
            if data.get("unchanged"):
                return [Line("completed", f"{step}  no change: its files are as they were", style="green")]
            return [Line("completed", f"{step}  {commit} {data.get('subject') or ''}", style="green")]
        case "step.failed":
            return _error_lines(f"{step} failed", data["error"], Level.QUIET, "red")
        case "step.waiting":
            until = datetime.fromisoformat(str(data["until"]))
            # The local time: it is read by the person at this terminal.
            when = until.astimezone().strftime("%H:%M:%S")
            seconds = max(0, round((until - event.at).total_seconds()))
            text = f"{step} waits until {when} (for {timedelta(seconds=seconds)}): {data.get('why') or ''}"
            return [Line("waiting", text, style="yellow")]
        case "step.queued":
            text = "; ".join(filter(None, [f"{step} waits for {data['why']}", data["hint"]]))
            return [Line("waiting", text, style="yellow")]
        case "step.skipped":
            return [Line("skipped", f"{step} skipped: {reason}", style="yellow")]
        case "attempt.failed":
            number = f"{data['attempt']} " if data.get("attempt") else ""
            return _error_lines(f"{step} attempt {number}failed", data["error"], Level.NORMAL, "yellow")
        case "task.committed":
            what = name or " ".join(data.get("paths") or ())
            return [Line("completed", f"task {data.get('task')}  {commit} {what}")]
        case "files.kept" if data.get("listed"):
            text = f"uncommitted files that {step} lists are kept under {data['ref']}"
            return [Line("run", f"{text}: {_listed(data['paths'])}", Level.QUIET, "yellow")]
        case "files.left":
            kept = f"; kept under {data['kept']}" if data.get("kept") else ""
            text = f"left uncommitted after {step}: {_listed(data['paths'])}{kept}"
            return [Line("failed", text, Level.QUIET, "yellow")]
        case "merge.failed":
            changed = f"both changed {_listed(data['paths'])}"
            why = f"`{data['check']}` fails with both" if data["check"] else changed
            text = f"{step} conflicts with what others did meanwhile: {why}"
            return [Line("failed", text, Level.QUIET, "yellow")]
        case "question.asked":
            questions: Iterable[Data] = data["inquiry"]["questions"]
            return [line for question in questions for line in _question_lines(question, step, command)]
        case "question.answered":
            # Whoever answers through the inbox of the journal says so in "by", if it matters; a policy, which
            # option of the command line it is.
            named = data.get("via") == "inbox" or (data.get("how") == "policy" and data.get("by"))
            via = "" if named else data.get("via")
            by = ", ".join(str(one) for one in (data.get("by"), via) if one) or data.get("how")
            return [Line("answer", f"{data['question']}: {data.get('words') or ''} ({by})")]
        case "gap.found":
            return _gap_lines(data)
        case "agent.activity":
            return _activity_lines(event)
        case "plugin.failed":
            text = f"plugin {data['plugin']} failed in {data['hook']}: {data['error']}"
            return [Line("failed", text, style="yellow")]
        case "notice.failed":
            text = f"a notification did not reach {data['service']}: {data['reason']}"
            return [Line("failed", text, style="yellow")]
        case "recovered":
            return [_recovery_line(data)]
        case _:
            return []


def _activity_lines(event: Event) -> list[Line]:
    """Return what the agent does in words; what it says, and what its tools return, only in detail."""
    text = activity_text(event)
    if not text:
        return []
    kind, tool = event.data.get("kind"), str(event.data.get("tool") or "")
    if kind in ("start", "retry") or (tool and kind != "result"):
        lines = [Line("", text, Level.VERBOSE, "dim")]
        # The words leave out arguments that are data.
        if tool and (arguments := str(event.data.get("text") or "")):
            lines.append(Line("", f"  {tool}: {arguments}", Level.DEBUG, "dim"))
        return lines
    return [Line("", text, Level.DEBUG, "dim")]


def _listed(paths: Iterable[str]) -> str:
    names = list(paths)
    more = [f"and {len(names) - MAX_FILES} more"] if len(names) > MAX_FILES else []
    return ", ".join([*names[:MAX_FILES], *more])


def _error_lines(what: str, error: Data, level: Level, style: str) -> list[Line]:
    lines = [Line("failed", f"{what}: {error.get('message') or error.get('kind')}", level, style)]
    if error.get("hint"):
        lines.append(Line("", f"hint: {error['hint']}", level))
    return lines


def _question_lines(question: Data, step: str, command: str) -> list[Line]:
    text = str(question["text"])
    # Several steps may be in progress, and each of them may ask.
    if step not in text:
        text = f"{step}: {text}"
    lines = [Line("question", text, Level.QUIET, "bold")]
    options: Iterable[Data] = question.get("options") or ()
    for number, data in enumerate(options, 1):
        option = Option(label=str(data["label"]), recommended=bool(data.get("recommended")))
        lines.append(Line("", f"{number}. {option.label}{option.recommended_note}", Level.QUIET))
    return [*lines, Line("", f"answer with: {command} answer {question['id']} …", Level.QUIET)]


def _gap_lines(data: Data) -> list[Line]:
    gaps: list[Data] = list(data["gaps"])
    count = counted(len(gaps), "gap")
    lines = [Line("failed", f"{count} in phase {data.get('phase')}", style="yellow")]
    lines += [Line("", f"- {gap.get('truth')}: {gap.get('reason')}") for gap in gaps[:MAX_GAPS]]
    if len(gaps) > MAX_GAPS:
        lines.append(Line("", f"- and {len(gaps) - MAX_GAPS} more"))
    return lines


def _recovery_line(data: Data) -> Line:
    processes, locks = int(data.get("processes") or 0), int(data.get("locks") or 0)
    steps: list[str] = list(data.get("lost") or ())
    done = [
        f"ended {counted(processes, 'process', 'processes')}" if processes else "",
        f"removed {counted(locks, 'git lock')}" if locks else "",
        f"restarting {', '.join(steps)}" if steps else "",
    ]
    details = "; ".join(part for part in done if part) or "no step was interrupted"
    return Line("run", f"recovered from a crash: {details}", style="yellow")


_GLYPHS = {
    "run": ("•", "*"),
    "phase": ("●", "#"),
    "step": ("▸", ">"),
    "completed": ("✓", "+"),
    "in_progress": ("▸", ">"),
    "pending": ("·", "."),
    "skipped": ("-", "-"),
    "waiting": ("…", "~"),
    "failed": ("✗", "x"),
    "question": ("?", "?"),
    "answer": ("→", "="),
    "bar": ("│", "|"),
    "pointer": ("❯", "*"),
    "checked": ("◉", "[x]"),
    "unchecked": ("○", "[ ]"),
}
UNICODE: Mapping[str, str] = {name: glyph for name, (glyph, _) in _GLYPHS.items()}
ASCII: Mapping[str, str] = {name: glyph for name, (_, glyph) in _GLYPHS.items()}


def glyphs_for(stream: TextIO) -> Mapping[str, str]:
    """Return the glyphs that *stream* can encode."""
    try:
        "".join(UNICODE.values()).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def visible(text: str) -> str:
    """Return *text* redacted, with characters that control the terminal or are invisible escaped (``\\x1b``).

    The core does this with events before it publishes them; this covers texts from other callers.
    """
    if (safe := safe_text(text)) == text:
        return text

    def is_control(char: str) -> bool:
        return char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs")

    if "[redacted]" in safe and "[redacted]" not in text:
        return safe  # what could be escaped may be within the secret
    return "".join(c.encode("unicode_escape").decode("ascii") if is_control(c) else c for c in text)
