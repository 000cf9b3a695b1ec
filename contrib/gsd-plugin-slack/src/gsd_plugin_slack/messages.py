"""The content of messages: questions with their controls, how they were answered, and progress.

Everything from a run is shown as plain text, which Slack does not search for mentions, links or formatting.
Sources of the limits: Slack's reference of Block Kit (a text of 3000 characters, a label of 75, a button's
action in a block of at most 25, a menu of 100 options, a message of 50 blocks).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import attrs

from gsd_core import Answer, Event, Inquiry, Notice, Question, safe_text

Block: TypeAlias = dict[str, Any]

MAX_SECTION = 2900
MAX_LABEL = 75
MAX_BUTTONS = 5
MAX_MENU = 100
# Slack does not document how long a whole message may be, and refuses about 13,000 characters.
MAX_QUESTION = 8000
MAX_OPTIONS = 4000
MAX_INPUT = 3000

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINK = re.compile(r"<((?:https?|mailto):[^|>]+)(?:\|([^>]*))?>")


@attrs.frozen(kw_only=True)
class Message:
    """A message as Slack's API takes it; *text* is what notifications show."""

    text: str
    blocks: tuple[Block, ...] = ()
    kind: str
    about: Mapping[str, str]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for ``chat.postMessage`` and ``chat.update``."""
        metadata = {"event_type": self.kind, "event_payload": dict(self.about)}
        return {"text": self.text, "blocks": list(self.blocks), "metadata": metadata}


@attrs.frozen(kw_only=True)
class Address:
    """What a control belongs to: it is part of each control's id, and comes back with a click."""

    run: str
    question: str

    def __str__(self) -> str:
        """Return the address as the id of a block."""
        return f"gsd|{self.run}|{self.question}"

    @classmethod
    def parse(cls, text: str) -> Address | None:
        """Return the address in a block's id; ``None`` if the block is not one of ours."""
        parts = text.split("|")
        return cls(run=parts[1], question=parts[2]) if len(parts) >= 3 and parts[0] == "gsd" else None


def question_message(
    address: Address, question: Question, inquiry: Inquiry, *, users: Sequence[str], command: str
) -> Message:
    """Return an open question with its controls; *users* are mentioned."""
    # Nobody may permit what they cannot read to its end.
    answerable = is_complete(question) or inquiry.kind != "permission"
    blocks = _for_users("A question", users)
    if inquiry.reason:
        blocks.append(_note(inquiry.reason))
    blocks += _question_text(question)
    if answerable:
        blocks += _controls(address, question)
    how = f"{command} answer {question.id} {'CHOICE' if question.options else 'TEXT'}"
    hints = {
        "": "This is too long for Slack. Read and answer it with",
        "menu": "Or reply in this thread, or run",
        "text": "Or reply in this thread with your answer, or run",
    }
    hint = hints["" if not answerable else "menu" if question.options else "text"]
    blocks.append(_note(f"{hint}: {how}"))
    return _message(_mentions(users) + escaped(clipped(question.text, 300)), blocks, address)


def reminder_message(run: str, notice: Notice, *, users: Sequence[str]) -> Message:
    """Return a reminder of a question that is still open; *users* are mentioned, which notifies them."""
    blocks = [*_for_users("A reminder", users), plain(clipped(f"{notice.title}\n{notice.body}", MAX_SECTION))]
    if notice.answer_with:
        blocks.append(_note(f"Answer it above, or run: {notice.answer_with}"))
    text = _mentions(users) + escaped(clipped(notice.title, 300))
    about = {"run": run, "question": notice.key}
    return Message(text=text, blocks=tuple(blocks), kind="gsd_reminder", about=about)


def is_complete(question: Question) -> bool:
    """Whether a message shows all of *question*: its text and its options."""
    return len(question.text) <= MAX_QUESTION and len("\n".join(_option_lines(question))) <= MAX_OPTIONS


def answered_message(address: Address, question: Question, outcome: str) -> Message:
    """Return a question that takes no more answers, with its *outcome*."""
    blocks = [*_question_text(question, limit=MAX_SECTION), plain(outcome)]
    return _message(escaped(clipped(f"{outcome} ({question.text})", 300)), blocks, address)


