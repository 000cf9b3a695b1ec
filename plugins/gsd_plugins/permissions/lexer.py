"""Shell text as simple commands, without running any of it.

Not a whole shell: loops and conditions are flattened, since each command in them might run.
What is known only when it runs (a variable, the output of a command) is :data:`UNKNOWN` in a
word. Text that is no valid shell raises :class:`Unreadable`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, field, frozen

UNKNOWN = "\0"
MAX_LENGTH = 64_000
MAX_DEPTH = 8
MAX_SUBSHELLS = 50

_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|\|&|[;|&()\n]")
_REDIRECT = re.compile(r"(\d*|&|\{\w+\})(<<<|<<-?|<>|>>|>\||>&|<&|>|<)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+)|([@*#?$!-]))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}


class Unreadable(Exception):
    """The text is no shell command that we can read."""


@frozen
class Piece:
    """A part of a word: *text*, or the *variable* that stands for it; *quoted*: taken literally."""

    text: str = ""
    variable: str = ""
    quoted: bool = False


@frozen
class Redirect:
    """A redirection: its *operator* and the *target*; *fed* is the text of a here-document."""

    operator: str
    target: tuple[Piece, ...] = ()
    fed: str = ""


@define
class Command:
    """A simple command; *pipe*: it reads what the command before it writes.

    *inner* are the texts of the commands whose output it uses, *shell* says in which subshells it runs.
    """

    words: list[tuple[Piece, ...]] = field(factory=list[tuple[Piece, ...]])
    redirects: list[Redirect] = field(factory=list[Redirect])
    inner: list[str] = field(factory=list[str])
    pipe: bool = False
    shell: tuple[int, ...] = ()


def commands(text: str) -> Iterator[Command]:
    """Yield the simple commands of a text, those in ``$(…)`` as texts in their ``inner``."""
    if len(text) > MAX_LENGTH:
        raise Unreadable("the command is too long")
    if UNKNOWN in text:
        raise Unreadable("the command holds a NUL character")
    return _Reader(text.replace("\\\n", "")).commands()


@define
class _Reader:
    """A position in a text; *waiting* are here-documents whose text begins after the line."""

    text: str
    at: int = 0
    waiting: list[tuple[Command, int, str, bool]] = field(factory=list[tuple[Command, int, str, bool]])

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
                command = Command(pipe=match[0] in ("|", "|&"), shell=self._subshell(command, match[0]))
                if match[0] == "\n":
                    self._here_documents()
                continue
            command.words.append(self._word(command))
        done.append(command)
        self._here_documents()
        return (one for one in done if one.words or one.redirects or one.inner)

    def _subshell(self, command: Command, operator: str) -> tuple[int, ...]:
        if operator == "(":
            if len(command.shell) >= MAX_SUBSHELLS:
                raise Unreadable("the command is nested too deeply")
            return (*command.shell, self.at)
        return command.shell[:-1] if operator == ")" else command.shell

    def _redirection(self) -> re.Match[str] | None:
        """``<(`` and ``>(`` begin words."""
        word = self.text.startswith(("<(", ">("), self.at)
        return None if word else _REDIRECT.match(self.text, self.at)

    def _skip_blanks(self) -> bool:
        """Go to the next thing that says something; false at the end."""
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
            raise Unreadable("a redirection goes nowhere")
        operator = "&>" if match[1] == "&" else match[2]
        if match[2] in ("<<", "<<-"):
            raw = any(piece.quoted for piece in target)
            end = "".join(piece.text for piece in target)
            self.waiting.append((command, len(command.redirects), end, raw))
        command.redirects.append(Redirect(operator, target))

    def _here_documents(self) -> None:
        for command, place, end, raw in self.waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                line, self.at = self._line()
                if line.strip("\t") == end:
                    break
                lines.append(line)
            fed = "\n".join(lines)
            if not raw:
                command.inner.extend(_substitutions(fed))
            command.redirects[place] = Redirect("<<", command.redirects[place].target, fed)
        self.waiting.clear()

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
            return [Piece(self._until("'"), quoted=True)]
        if self.text.startswith("$'", self.at):
            self.at += 1
            return [Piece(self._ansi(), quoted=True)]
        if char == '"' or self.text.startswith('$"', self.at):
            self.at += char == "$"
            return self._double(command)
        if char == "\\":
            self.at += 2
            return [Piece(self.text[self.at - 1 : self.at], quoted=True)]
        if char in "$`" or self.text.startswith(("<(", ">("), self.at):
            return [self.expansion(command, quoted=False)]
        self.at += 1
        return [Piece(char)]

    def _until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise Unreadable("a quote is never closed")
        start, self.at = self.at + 1, end + 1
        return self.text[start:end]

    def _ansi(self) -> str:
        match = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if not match:
            raise Unreadable("a quote is never closed")
        self.at = match.end()
        return _unescaped(match[1])

    def _double(self, command: Command) -> list[Piece]:
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
        raise Unreadable("a quote is never closed")

    def expansion(self, command: Command, *, quoted: bool) -> Piece:
        """Read what begins with ``$``, a backtick, ``<(`` or ``>(``."""
        if match := _VARIABLE.match(self.text, self.at):
            self.at = match.end()
            return Piece(variable=match[1] or match[2] or match[3], quoted=quoted)
        if self.text[self.at] == "`":
            command.inner.append(re.sub(r"\\([`$\\])", r"\1", self._closed("`")))
            return Piece(UNKNOWN, quoted=quoted)
        if self.text.startswith("$((", self.at):
            command.inner.extend(_substitutions(self._balanced("(", ")")))
            return Piece(UNKNOWN, quoted=quoted)
        if self.text.startswith(("$(", "<(", ">("), self.at):
            command.inner.append(self._balanced("(", ")"))
            return Piece(UNKNOWN, quoted=quoted)
        if self.text.startswith("${", self.at):
            command.inner.extend(_substitutions(self._balanced("{", "}")))
            return Piece(UNKNOWN, quoted=quoted)
        self.at += 1
        return Piece("$", quoted=quoted)

    def _closed(self, quote: str) -> str:
        match = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if not match:
            raise Unreadable(f"a {quote} is never closed")
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
                self._until("'")
                continue
            if char == '"':
                self._double(Command())
                continue
            depth += (char == opening) - (char == closing)
            self.at += 1
            if depth == 0:
                return self.text[start : self.at - 1]
        raise Unreadable(f"a {opening} is never closed")


def _substitutions(text: str) -> list[str]:
    """Return the commands in ``$(…)`` and backticks of a text that is no command itself."""
    found = Command()
    reader = _Reader(text)
    while reader.at < len(text):
        if text[reader.at] == "\\":
            reader.at += 2
        elif text[reader.at] == "`" or text.startswith(("$(", "${"), reader.at):
            reader.expansion(found, quoted=True)
        else:
            reader.at += 1
    return found.inner


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
