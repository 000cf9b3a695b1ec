"""Reads shell text with tree-sitter-bash, and checks the commands in it in their order.

No control flow is computed: branches are checked one after the other, since each of them might run, the body
of a loop for each word, and that of a function where it is defined. Words are expanded as far as they are
literal, with variables, here-documents and what ``echo`` prints, which is what a careless agent writes.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Set
from functools import cache
from typing import TYPE_CHECKING

import attrs

from .checks import check_command, output_of
from .effects import Findings, check_address, check_outward, unescaped
from .paths import STAR, UNKNOWN, Paths, known
from .table import base_name, entry_of, table

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_COMMANDS = 120
MAX_ITERATIONS = 12
_SPLIT, _BODY = "\x11", "\x12"
_MARKERS = re.compile(r"[\x00-\x06\x0e-\x14]")
# Characters that the shell interprets where they are not quoted, and what stands for them until a word is
# complete.
_LIVE = str.maketrans("*?{,}[]", STAR + STAR + "\x06\x0e\x0f\x04\x05")
_LITERAL = str.maketrans("\x06\x0e\x0f\x04\x05\x13\x14", "{,}[]'\"", _BODY)
_QUOTES = str.maketrans("'\"", "\x13\x14")
_SPECIAL = (re.compile(r"\\(?:\n|(.))|([*?{,}\[\]])", re.DOTALL), re.compile(r"\\(?:\n|([$`\"\\]))()"))
"""Escaped characters, and those with a meaning, in text without quotes and in double quotes."""
_CHOICES = re.compile("\x06[^\x06\x0f]*\x0e[^\x06\x0f]*\x0f|\x04[^\x05/]+\x05")
_HERE_DOCUMENT = re.compile(
    r"(?<!<)<<-?[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)(?P<rest>(?![\w'\"])[^\n]*\n)"
    r"(?P<body>.*?)^\t*(?P=end)$\n?",
    re.DOTALL | re.MULTILINE,
)
_PARAMETER = re.compile(r"\$\{(\w+|[@*])(?:\[[@*]\])?(?:(:?[-=]|%%?)([^$`]*))?\}", re.DOTALL)

# The parser's time and memory grow with the square of some of these counts (measured: 100 kB of `a|` need
# more than 10 GB, 8 kB of them 0.9 s).
MAX_LENGTH, MAX_STRUCTURE, MAX_PIPES, MAX_DOCUMENTS = 20_000, 1500, 300, 20
MAX_EXPANDED, MAX_WORDS = 100_000, 1000


class TooComplex(Exception):
    """A command that is too long or too complex to be checked."""


@attrs.define
class Shell:
    """The state of a shell at one point of a command line.

    *downloaded* are names of files that came from another machine, *allowed* the programs of the settings.
    """

    paths: Paths
    findings: Findings
    allowed: Set[str] = frozenset()
    variables: dict[str, str] = attrs.field(factory=lambda: {"TMPDIR": tempfile.gettempdir(), "IFS": " "})
    functions: set[str] = attrs.field(factory=set[str])
    downloaded: set[str] = attrs.field(factory=set[str])

    def run_text(self, text: str, stdin: str = "") -> str:
        """Check shell text in a subshell; return its output."""
        if not known(text):
            self.findings.add("hidden", "what the shell executes is known only at run time: write it out")
            return UNKNOWN
        root = parse(text.replace(STAR, "*"))
        if root.has_error:
            reason = "the command cannot be checked: it is not valid shell, or of an unusual form"
            self.findings.add("hidden", reason)
        return self.subshell().walk(root, stdin)

    def subshell(self, **changes: object) -> Shell:
        """Return a copy: what it assigns ends with it."""
        return attrs.evolve(self, **({"variables": dict(self.variables)} | changes))  # type: ignore[arg-type]

    def walk(self, node: Node, stdin: str) -> str:
        """Check the commands of a syntax node; return what they print, or of a redirection, the input."""
        match node.type:
            case "command" | "redirected_statement":
                return self._command(node, stdin)
            case "pipeline":
                for child in node.named_children:
                    stdin = self.subshell().walk(child, stdin)
                return stdin
            case "subshell":
                return self.subshell()._sequence(node, stdin)
            case "for_statement" if body := node.child_by_field_name("body"):
                name = node.child_by_field_name("variable")
                values = self._expand(*node.children_by_field_name("value"))
                for value in values if 0 < len(values) <= MAX_ITERATIONS else [UNKNOWN]:
                    self.variables[text_of(name) if name else ""] = value
                    self.walk(body, stdin)
            case "function_definition" if name := node.child_by_field_name("name"):
                self.functions.add(text_of(name))
                unknown = dict.fromkeys([*"123456789@*"], UNKNOWN)
                self.subshell(variables=self.variables | unknown)._sequence(node, UNKNOWN)
            case "variable_assignment" | "declaration_command":
                for child in node.named_children if node.type[0] == "d" else [node]:
                    self.assign(self._expand_text(child))
            case "unset_command" if "GSD_" in text_of(node):
                self.findings.add("deny", "GSD_RUN must stay set: it identifies the run's processes")
            case "file_redirect":
                return self._redirect(node)
            case "herestring_redirect":
                return "\n".join(map(self._expand_text, node.named_children)).removesuffix("\n")
            case "heredoc_redirect":
                self._sequence(node, UNKNOWN)
            case _:
                before, output = self.paths.folder, self._sequence(node, stdin)
                # The end of a list such as `test … && cd x`, or of a branch, may not run: after it, the
                # folder may be the one before.
                if self.paths.folder != before and text_of(node)[:2] not in ("cd", "mk"):
                    self.paths = attrs.evolve(self.paths, folder=None)
                return output
        return UNKNOWN

    def _sequence(self, node: Node, stdin: str) -> str:
        return "\n".join([self.walk(child, stdin) for child in node.named_children])

    def _redirect(self, node: Node) -> str:
        operator = next((text_of(child) for child in node.children if not child.is_named), ">")
        for target in self._expand(*node.children_by_field_name("destination")[:1]):
            if target.startswith(("/dev/tcp/", "/dev/udp/")):
                check_address(self.findings, target.split("/")[3])
            elif operator.startswith("<") and operator not in ("<>", "<&"):
                self.findings.object(self.paths.check_read(target))
            elif not operator.endswith("&") or not re.fullmatch(r"\d*-?|\x03", target):
                self.findings.object(self.paths.check_write(target))
                if target[:5] != "/dev/":
                    self.findings.add("change", f"it writes {target!r}")
        return UNKNOWN if operator.startswith("<") else ""

    def assign(self, text: str, *, kept: bool = True) -> None:
        """Check an assignment, and remember it if it is *kept* for the commands that follow."""
        name, equals, value = re.sub(r"\A(\w+)\+=", r"\1=", text).partition("=")
        if not equals:
            return
        if kept:
            self.variables[name] = value
        if (kept or name != "IFS") and "ask" in self.findings.apply_rules("=", [f"{name}={value}"]):
            self.run_text(value)
        check_outward(self.findings, "=", [f"{name}={value}"])

    def _command(self, node: Node, stdin: str) -> str:
        """Check a command, or another statement with redirections."""
        body = node.child_by_field_name("body")
        command = body if body and body.type == "command" else node
        parts = command.children_by_field_name("name") + command.children_by_field_name("argument")
        children = command.named_children + (node.named_children if command != node else [])
        for child in children:
            if child.type in ("subshell", "ERROR"):
                self.walk(child, "")
            elif child.type.endswith("_redirect"):
                # The parser counts words behind `< file` as further files; they are arguments.
                parts += child.children_by_field_name("destination")[1:]
                stdin = self.walk(child, "") or stdin
        if body and command == node:
            return self.walk(body, stdin)
        words = self._expand(*parts)
        for child in children:
            if child.type == "variable_assignment":
                self.assign(self._expand_text(child), kept=not words)
        while not node.next_sibling and node.parent and node.parent.type == "list":
            node = node.parent
        guarded = node.next_sibling is not None and node.next_sibling.type == "&&"
        return self.run(words, stdin, guarded=guarded)

    def run(self, words: list[str], stdin: str = "", *, installs: bool = False, guarded: bool = False) -> str:
        """Check one command; return its output, if that is literal.

        *installs*: an unknown program is one of the project's environment or of a package registry.
        *guarded*: what follows runs only if this succeeds.
        """
        self.findings.commands += 1
        if self.findings.commands > MAX_COMMANDS:
            raise TooComplex("the command runs too many commands to be checked")
        if not words:
            return ""
        first, arguments = words[0], words[1:]
        base = first.rpartition("/")[2]
        if ((first and not base) or not known(first) or STAR in base) and not entry_of("kinds", base):
            self.findings.add("hidden", "the program is known only at run time: write it out")
            return UNKNOWN
        name = base_name(base.lower().removesuffix(".exe"))
        if first not in self.functions:
            check_command(self, first, name, arguments, stdin, installs=installs)
        if name in ("cd", "pushd", "popd"):
            self._change_folder(name, arguments, guarded=guarded)
        elif name in ("read", "mapfile", "readarray"):
            line = stdin if stdin and "\n" not in stdin.strip("\n") else UNKNOWN
            self.variables |= dict.fromkeys(arguments, line)
        return output_of(self, name, arguments, stdin)

    def _change_folder(self, name: str, words: list[str], *, guarded: bool) -> None:
        """Continue where ``cd`` leads, or in a folder that is known only at run time."""
        paths = self.paths
        target = next((word for word in words if word == "-" or word[:1] != "-"), str(paths.home))
        # An agent's shell may keep the folder for its next command, which is then checked as if it ran in the
        # project's root.
        if protected := paths.protected_name(target):
            self.findings.add("deny", f"agents may not change into {protected}")
        is_plain = known(target) and STAR not in target and target != "-" and name != "popd"
        where = paths.places(target)[1] if is_plain and (paths.folder or target[:1] == "/") else None
        if where:
            self.findings.object(paths.check_read_path(target))
        # Without the folder, the command fails and the shell stays where it is.
        self.paths = attrs.evolve(paths, folder=where if where and (guarded or where.is_dir()) else None)

    # Words

    def _expand(self, *nodes: Node) -> list[str]:
        """Return the words that nodes expand to."""
        words: list[str] = []
        for node in nodes:
            text = self._render(node, quoted=False)
            is_empty = not text and node.type in ("string", "raw_string", "concatenation", "ansi_c_string")
            words += [""] if is_empty else [_finished(part) for part in text.split(_SPLIT) if part]
        if len(words) > MAX_WORDS:
            raise TooComplex("the command has too many words")
        return words

    def _expand_text(self, node: Node) -> str:
        """Return what a node expands to where the shell splits no words: a value or a here-document."""
        return _finished(self._render(node, quoted=False).replace(_SPLIT, " "))

    def _variable(self, name: str) -> str:
        """Return the value of a variable; any word for those that are numbers or names."""
        fixed = {"HOME": str(self.paths.home), "PWD": str(self.paths.tree), "SHELL": "/bin/sh"}
        names = dict.fromkeys(table()["shell"]["words"], STAR)
        return (fixed | self.variables | names).get(name, UNKNOWN)

    def _render(self, node: Node, *, quoted: bool) -> str:
        text, value = text_of(node), ""
        match node.type:
            case "raw_string":
                return text[1:-1]
            case "ansi_c_string":
                return unescaped(text[2:-1])
            case "string" | "translated_string":
                return self._render_parts(node, quoted=True)
            case "simple_expansion":
                value = self._variable(text[1:])
            case "expansion":
                self._render_parts(node, quoted=True)  # follows the commands in it
                match = _PARAMETER.fullmatch(text)
                value = self._variable(match[1]) if match else STAR if text.startswith("${#") else UNKNOWN
                if match and match[2] in ("%", "%%"):
                    value = value.removesuffix(match[3]) if known(value) and "*" not in match[3] else UNKNOWN
                elif match and match[2] and not known(value):
                    value = match[3].strip("'\"")
            case "command_substitution" if text[0] == "`" and "\\`" in text:
                value = self.run_text(re.sub(r"\\([`$\\])", r"\1", text[1:-1])).rstrip("\n")
            case "command_substitution":
                value = self.subshell()._sequence(node, "").rstrip("\n")
            case "process_substitution":
                self.subshell()._sequence(node, "")
                return f"/dev/fd/{UNKNOWN}"
            case "array":
                return " ".join(self._expand(*node.named_children))
            case "arithmetic_expansion" | "brace_expression":
                self._render_parts(node, quoted=True)
                return STAR
            case _:
                return self._render_parts(node, quoted=quoted)
        return value if quoted and "@" not in text else re.sub(r"\s+", _SPLIT, value)

    def _render_parts(self, node: Node, *, quoted: bool) -> str:
        """Render the children of a node and the text between them, which has no nodes."""
        source, at = node.text or b"", 0
        parts: list[str] = []
        for child in [*node.children, None]:
            end = child.start_byte - node.start_byte if child else len(source)
            text = source[at:end].decode("utf-8", "replace")
            plain = _SPECIAL[quoted].sub(lambda match: match[1] or (match[2] or "").translate(_LIVE), text)
            parts.append(plain if quoted or text[:1] != "~" else os.path.expanduser("~") + plain[1:])  # noqa: PTH111
            if child:
                if not (quoted and child.type in ('"', '$"')):
                    parts.append(self._render(child, quoted=quoted))
                at = max(at, child.end_byte - node.start_byte)
        if sum(map(len, parts)) > MAX_EXPANDED:
            raise TooComplex("a part of the command expands to too much text")
        return "".join(parts)


def _finished(word: str) -> str:
    while (chosen := _CHOICES.sub(STAR, word)) != word:
        word = chosen
    return word.translate(_LITERAL)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse(text: str) -> Node:
    """Return the syntax tree of shell text; here-documents are here-strings in it, ``<<< BODY"text"``.

    Raises:
        TooComplex: it is too long or too complex.
    """
    if _MARKERS.search(text):
        raise TooComplex("the command contains control characters")
    bodies = 0

    def take(found: re.Match[str]) -> str:
        nonlocal bodies
        if not found["quote"] and re.search(r"`|\$[^\w\s{]", found["body"]):
            return found[0]
        bodies += 1
        quote = "'" if found["quote"] else '"'
        return f"<<< {_BODY}{quote}{found['body'].translate(_QUOTES)}{quote}{found['rest']}"

    # Files are written with long here-documents, which the parser is too slow for.
    changed = _HERE_DOCUMENT.sub(take, text) if text.count("<<") <= MAX_DOCUMENTS else text
    nodes = [root := _tree(changed)]
    for node in nodes:
        nodes += node.named_children if bodies else ()
    # If `<<` was in quotes or a comment, what was taken for a here-document is none.
    strings = [node for node in nodes if node.type == "herestring_redirect" and _BODY in text_of(node)]
    return root if len(strings) == bodies else _tree(text)


def _tree(text: str) -> Node:
    plain = re.sub(rf"{_BODY}(?:'[^']*'|\"[^\"$]*\")", "", text)
    structure = len(re.findall(r"[|&;<>(){}$`\[]", plain))
    if len(plain) > MAX_LENGTH or plain.count("|") > MAX_PIPES or structure > MAX_STRUCTURE:
        raise TooComplex("the command is too long or too complex to be checked")
    return _parser().parse(text.encode("utf-8", "replace")).root_node


def text_of(node: Node) -> str:
    """Return the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")
