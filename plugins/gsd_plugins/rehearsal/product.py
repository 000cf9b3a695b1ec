"""The product that a rehearsal builds: a small Python program that greets, whatever the idea is.

The files are in ``templates/``; :class:`Product` fills in the names, which come from the idea. The idea of
``examples/greeter.md`` is there, too: its program is the one that is built.
"""

from __future__ import annotations

import json
import keyword
import random
import re
import sys
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

import attrs

_SAMPLES = ("Ada", "Grace", "Alan", "Edsger", "Margaret")
_ENDINGS = (("Period", "."), ("Exclamation mark", "!"), ("Smile", " :)"))
_WORDS = {"english": "Hello", "french": "Bonjour", "spanish": "Hola"}
SCRIPTED = """
A rehearsal of GSD wrote this program from its script.
It always writes this one, and not the one that IDEA.md asks for.
"""
"""What the README of the product says if the idea asks for another program."""


MARKERS = re.compile(r"^(?:<{7} .*|={7}|>{7} .*)\n", re.MULTILINE)
"""The lines that git puts around both sides of a conflict."""


@attrs.frozen(kw_only=True)
class FileEdit:
    """A change to one file of the product; applying it twice is the same as applying it once.

    A file that does not exist gets *content*. In an existing file, each of the *changes* (old, new)
    is made, or *append* adds *content* at the end, or *merge* keeps both sides of each conflict that git
    marked; without any, *content* replaces the file.
    """

    path: str
    content: str
    changes: tuple[tuple[str, str], ...] = ()
    append: bool = False
    merge: bool = False

    def applied(self, before: str | None) -> str:
        """Return the file's text after the edit; *before* is ``None`` if the file does not exist."""
        if before is None:
            return self.content
        if self.merge:
            return MARKERS.sub("", before)
        if self.append:
            return before if self.content in before else f"{before.rstrip()}\n{self.content}".lstrip()
        if not self.changes:
            return self.content
        for old, new in self.missing(before):
            before = before.replace(old, new, 1)
        return before

    def missing(self, text: str) -> tuple[tuple[str, str], ...]:
        """Return the changes that *text* lacks, judged by the first line of each replacement."""
        return tuple((old, new) for old, new in self.changes if new.splitlines()[0] not in text)


@attrs.frozen(kw_only=True)
class Product:
    """The names of the product, derived from an idea and a seed.

    *endings* are the options (label, ending) of the scenario's question, the recommended one first.
    *as_asked*: whether the idea asks for this program.
    """

    title: str
    package: str
    sample: str
    endings: tuple[tuple[str, str], ...] = _ENDINGS
    as_asked: bool = False

    @classmethod
    def from_idea(cls, idea: str, seed: int) -> Product:
        """Return the product for *idea*; the same idea and seed always give the same product."""
        title = title_of(idea)
        rng = random.Random(f"{seed}/{title}")
        return cls(
            title=title,
            package=package_of(title),
            sample=rng.choice(_SAMPLES),
            endings=tuple(rng.sample(_ENDINGS, len(_ENDINGS))),
            as_asked=idea.split() == own_idea().split(),
        )

    def path(self, module: str) -> str:
        """Return the path of a module of the package."""
        return f"{self.package}/{module}.py"

    def answer(self, *path: str, **values: str) -> Any:
        """Return what is at *path* in ``templates/answers.toml``, with the product's names and *values*."""
        found: Any = _answers()
        for name in path:
            found = found[name]
        return _filled(found, {**self._names(), **values})

    def edit(self, what: str, *, ending: str = ".", usage: str = "") -> FileEdit:
        """Return the edit that ``answers.toml`` names: ``FILE``, or ``FILE + WHAT`` for an addition.

        *ending* is the one of greetings, *usage* the template of the section on usage in README.md, if any.
        """
        path, _, added = what.partition(" + ")
        if path == "README.md":
            section = added or usage
            text = f"{self._render(f'{section}.md')}\n" if section else ""
            changes = (("## Development", f"{text}## Development"),) if added else ()
            return FileEdit(path=path, content=self._render("README.md", sections=text), changes=changes)
        if path == "tests/__init__.py":
            return FileEdit(path=path, content=f'"""Tests of {self.package}."""\n')
        was, now = (json.dumps(one, ensure_ascii=False) for one in (self.ending_for(""), ending))
        salute = (*_RENAMED, (f"ENDING = {was}", f"ENDING = {now}"))
        named = {"report": _REPORT_COMMAND, "salute": salute}
        if added and added not in named:
            return FileEdit(path=path, content=f"{added}\n", append=True)
        name = path.rpartition("/")[2]
        phase = re.fullmatch(r"phase_(\w+)\.py", name)
        values = {"ending": now, "phase": phase[1].replace("_", ".") if phase else ""}
        written = FileEdit(path=path, content=self._render("search.py" if phase else name, **values))
        if added:
            written = attrs.evolve(written, changes=named[added])
            return attrs.evolve(written, content=written.applied(written.content))
        return written

    @property
    def renamed_call(self) -> FileEdit:
        """The edit that calls the function for one greeting by its new name."""
        changes = (("import greeting", "import salute"), ("[greeting(guest)", "[salute(guest)"))
        return FileEdit(path=self.path("cards"), content="", changes=changes)

    def ending_for(self, answer: str) -> str:
        """Return the ending that *answer* chose: an option's, or the first characters of free text."""
        chosen = [ending for label, ending in self.endings if answer.startswith(label)]
        own = "".join(filter(str.isprintable, " ".join(answer.split())))[:12].strip()
        return next(iter(chosen), own or self.endings[0][1])

    def _render(self, template: str, **values: str) -> str:
        return _template(template).substitute(self._names(), **values)

    def _names(self) -> dict[str, str]:
        *others, last = _WORDS
        return {
            "package": self.package,
            "title": self.title,
            # A gap detector could take the title for unfinished work.
            "heading": self.package if _UNFINISHED.search(self.title) else self.title,
            "words": json.dumps(_WORDS),
            "languages": f"({', '.join(map(json.dumps, _WORDS))})",
            "listed": f"{', '.join(map(str.title, others))} and {last.title()}",
            "first": others[0],
            "last": last,
            "scripted": "" if self.as_asked else SCRIPTED,
            "sample": self.sample,
        }


