"""Splits shell text into simple commands and their words, without running anything.

This is not a complete shell: loops and conditions are flattened, since each command in them might
run. A part of a word that is known only at run time (a variable, the output of a command) is
:data:`UNKNOWN`. Text that is not valid shell raises :class:`ParseError`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import attrs

UNKNOWN = "\0"
MAX_LENGTH = 64_000
MAX_DEPTH = 8
MAX_SUBSHELLS = 50

_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|\|&|[;|&()\n]")
_REDIRECT = re.compile(r"(\d*|&|\{\w+\})(<<<|<<-?|<>|>>|>\||>&|<&|>|<)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|([@*#?$!-]))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}


class ParseError(Exception):
    """The text is not a shell command, or one that this lexer does not understand."""


@attrs.frozen
class Piece:
    """A part of a word: *text*, or the name of a *variable*; *quoted*: taken literally."""

    text: str = ""
    variable: str = ""
    quoted: bool = False


@attrs.frozen
class Redirect:
    """A redirection: its *operator*, its *target*, and the text of a *here_document*."""

    operator: str
    target: tuple[Piece, ...] = ()
    here_document: str = ""


@attrs.define
class Command:
    """A simple command; *reads_pipe*: it reads the output of the command before it.

    *substitutions* are the commands in ``$(…)`` and the like, unparsed. *subshell* identifies the
    nested subshells that the command runs in.
    """

    words: list[tuple[Piece, ...]] = attrs.field(factory=list[tuple[Piece, ...]])
    redirects: list[Redirect] = attrs.field(factory=list[Redirect])
    substitutions: list[str] = attrs.field(factory=list[str])
    reads_pipe: bool = False
    subshell: tuple[int, ...] = ()


def commands(text: str) -> Iterator[Command]:
    """Yield the simple commands in *text*; those in ``$(…)`` are kept as strings, in ``substitutions``."""
    if len(text) > MAX_LENGTH:
        raise ParseError("the command is too long")
    if UNKNOWN in text:
        raise ParseError("the command contains a NUL character")
    return _Lexer(text.replace("\\\n", "")).commands()


@attrs.define
class _Lexer:
    """A position in *text*; *pending* are here-documents whose text begins after the current line."""

    text: str
    at: int = 0
    pending: list[tuple[Command, int, str, bool]] = attrs.field(factory=list[tuple[Command, int, str, bool]])

    def commands(self) -> Iterator[Command]:
        done: list[Command] = []
        command = Command()
        while self._skip_blanks():
            if match := self._redirection():
                self._redirect(command, match)
                continue
            if match := _OPERATOR.match(self.text, self.at):
                self.at = match.end()
                done.append(command)
                command = Command(
                    reads_pipe=match[0] in ("|", "|&"), subshell=self._subshell(command, match[0])
                )
                if match[0] == "\n":
                    self._here_documents()
                continue
            command.words.append(self._word(command))
        done.append(command)
        self._here_documents()
        return (one for one in done if one.words or one.redirects or one.substitutions)

    def _subshell(self, command: Command, operator: str) -> tuple[int, ...]:
        if operator == "(":
            if len(command.subshell) >= MAX_SUBSHELLS:
                raise ParseError("the command is nested too deeply")
            return (*command.subshell, self.at)
        return command.subshell[:-1] if operator == ")" else command.subshell

    def _redirection(self) -> re.Match[str] | None:
        """Match a redirection; ``<(`` and ``>(`` are process substitutions, which begin words."""
        word = self.text.startswith(("<(", ">("), self.at)
        return None if word else _REDIRECT.match(self.text, self.at)

    def _skip_blanks(self) -> bool:
        """Move past blanks and comments; return false at the end of the text."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in " \t\r":
                self.at += 1
            else:
                return True
        return False

    def _redirect(self, command: Command, match: re.Match[str]) -> None:
        self.at = match.end()
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        target = self._word(command)
        if not target:
            raise ParseError("a redirection has no target")
        operator = "&>" if match[1] == "&" else match[2]
        if match[2] in ("<<", "<<-"):
            raw = any(piece.quoted for piece in target)
            end = "".join(piece.text for piece in target)
            self.pending.append((command, len(command.redirects), end, raw))
        command.redirects.append(Redirect(operator, target))

    def _here_documents(self) -> None:
        for command, place, end, raw in self.pending:
            lines: list[str] = []
            while self.at < len(self.text):
                line, self.at = self._line()
                if line.strip("\t") == end:
                    break
                lines.append(line)
            fed = "\n".join(lines)
            if not raw:
                command.substitutions.extend(_substitutions(fed))
            command.redirects[place] = Redirect("<<", command.redirects[place].target, fed)
        self.pending.clear()

    def _line(self) -> tuple[str, int]:
        end = self.text.find("\n", self.at)
        return (self.text[self.at :], len(self.text)) if end < 0 else (self.text[self.at : end], end + 1)

    def _word(self, command: Command) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\r\n;|&" or (char in "<>()" and not self.text.startswith(("<(", ">("), self.at)):
                break
            pieces.extend(self._part(command, char))
        return tuple(pieces)

    def _part(self, command: Command, char: str) -> list[Piece]:
        if char == "'":
            return [Piece(self._single_quoted("'"), quoted=True)]
        if self.text.startswith("$'", self.at):
            self.at += 1
            return [Piece(self._ansi_quoted(), quoted=True)]
        if char == '"' or self.text.startswith('$"', self.at):
            self.at += char == "$"
            return self._double_quoted(command)
        if char == "\\":
            self.at += 2
            return [Piece(self.text[self.at - 1 : self.at], quoted=True)]
        if char in "$`" or self.text.startswith(("<(", ">("), self.at):
            return [self.expansion(command, quoted=False)]
        self.at += 1
        return [Piece(char)]

    def _single_quoted(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise ParseError("a quote is not closed")
        start, self.at = self.at + 1, end + 1
        return self.text[start:end]

    def _ansi_quoted(self) -> str:
        match = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if not match:
            raise ParseError("a quote is not closed")
        self.at = match.end()
        return _unescaped(match[1])

    def _double_quoted(self, command: Command) -> list[Piece]:
        self.at += 1
        pieces: list[Piece] = [Piece("", quoted=True)]
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return pieces
            if char in "$`":
                pieces.append(self.expansion(command, quoted=True))
                continue
            step = 2 if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\") else 1
            pieces.append(Piece(self.text[self.at + step - 1], quoted=True))
            self.at += step
        raise ParseError("a quote is not closed")

    def expansion(self, command: Command, *, quoted: bool) -> Piece:
        """Read an expansion or substitution: it begins with ``$``, a backtick, ``<(`` or ``>(``."""
        if match := _VARIABLE.match(self.text, self.at):
            self.at = match.end()
            return Piece(variable=match[1] or match[2] or match[3], quoted=quoted)
        if self.text[self.at] == "`":
            command.substitutions.append(re.sub(r"\\([`$\\])", r"\1", self._backquoted("`")))
            return Piece(UNKNOWN, quoted=quoted)
        if self.text.startswith("$((", self.at):
            command.substitutions.extend(_substitutions(self._balanced("(", ")")))
            return Piece(UNKNOWN, quoted=quoted)
        if self.text.startswith(("$(", "<(", ">("), self.at):
            command.substitutions.append(self._balanced("(", ")"))
            return Piece(UNKNOWN, quoted=quoted)
        if self.text.startswith("${", self.at):
            command.substitutions.extend(_substitutions(self._balanced("{", "}")))
            return Piece(UNKNOWN, quoted=quoted)
        self.at += 1
        return Piece("$", quoted=quoted)

    def _backquoted(self, quote: str) -> str:
        match = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if not match:
            raise ParseError(f"a {quote} is not closed")
        self.at = match.end()
        return match[1]

    def _balanced(self, opening: str, closing: str) -> str:
        """Return what is between two brackets that belong together, minding quotes."""
        start = self.at = self.at + 2
        depth = 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 2
                continue
            if char == "'":
                self._single_quoted("'")
                continue
            if char == '"':
                self._double_quoted(Command())
                continue
            depth += (char == opening) - (char == closing)
            self.at += 1
            if depth == 0:
                return self.text[start : self.at - 1]
        raise ParseError(f"a {opening} is not closed")


def _substitutions(text: str) -> list[str]:
    """Return the commands in ``$(…)`` and backticks of *text*, which is not itself a command."""
    found = Command()
    reader = _Lexer(text)
    while reader.at < len(text):
        if text[reader.at] == "\\":
            reader.at += 2
        elif text[reader.at] == "`" or text.startswith(("$(", "${"), reader.at):
            reader.expansion(found, quoted=True)
        else:
            reader.at += 1
    return found.substitutions


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU":
            return chr(int(code[1:], 16)) if len(code) > 1 else match[0]
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _ESCAPES.get(code, code)

    hexes = r"x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U000?[0-9a-fA-F]{1,5}"
    return re.sub(rf"\\({hexes}|[0-7]{{1,3}}|.)", plain, text, flags=re.DOTALL)


MAX_WORDS = 256

# Expansion: words as a shell expands them, as far as that is known without running it.

# A character and whether it is quoted; ``None`` separates two words.
Char: TypeAlias = "tuple[str, bool] | None"


@attrs.frozen
class Word:
    """An expanded word; *pattern* is its text as a pattern of file names, empty if it is not one."""

    text: str
    pattern: str = ""

    @property
    def known(self) -> bool:
        """Whether the whole text is known."""
        return UNKNOWN not in self.text


def with_next(words: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
    """Yield each word with the next one, the last with an empty word."""
    yield from pairwise([*words, Word("")])


def expand(words: Sequence[Sequence[Piece]], variables: Mapping[str, str]) -> list[Word]:
    """Expand variables, braces and ``~``; raise ``ParseError`` if that yields too many words."""
    found: list[Word] = []
    for pieces in words:
        for word in _expanded(pieces, variables):
            found.append(word)
            if len(found) > MAX_WORDS:
                raise ParseError("the command has too many words")
    return found


def _expanded(pieces: Sequence[Piece], variables: Mapping[str, str]) -> Iterator[Word]:
    chars = [char for piece in pieces for char in _chars(piece, variables)]
    if not chars and any(piece.quoted for piece in pieces):
        yield Word("")
    for part in _split(chars):
        for one in _braces(part, 0):
            yield _word(one)


def _chars(piece: Piece, variables: Mapping[str, str]) -> Iterator[Char]:
    text = variables.get(piece.variable, UNKNOWN) if piece.variable else piece.text
    for char in text:
        splits = piece.variable and not piece.quoted and char.isspace()
        yield None if splits else (char, piece.quoted)


def _split(chars: Sequence[Char]) -> Iterator[list[tuple[str, bool]]]:
    part: list[tuple[str, bool]] = []
    for char in [*chars, None]:
        if char is not None:
            part.append(char)
        elif part:
            yield part
            part = []


def _braces(chars: list[tuple[str, bool]], depth: int) -> Iterator[list[tuple[str, bool]]]:
    """Expand the first ``{a,b}``, then those in the results."""
    place = _first_braces(chars)
    if place is None:
        yield chars
        return
    if depth > 6:
        raise ParseError("the command has too many braces")
    start, commas, end = place
    bounds = [start, *commas, end]
    for left, right in pairwise(bounds):
        yield from _braces([*chars[:start], *chars[left + 1 : right], *chars[end + 1 :]], depth + 1)


def _first_braces(chars: Sequence[tuple[str, bool]]) -> tuple[int, list[int], int] | None:
    for start, char in enumerate(chars):
        if char == ("{", False) and (found := _closing(chars, start)):
            return start, found[0], found[1]
    return None


def _closing(chars: Sequence[tuple[str, bool]], start: int) -> tuple[list[int], int] | None:
    depth = 0
    commas: list[int] = []
    for place in range(start, len(chars)):
        char = chars[place]
        depth += (char == ("{", False)) - (char == ("}", False))
        if depth == 1 and char == (",", False):
            commas.append(place)
        if depth == 0:
            return (commas, place) if commas else None
    return None


def _word(chars: Sequence[tuple[str, bool]]) -> Word:
    text = "".join(char for char, _ in chars)
    if chars and chars[0] == ("~", False):
        text = os.path.expanduser(text)  # noqa: PTH111 - text, not a path yet
    if any(char in "*?[" and not quoted for char, quoted in chars):
        return Word(
            text, "".join(f"[{char}]" if quoted and char in "*?[" else char for char, quoted in chars)
        )
    return Word(text)
