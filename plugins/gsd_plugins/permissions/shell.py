"""Follows the commands of a shell text in their order, and collects what speaks against running it.

Branches are followed one after the other, since each of them might run, and the body of a function where it
is defined. Loops over known words are followed for each word.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .checks import check_command, output_of
from .effects import Findings, check_address, check_database
from .paths import Paths
from .reading import STAR, UNKNOWN, TooComplex, document_of, expand, expand_text, known, parse, text_of
from .table import entry_of, table

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 16
MAX_COMMANDS = 120
MAX_ITERATIONS = 12
ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)


@attrs.define
class Shell:
    """The state of a shell at one point of a command line; *documents* are its here-documents.

    *downloaded* are names of files that came from another machine, *allowed* the programs of the settings.
    """

    paths: Paths
    findings: Findings
    allowed: Set[str] = frozenset()
    depth: int = 0
    variables: dict[str, str] = attrs.field(factory=lambda: {"TMPDIR": tempfile.gettempdir(), "IFS": " "})
    functions: set[str] = attrs.field(factory=set[str])
    documents: list[str] = attrs.field(factory=list[str])
    downloaded: set[str] = attrs.field(factory=set[str])

    def run_text(self, text: str, stdin: str = "") -> str:
        """Follow shell text in a subshell; return its output."""
        if not known(text):
            self.findings.add("hidden", "what the shell executes is known only at run time: write it out")
            return UNKNOWN
        root, documents = parse(text.replace(STAR, "*"))
        if root.has_error:
            reason = "the command cannot be checked: it is not valid shell, or of an unusual form"
            self.findings.add("hidden", reason)
        return self.subshell(documents=documents).walk(root, stdin)

    def subshell(self, **changes: object) -> Shell:
        """Return a copy: what it assigns ends with it."""
        if self.depth >= MAX_DEPTH:
            raise TooComplex("the command is nested too deeply")
        new = {"variables": dict(self.variables), "depth": self.depth + 1} | changes
        return attrs.evolve(self, **new)  # type: ignore[arg-type]

    def variable(self, name: str) -> str:
        """Return the value of a variable; any word for those that are numbers or names."""
        fixed = {"HOME": str(self.paths.home), "PWD": str(self.paths.tree), "SHELL": "/bin/sh"}
        names = dict.fromkeys(table()["shell"]["words"], STAR)
        return (fixed | self.variables | names).get(name, UNKNOWN)

    def substitute(self, node: Node) -> str:
        """Follow the commands of ``$(…)`` or ``<(…)``; return their output."""
        text = text_of(node)
        if text.startswith("`") and "\\`" in text:
            return self.run_text(re.sub(r"\\([`$\\])", r"\1", text[1:-1]))
        return self.subshell()._sequence(node, "")

    def walk(self, node: Node, stdin: str) -> str:
        """Follow the commands of a syntax node; return what they print."""
        match node.type:
            case "command":
                return self._command(node, stdin)
            case "pipeline":
                for child in node.named_children:
                    stdin = self.subshell().walk(child, stdin)
                return stdin
            case "redirected_statement":
                body = node.child_by_field_name("body")
                more: list[Node] = []
                for redirect in [child for child in node.named_children if child != body]:
                    # The parser counts words behind `< file` as further files; they are arguments.
                    more += redirect.children_by_field_name("destination")[1:]
                    stdin = self._redirect(redirect) or stdin
                if body and body.type == "command":
                    return self._command(body, stdin, more)
                return self.walk(body, stdin) if body else ""
            case "subshell":
                return self.subshell()._sequence(node, stdin)
            case "command_substitution" | "process_substitution":
                self.substitute(node)
            case "for_statement" if body := node.child_by_field_name("body"):
                before, name = self.paths.folder, node.child_by_field_name("variable")
                given = node.children_by_field_name("value")
                values = [word for child in given for word in expand(child, self)]
                if len(values) > MAX_ITERATIONS or not all(map(known, values)) or not values:
                    values = [*filter(known, values[:MAX_ITERATIONS]), UNKNOWN]
                for value in values:
                    self.variables[text_of(name) if name else ""] = value
                    self.walk(body, stdin)
                if self.paths.folder != before:
                    self._enter(None)
            case "function_definition" if name := node.child_by_field_name("name"):
                self.functions.add(text_of(name))
                unknown = dict.fromkeys([*"123456789@*"], UNKNOWN)
                self.subshell(variables=self.variables | unknown)._sequence(node, UNKNOWN)
            case "variable_assignment" | "declaration_command":
                for child in node.named_children if node.type[0] == "d" else [node]:
                    if found := ASSIGNMENT.fullmatch(expand_text(child, self)):
                        self.assign(found[1], found[2])
            case "unset_command" if "GSD_" in text_of(node):
                self.findings.add("deny", "GSD_RUN must stay set: it identifies the run's processes")
            case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                self._redirect(node)
            case _:
                before, parent = self.paths.folder, node.parent
                output = self._sequence(node, stdin)
                # Of a list such as `test … && cd x`, and of a branch, the end may not run: after them, the
                # folder may be the one before.
                whole = node.type in ("program", "compound_statement", "do_group")
                if node.type == "list":
                    whole = bool(parent and parent.type == "list") or text_of(node)[:2] in ("cd", "mk")
                if self.paths.folder != before and not whole:
                    self._enter(None)
                return output
        return UNKNOWN

    def _sequence(self, node: Node, stdin: str) -> str:
        return "\n".join([self.walk(child, stdin) for child in node.named_children])

    def _redirect(self, node: Node) -> str:
        """Check a redirection; return the input that it gives, if any."""
        destination = node.children_by_field_name("destination")
        if node.type == "heredoc_redirect":
            self.findings.add("hidden", "a here-document has an unusual form")
            return UNKNOWN
        if node.type == "herestring_redirect":
            return "\n".join(expand_text(child, self) for child in node.named_children)
        operator = next((text_of(child) for child in node.children if not child.is_named), ">")
        for target in [word for child in destination[:1] for word in expand(child, self)]:
            if (document := document_of(target, self)) is not None:
                return document
            if operator.endswith("&") and re.fullmatch(r"\d*-?|\x03", target):
                return ""
            if target.startswith(("/dev/tcp/", "/dev/udp/")):
                check_address(self.findings, target.split("/")[3])
            elif operator.startswith("<") and operator != "<>":
                self.findings.object(self.paths.check_read(target))
            else:
                self.findings.object(self.paths.check_write(target))
                if target[:5] != "/dev/":
                    self.findings.add("change", f"it writes {target!r}")
        return UNKNOWN if operator[0] == "<" else ""

    def assign(self, name: str, value: str, *, kept: bool = True) -> None:
        """Check an assignment, and remember it if it is *kept* for the commands that follow."""
        if kept:
            self.variables[name] = value
        rules = self.findings.apply_rules("=", [f"{name}={value}"]) if kept or name != "IFS" else ()
        if "ask" in rules:
            self.run_text(value)
        if re.search(r"(?i)(?:_|^)(?:index|registry)(?:_url)?$", name):
            check_address(self.findings, value, index=True)
        if name in table()["shell"]["hosts"]:
            check_address(self.findings, value)
        check_database(self.findings, value)

    def _command(self, node: Node, stdin: str, more: Sequence[Node] = ()) -> str:
        name = node.child_by_field_name("name")
        words = expand(name, self) if name else []
        for redirect in node.children_by_field_name("redirect"):
            stdin = self._redirect(redirect) or stdin
        for child in [*node.children_by_field_name("argument"), *more]:
            words += expand(child, self)
        for child in node.named_children:
            if child.type == "variable_assignment":
                if found := ASSIGNMENT.fullmatch(expand_text(child, self)):
                    self.assign(found[1], found[2], kept=not words)
            elif child.type in ("subshell", "ERROR"):
                self.walk(child, "")
        while not node.next_sibling and node.parent and node.parent.type == "list":
            node = node.parent
        guarded = node.next_sibling is not None and node.next_sibling.type == "&&"
        return self.run(words, stdin, guarded=guarded)

    def run(
        self, words: Sequence[str], stdin: str = "", *, installs: bool = False, guarded: bool = False
    ) -> str:
        """Follow one command; return its output, if that is literal.

        *installs*: an unknown program is one of the project's environment or of a package registry.
        *guarded*: what follows runs only if this succeeds.
        """
        self.findings.commands += 1
        if self.findings.commands > MAX_COMMANDS:
            raise TooComplex("the command runs too many commands to be checked")
        if not words:
            return ""
        first, arguments = words[0], list(words[1:])
        base = first.rpartition("/")[2]
        if ((first and not base) or not known(first) or STAR in base) and not entry_of("kinds", base):
            self.findings.add("hidden", "the program is known only at run time: write it out")
            return UNKNOWN
        if match := ASSIGNMENT.fullmatch(first):
            self.assign(match[1], match[2], kept=len(words) == 1)
            return self.run(arguments, stdin)
        name = base.lower().removesuffix(".exe")
        if name in ("cd", "pushd", "popd"):
            given = [word for word in arguments if word[:1] != "-" or word == "-"]
            target, where = [*given, str(self.paths.home)][0], None
            if name != "popd" and known(target) and target != "-" and STAR not in target:
                # An agent's shell may keep the folder for its next command, which is then checked as if it
                # ran in the project's root.
                if protected := self.paths.protected_name(target):
                    self.findings.add("deny", f"agents may not change into {protected}")
                if self.paths.folder or target.startswith("/"):
                    self.findings.object(self.paths.check_read_path(target))
                    where = self.paths.places(target)[1]
            # Without the folder, the command fails and the shell stays where it is.
            self._enter(where if where and (guarded or where.is_dir()) else None)
        elif name in ("read", "mapfile", "readarray"):
            line = stdin if stdin and "\n" not in stdin.strip("\n") else UNKNOWN
            self.variables |= dict.fromkeys(arguments, line)
        elif first not in self.functions:
            check_command(self, first, name, arguments, stdin, installs=installs)
        return output_of(self, name, arguments, stdin)

    def _enter(self, folder: Path | None) -> None:
        """Continue in a folder; ``None`` if it is known only at run time."""
        self.paths = attrs.evolve(self.paths, folder=folder)
