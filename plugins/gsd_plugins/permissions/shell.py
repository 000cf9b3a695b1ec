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
from .paths import PathContext, PathPolicy
from .table import entry_of, table
from .words import (
    CONTENT,
    DOWNLOAD,
    LITERAL,
    STAR,
    UNKNOWN,
    TooComplex,
    body_of,
    descendants,
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
SECRET_VARIABLE = re.compile(r"(?i)(?:.*_)?(?:api_?key|token|secret|passw(?:or)?d|credential|private_key)\w*")
WORDS = ("word", "string", "raw_string", "concatenation", "simple_expansion", "expansion", "number")


@attrs.define
class Shell:
    """The state of a shell at one point of a command line; *bodies* are the texts of its here-documents.

    *downloaded* are files that came from another machine, *allowed* the programs of the user's settings,
    *unused* the functions that nothing has called yet.
    """

    paths: PathContext
    findings: Findings
    writable: bool = True
    depth: int = 0
    variables: dict[str, str] = attrs.field(factory=dict[str, str])
    functions: dict[str, Node] = attrs.field(factory=dict[str, "Node"])
    bodies: list[str] = attrs.field(factory=list[str])
    downloaded: set[str] = attrs.field(factory=set[str])
    unused: set[str] = attrs.field(factory=set[str])
    allowed: frozenset[str] = frozenset()

    @classmethod
    def at(cls, policy: PathPolicy, findings: Findings, *, writable: bool, allowed: frozenset[str]) -> Shell:
        """Return the state at the beginning of a line that runs in the project."""
        values = {"HOME": str(policy.home), "PWD": str(policy.tree), "TMPDIR": tempfile.gettempdir()}
        values |= {"SHELL": "/bin/sh", "IFS": " "}
        paths = PathContext(policy, (policy.tree,))
        return cls(paths=paths, findings=findings, writable=writable, variables=values, allowed=allowed)

    def run_text(self, text: str, stdin: str = "") -> str:
        """Follow shell text in a subshell; return its output."""
        if not known(text):
            return self.unknown_code(text)
        root, bodies = parse(text.translate(LITERAL))
        if root.has_error:
            self.findings.unparsed(text)
        inner = self.subshell(bodies=bodies, depth=self._deeper())
        output = inner.walk(root, stdin)
        for name in sorted(inner.unused):
            inner._call(name, [UNKNOWN], "")
        return output

    def nested(self, words: Sequence[str], stdin: str = "", *, installs: bool = False) -> str:
        """Follow a command that another one runs."""
        return self.subshell(depth=self._deeper()).run(words, stdin, installs=installs)

    def subshell(self, **changes: object) -> Shell:
        """Return a copy: what it assigns and defines ends with it."""
        state = {"variables": dict(self.variables), "functions": dict(self.functions), "unused": set[str]()}
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
        return self.variables.get(name, CONTENT if SECRET_VARIABLE.fullmatch(name) else UNKNOWN)

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
            case "for_statement":
                return self._loop(node, stdin)
            case "c_style_for_statement":
                for each in descendants(node, "variable_assignment"):
                    self.variables[text_of(each).partition("=")[0]] = STAR
                return self._branches(node, stdin)
            case "if_statement" | "while_statement" | "case_statement" | "elif_clause" | "else_clause":
                return self._branches(node, stdin)
            case "list" if _may_end(node):
                return self._branches(node, stdin)
            case "function_definition":
                name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
                if name and body:
                    self.functions[text_of(name)] = body
                    self.unused.add(text_of(name))
                for redirect in node.children_by_field_name("redirect"):
                    self._redirect(redirect)
            case "variable_assignment":
                self._assignment(node, kept=True)
            case "declaration_command":
                self._declare(node)
            case "unset_command" if any(text_of(child).startswith("GSD_") for child in node.named_children):
                self.findings.deny("GSD_RUN must stay set: it identifies the run's processes")
            case "file_redirect" | "herestring_redirect":
                self._redirect(node)
            case "test_command" | "array" | "word" | "string" | "concatenation" | "expansion":
                for kind in ("command_substitution", "process_substitution"):
                    for inner in descendants(node, kind):
                        self.substitute(inner)
            case "comment" | "heredoc_body":
                pass
            case _:
                return self._sequence(node, stdin)
        return ""

    def _sequence(self, node: Node, stdin: str) -> str:
        outputs = [self.walk(child, stdin) for child in node.named_children]
        return "\n".join(output.rstrip("\n") for output in outputs if output)

    def _branches(self, node: Node, stdin: str) -> str:
        """Follow parts that may or may not run: after them, the folder may be the one before."""
        before = self.paths.folders
        output = self._sequence(node, stdin)
        self._merge(before)
        return output

    def _merge(self, before: tuple[Path, ...]) -> None:
        if after := self.paths.folders:
            self.paths = attrs.evolve(self.paths, folders=tuple(dict.fromkeys([*after, *before]))[:8])

    def _loop(self, node: Node, stdin: str) -> str:
        name, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        given = node.children_by_field_name("value")
        values = [word for child in given for word in expand(child, self)] if given else [self.variable("@")]
        if len(values) > MAX_ITERATIONS:
            values = [*values[:MAX_ITERATIONS], UNKNOWN]
        before = self.paths.folders
        output = ""
        for value in values:
            if name and body:
                self.variables[text_of(name)] = value if known(value) else UNKNOWN
                output = self.walk(body, stdin)
        self._merge(before)
        return output

    def _redirected(self, node: Node, stdin: str) -> str:
        followers: list[Node] = []
        writes = False
        for redirect in node.children_by_field_name("redirect"):
            if redirect.type == "heredoc_redirect":
                # What follows the operator on its line, `| sh` or more words, is in this node.
                stdin = body_of(redirect, self.bodies, self)
                for child in redirect.named_children:
                    if child.type in ("file_redirect", "herestring_redirect"):
                        writes |= self._redirect(child)[0]
                    elif not child.type.startswith(("heredoc", "file_descriptor")):
                        followers.append(child)
            else:
                # The parser counts words behind `< file` as further files; they are arguments.
                followers += redirect.children_by_field_name("destination")[1:]
                wrote, text = self._redirect(redirect)
                writes |= wrote
                stdin = text if text is not None else stdin
        body = node.child_by_field_name("body")
        arguments = [child for child in followers if child.type in WORDS]
        output = ""
        if body is not None and body.type == "command":
            output = self._command(body, stdin, arguments)
        elif body is not None:
            output = self.walk(body, stdin)
        for child in followers:
            if child not in arguments:
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
                if not re.match(r"/dev/\w+/(?:localhost|127\.[\d.]+|::1)/", target):
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
        if any(fnmatchcase(name, each) for each in table()["shell"]["unsafe"]) and (name != "IFS" or kept):
            self.findings.deny(f"agents may not set {name}")
        if (
            any(fnmatchcase(name, each) for each in table()["shell"]["running"])
            and value not in table()["shell"]["pagers"]
        ):
            self.findings.ask(f"{name} can run arbitrary commands")
            self.run_text(value)

    def _declare(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assignment(child, kept=True)
                continue
            for word in expand(child, self):
                if match := ASSIGNMENT.fullmatch(word):
                    self.assign(match[1], match[2])

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
        following = node.next_sibling
        return self.run(words, stdin, guarded=following is not None and following.type == "&&")

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
        name = base.lower().removesuffix(".exe")
        if first in self.functions:
            return self._call(first, arguments, stdin)
        if name in ("cd", "pushd", "popd"):
            self._change_folder(name, arguments, guarded=guarded)
            return ""
        if name in ("read", "mapfile", "readarray"):
            line = stdin.strip("\n")
            self.variables |= dict.fromkeys(arguments, line if line and "\n" not in line else UNKNOWN)
            return ""
        if name == "set" and "--" in arguments:
            self.variables["@"] = " ".join(arguments[arguments.index("--") + 1 :])
        return check_command(self, first, name, arguments, stdin, installs=installs)

    def _call(self, name: str, arguments: Sequence[str], stdin: str) -> str:
        """Follow a function of the command line."""
        self.unused.discard(name)
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
            self.paths = attrs.evolve(self.paths, folders=())
            return
        where = target or str(self.paths.policy.home)
        if name := self.paths.protected_name(where):
            # An agent's shell may keep the folder for its next command, which is then checked as if it
            # ran in the project's root.
            self.findings.deny(f"agents may not change into {name}")
        if not self.paths.folders and not where.startswith("/"):
            return
        found: list[Path] = []
        objections = [self.paths.policy.check_read(where, cwd) for cwd in self.paths.folders or (None,)]
        for cwd in self.paths.folders or (None,):
            folder = self.paths.policy.resolved(where, cwd)
            found.append(folder)
            # Without the folder, the command fails and the shell stays where it is.
            if not folder.is_dir() and not guarded and cwd:
                found.append(cwd)
        if all(objections):
            self.findings.add(objections[0])
        self.paths = attrs.evolve(self.paths, folders=tuple(dict.fromkeys(found))[:8])


def _may_end(node: Node) -> bool:
    """Whether the second part of ``A && B`` or ``A || B`` is likely not to run: A is a test, or may fail."""
    first, operator = node.children[0], node.children[1].type
    while first.type in ("list", "pipeline", "redirected_statement") and first.named_children:
        first = first.named_children[-1 if first.type == "list" else 0]
    tests = re.match(r"(?:false|test|\[|grep|egrep|rg|diff|cmp|command|which|type|!)\b", text_of(first))
    return operator == "||" or bool(tests) or first.type in ("test_command", "negated_command")
