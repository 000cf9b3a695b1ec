"""Checks a command line, command by command, in the order that a shell would run them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs

from gsd_core import Ask, Deny

from .checks import check_find, check_find_targets, check_git, check_network, check_writes
from .lexer import MAX_DEPTH, UNKNOWN, Command, ParseError, Redirect, Word, commands, expand, with_next
from .paths import Objection, PathContext, PathPolicy, without_excluded
from .programs import (
    DOWNLOADERS,
    INTERPRETERS,
    KEYWORDS,
    PATTERN_FIRST,
    PRINTING_PROGRAMS,
    READ_ONLY_PROGRAMS,
    SHELLS,
    WRAPPERS,
    only_reads,
)

KEEP_RUN = "GSD_RUN must stay set: it identifies the run's processes"
ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
UNSAFE_VARIABLE = re.compile(
    r"GSD_\w+|LD_\w+|DYLD_\w+|BASH_ENV|ENV|PROMPT_COMMAND|IFS|SHELLOPTS|BASHOPTS|"
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|CONFIG\w*|EXTERNAL_DIFF|SSH\w*|ASKPASS|\w*EDITOR|EXEC_PATH|OBJECT\w*)"
)
GIT_IN_CODE = re.compile(
    r"\bgit\b\W{1,12}(?:-\w+\W+\S+\W+)?(?:commit|push|reset|clean|stash|checkout|rebase|config)\b"
)
NAME_IN_CODE = re.compile(r"(?<![\w.])\.(?:git|planning|gsd|claude)(?=[/\\\"'\s)]|$)|(?<![\w.])gsd\.toml\b")


@attrs.define
class CommandLine:
    """The state of checking a command line; *writable*: the step may change files.

    *outer_contexts* are the folders to return to when a subshell or a pipe ends; *downloading*: the
    current pipe carries something that was downloaded.
    """

    context: PathContext
    writable: bool = True
    depth: int = 0
    variables: dict[str, str] = attrs.field(factory=dict[str, str])
    downloading: bool = False
    changed_folder: bool = False
    outer_contexts: list[tuple[tuple[int, ...], PathContext]] = attrs.field(
        factory=list[tuple[tuple[int, ...], PathContext]]
    )

    @classmethod
    def at(cls, policy: PathPolicy, *, writable: bool) -> CommandLine:
        """Return the state at the beginning of a line that runs in the project."""
        known = {"HOME": str(policy.home), "PWD": str(policy.tree), "TMPDIR": tempfile.gettempdir()}
        return cls(context=PathContext(policy, policy.tree), writable=writable, variables=known)

    def check(self, text: str) -> Iterator[Objection]:
        """Yield an objection, or ``None``, for each effect that the text would have."""
        if self.depth > MAX_DEPTH:
            raise ParseError("the command is nested too deeply")
        for command in commands(text):
            self._leave_subshells(command)
            for inner in command.substitutions:
                yield from self._nested().check(inner)
            yield from (self._check_redirect(redirect) for redirect in command.redirects)
            words = expand(command.words, self.variables)
            yield from self._check_command(words, command)
            named = {os.path.basename(word.text) for word in words}  # noqa: PTH119 - text, not a path
            self.downloading = bool(named & DOWNLOADERS) or (self.downloading and command.reads_pipe)

    def _leave_subshells(self, command: Command) -> None:
        """Return to the outer folder: a change of folder ends with its subshell or pipe."""
        while self.outer_contexts:
            subshell, context = self.outer_contexts[-1]
            if subshell == command.subshell[: len(subshell)]:
                break
            self.context = context
            self.outer_contexts.pop()
        # In ``(cd src) | ls`` the folder has already been restored with the end of the subshell.
        if self.changed_folder and command.reads_pipe and self.outer_contexts:
            self.context = self.outer_contexts.pop()[1]
        self.changed_folder = False
        if not command.reads_pipe:
            self.downloading = False

    def _nested(self) -> CommandLine:
        context = attrs.evolve(self.context)
        return CommandLine(
            context=context, writable=self.writable, depth=self.depth + 1, variables=dict(self.variables)
        )

    def _check_redirect(self, redirect: Redirect) -> Objection:
        targets = expand([redirect.target], self.variables)
        text = targets[0].text if targets else ""
        if redirect.operator in ("<<", "<<-", "<<<") or (
            redirect.operator[-1] == "&" and text.strip("-").isdigit()
        ):
            return None
        if redirect.operator in ("<", "<&"):
            return self.context.check_read(Word(text))
        if text == "-":
            return None
        objection = next((v for target in targets if (v := self.context.check_write(target))), None)
        if not self.writable and not text.startswith("/dev/"):
            return Deny(reason="this step is read-only")
        return objection

    def _check_command(self, words: list[Word], command: Command) -> Iterator[Objection]:
        """Check a simple command, and the command inside it if it is a wrapper."""
        words = self._without_keywords(words)
        kept = all(ASSIGNMENT.fullmatch(word.text) for word in words)
        while words and (match := ASSIGNMENT.fullmatch(words[0].text)):
            yield self._check_assignment(match[1], match[2], kept=kept)
            words = words[1:]
        if not words:
            return
        if not words[0].known:
            yield Ask(reason="the program is known only at run time")
            return
        program = _program_name(words[0].text)
        if (inner := self._unwrapped(program, words)) is not None:
            yield from self._check_command(inner, command)
            return
        yield from self._check_program(program, words[1:], command)

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

    def _check_assignment(self, name: str, value: str, *, kept: bool) -> Objection:
        if kept:
            self.variables[name] = value
        if UNSAFE_VARIABLE.fullmatch(name):
            return Deny(reason=f"agents may not set {name}")
        if name.endswith(("PAGER", "EDITOR", "BROWSER")) and value not in ("", "cat", "less", "true", ":"):
            return Ask(reason=f"{name} can run arbitrary commands")
        return None

    def _unwrapped(self, program: str, words: list[Word]) -> list[Word] | None:
        """Return the command inside a wrapper like ``timeout 5 …``; ``None`` if it is not a wrapper."""
        pair = f"{program} {words[1].text}" if len(words) > 1 else ""
        if pair in WRAPPERS:
            return _after_options(words[2:], *WRAPPERS[pair])
        if program in WRAPPERS and not (program == "command" and _has(words, "-v", "-V")):
            rest = _after_options(words[1:], *WRAPPERS[program])
            return [*rest, Word(UNKNOWN)] if program == "xargs" and rest else rest
        if program in INTERPRETERS and len(words) > 2 and words[1].text == "-m":
            return words[2:]
        return None

    def _check_program(self, program: str, words: list[Word], command: Command) -> Iterator[Objection]:
        if program == "cd" or program in ("pushd", "popd"):
            yield self._change_folder(program, words, command)
            return
        if program in ("env", "export", "declare", "local", "readonly", "typeset", "unset"):
            yield from self._check_environment(program, words, command)
            return
        yield from self._check_code_arguments(program, words, command)
        if program == "git" or program.startswith("git-"):
            prefix = [Word(program[4:])] if program.startswith("git-") else []
            yield from check_git([*prefix, *words], self.context, writable=self.writable)
            return
        yield from check_network(program, words)
        if program == "find":
            yield from self._check_find(words, command)
        yield from check_writes(program, words, self.context)
        yield from self._check_arguments(program, words)
        if not self.writable and not only_reads(program, words):
            yield Deny(reason=f"this step is read-only, and {program} may change something")

    def _check_arguments(self, program: str, words: list[Word]) -> Iterator[Objection]:
        """Check the arguments of any program as the paths that they may be."""
        if program in PRINTING_PROGRAMS:
            return
        skip = 1 if program in PATTERN_FIRST and not _has(words, "-e", "-f") else 0
        bare = [word for word in without_excluded(words) if not word.text.startswith("-")]
        for word in bare[skip:]:
            yield self.context.check_read(word)
            if (
                program not in READ_ONLY_PROGRAMS
                and program != "find"
                and (name := self.context.protected_name(word))
            ):
                yield Deny(reason=f"agents may not change {name}")

    def _change_folder(self, program: str, words: list[Word], command: Command) -> Objection:
        target = next((word for word in words if not word.text.startswith("-") or word.text == "-"), None)
        self.outer_contexts.append((command.subshell, self.context))
        self.changed_folder = True
        if program == "popd" or (target and (not target.known or target.text == "-" or target.pattern)):
            self.context = PathContext(self.context.policy, None)
            return None
        where = target.text if target else str(self.context.policy.home)
        if name := self.context.protected_name(Word(where)):
            # An agent's shell may keep the folder for its next command, which is then checked as if it
            # ran in the project's root.
            return Deny(reason=f"agents may not change into {name}")
        if self.context.cwd is None and not where.startswith("/"):
            return None
        folder = self.context.policy.resolved(where, self.context.cwd)
        objection = self.context.policy.check_read(where, self.context.cwd)
        self.context = PathContext(self.context.policy, folder if folder.is_dir() else None)
        return objection

    def _check_environment(self, program: str, words: list[Word], command: Command) -> Iterator[Objection]:
        if program == "unset":
            if any(word.text.startswith("GSD_") for word in words):
                yield Deny(reason=KEEP_RUN)
            return
        if program != "env":
            for word in words:
                if match := ASSIGNMENT.fullmatch(word.text):
                    yield self._check_assignment(match[1], match[2], kept=True)
            return
        if _has(words, "-i", "-", "--ignore-environment"):
            yield Deny(reason="the environment must be kept: it identifies the run's processes")
        if any(re.match(r"-C|--chdir", word.text) for word in words):
            yield Ask(reason="use cd instead of env -C, so that paths can be checked")
        for word, following in with_next(words):
            if word.text.startswith(("-S", "--split-string")):
                yield from self._nested().check(word.text.removeprefix("-S") + " " + following.text)
            if following.text.startswith("GSD_") and word.text in ("-u", "--unset"):
                yield Deny(reason=KEEP_RUN)
        yield from self._check_command(_after_options(words, "-u --unset -C --chdir -S", 0), command)

    def _check_code_arguments(self, program: str, words: list[Word], command: Command) -> Iterator[Objection]:
        """Check commands and code that are given as arguments."""
        if program in SHELLS:
            yield from self._check_shell(words, command)
        elif program == "eval":
            yield from self._check_text(" ".join(word.text for word in words), command)
        elif program in (".", "source") and words and not words[0].known:
            yield self._unknown_code(command)
        elif program in ("trap", "alias"):
            texts = [word.text.partition("=")[2] for word in words] if program == "alias" else []
            for text in texts or [word.text for word in words[:1]]:
                yield from self._check_text(text, command)
        elif re.sub(r"[\d.]+$", "", program) in INTERPRETERS:
            yield from self._check_interpreter(words, command)
        elif program in ("awk", "gawk", "mawk", "sed"):
            yield from (_check_code(word.text) for word in words)

    def _check_shell(self, words: list[Word], command: Command) -> Iterator[Objection]:
        here_documents = [part.here_document for part in command.redirects if part.operator == "<<"]
        here_strings = [part.target for part in command.redirects if part.operator == "<<<"]
        place = next((n for n, w in enumerate(words) if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", w.text)), None)
        script = next((word for word in words if not word.text.startswith(("-", "+"))), None)
        if place is not None:
            rest = [word for word in words[place + 1 :] if not word.text.startswith("-")]
            yield from self._check_text(rest[0].text if rest else "", command)
        elif script is not None:
            yield None if script.known else self._unknown_code(command)
        for text in [*here_documents, *(word.text for word in expand(here_strings, self.variables))]:
            yield from self._check_text(text, command)
        if command.reads_pipe and script is None:
            yield self._unknown_code(command)

    def _check_text(self, text: str, command: Command) -> Iterator[Objection]:
        if UNKNOWN in text:
            yield self._unknown_code(command)
            return
        yield from self._nested().check(text)

    def _unknown_code(self, command: Command) -> Objection:
        inner = any(re.search(r"\b(?:curl|wget)\b", text) for text in command.substitutions)
        if self.downloading or inner:
            return Deny(reason="downloaded code may not be run unseen")
        return Ask(reason="what the shell executes is known only at run time")

    def _check_interpreter(self, words: list[Word], command: Command) -> Iterator[Objection]:
        code = [f.text for w, f in pairwise(words) if re.fullmatch(r"-\w*[cepPrE]|--eval", w.text)]
        code += [part.here_document for part in command.redirects if part.operator == "<<"]
        here_strings = [part.target for part in command.redirects if part.operator == "<<<"]
        code += [word.text for word in expand(here_strings, self.variables)]
        yield from (_check_code(text) for text in code)
        if command.reads_pipe and self.downloading and not [word for word in words if word.text != "-"]:
            yield Deny(reason="downloaded code may not be run unseen")

    def _check_find(self, words: list[Word], command: Command) -> Iterator[Objection]:
        yield from check_find(words, self.context)
        for place, word in enumerate(words):
            if word.text not in ("-exec", "-execdir", "-ok", "-okdir"):
                continue
            inner = [Word(UNKNOWN) if "{}" in w.text else w for w in _until_end(words[place + 1 :])]
            program = _program_name(inner[0].text) if inner else ""
            if program not in READ_ONLY_PROGRAMS:
                yield check_find_targets(words[:place], self.context)
            if program not in ("rm", "unlink", "rmdir", "shred"):
                yield from self._nested()._check_command(inner, command)
            elif not self.writable:
                yield Deny(reason="this step is read-only")


def _check_code(text: str) -> Objection:
    if match := GIT_IN_CODE.search(text) or NAME_IN_CODE.search(text):
        return Deny(reason=f"agents may not run code that mentions {match[0].strip()!r}")
    return None


def _program_name(text: str) -> str:
    name = os.path.basename(text).lower()  # noqa: PTH119 - text, not a path
    return name.removesuffix(".exe") or text


def _after_options(words: Sequence[Word], valued: str, skipped: int) -> list[Word]:
    """Return the command after a wrapper's options and arguments."""
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
