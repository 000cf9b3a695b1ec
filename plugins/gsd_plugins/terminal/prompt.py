"""A question as it is shown at the terminal, and what the typed words mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from gsd_core import Answer, Inquiry, Question, refusal

from .glyphs import visible

TITLES = {"permission": "permission", "escalation": "needs your decision", "checkpoint": "checkpoint"}


def question_texts(inquiry: Inquiry, question: Question, glyphs: Mapping[str, str]) -> Iterator[Text]:
    """Yield the lines of the prompt; nothing is cut, so that nothing hides."""
    title = visible(question.header) or TITLES.get(inquiry.kind, "question")
    about = ", ".join(part for part in (inquiry.kind, inquiry.step, question.id) if part)
    yield Text()
    yield Text(f"{glyphs['asks']} {title}", style="bold yellow").append(
        f"  ({visible(about)})", style="not bold dim"
    )
    yield Text(visible(question.text), style="bold")
    if inquiry.reason:
        yield Text(f"reason: {visible(inquiry.reason)}")
    for number, option in enumerate(question.options, 1):
        line = Text(f"  {number}. {visible(option.label)}")
        said = "(recommended)" in option.label.casefold()
        line.append(" (recommended)" if option.recommended and not said else "", style="green")
        yield line.append(f"\n     {visible(option.description)}" if option.description else "", style="dim")
    yield Text(_how(question), style="dim")


def answer_from(question: Question, words: str) -> Answer | str:
    """Return the answer that *words* are, or why they are none; empty words take what is recommended."""
    words = words.strip()
    chosen = _chosen(question, words) if words else _recommended(question)
    text = "" if chosen else words
    answer = Answer(question=question.id, chosen=chosen, text=text, how="human")
    return refusal(question, answer) or answer


def _how(question: Question) -> str:
    ways: list[str] = []
    if question.options:
        ways.append("numbers or names, with commas" if question.multiple else "a number or a name")
    if question.free_text or not question.options:
        ways.append("your own words")
    recommended = ", ".join(_recommended(question))
    enter = f"; Enter takes: {visible(recommended)}" if recommended else ""
    return f"type {' or '.join(ways)}{enter}"


def _recommended(question: Question) -> tuple[str, ...]:
    labels = tuple(option.label for option in question.options if option.recommended)
    return labels if question.multiple else labels[:1]


def _chosen(question: Question, words: str) -> tuple[str, ...]:
    if label := _label(question, words):
        return (label,)
    labels = [_label(question, part) for part in words.split(",")] if question.multiple else []
    return tuple(dict.fromkeys(labels)) if labels and all(labels) else ()


def _label(question: Question, word: str) -> str:
    word = word.strip().casefold()
    named = {option.label.casefold(): option.label for option in question.options}
    numbered = {str(n): option.label for n, option in enumerate(question.options, 1)}
    return named.get(word) or numbered.get(word, "")
