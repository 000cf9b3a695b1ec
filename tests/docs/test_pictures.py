"""The pictures of the tutorial say what the programs say now."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pytest

from docs.pictures import BROWSERS, FOLDER, main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed"),
    pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no browser is installed"),
]


def words(picture: Path) -> list[str]:
    """Return the lines of a picture without what differs each time: ids, times, amounts and models."""
    rows: dict[float, str] = {}
    for y, shown in re.findall(r'<text [^>]*? y="([\d.]+)"[^>]*>(.*?)</text>', picture.read_text("utf-8")):
        rows[float(y)] = rows.get(float(y), "") + html.unescape(shown).replace("\N{NO-BREAK SPACE}", " ")
    ids = re.compile(r"\b(?:r-\d{8}T\d{6}-\w{6}|q-\w{10}|[0-9a-f]{7,10})\b")
    amounts = re.compile(r"\d[\d.,:]*(?: min \d+)?")
    found = [" ".join(amounts.sub("N", ids.sub("ID", row)).split()) for row in rows.values()]
    return [row.replace("N tokens, ", "") for row in found]  # only a model that is paid for counts them


def test_the_pictures_can_be_made_and_say_the_same_as_the_committed_ones(tmp_path: Path) -> None:
    main(tmp_path, quick=True)

    # Not the log: it names the model, and what the scripted one costs.
    for name in ("run", "question", "end"):
        assert words(tmp_path / f"{name}.svg") == words(FOLDER / f"{name}.svg"), (
            f"{name}.svg is stale: python -m docs.pictures"
        )
    assert (tmp_path / "report.png").stat().st_size > 10_000