def describe_answer(data: Mapping[str, Any], *, own: bool = False) -> str:
    """Return who answered what, from the data of ``question.answered``; *own*: here, in Slack."""
    words, by, via = (safe_text(str(data.get(key) or "")) for key in ("words", "by", "via"))
    match str(data.get("how")):
        case "policy":
            return f"Decided by a policy ({via}): {words}"
        case "timeout":
            return f"Nobody answered in time. Assumed: {words}"
        case "file":
            return f"Answered from a file ({by or via}): {words}"
        case _:
            places = {"terminal": "at the terminal", "inbox": "with gsd answer"}
            where = "in Slack" if own else places.get(via, f"through {via}")
            return f"Answered{f' by {by}' if by else ''} {where}: {words}"


def progress_line(event: Event, detail: str) -> str:
    """Return an event as a line of the thread; empty if *detail* (``slack.progress``) leaves it out."""
    data = event.data
    match event.name:
        case "run.opened" if data.get("resumed"):
            return "Resumed."
        case "step.failed":
            error: Mapping[str, Any] = data["error"]
            return f"Step {event.step} failed: {error['message']}"
        case "run.closed":
            dollars = data.get("dollars")
            cost = f" Cost: ${dollars}." if dollars else ""
            return f"{outcome_words(str(data['outcome']))}: {str(data['reason']).rstrip('.')}.{cost}"
        case _ if detail == "none":
            return ""
        case "phase.started":
            return f"Phase {data['number']} started: {data['name']}"
        case "phase.completed":
            return f"Phase {data['number']} complete: {data['name']}"
        case "phase.skipped":
            return f"Phase {data['number']} skipped: {data['reason']}"
        case "gap.found":
            gaps: Sequence[Mapping[str, Any]] = data["gaps"]
            first = "; ".join(clipped(str(gap["truth"]), 200) for gap in gaps[:3])
            return f"Verification of phase {data['phase']} found {len(gaps)} gaps: {first}"
        case "step.waiting":
            until = datetime.fromisoformat(str(data["until"])).astimezone(UTC)
            return f"Step {event.step} waits until {until:%Y-%m-%d %H:%M:%S} UTC: {data['why']}"
        case "recovered":
            return "Resumed after a crash."
        case _ if detail == "phases":
            return ""
        case "task.committed":
            return f"Task {data['task']} committed ({str(data['commit'])[:7]}): {data['name']}"
        case "files.left":
            return f"Files that no task named stay uncommitted: {', '.join(map(str, data['paths']))}"
        case _:
            return ""


def outcome_words(outcome: str) -> str:
    """Return how a run ended, in words."""
    words = {
        "done": "Complete",
        "gaps": "Gaps remain",
        "blocked": "Waiting for an answer",
        "failed": "Failed",
    }
    return words.get(outcome, outcome.capitalize())


def typed_text(text: str) -> str:
    """Return what a person typed into a message, without Slack's markup for links and special characters."""
    text = _LINK.sub(lambda match: match[2] or match[1].removeprefix("mailto:"), text)
    for replacement, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(replacement, character)
    return text.strip()


def chosen_answer(question: Question, action: Mapping[str, Any], state: Mapping[str, Any]) -> Answer | None:
    """Return the answer in the payload of a button: one of the options, or those chosen in the menu."""
    indices: list[str] = []
    if str(action.get("action_id", "")).startswith("gsd_choose_"):
        indices = [str(action.get("value", ""))]
    elif action.get("action_id") == "gsd_submit":
        values: Mapping[str, Mapping[str, Any]] = state.get("values") or {}
        for controls in values.values():
            menu: Mapping[str, Any] = controls.get("gsd_menu") or {}
            one: Mapping[str, Any] | None = menu.get("selected_option")
            several: Sequence[Mapping[str, Any]] = menu.get("selected_options") or ()
            indices += [str(option["value"]) for option in ([one] if one else several)]
    numbers = [int(index) for index in indices if index.isdecimal() and int(index) < len(question.options)]
    if not numbers:
        return None
    return Answer(question=question.id, chosen=tuple(question.options[n].label for n in sorted(set(numbers))))


