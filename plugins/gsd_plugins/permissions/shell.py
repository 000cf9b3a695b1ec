"""Follows a command line as a shell would, and collects what speaks against running it.

Branches are followed one after the other, since each of them might run. Loops over known words are
followed for each word.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .commands import check_command
from .findings import Findings
from .paths import Paths
from .table import entry_of, table
from .words import (
    CONTENT,
    DOWNLOAD,
    LITERAL,
    STAR,
    UNKNOWN,
    TooComplex,
    body_of,
    expand,
    expand_text,
    is_pattern,
    known,
    parse,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 8
MAX_COMMANDS = 120
MAX_ITERATIONS = 12
ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
_SECRET = re.compile(r"(?i)(?:.*_)?(?:api_?key|token|secret|passw(?:or)?d|credential|private_key)\w*")
_LOCAL = re.compile(r"/dev/\w+/(?:localhost|127\.[\d.]+|::1)/")


@attrs.define
class Shell:
    """The state of a shell at one point of a command line; *bodies* are the texts of its here-documents.

    *downloaded* are names of files that came from another machine, *allowed* the programs of the settings.
    """

    paths: Paths
    findings: Findings
    writable: bool = True
    allowed: frozenset[str] = frozenset()
    depth: int = 0
    variables: dict[str, str] = attrs.field(factory=dict[str, str])
    functions: dict[str, Node] = attrs.field(factory=dict[str, "Node"])
    bodies: list[str] = attrs.field(factory=list[str])
    downloaded: set[str] = attrs.field(factory=set[str])

    def __attrs_post_init__(self) -> None:
        known_values = {"HOME": str(self.paths.home), "PWD": str(self.paths.tree), "SHELL": "/bin/sh"}
        self.variables = known_values | {"TMPDIR": tempfile.gettempdir(), "IFS": " "} | self.variables

    def run_text(self, text: str, stdin: str = "") -> str:
        """Follow shell text in a subshell; return its output."""
        if not known(text):
            return self.unknown_code(text)
        root, bodies = parse(text.translate(LITERAL))
        if root.has_error:
            self.findings.unparsed(text)
        return self.subshell(bodies=bodies, depth=self._deeper()).walk(root, stdin)

    def nested(self, words: Sequence[str], stdin: str = "", *, installs: bool = False) -> str:
        """Follow a command that another one runs."""
        return self.subshell(depth=self._deeper()).run(words, stdin, installs=installs)

    def subshell(self, **changes: object) -> Shell:
        """Return a copy: what it assigns and defines ends with it."""
        state = {"variables": dict(self.variables), "functions": dict(self.functions)}
        return attrs.evolve(self, **(state | changes))  # type: ignore[arg-type]

    def unknown_code(self, text: str) -> str:
        """Object to running text that is not known."""
        if DOWNLOAD in text:
            self.findings.deny("downloaded code may not be run unseen: save it to a file and read it first")
        self.findings.ask("what the shell executes is known only at run time: write it out")
        return UNKNOWN

    def variable(self, name: str) -> str:
        """Return the value of a variable; any word for those that are numbers or names."""
        if name in table()["shell"]["words"]:
            return STAR
        return self.variables.get(name, CONTENT if _SECRET.fullmatch(name) else UNKNOWN)

    def substitute(self, node: Node) -> str:
        """Follow the commands of ``$(…)`` or ``<(…)``; return their output."""
        text = text_of(node)
        if text.startswith("`") and "\\`" in text:
            return self.run_text(re.sub(r"\\([`$\\])", r"\1", text[1:-1]))
        output = self.subshell()._sequence(node, "")
        return CONTENT if re.match(r"\$\(\s*<", text) else output

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
                return self._redirected(node, stdin)
            case "subshell":
                return self.subshell()._sequence(node, stdin)
            case "command_substitution" | "process_substitution":
                self.substitute(node)
            case "for_statement":
                return self._loop(node, stdin)
            case "function_definition":
                for redirect in node.children_by_field_name("redirect"):
                    self._redirect(redirect)
                if (name := node.child_by_field_name("name")) and (body := node.child_by_field_name("body")):
                    self.functions[text_of(name)] = body
            case "variable_assignment":
                self._assignment(node, kept=True)
            case "declaration_command":
                for child in node.named_children:
                    if child.type == "variable_assignment":
                        self._assignment(child, kept=True)
                    elif found := ASSIGNMENT.fullmatch(expand_text(child, self)):
                        self.assign(found[1], found[2])
            case "unset_command" if any(text_of(child).startswith("GSD_") for child in node.named_children):
                self.findings.deny("GSD_RUN must stay set: it identifies the run's processes")
            case "file_redirect" | "herestring_redirect":
                self._redirect(node)
            case "comment" | "heredoc_body":
                pass
            case "list" if (node.parent and node.parent.type == "list") or re.match(
                "cd|mkdir", text_of(node)
            ):
                # Of other lists, such as `test … && cd x`, the end may not run.
                return self._sequence(node, stdin)
            case "program" | "compound_statement" | "do_group":
                return self._sequence(node, stdin)
            case _:
                # Parts that may or may not run: after them, the folder may be the one before.
                before = self.paths.folders
                output = self._sequence(node, stdin)
                self._enter(self.paths.folders, before)
                return output
        return ""

    def _sequence(self, node: Node, stdin: str) -> str:
        outputs = [self.walk(child, stdin) for child in node.named_children]
        return "\n".join(output.rstrip("\n") for output in outputs if output)

    def _loop(self, node: Node, stdin: str) -> str:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        given = node.children_by_field_name("value")
        values = [word for child in given for word in expand(child, self)] if given else [self.variable("@")]
        if len(values) > MAX_ITERATIONS:
            values = [*values[:MAX_ITERATIONS], UNKNOWN]
        before = self.paths.folders
        output = ""
        for value in values if name and body else ():
            self.variables[text_of(name)] = value if known(value) else UNKNOWN  # type: ignore[arg-type]
            output = self.walk(body, stdin)  # type: ignore[arg-type]
        self._enter(self.paths.folders, before)
        return output

    def _redirected(self, node: Node, stdin: str) -> str:
        followers: list[Node] = []
        writes = False
        redirects = node.children_by_field_name("redirect")
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                # What follows the operator on its line, `| sh` or more words, is in this node.
                stdin = body_of(redirect, self.bodies, self)
                inner = [
                    child for child in redirect.named_children if not re.match("heredoc|file_d", child.type)
                ]
                redirects += [child for child in inner if child.type.endswith("_redirect")]
                followers += [child for child in inner if not child.type.endswith("_redirect")]
            else:
                # The parser counts words behind `< file` as further files; they are arguments.
                followers += redirect.children_by_field_name("destination")[1:]
                wrote, text = self._redirect(redirect)
                writes |= wrote
                stdin = text if text is not None else stdin
        body = node.child_by_field_name("body")
        commands = [child for child in followers if child.type in ("pipeline", "list", "command")]
        output = ""
        if body is not None and body.type == "command":
            output = self._command(body, stdin, [child for child in followers if child not in commands])
        elif body is not None:
            output = self.walk(body, stdin)
        for child in commands:
            output = self.walk(child, output if child.type == "pipeline" else "")
        return "" if writes else output

    def _redirect(self, node: Node) -> tuple[bool, str | None]:
        """Check a redirection; return whether it takes the output, and the input that it gives, if any."""
        if node.type == "herestring_redirect":
            return False, "\n".join(expand_text(child, self) for child in node.named_children)
        operator = next((text_of(child) for child in node.children if not child.is_named), ">")
        descriptor = next((text_of(child) for child in node.children if child.type == "file_descriptor"), "")
        given = node.children_by_field_name("destination")[:1]
        for target in [word for child in given for word in expand(child, self)]:
            if operator.endswith("&") and re.fullmatch(r"\d*-?|\x03", target):
                return False, None
            if target.startswith(("/dev/tcp/", "/dev/udp/")):
                if not _LOCAL.match(target):
                    self.findings.outward("it connects to another machine")
                return False, UNKNOWN
            if operator.startswith("<") and operator != "<>":
                self.findings.add(self.paths.check_read(target))
                text = target.removeprefix("/dev/fd/")
                return False, text if text != target else CONTENT
            self.findings.add(self.paths.check_write(target))
            if not self.writable and not target.startswith("/dev/"):
                self.findings.written.append(f"it writes {target!r}")
        return descriptor in ("", "1", "&") and bool(given), None

    def _assignment(self, node: Node, *, kept: bool) -> None:
        left = text_of(node).partition("=")[0]
        name = left.removesuffix("+").partition("[")[0]
        value = node.child_by_field_name("value")
        text = ""
        if value is not None and value.type == "array":
            text = " ".join(word for child in value.named_children for word in expand(child, self))
        elif value is not None:
            text = expand_text(value, self)
        self.assign(name, self.variable(name) + text if left.endswith("+") else text, kept=kept)

    def assign(self, name: str, value: str, *, kept: bool = True) -> None:
        """Check an assignment, and remember it if it is *kept* for the commands that follow."""
        if kept:
            self.variables[name] = value
        special = table()["shell"]
        if any(fnmatchcase(name, each) for each in special["unsafe"]) and (name != "IFS" or kept):
            self.findings.deny(f"agents may not set {name}")
        if any(fnmatchcase(name, each) for each in special["running"]) and value not in special["pagers"]:
            self.findings.ask(f"{name} can run arbitrary commands")
            self.run_text(value)

    def _command(self, node: Node, stdin: str, more: Sequence[Node] = ()) -> str:
        name = node.child_by_field_name("name")
        words = expand(name, self) if name else []
        for redirect in node.children_by_field_name("redirect"):
            text = self._redirect(redirect)[1]
            stdin = text if text is not None else stdin
        for child in [*node.children_by_field_name("argument"), *more]:
            words += expand(child, self)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, kept=not words)
            elif child.type in ("subshell", "ERROR"):
                self.walk(child, "")
        while not node.next_sibling and node.parent and node.parent.type == "list":
            node = node.parent
        guarded = node.next_sibling is not None and node.next_sibling.type == "&&"
        return self.run(words, stdin, guarded=guarded)

    def run(
        self, words: Sequence[str], stdin: str = "", *, installs: bool = False, guarded: bool = False
    ) -> str:
        """Follow one command; return its output.

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
        hidden = (first and not base) or not known(first) or is_pattern(base)
        if hidden and not entry_of("kinds", base):
            self.findings.ask("the program is known only at run time: write it out")
            return UNKNOWN
        if match := ASSIGNMENT.fullmatch(first):
            self.assign(match[1], match[2], kept=len(words) == 1)
            return self.run(arguments, stdin)
        if first in self.functions:
            return self._call(first, arguments, stdin)
        match base.lower().removesuffix(".exe"):
            case "cd" | "pushd" | "popd" as name:
                self._change_folder(name, arguments, guarded=guarded)
                return ""
            case "read" | "mapfile" | "readarray":
                line = stdin.strip("\n")
                self.variables |= dict.fromkeys(arguments, line if line and "\n" not in line else UNKNOWN)
                return ""
            case "set" if "--" in arguments:
                self.variables["@"] = " ".join(arguments[arguments.index("--") + 1 :])
                return ""
            case name:
                return check_command(self, first, name, arguments, stdin, installs=installs)

    def _call(self, name: str, arguments: Sequence[str], stdin: str) -> str:
        """Follow a function of the command line."""
        parameters = {str(n): word for n, word in enumerate(arguments, 1)}
        values = self.variables | parameters | {"@": " ".join(arguments), "*": " ".join(arguments)}
        inner = attrs.evolve(self, variables=values, depth=self._deeper())
        output = inner.walk(self.functions[name], stdin)
        self.paths = inner.paths
        return output

    def _deeper(self) -> int:
        if self.depth >= MAX_DEPTH:
            raise TooComplex("the command is nested too deeply")
        return self.depth + 1

    def _change_folder(self, program: str, arguments: Sequence[str], *, guarded: bool) -> None:
        target = next((word for word in arguments if not word.startswith("-") or word == "-"), "")
        if program == "popd" or not known(target) or target == "-" or is_pattern(target):
            self._enter()
            return
        where = target or str(self.paths.home)
        if name := self.paths.protected_name(where):
            # An agent's shell may keep the folder for its next command, which is then checked as if it
            # ran in the project's root.
            self.findings.deny(f"agents may not change into {name}")
        before = self.paths.folders or ((self.paths.tree,) if where.startswith("/") else ())
        objections = [self.paths.check_read_path(where, cwd) for cwd in before]
        self.findings.add(objections[0] if objections and all(objections) else None)
        found = tuple(self.paths.resolved(where, cwd) for cwd in before)
        # Without the folder, the command fails and the shell stays where it is.
        self._enter(found, () if guarded or all(folder.is_dir() for folder in found) else before)

    def _enter(self, folders: tuple[Path, ...] = (), others: tuple[Path, ...] = ()) -> None:
        """Continue in one of *folders*, or of *others* if those are known; without any, in an unknown one."""
        merged = tuple(dict.fromkeys([*folders, *others]))[:8] if folders else ()
        self.paths = attrs.evolve(self.paths, folders=merged)
