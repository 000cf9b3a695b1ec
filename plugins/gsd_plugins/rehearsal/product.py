"""The product that a rehearsal builds: a small Python program whose names come from the idea.

The files are in ``templates/``; :class:`Product` fills in the names.
"""

from __future__ import annotations

import json
import keyword
import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from string import Template

import attrs

_SAMPLES = ("the first one", "paid for lunch", "call back on Monday", "two of three", "asked for by Ada")
_BULLETS = (("Dash", "-"), ("Star", "*"), ("Arrow", "->"))


@attrs.frozen(kw_only=True)
class FileEdit:
    """A change to one file of the product; applying it twice is the same as applying it once.

    A file that does not exist gets *content*. In an existing file, each of the *changes* (old, new)
    is made, or *append* adds *content* at the end; without either, *content* replaces the file.
    """

    path: str
    content: str
    changes: tuple[tuple[str, str], ...] = ()
    append: bool = False

    def applied(self, before: str | None) -> str:
        """Return the file's text after the edit; *before* is ``None`` if the file does not exist."""
        if before is None:
            return self.content
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

    *bullets* are the options (label, bullet) of the scenario's question, the recommended one first.
    """

    title: str
    package: str
    topics: tuple[str, ...]
    sample: str
    bullets: tuple[tuple[str, str], ...] = _BULLETS

    @classmethod
    def from_idea(cls, idea: str, seed: int) -> Product:
        """Return the product for *idea*; the same idea and seed always give the same product."""
        title = title_of(idea)
        rng = random.Random(f"{seed}/{title}")
        return cls(
            title=title,
            package=package_of(title),
            topics=topics_of(idea),
            sample=rng.choice(_SAMPLES),
            bullets=tuple(rng.sample(_BULLETS, len(_BULLETS))),
        )

    def path(self, module: str) -> str:
        """Return the path of a module of the package."""
        return f"{self.package}/{module}.py"

    def module(self, name: str, **values: str) -> FileEdit:
        """Return the edit that writes a module of the package."""
        return FileEdit(path=self.path(name), content=self._render(f"{name}.py", **values))

    def test(self, name: str) -> FileEdit:
        """Return the edit that writes a test module."""
        return FileEdit(path=f"tests/test_{name}.py", content=self._render(f"test_{name}.py"))

    def listing(self, bullet: str) -> FileEdit:
        """Return the edit that writes the module that lists entries with *bullet*."""
        return self.module("listing", bullet=json.dumps(bullet, ensure_ascii=False))

    def search(self, phase: str) -> FileEdit:
        """Return the edit that writes a module for a phase that the scenario did not plan."""
        name = f"phase_{re.sub(r'[^0-9A-Za-z]', '_', phase)}"
        return FileEdit(path=self.path(name), content=self._render("search.py", phase=phase))

    def report_command(self) -> FileEdit:
        """Return the edit that adds the command ``report`` to the command line."""
        changes = (
            ("from .store import", "from .report import report\nfrom .store import"),
            (
                "COMMANDS = {",
                'def summarize(path, line):\n    """Report on all entries."""\n'
                "    return report(load(path))\n\n\nCOMMANDS = {",
            ),
            ('    "list": show,\n', '    "report": summarize,\n    "list": show,\n'),
        )
        cli = self.module("cli")
        content = attrs.evolve(cli, changes=changes).applied(cli.content)
        return attrs.evolve(cli, content=content, changes=changes)

    def readme(self, *sections: str) -> FileEdit:
        """Return the edit that writes README.md with these sections (names of templates)."""
        return FileEdit(path="README.md", content=self._render("README.md", sections=self._join(sections)))

    def readme_with(self, *sections: str) -> FileEdit:
        """Return the edit that adds *sections* to README.md, before the last one."""
        added = self._join(sections)
        return attrs.evolve(self.readme(*sections), changes=(("## Development", f"{added}## Development"),))

    def license(self) -> FileEdit:
        """Return the edit that adds a license."""
        return FileEdit(path="LICENSE", content=self._render("LICENSE"))

    def gitignore(self) -> FileEdit:
        """Return the edit that keeps Python's bytecode out of git."""
        return FileEdit(path=".gitignore", content="__pycache__/\n", append=True)

    def bullet_for(self, answer: str) -> str:
        """Return the bullet that *answer* chose: an option's, or the first characters of free text."""
        chosen = [bullet for label, bullet in self.bullets if answer.startswith(label)]
        own = "".join(filter(str.isprintable, " ".join(answer.split())))[:12].strip()
        return next(iter(chosen), own or self.bullets[0][1])

    def _join(self, sections: Iterable[str]) -> str:
        return "".join(f"{self._render(f'{section}.md')}\n" for section in sections)

    def _render(self, template: str, **values: str) -> str:
        *others, last = self.topics
        return _template(template).substitute(
            package=self.package,
            title=self.title,
            heading=heading_of(self.title),
            topics=f"({', '.join(map(json.dumps, self.topics))})",
            listed=f"{', '.join(others)} and {last}",
            first=self.topics[0],
            last=last,
            sample=self.sample,
            **values,
        )