def own_words_view(address: Address, question: Question) -> Block:
    """Return the dialog for an answer in one's own words."""
    answer: Block = {
        "type": "input",
        "block_id": "gsd_text",
        "label": {"type": "plain_text", "text": "Your answer"},
        "element": {
            "type": "plain_text_input",
            "action_id": "gsd_text",
            "multiline": True,
            "max_length": MAX_INPUT,
        },
    }
    return {
        "type": "modal",
        "callback_id": "gsd_own_words",
        "private_metadata": str(address),
        "title": {"type": "plain_text", "text": "Answer"},
        "submit": {"type": "plain_text", "text": "Answer"},
        "blocks": [*_question_text(question, limit=MAX_SECTION), answer],
    }


def escaped(text: str) -> str:
    """Return *text* without a meaning in Slack's markup: no mention, no link."""
    return text.translate(_MARKUP)


def clipped(text: str, length: int) -> str:
    """Return at most *length* characters of *text*."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _mentions(users: Sequence[str]) -> str:
    return "".join(f"<@{user}> " for user in users)


def _for_users(what: str, users: Sequence[str]) -> list[Block]:
    text = f"{what} for {_mentions(users)}".rstrip()
    return [{"type": "section", "text": {"type": "mrkdwn", "text": text}}] if users else []


def _message(text: str, blocks: Sequence[Block], address: Address) -> Message:
    about = {"run": address.run, "question": address.question}
    return Message(text=text, blocks=tuple(blocks), kind="gsd_question", about=about)


def _question_text(question: Question, *, limit: int = MAX_QUESTION) -> list[Block]:
    header = f"{question.header}: " if question.header else ""
    text = clipped(header + question.text, limit + len(header))
    blocks = [plain(text[at : at + MAX_SECTION]) for at in range(0, len(text), MAX_SECTION)]
    if question.options:
        listed = clipped("\n".join(_option_lines(question)), MAX_OPTIONS)
        blocks += [plain(listed[at : at + MAX_SECTION]) for at in range(0, len(listed), MAX_SECTION)]
    return blocks


def _option_lines(question: Question) -> list[str]:
    return [
        f"{number}. {option.label}{option.recommended_note}"
        + (f": {option.description}" if option.description else "")
        for number, option in enumerate(question.options, 1)
    ]


def _controls(address: Address, question: Question) -> list[Block]:
    """Return buttons for a few options, a menu for many or several, and a button for one's own words."""
    elements: list[Block] = []
    labels = [f"{number}. {option.label}" for number, option in enumerate(question.options, 1)]
    if 0 < len(labels) <= MAX_BUTTONS and not question.multiple:
        for index, label in enumerate(labels):
            button = _button(f"gsd_choose_{index}", label, str(index))
            elements.append(button | ({"style": "primary"} if question.options[index].recommended else {}))
    elif 0 < len(labels) <= MAX_MENU:
        options = [{"text": _label(label), "value": str(index)} for index, label in enumerate(labels)]
        elements.append(
            {
                "type": "multi_static_select" if question.multiple else "static_select",
                "action_id": "gsd_menu",
                "placeholder": {"type": "plain_text", "text": "Choose"},
                "options": options,
            }
        )
        # A menu reports each change: only the button says that the choice is final.
        elements.append(_button("gsd_submit", "Answer", "submit") | {"style": "primary"})
    if question.free_text:
        elements.append(_button("gsd_own_words", "In your own words", "own"))
    if not elements:
        return []
    if elements[0]["type"] == "multi_static_select":
        # The only kind of menu that a block of buttons cannot contain.
        menu, *rest = elements
        section = {**plain("Choose one or more:"), "block_id": f"{address}|menu", "accessory": menu}
        return [section, {"type": "actions", "block_id": f"{address}|controls", "elements": rest}]
    return [{"type": "actions", "block_id": f"{address}|controls", "elements": elements}]


def _button(action: str, label: str, value: str) -> Block:
    return {"type": "button", "action_id": action, "text": _label(label), "value": value}


def _label(text: str) -> Block:
    return {"type": "plain_text", "emoji": False, "text": clipped(" ".join(text.split()), MAX_LABEL)}


def plain(text: str) -> Block:
    """Return a section of plain text."""
    return {"type": "section", "text": {"type": "plain_text", "emoji": False, "text": text or " "}}


def _note(text: str) -> Block:
    element = {"type": "plain_text", "emoji": False, "text": clipped(text, MAX_SECTION)}
    return {"type": "context", "elements": [element]}
