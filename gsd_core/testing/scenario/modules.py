"""The modules of the product: templates, filled in by ``Product``."""

INIT = '''"""$title: entries by topic, kept as plain lines of text."""
'''

MAIN = """from .cli import main

raise SystemExit(main())
"""

ENTRIES = '''"""Entries: what is kept, and how one is read from a line."""

from collections import Counter
from dataclasses import dataclass

TOPICS = $topics


@dataclass(frozen=True)
class Entry:
    """One line: its topic, and what was written under it."""

    topic: str
    text: str

    def __str__(self):
        return f"{self.topic}: {self.text}"


def parse(line):
    """Read ``topic: text``; raise ValueError, naming what is wrong, if it is not that."""
    topic, colon, text = line.partition(":")
    topic, text = topic.strip().lower(), text.strip()
    if not colon or not text:
        raise ValueError(f"expected 'topic: text', got {line!r}")
    if topic not in TOPICS:
        raise ValueError(f"unknown topic {topic!r}; known: {', '.join(TOPICS)}")
    return Entry(topic, text)


def count(entries):
    """Return how many entries each topic has, in the order of TOPICS."""
    found = Counter(entry.topic for entry in entries)
    return {topic: found[topic] for topic in TOPICS}
'''

LISTING = '''"""A listing of entries, for people to read."""

MARK = $mark


def listing(entries):
    """Return a line for each entry, MARK in front."""
    return [f"{MARK} {entry}" for entry in entries]
'''

STORE = '''"""Entries in a file: one line each, in UTF-8."""

from pathlib import Path

from .entries import parse


def load(path):
    """Return the entries in the file; none if there is no file."""
    file = Path(path)
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [parse(line) for line in lines if line.strip()]


def save(path, entries):
    """Write the entries to the file in place of what it held."""
    lines = "".join(f"{entry}\\n" for entry in entries)
    Path(path).write_text(lines, encoding="utf-8")
'''

CLI = '''"""The command line: ``python3 -m $package``."""

import argparse
import sys

from .entries import parse
from .listing import listing
from .store import load, save


def add(path, line):
    """Keep one more entry."""
    save(path, [*load(path), parse(line)])
    return ["added"]


def show(path, line):
    """List all entries."""
    return listing(load(path))


COMMANDS = {
    "add": add,
    "list": show,
}


def main(arguments=None):
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="$package")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("line", nargs="?", default="", help="topic: text (for add)")
    parser.add_argument("--file", default="$package.txt", help="where the entries are kept")
    given = parser.parse_args(arguments)
    try:
        output = COMMANDS[given.command](given.file, given.line)
    except (OSError, ValueError) as error:
        print(f"$package: {error}", file=sys.stderr)
        return 1
    print("\\n".join(output))
    return 0
'''

REPORT = '''"""A report: how many entries each topic has."""

from .entries import count


def report(entries):
    """Return a line for each topic and one for all of them, the numbers aligned."""
    counts = count(entries)
    rows = [*counts.items(), ("total", sum(counts.values()))]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}} {number:>4}" for name, number in rows]
'''

EXTRA = '''"""What phase $phase adds: entries that hold a word."""


def containing(entries, word):
    """Return the entries whose text holds *word*, whatever its case."""
    return [entry for entry in entries if word.lower() in str(entry).lower()]
'''

REPORT_IMPORT = "from .report import report\n"

REPORT_COMMAND = '''def summarize(path, line):
    """Report on all entries."""
    return report(load(path))


'''