@cache
def _template(name: str) -> Template:
    # The suffix keeps linters, type checkers and pytest away from files that are not Python yet.
    source = files("gsd_plugins.rehearsal") / "templates" / f"{name}.txt"
    return Template(source.read_text(encoding="utf-8"))


_LENGTH = 20_000
"""Characters of an idea that are read: an idea may be a whole book."""

_STOP_WORDS = """
about above after again also always another based because been before being below between both build
built called cannot case could does done each either else even every file first fixme from give given
goal goals hack have having here idea into just keep kept know last like line lines list made make many
more most must name need needs never none nonsense once only other over part placeholder project second
shall should simple since small some stub such sure text than that their them then there these they thing
things this those through todo tool under used user users uses using very want wants well were what when
where which while will with within without word words work would write years your
"""
_SHORT_WORDS = "a an and app are as at be by can for if in is it its my no not of on or our so the to we you"
_STOP = frozenset(_STOP_WORDS.split())
_SHORT = frozenset(_SHORT_WORDS.split())
_RESERVED = frozenset(
    {"build", "conftest", "dist", "docs", "examples", "placeholder", "setup", "src", "test", "tests", "venv"}
)
_UNFINISHED = re.compile(r"todo|fixme|tbd|xxx|placeholder|soon|implemented|stub|lorem", re.IGNORECASE)
_DEFAULT_TOPICS = ("note", "task", "event")


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
    words = [word for word in _ascii_words(head) if word not in _SHORT]
    name = "_".join(words[:2])[:30].strip("_") or "project"
    if name[0].isdigit():
        name = f"app_{name}"
    is_taken = keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in sys.stdlib_module_names
    return f"{name}_app" if is_taken or name in _RESERVED else name


def _ascii_words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z0-9]+", folded.lower())


def heading_of(title: str) -> str:
    """Return *title*, or the package's name if a gap detector could take the title for unfinished work."""
    return package_of(title) if _UNFINISHED.search(title) else title


def topics_of(idea: str) -> tuple[str, ...]:
    """Return the idea's three most frequent words; those in its title only if there are no others."""
    counts = Counter(
        word
        for word in _ascii_words(idea[:_LENGTH])
        if word.isalpha() and 4 <= len(word) <= 12 and word not in _STOP
    )
    in_title = set(_ascii_words(title_of(idea)))
    ranked = sorted((word for word, _ in counts.most_common()), key=lambda word: word in in_title)
    singular: dict[str, str] = {}  # "expense" and "expenses" are one topic
    for word in [*ranked, *_DEFAULT_TOPICS]:
        singular.setdefault(word.removesuffix("s"), word)
    return tuple(singular.values())[:3]
