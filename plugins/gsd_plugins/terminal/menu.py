"""A question as a menu: arrow keys choose, Space marks, and what is typed is the user's own answer.

The menu is a value that changes with each key; :mod:`.session` draws it and reads the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import attrs
from rich.cells import cell_len
from rich.text import Text

from gsd_core import Answer, Question, UserError

from .lines import visible
from .prompt import parse_line, recommended_labels
from .screen import wrapped

Outcome: TypeAlias = Literal["open", "answered", "later", "ended"]
PROMPT = "> "
MAX_DRAFT = 10_000
MIN_OPTIONS = 2


@attrs.frozen(kw_only=True)
class Menu:
    """A question that is being answered.

    *at* is the option that the arrow keys have reached, counted from 0; -1 for none. *marked* are the
    options of a question with several answers. *draft* is what was typed, *cursor* the position in it.
    *outcome* is ``answered`` (with *answer*), ``later`` (the user left it open), ``ended`` (no more input).
    """

    question: Question
    at: int = -1
    marked: frozenset[int] = frozenset()
    draft: str = ""
    cursor: int = 0
    error: str = ""
    outcome: Outcome = "open"
    answer: Answer | None = None

    @classmethod
    def of(cls, question: Question) -> Menu:
        """Return the menu as it is shown first: the recommended options are chosen."""
        chosen = recommended_labels(question)
        numbers = [n for n, option in enumerate(question.options) if option.label in chosen]
        first = numbers[0] if numbers else -1 if not question.options or not question.multiple else 0
        return cls(question=question, at=first, marked=frozenset(numbers if question.multiple else ()))

    def press(self, key: str) -> Menu:
        """Return the menu after *key*; a menu that is not open any more stays as it is."""
        if self.outcome != "open":
            return self
        menu = attrs.evolve(self, error="")
        match key:
            case "enter":
                return menu._entered()
            case "escape":
                return menu._typed("", 0) if self.draft else attrs.evolve(menu, outcome="later")
            case "closed":
                return attrs.evolve(menu, outcome="ended")
            case "eof":
                return menu if self.draft else attrs.evolve(menu, outcome="ended")
            case "up" | "down" if self.question.options:
                count = len(self.question.options)
                first = 0 if key == "down" else count - 1
                at = first if self.at < 0 else (self.at + (1 if key == "down" else -1)) % count
                return attrs.evolve(menu, at=at)
            case " " if self.question.multiple and not self.draft and self.at >= 0:
                return attrs.evolve(menu, marked=self.marked ^ {self.at})
            case _:
                return menu._edited(key)

    def _entered(self) -> Menu:
        typed = self.draft
        if not typed.strip():
            numbers = sorted(self.marked) if self.question.multiple else [self.at] if self.at >= 0 else []
            if numbers:
                labels = tuple(self.question.options[number].label for number in numbers)
                answer = Answer(question=self.question.id, chosen=labels)
                return attrs.evolve(self, outcome="answered", answer=answer)
            if self.question.options:
                how = "mark an option with Space" if self.question.multiple else "choose an option"
                own = ", or type your own answer" if self.question.free_text else ""
                return attrs.evolve(self, error=f"nothing is chosen: {how}{own}")
        try:
            return attrs.evolve(self, outcome="answered", answer=parse_line(self.question, typed))
        except UserError as error:
            # What was typed is none of the options, so there is nothing to correct in it.
            return attrs.evolve(self, draft="", cursor=0, error=f"invalid answer: {visible(str(error))}")

    def _edited(self, key: str) -> Menu:
        before, after = self.draft[: self.cursor], self.draft[self.cursor :]
        match key:
            case "left":
                return self._typed(self.draft, max(self.cursor - 1, 0))
            case "right":
                return self._typed(self.draft, min(self.cursor + 1, len(self.draft)))
            case "home":
                return self._typed(self.draft, 0)
            case "end":
                return self._typed(self.draft, len(self.draft))
            case "backspace":
                return self._typed(before[:-1] + after, max(self.cursor - 1, 0))
            case "delete":
                return self._typed(before + after[1:], self.cursor)
            case "kill":
                return self._typed(after, 0)
            case "kill_right":
                return self._typed(before, self.cursor)
            case "kill_word":
                kept = before.rstrip(" ").rpartition(" ")
                kept_text = kept[0] + kept[1]
                return self._typed(kept_text + after, len(kept_text))
            case _ if len(key) == 1 and len(self.draft) < MAX_DRAFT:
                return self._typed(before + key + after, self.cursor + 1)
            case _:
                return self

    def _typed(self, draft: str, cursor: int) -> Menu:
        return attrs.evolve(self, draft=draft, cursor=cursor)

    def chosen(self) -> frozenset[int]:
        """Return the options that Enter would choose, if any."""
        if self.draft.strip():
            try:
                labels = parse_line(self.question, self.draft).chosen
            except UserError:
                return frozenset()
            return frozenset(n for n, option in enumerate(self.question.options) if option.label in labels)
        return self.marked if self.question.multiple else frozenset([self.at] if self.at >= 0 else [])


def render_menu(
    menu: Menu, glyphs: Mapping[str, str], width: int, height: int
) -> tuple[list[Text], tuple[int, int]]:
    """Return the lines of the options, the keys and the input, and the row and column of the cursor.

    If not all options fit into *height* rows, those around the current one are shown.
    """
    width = max(width, 10) - 1
    draft, cursor = _draft_lines(menu, width)
    below = [*_hint_lines(menu, width), *draft]
    options = [_option_lines(menu, number, glyphs, width) for number in range(len(menu.question.options))]
    shown = _window(options, max(menu.at, 0), max(height - 1 - len(below), MIN_OPTIONS))
    lines = [*shown, *below]
    return lines, (len(lines) - len(draft) + cursor[0], cursor[1])


def _option_lines(menu: Menu, number: int, glyphs: Mapping[str, str], width: int) -> list[Text]:
    option = menu.question.options[number]
    chosen = number in menu.chosen()
    here = number == menu.at and not menu.draft
    box = f"{glyphs['checked' if chosen else 'unchecked']} " if menu.question.multiple else ""
    lead = f"{glyphs['pointer'] if here else ' '} {box}{number + 1}. "
    indent = cell_len(lead)
    style = "bold cyan" if here or (chosen and menu.draft) else "bold" if chosen else ""
    label = visible(option.label) + option.recommended_note
    rows = wrapped(label, width - indent)
    lines = [Text((lead if n == 0 else " " * indent) + row, style=style) for n, row in enumerate(rows)]
    if option.description:
        described = wrapped(visible(option.description), width - indent)
        lines += [Text(" " * indent + row, style="dim") for row in described]
    return lines


def _window(options: Sequence[list[Text]], at: int, room: int) -> Iterator[Text]:
    """Yield the lines of all options, or of those around *at* that fit into *room* rows."""
    if sum(map(len, options)) <= room or not options:
        return (line for option in options for line in option)
    first, last = at, at + 1
    # Two rows say how many options are above and below.
    room = max(room - 2, len(options[at]))
    used = len(options[at])
    while first > 0 or last < len(options):
        if last < len(options) and used + len(options[last]) <= room:
            used += len(options[last])
            last += 1
        elif first > 0 and used + len(options[first - 1]) <= room:
            first -= 1
            used += len(options[first])
        else:
            break
    above = [Text(f"    … {first} more above", style="dim")] if first else []
    below = [Text(f"    … {len(options) - last} more below", style="dim")] if last < len(options) else []
    return iter([*above, *(line for option in options[first:last] for line in option), *below])


def _hint_lines(menu: Menu, width: int) -> list[Text]:
    question = menu.question
    parts = ["↑↓ choose", "Space marks"] if question.multiple else ["↑↓ choose"] if question.options else []
    own = "or type your own answer" if question.options else "type your answer"
    parts += ["Enter answers", *([own] if question.free_text else []), "Esc: later"]
    # A row ends between two of them, if they are not too long for a row.
    kept = (part.replace(" ", "\N{NO-BREAK SPACE}") if len(part) <= width else part for part in parts)
    joined = "   ".join(kept)
    rows = [row.replace("\N{NO-BREAK SPACE}", " ") for row in wrapped(joined, width)]
    lines = [Text(row.rstrip(), style="dim") for row in rows]
    return [*lines, *(Text(row, style="red") for row in wrapped(menu.error, width) if row)]


def _draft_lines(menu: Menu, width: int) -> tuple[list[Text], tuple[int, int]]:
    rows = wrapped(menu.draft, width - len(PROMPT) - 1)
    left, row = menu.cursor, 0
    while row < len(rows) - 1 and left >= len(rows[row]):
        left -= len(rows[row])
        row += 1
    column = len(PROMPT) + cell_len(rows[row][:left])
    return [Text((PROMPT if n == 0 else "  ") + text) for n, text in enumerate(rows)], (row, column)
