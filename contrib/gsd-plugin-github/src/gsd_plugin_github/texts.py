"""The texts of comments and pull requests.

Whatever comes from a run is in a fenced block: there, GitHub notifies nobody who is mentioned, closes no
issue, and shows no HTML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gsd_core import Answer, Inquiry, Question, UserError, parse_typed_answer, safe_text

MAX_BODY = 65_000
"""GitHub accepts 65,536 characters."""
MAX_QUESTION = 30_000
_MARKER = re.compile(r"<!-- gsd:(\S+) -->")
_NAMED = re.compile(r"(q-[0-9a-f]+)\b[:,]?\s*")


def marked(marker: str, text: str) -> str:
    """Return *text* as a comment of ours, which :func:`marker_of` recognizes."""
    return f"<!-- gsd:{marker} -->\n{text}"


def marker_of(body: str) -> str:
    """Return what a comment of ours is about; empty for one that a person wrote."""
    match = _MARKER.match(body)
    return match[1] if match else ""


def question_text(question: Question, inquiry: Inquiry, command: str) -> str:
    """Return an open question with instructions; *inquiry* is what it is asked with."""
    text = _whole_text(question, inquiry)
    how = ["Answer with a comment:"]
    prefix = f"{question.id}: " if len(inquiry.questions) > 1 else ""
    if question.options:
        several = ", or several, separated by commas" if question.multiple else ""
        start = f"`{prefix}` and the" if prefix else "the"
        how.append(f"- {start} number or the words of an option{several}")
    if question.free_text:
        how.append(f"- `{question.id}:` and your own words")
    if len(text) > MAX_QUESTION:
        how = [f"This is too long to be shown here. Read and answer it with `{command} questions`."]
    title = f"**A question** (`{question.id}`)"
    return "\n\n".join([title, fenced(text[:MAX_QUESTION]), "\n".join(how)])


def is_complete(question: Question, inquiry: Inquiry) -> bool:
    """Whether a comment shows all of *question*: nobody may permit what they cannot read."""
    return len(_whole_text(question, inquiry)) <= MAX_QUESTION


def _whole_text(question: Question, inquiry: Inquiry) -> str:
    lines = [question.text]
    for number, option in enumerate(question.options, 1):
        about = f": {option.description}" if option.description else ""
        lines.append(f"  {number}. {option.label}{option.recommended_note}{about}")
    return "\n".join([*([inquiry.reason, ""] if inquiry.reason else []), *lines])


def answered_text(question: Question, outcome: str) -> str:
    """Return a question that takes no more answers."""
    return f"{fenced(question.text[:MAX_QUESTION])}\n\n{fenced(outcome)}"


def describe_answer(data: Mapping[str, Any]) -> str:
    """Return who answered what, from the data of the event ``question.answered``."""
    words, by, via = (safe_text(str(data.get(key) or "")) for key in ("words", "by", "via"))
    match str(data.get("how")):
        case "policy":
            return f"Decided by a policy ({via}): {words}"
        case "timeout":
            return f"Nobody answered in time. Assumed: {words}"
        case _:
            return f"Answered by {by or 'a person'} ({via}): {words}"


def read_answer(body: str, question: Question, *, only_named: bool) -> Answer | str | None:
    """Return the answer to *question* in a comment.

    ``None``: the comment is not meant as an answer; a text says why an answer is not valid. People also
    discuss in comments. So one counts if it begins with the question's id, or, unless *only_named*, if it
    names an option or the question has no options.
    """
    lines = [line for line in body.replace("\r\n", "\n").split("\n") if not line.startswith(">")]
    text = "\n".join(lines).strip()
    named = _NAMED.match(text.lstrip("`"))
    if named:
        if named[1] != question.id:
            return None
        text = text.lstrip("`")[named.end() :].lstrip("`: ").strip()
    elif only_named:
        return None
    try:
        answer = parse_typed_answer(question, text)
    except UserError as error:
        return f"{error}. {error.hint}".strip() if named else None
    if answer.text and question.options and not named:
        return None
    return answer


def pull_request_text(number: int, reports: Mapping[str, str], reason: str) -> str:
    """Return the text of a pull request: the verification of each phase."""
    parts = [f"Closes #{number}.", fenced(reason), "What was verified, phase by phase:"]
    for path, text in reports.items():
        parts.append(f"<details><summary><code>{path}</code></summary>\n\n{fenced(text)}\n\n</details>")
    body = "\n\n".join(parts)
    if len(body) <= MAX_BODY:
        return body
    listed = "\n".join(f"- `{path}`" for path in reports)
    return "\n\n".join([*parts[:2], "The verification is too long to be shown here. It is in:", listed])


def fenced(text: str) -> str:
    """Return *text* in a block that no line of it can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{safe_text(text)}\n{fence}"
