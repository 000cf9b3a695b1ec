"""The product that a scenario makes: its names, and each of its files as it is written."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from string import Template

from attrs import field, frozen

from . import modules, tests, texts
from .words import heading_of, package_of, title_of, topics_of

_SAMPLES = ("the first one", "paid for lunch", "call back on Monday", "two of three", "asked for by Ada")
_MARKS = (("Dash", "-"), ("Star", "*"), ("Arrow", "->"))


@frozen(kw_only=True)
class FileEdit:
    """A file that a task writes: *content* is all of it, if it is new.

    In a file that is there, *changes* (old, new) are made instead, if there are any; the first
    line of *new* tells whether it was made before. *append* adds the content to a file that lacks it.
    """

    path: str
    content: str
    changes: tuple[tuple[str, str], ...] = ()
    append: bool = False

    def applied(self, before: str | None) -> str:
        """Return the file's text after the edit; *before* is ``None`` if there is no file.

        Doing it again changes nothing.
        """
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
        """Return the changes that *text* has not seen."""
        return tuple((old, new) for old, new in self.changes if new.splitlines()[0] not in text)


@frozen(kw_only=True)
class Product:
    """The names that an idea and a seed come to; *marks* are the choices of the one question."""

    title: str
    package: str
    topics: tuple[str, ...]
    sample: str
    marks: tuple[tuple[str, str], ...] = field(default=_MARKS)

    @classmethod
    def of(cls, idea: str, seed: int) -> Product:
        """Return the product that *idea* stands for."""
        chance = random.Random(f"{seed}/{title_of(idea)}")
        title = title_of(idea)
        return cls(
            title=title,
            package=package_of(title),
            topics=topics_of(idea),
            sample=chance.choice(_SAMPLES),
            marks=tuple(chance.sample(_MARKS, len(_MARKS))),
        )

    def ignored(self) -> FileEdit:
        """Python's byte code is not to be committed."""
        return FileEdit(path=".gitignore", content="__pycache__/\n", append=True)

    def module(self, name: str, **words: str) -> FileEdit:
        """Return a module of the package."""
        return FileEdit(path=self.path(name), content=self._fill(_template(modules, name), **words))

    def test(self, name: str) -> FileEdit:
        """Return a module of the tests."""
        return FileEdit(path=f"tests/test_{name}.py", content=self._fill(_template(tests, name)))

    def path(self, name: str) -> str:
        """Return the path of a module of the package."""
        special = {"init": "__init__", "main": "__main__"}
        return f"{self.package}/{special.get(name, name)}.py"

    def extra(self, phase: str) -> FileEdit:
        """Return a module for a phase that the scenario does not know."""
        name = f"phase_{re.sub(r'[^0-9A-Za-z]', '_', phase)}"
        return FileEdit(path=self.path(name), content=self._fill(modules.EXTRA, phase=phase))

    def listing(self, mark: str) -> FileEdit:
        """Return the module that lists entries, each with *mark* in front."""
        return self.module("listing", mark=json.dumps(mark, ensure_ascii=False))

    def readme(self, *, usage: str) -> FileEdit:
        """Return README.md with a section *usage* (a template's name), or without one."""
        return FileEdit(path="README.md", content=self._fill(texts.README, usage=self._section(usage)))

    def readme_with(self, *sections: str) -> FileEdit:
        """Return the edit that puts *sections* into README.md, before the last one."""
        added = "".join(map(self._section, sections))
        whole = self._fill(texts.README, usage=added)
        return FileEdit(path="README.md", content=whole, changes=(("## Develop", f"{added}## Develop"),))

    def report_command(self) -> FileEdit:
        """Return the edit that gives the command line its report."""
        changes = (
            ("from .store import", f"{modules.REPORT_IMPORT}from .store import"),
            ("COMMANDS = {", f"{modules.REPORT_COMMAND}COMMANDS = {{"),
            ('    "list": show,\n', '    "report": summarize,\n    "list": show,\n'),
        )
        plain = self.module("cli")
        whole = FileEdit(path=plain.path, content="", changes=changes).applied(plain.content)
        return FileEdit(path=plain.path, content=whole, changes=changes)

    def license(self) -> FileEdit:
        """Return a licence."""
        return FileEdit(path="LICENSE", content=texts.LICENSE)

    def mark(self, answer: str) -> str:
        """Return the mark that *answer* stands for: a choice's, else the answer's own first characters."""
        chosen = [mark for label, mark in self.marks if answer.startswith(label)]
        own = "".join(filter(str.isprintable, " ".join(answer.split())))[:12].strip()
        return next(iter(chosen), own or self.marks[0][1])

    def _section(self, name: str) -> str:
        return self._fill(_template(texts, name)) if name else ""

    def _fill(self, template: str, **words: str) -> str:
        return Template(template).substitute(
            package=self.package,
            title=self.title,
            heading=heading_of(self.title),
            topics=f"({', '.join(map(json.dumps, self.topics))})",
            listed=_enumerated(self.topics),
            first=self.topics[0],
            last=self.topics[-1],
            sample=self.sample,
            **words,
        )


def _template(room: object, name: str) -> str:
    return str(getattr(room, name.upper()))


def _enumerated(words: Iterable[str]) -> str:
    *some, last = words
    return f"{', '.join(some)} and {last}"