_REPORT_COMMAND = (
    ("from .store import", "from .report import report\nfrom .store import"),
    (
        "COMMANDS = {",
        'def summarize(path, line):\n    """Report on all guests."""\n'
        "    return report(load(path))\n\n\nCOMMANDS = {",
    ),
    ('    "list": show,\n', '    "report": summarize,\n    "list": show,\n'),
)
"""The changes that add the command ``report`` to the command line."""
_RENAMED = (("def greeting(guest):", "def salute(guest):"), ("[greeting(guest) for", "[salute(guest) for"))
"""The changes that rename the function for one greeting where it is defined."""


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return *value*, made of tables, lists and strings, with these names in its strings."""
    match value:
        case str():
            return Template(value).substitute(names)
        case [*each]:
            return [_filled(one, names) for one in each]
        case {**table}:
            return {key: _filled(one, names) for key, one in table.items()}
        case _:
            return value


@cache
def _answers() -> Mapping[str, Any]:
    return tomllib.loads(_text("answers.toml"))


@cache
def own_idea() -> str:
    """Return the idea of the program that is built; ``examples/greeter.md`` is the same."""
    return _text("greeter.md.txt")


def _text(name: str) -> str:
    return (files("gsd_plugins.rehearsal") / "templates" / name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    # The suffix keeps linters, type checkers and pytest away from files that are not Python yet.
    return Template(_text(f"{name}.txt"))


_LENGTH = 20_000
"""Characters of an idea that are read: an idea may be a whole book."""

_SHORT_WORDS = "a an and app are as at be by can for if in is it its my no not of on or our so the to we you"
_SHORT = frozenset(_SHORT_WORDS.split())
_RESERVED = frozenset(
    {"build", "conftest", "dist", "docs", "examples", "placeholder", "setup", "src", "test", "tests", "venv"}
)
_UNFINISHED = re.compile(r"todo|fixme|tbd|xxx|placeholder|soon|implemented|stub|lorem", re.IGNORECASE)


def title_of(idea: str) -> str:
    """Return the idea's title: its first heading, or else its first line that contains a word."""
    lines = idea[:_LENGTH].splitlines()
    headings = [line for line in lines if line.lstrip().startswith("# ")]
    plain = (_without_markup(line) for line in [*headings, *lines])
    title = next((line for line in plain if any(map(str.isalnum, line))), "")
    return title[:60].strip() or "Notebook"


def _without_markup(line: str) -> str:
    """Return *line* without markup, quotes, and control or bidi characters."""
    visible = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in line)
    return " ".join(re.sub(r"[\\\"'`*_#<>\[\]{}|$]+", " ", visible).split())


def package_of(title: str) -> str:
    """Return a name for the Python package: an identifier that shadows no module or keyword.

    It consists of at most two words, taken from before a colon or a dash in the title.
    """
    head = re.split(r":| [-–—] ", title)[0]
    folded = unicodedata.normalize("NFKD", head).encode("ascii", "ignore").decode().lower()
    words = [word for word in re.findall(r"[a-z0-9]+", folded) if word not in _SHORT]
    name = "_".join(words[:2])[:30].strip("_") or "project"
    if name[0].isdigit():
        name = f"app_{name}"
    is_taken = keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in sys.stdlib_module_names
    return f"{name}_app" if is_taken or name in _RESERVED else name
