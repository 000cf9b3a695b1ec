"""A channel in both directions: asks in a folder of files, and takes the answers from there.

A question becomes the file `ID.question`; whoever writes `ID.answer` beside it answers.
The answer is the number or the label of an option, or free text, and is recorded with the owner of the file.
If it is invalid, `ID.refused` says why, and the answer can be written again.
A question stays until it is answered, here or elsewhere: a run that is continued does not ask it twice, and
takes an answer that was written in the meantime.

Permissions are never asked for here: a command that agents run could write the answer.

Settings in `gsd.toml`:

    [my_plugin]
    folder = "~/questions"   # outside of the project
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
from gsd_core import (
    Answer,
    Event,
    Inquiry,
    Question,
    UserError,
    implements,
    parse_typed_answer,
    setting,
    settings_of,
)
from gsd_core.hookspecs import gsd_answer, gsd_on_event, gsd_settings

POLL_SECONDS = 0.2


@attrs.frozen(kw_only=True)
class MyPluginSettings:
    """*folder* of the questions and answers; if empty, nothing is asked."""

    folder: str = setting("")


@implements(gsd_settings)
def settings() -> Iterable[type]:
    """Add the section ``my_plugin`` to ``gsd.toml``."""
    yield MyPluginSettings


@implements(gsd_answer)
async def ask_in_the_folder(inquiry: Inquiry) -> Sequence[Answer] | None:
    """Ask, and wait for as long as it takes; gsd cancels this when another channel was faster.

    It is also cancelled when the run stops. So nothing is withdrawn here: `forget` does that.
    """
    folder = _folder()
    if folder is None or inquiry.kind == "permission":
        return None
    await asyncio.to_thread(_ask, folder, inquiry)
    while True:
        if answers := await asyncio.to_thread(_answers, folder, inquiry.questions):
            # The others are asked again.
            return answers
        await asyncio.sleep(POLL_SECONDS)


@implements(gsd_on_event)
async def forget(event: Event) -> None:
    """Remove the files of a question that was answered, here or elsewhere, or needs no answer any more."""
    folder = _folder()
    if folder is None:
        return
    if event.name == "question.answered":
        await asyncio.to_thread(_remove, folder, [event.data["question"]])
    elif event.name == "question.withdrawn":
        await asyncio.to_thread(_remove, folder, event.data["questions"])


def _folder() -> Path | None:
    folder = settings_of(MyPluginSettings).folder
    return Path(folder).expanduser() if folder else None


def _ask(folder: Path, inquiry: Inquiry) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for question in inquiry.questions:
        if not (file := folder / f"{question.id}.question").exists():
            _write(file, _text(question, inquiry.reason))


def _text(question: Question, reason: str) -> str:
    options = [
        f"{number}. {option.label}{option.recommended_note}"
        for number, option in enumerate(question.options, 1)
    ]
    return "\n".join([question.text, *([reason] if reason else []), *options]) + "\n"


def _answers(folder: Path, questions: Iterable[Question]) -> list[Answer]:
    found = (_answer(question, folder / f"{question.id}.answer") for question in questions)
    return [answer for answer in found if answer]


def _answer(question: Question, file: Path) -> Answer | None:
    try:
        words, owner = file.read_text(encoding="utf-8").strip(), _owner(file)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        _refuse(file, str(error))
        return None
    if not words:
        return None  # it is being written
    try:
        return attrs.evolve(parse_typed_answer(question, words), by=owner)
    except UserError as error:
        _refuse(file, f"{error}; {error.hint}" if error.hint else str(error))
        return None


def _refuse(file: Path, why: str) -> None:
    _write(file.with_suffix(".refused"), f"{why}\n")
    file.unlink(missing_ok=True)


def _owner(file: Path) -> str:
    try:
        return file.owner()
    except KeyError:
        return f"user {file.stat().st_uid}"


def _write(file: Path, text: str) -> None:
    """Write the whole file at once: others may be watching the folder."""
    descriptor, draft = tempfile.mkstemp(dir=file.parent, prefix=".draft-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
    Path(draft).replace(file)


def _remove(folder: Path, questions: Iterable[str]) -> None:
    for question in questions:
        for suffix in ("question", "answer", "refused"):
            (folder / f"{question}.{suffix}").unlink(missing_ok=True)
