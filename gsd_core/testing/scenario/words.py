"""The words of an idea: what the project is called, and what its entries are about."""

from __future__ import annotations

import keyword
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable

_READ = 20_000
"""Characters of an idea that count; a longer one says nothing new."""

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
_TAKEN = frozenset(
    {"build", "conftest", "dist", "docs", "examples", "placeholder", "setup", "src", "test", "tests", "venv"}
)
_UNFINISHED = re.compile(r"todo|fixme|tbd|xxx|placeholder|soon|implemented|stub|lorem", re.IGNORECASE)
_FALLBACK = ("note", "task", "event")


def title_of(text: str) -> str:
    """Return what the idea calls itself: its first heading, else its first line with a word in it."""
    lines = [_plain(line) for line in text[:_READ].splitlines() if line.lstrip().startswith("# ")]
    lines += [_plain(line) for line in text[:_READ].splitlines()]
    named = next((line for line in lines if any(map(str.isalnum, line))), "")
    return named[:60].strip() or "Notebook"


def _plain(line: str) -> str:
    """Return *line* without markup, quotes and whatever is not for the eye."""
    seen = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in line)
    return " ".join(re.sub(r"[\\\"'`*_#<>\[\]{}|$]+", " ", seen).split())


def package_of(title: str) -> str:
    """Return a name for the Python package: an identifier that shadows nothing.

    At most two words of what stands before a colon or a dash.
    """
    head = re.split(r":| [-–—] ", title)[0]
    words = [word for word in _ascii_words(head) if word not in _SHORT]
    name = "_".join(words[:2])[:30].strip("_") or "project"
    if name[0].isdigit():
        name = f"app_{name}"
    return f"{name}_app" if _reserved(name) else name


def _reserved(name: str) -> bool:
    return keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in sys.stdlib_module_names | _TAKEN


def _ascii_words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.findall(r"[a-z0-9]+", folded.lower())


def heading_of(title: str) -> str:
    """Return *title*, or the package's name if a heading with it would look like unfinished work."""
    return package_of(title) if _UNFINISHED.search(title) else title


def topics_of(text: str) -> tuple[str, ...]:
    """Return the three words that the idea is most about, the most frequent first; not its name."""
    words = Counter(word for word in _ascii_words(text[:_READ]) if _says_something(word))
    named = set(_ascii_words(title_of(text)))
    ranked = sorted((word for word, _ in words.most_common()), key=lambda word: word in named)
    return tuple(_unlike([*ranked, *_FALLBACK])[:3])


def _says_something(word: str) -> bool:
    return word.isalpha() and 4 <= len(word) <= 12 and word not in _STOP


def _unlike(words: Iterable[str]) -> list[str]:
    """Return *words* without those that are another's plural, or the same."""
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(word.removesuffix("s"), word)
    return list(found.values())
