"""A command line, judged command by command as a shell would come to them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import define, evolve, field

from gsd_core import Ask, Deny

from .git import judge_git
from .lexer import MAX_DEPTH, UNKNOWN, Command, Redirect, Unreadable, commands
from .outward import judge_outward
from .paths import Places, Verdict
from .programs import DOWNLOADERS, INTERPRETERS, KEYWORDS, PATTERN_FIRST, READERS, SHELLS, TALKERS, WRAPPERS
from .reading import only_reads
from .site import Site, excluded
from .words import Word, expand, followed
from .writers import changes_found, judge_find, judge_writes

ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
UNSAFE_VARIABLE = re.compile(
    r"GSD_\w+|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|IFS|SHELLOPTS|BASHOPTS|"
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|CONFIG\w*|EXTERNAL_DIFF|SSH\w*|ASKPASS|\w*EDITOR|EXEC_PATH|OBJECT\w*)"
)
GIT_IN_CODE = re.compile(
    r"\bgit\b\W{1,12}(?:-\w+\W+\S+\W+)?(?:commit|push|reset|clean|stash|checkout|rebase|config)\b"
)
NAME_IN_CODE = re.compile(r"(?<![\w.])\.(?:git|planning|gsd|claude)(?=[/\\\"'\s)]|$)|(?<![\w.])gsd\.toml\b")


@define
class Line:
    """Where a command line has come to; *writable*: it may change anything at all."""

    site: Site
    writable: bool = True
    depth: int = 0
    variables: dict[str, str] = field(factory=dict[str, str])
    downloads: bool = False
    moved: bool = False
    left: list[tuple[tuple[int, ...], Site]] = field(factory=list[tuple[tuple[int, ...], Site]])

    @classmethod
    def at(cls, places: Places, *, writable: bool) -> Line:
        """Return the beginning of a line that runs in the project."""
        known = {"HOME": str(places.home), "PWD": str(places.tree), "TMPDIR": tempfile.gettempdir()}
        return cls(site=Site(places, places.tree), writable=writable, variables=known)

    def judge(self, text: str) -> Iterator[Verdict]:
        """Yield a verdict on each thing that the text would do; ``None`` where there is nothing to say."""
        if self.depth > MAX_DEPTH:
            raise Unreadable("the command is nested too deeply")
        for command in commands(text):
            self._enter(command)
            for inner in command.inner:
                yield from self._nested().judge(inner)
            yield from (self._redirected(redirect) for redirect in command.redirects)
            words = expand(command.words, self.variables)
            yield from self._run(words, command)
            named = {os.path.basename(word.text) for word in words}  # noqa: PTH119 - no path yet
            self.downloads = bool(named & DOWNLOADERS) or (self.downloads and command.pipe)

    def _enter(self, command: Command) -> None:
        """What a subshell or a pipe does to the current folder ends with it."""
        while self.left and self.left[-1][0] != command.shell[: len(self.left[-1][0])]:
            self.site = self.left.pop()[1]
        if self.moved and command.pipe:
            self.site = self.left.pop()[1]
        self.moved = False
        if not command.pipe:
            self.downloads = False

    def _nested(self) -> Line:
        site = evolve(self.site)
        return Line(site=site, writable=self.writable, depth=self.depth + 1, variables=dict(self.variables))

    def _redirected(self, redirect: Redirect) -> Verdict:
        targets = expand([redirect.target], self.variables)
        text = targets[0].text if targets else ""
        if redirect.operator in ("<<", "<<-", "<<<") or (
            redirect.operator[-1] == "&" and text.strip("-").isdigit()
        ):
            return None
        if redirect.operator in ("<", "<&"):
            return self.site.read(Word(text))
        if text == "-":
            return None
        verdict = next((v for target in targets if (v := self.site.write(target))), None)
        if not self.writable and not text.startswith("/dev/"):
            return Deny(reason="this work only reads")
        return verdict

    def _run(self, words: list[Word], command: Command) -> Iterator[Verdict]:
        """Judge one simple command, whatever it is wrapped in."""
        words = self._without_keywords(words)
        kept = all(ASSIGNMENT.fullmatch(word.text) for word in words)
        while words and (match := ASSIGNMENT.fullmatch(words[0].text)):
            yield self._assigned(match[1], match[2], kept=kept)
            words = words[1:]
        if not words:
            return
        if not words[0].known:
            yield Ask(reason="which program runs is known only when it runs")
            return
        program = _program(words[0].text)
        if (inner := self._unwrapped(program, words)) is not None:
            yield from self._run(inner, command)
            return
        yield from self._program(program, words[1:], command)

    def _without_keywords(self, words: list[Word]) -> list[Word]:
        if words and words[0].text in ("for", "select", "case"):
            if len(words) > 1:
                self.variables.pop(words[1].text, None)
            return []
        if words and words[0].text == "function":
            return words[3:] if len(words) > 2 and words[2].text == "{" else []
        while words and words[0].text in KEYWORDS:
            words = words[1:]
        return words

    def _assigned(self, name: str, value: str, *, kept: bool) -> Verdict:
        if kept:
            self.variables[name] = value
        if UNSAFE_VARIABLE.fullmatch(name):
            return Deny(reason=f"{name} is not for agents to set")
        if name.endswith(("PAGER", "EDITOR", "BROWSER")) and value not in ("", "cat", "less", "true", ":"):
            return Ask(reason=f"{name} may run anything")
        return None

    def _unwrapped(self, program: str, words: list[Word]) -> list[Word] | None:
        """Return the command inside a wrapper like ``timeout 5 …``, ``None`` if it is no wrapper."""
        pair = f"{program} {words[1].text}" if len(words) > 1 else ""
        if pair in WRAPPERS:
            return _rest(words[2:], *WRAPPERS[pair])
        if program in WRAPPERS and not (program == "command" and _has(words, "-v", "-V")):
            rest = _rest(words[1:], *WRAPPERS[program])
            return [*rest, Word(UNKNOWN)] if program == "xargs" and rest else rest
        if program in INTERPRETERS and len(words) > 2 and words[1].text == "-m":
            return words[2:]
        return None

    def _program(self, program: str, words: list[Word], command: Command) -> Iterator[Verdict]:
        if program == "cd" or program in ("pushd", "popd"):
            yield self._moved(program, words, command)
            return
        if program in ("env", "export", "declare", "local", "readonly", "typeset", "unset"):
            yield from self._environment(program, words, command)
            return
        yield from self._code(program, words, command)
        if program == "git" or program.startswith("git-"):
            prefix = [Word(program[4:])] if program.startswith("git-") else []
            yield from judge_git([*prefix, *words], self.site, writable=self.writable)
            return
        yield from judge_outward(program, words)
        if program == "find":
            yield from self._found(words, command)
        yield from judge_writes(program, words, self.site)
        yield from self._named(program, words)
        if not self.writable and not only_reads(program, words):
            yield Deny(reason=f"this work only reads; {program} may change something")

    def _named(self, program: str, words: list[Word]) -> Iterator[Verdict]:
        """Judge the words of any program as the paths that they may be."""
        if program in TALKERS:
            return
        skip = 1 if program in PATTERN_FIRST and not _has(words, "-e", "-f") else 0
        bare = [word for word in excluded(words) if not word.text.startswith("-")]
        for word in bare[skip:]:
            yield self.site.read(word)
            if program not in READERS and program != "find" and (name := self.site.named(word)):
                yield Deny(reason=f"{name} is not for agents to change")

    def _moved(self, program: str, words: list[Word], command: Command) -> Verdict:
        target = next((word for word in words if not word.text.startswith("-") or word.text == "-"), None)
        self.left.append((command.shell, self.site))
        self.moved = True
        if program == "popd" or (target and (not target.known or target.text == "-" or target.pattern)):
            self.site = Site(self.site.places, None)
            return None
        where = target.text if target else str(self.site.places.home)
        if name := self.site.named(Word(where)):
            # An agent's shell may keep the folder for its next command, which is judged without it.
            return Deny(reason=f"stay out of {name}")
        if self.site.cwd is None and not where.startswith("/"):
            return None
        folder = self.site.places.resolved(where, self.site.cwd)
        verdict = self.site.places.read(where, self.site.cwd)
        self.site = Site(self.site.places, folder if folder.is_dir() else None)
        return verdict

    def _environment(self, program: str, words: list[Word], command: Command) -> Iterator[Verdict]:
        if program == "unset":
            named = [word.text for word in words]
            yield Deny(reason="GSD_RUN stays") if any(name.startswith("GSD_") for name in named) else None
            return
        if program != "env":
            for word in words:
                if match := ASSIGNMENT.fullmatch(word.text):
                    yield self._assigned(match[1], match[2], kept=True)
            return
        if _has(words, "-i", "-", "--ignore-environment"):
            yield Deny(reason="the environment stays: it says whose processes these are")
        if any(re.match(r"-C|--chdir", word.text) for word in words):
            yield Ask(reason="use cd: what runs elsewhere is hard to judge")
        for word, following in followed(words):
            if word.text.startswith(("-S", "--split-string")):
                yield from self._nested().judge(word.text.removeprefix("-S") + " " + following.text)
            if following.text.startswith("GSD_") and word.text in ("-u", "--unset"):
                yield Deny(reason="GSD_RUN stays")
        yield from self._run(_rest(words, "-u --unset -C --chdir -S", 0), command)

    def _code(self, program: str, words: list[Word], command: Command) -> Iterator[Verdict]:
        """Judge commands and programs that are given as text."""
        if program in SHELLS:
            yield from self._shell(words, command)
        elif program == "eval":
            yield from self._text(" ".join(word.text for word in words), command)
        elif program in (".", "source") and words and not words[0].known:
            yield self._unseen(command)
        elif program in ("trap", "alias"):
            texts = [word.text.partition("=")[2] for word in words] if program == "alias" else []
            for text in texts or [word.text for word in words[:1]]:
                yield from self._text(text, command)
        elif re.sub(r"[\d.]+$", "", program) in INTERPRETERS:
            yield from self._interpreted(words, command)
        elif program in ("awk", "gawk", "mawk", "sed"):
            yield from (_judge_code(word.text) for word in words)

    def _shell(self, words: list[Word], command: Command) -> Iterator[Verdict]:
        fed = [redirect.fed for redirect in command.redirects if redirect.operator == "<<"]
        told = [redirect.target for redirect in command.redirects if redirect.operator == "<<<"]
        place = next((n for n, w in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", w.text)), None)
        script = next((word for word in words if not word.text.startswith(("-", "+"))), None)
        if place is not None:
            rest = [word for word in words[place + 1 :] if not word.text.startswith("-")]
            yield from self._text(rest[0].text if rest else "", command)
        elif script is not None:
            yield None if script.known else self._unseen(command)
        for text in [*fed, *(word.text for word in expand(told, self.variables))]:
            yield from self._text(text, command)
        if command.pipe and script is None:
            yield self._unseen(command)

    def _text(self, text: str, command: Command) -> Iterator[Verdict]:
        if UNKNOWN in text:
            yield self._unseen(command)
            return
        yield from self._nested().judge(text)

    def _unseen(self, command: Command) -> Verdict:
        inner = any(re.search(r"\b(?:curl|wget)\b", text) for text in command.inner)
        if self.downloads or inner:
            return Deny(reason="nothing that was downloaded is run unseen")
        return Ask(reason="what the shell runs is known only when it runs")

    def _interpreted(self, words: list[Word], command: Command) -> Iterator[Verdict]:
        code = [f.text for w, f in pairwise(words) if re.fullmatch(r"-\w*[cepPrE]|--eval", w.text)]
        code += [redirect.fed for redirect in command.redirects if redirect.operator == "<<"]
        told = [redirect.target for redirect in command.redirects if redirect.operator == "<<<"]
        code += [word.text for word in expand(told, self.variables)]
        yield from (_judge_code(text) for text in code)
        if command.pipe and self.downloads and not [word for word in words if word.text != "-"]:
            yield Deny(reason="nothing that was downloaded is run unseen")

    def _found(self, words: list[Word], command: Command) -> Iterator[Verdict]:
        yield from judge_find(words, self.site)
        for place, word in enumerate(words):
            if word.text not in ("-exec", "-execdir", "-ok", "-okdir"):
                continue
            inner = [Word(UNKNOWN) if "{}" in w.text else w for w in _until_end(words[place + 1 :])]
            program = _program(inner[0].text) if inner else ""
            if program not in READERS:
                yield changes_found(words[:place], self.site)
            if program not in ("rm", "unlink", "rmdir", "shred"):
                yield from self._nested()._run(inner, command)
            elif not self.writable:
                yield Deny(reason="this work only reads")


def _judge_code(text: str) -> Verdict:
    if match := GIT_IN_CODE.search(text) or NAME_IN_CODE.search(text):
        return Deny(reason=f"code that names {match[0].strip()!r} is not for agents to run")
    return None


def _program(text: str) -> str:
    name = os.path.basename(text).lower()  # noqa: PTH119 - no path yet
    return name.removesuffix(".exe") or text


def _rest(words: Sequence[Word], valued: str, skipped: int) -> list[Word]:
    """Return the command after a wrapper's options and words."""
    rest, options = list(words), valued.split()
    while rest and (rest[0].text.startswith("-") or ASSIGNMENT.fullmatch(rest[0].text)):
        option = rest.pop(0).text
        if option == "--":
            break
        if option in options and rest:
            rest.pop(0)
    return rest[skipped:]


def _until_end(words: Sequence[Word]) -> list[Word]:
    ends = [place for place, word in enumerate(words) if word.text in (";", "+")]
    return list(words[: ends[0]] if ends else words)


def _has(words: Sequence[Word], *options: str) -> bool:
    return any(word.text in options for word in words)
