"""What the user says about the command."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from attrs import field, frozen

from gsd_core import setting


@frozen(kw_only=True)
class CommandAgentSettings:
    """Which command is the agent, and how to talk with it.

    *command*: program and arguments; ``{model}``, ``{tree}``, ``{schema}`` (a file with the JSON
    schema) and ``{answer}`` (a file for the last message) are filled in, and an argument is left out
    if what it names is empty. *read_only*: the command for work that may change nothing; the same,
    if there is none. *output*: ``json`` if standard output is one JSON document, whose field
    *answer_key* (dotted) is the message. *environment*: names or patterns of variables that the
    command sees besides the usual ones. *turns*: how often it is run for one task. *patience*:
    how long one run of it may take; 0 leaves that to the core's limits. *transient_exits* and
    *transient_words*: exit codes, and words in its last lines, after which trying again may help.
    """

    command: tuple[str, ...] = setting(())
    read_only: tuple[str, ...] = setting(())
    output: Literal["text", "json"] = setting("text")
    answer_key: str = setting("")
    environment: tuple[str, ...] = setting(())
    turns: int = setting(50)
    patience: timedelta = setting(timedelta(0))
    transient_exits: tuple[int, ...] = setting((75,))
    transient_words: tuple[str, ...] = setting(
        (
            "rate limit",
            "rate_limit",
            "overloaded",
            "429",
            "502",
            "503",
            "529",
            "timed out",
            "connection reset",
        )
    )
    _told: dict[str, list[str]] = field(factory=dict[str, list[str]], init=False, eq=False, repr=False)

    @property
    def told(self) -> dict[str, list[str]]:
        """What was said in each conversation of the run, by its id: the command remembers nothing."""
        return self._told
