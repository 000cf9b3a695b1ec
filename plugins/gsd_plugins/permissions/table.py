"""What the policy knows about programs: ``programs.toml``, read once.

Every section of that file maps names to words. Most map a kind or a reason to the programs it applies to.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files

Section = Mapping[str, frozenset[str]]
EFFECTS = ("outward", "deny", "ask")
_NO_HELP = r"\A(?!(?:--help|-h|--version|-V|help|version)\Z)"


@cache
def table() -> Mapping[str, Section]:
    """Return the sections of the table."""
    text = (files("gsd_plugins.permissions") / "programs.toml").read_text("utf-8")
    return {
        section: {name: frozenset(words.split()) for name, words in entries.items()}
        for section, entries in tomllib.loads(text).items()
    }


@cache
def rules() -> Mapping[str, Sequence[tuple[str, str, re.Pattern[str]]]]:
    """Return what the arguments of a program may show, one a line: the effect, its reason and a pattern.

    They are the sections named ``EFFECTS: REASON``, which map programs, or ``@GROUP``, to patterns, and those
    named ``EFFECT``, of programs that have an effect unless they are called for help.
    """
    found: dict[str, list[tuple[str, str, re.Pattern[str]]]] = {}
    for section, entries in table().items():
        effects, _, reason = section.partition(": ")
        for names, patterns in entries.items() if reason or effects in EFFECTS else ():
            programs = names.split() if reason else patterns
            pattern = re.compile("|".join(sorted(patterns)) if reason else _NO_HELP, re.MULTILINE)
            for name in programs:
                for program in table()["groups"][name[1:]] if name[0] == "@" else [name]:
                    every = [(effect, reason or names, pattern) for effect in effects.split()]
                    found.setdefault(program, []).extend(every)
    return found


@lru_cache(4096)
def entry_of(section: str, program: str) -> str:
    """Return the entry that lists a program, such as its kind or a reason; empty if none does."""
    return next((name for name, programs in table()[section].items() if program in programs), "")


def is_listed(program: str) -> bool:
    """Whether a program is known to the policy at all."""
    named = any(entry_of(section, program) for section in EFFECTS)
    return named or bool(entry_of("kinds", program)) or program in {"git", *table()["wrappers"]}


def is_in(group: str, program: str) -> bool:
    """Whether a program is in one of the ``groups``."""
    return program in table()["groups"][group]


def base_name(program: str) -> str:
    """Return a program's name without its version: of ``python3.11``, ``prettier@3``, ``clang-15``."""
    name = re.sub(r"(?<=.)@.*$", "", program)
    plain = re.sub(r"-?[\d.]+$", "", name)
    return plain if entry_of("kinds", plain) else name
