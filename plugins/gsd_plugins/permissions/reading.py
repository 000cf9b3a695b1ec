"""Programs that only read, as far as their options let them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .programs import READERS
from .words import Word


def only_reads(program: str, words: Sequence[Word]) -> bool:
    """Whether a program, called like this, changes nothing."""
    if program == "sed":
        printing = [word.text for word in words if re.fullmatch(r"[\d,$;p ]+", word.text)]
        return len(words) > 1 and words[0].text == "-n" and bool(printing) and words[1].text == printing[0]
    if program == "find":
        return not any(
            word.text in ("-delete", "-fprint", "-fprintf", "-fls", "-ok", "-okdir") for word in words
        )
    writing = {"sort": ("-o", "--output"), "tree": ("-o",), "rg": ("--pre",), "fd": ("-x", "-X", "--exec")}
    if any(word.text.startswith(writing.get(program, ())) for word in words):
        return False
    return program in READERS and not (program == "uniq" and len([w for w in words if w.text[:1] != "-"]) > 1)
