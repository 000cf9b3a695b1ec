"""The idea document: what is accepted, and what is refused with a clear reason."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from gsd_core import Idea
from gsd_core.codec import structure, unstructure
from gsd_core.errors import IdeaError
from gsd_core.journal.store import Journal
from gsd_core.model.step import FileWrite, StepResult
from gsd_core.planning.idea import PATH, render_idea
from gsd_core.planning.markdown import MAX_BYTES
from gsd_core.plugins.validation import validate_storable
from gsd_core.run.preflight import LIMIT_BYTES, load_idea
from gsd_core.sanitize import safe_text


def _load(folder: Path, raw: bytes) -> Idea:
    path = folder / "idea.md"
    path.write_bytes(raw)
    return load_idea(path, io.BytesIO())


def test_an_idea_has_the_name_of_its_file_and_its_text(tmp_path: Path) -> None:
    idea = _load(tmp_path, b"# A calculator\nfor the shell\n")

    assert (idea.name, idea.text) == ("idea.md", "# A calculator\nfor the shell\n")


def test_the_same_text_saved_by_another_editor_is_the_same_idea(tmp_path: Path) -> None:
    plain = _load(tmp_path, "Ein Taschenrechner für die Shell\nklein\n".encode())

    edited = _load(tmp_path, b"\xef\xbb\xbf\r\n" + "Ein Taschenrechner für die Shell\r\nklein".encode())

    assert edited.sha256 == plain.sha256


def test_a_different_text_is_another_idea(tmp_path: Path) -> None:
    assert _load(tmp_path, b"one").sha256 != _load(tmp_path, b"two").sha256


def test_the_idea_that_a_project_keeps_is_the_one_that_it_began_with(tmp_path: Path) -> None:
    given = _load(tmp_path, b"# A calculator\n\n- for the shell\n")
    kept = render_idea(given.name, given.text, {"S1": ("CALC-01",)})

    assert _load(tmp_path, kept.encode()) == given


def test_a_dash_reads_stdin() -> None:
    idea = load_idea(Path("-"), io.BytesIO(b"A calculator"))

    assert (idea.name, idea.text) == ("stdin", "A calculator\n")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "is empty"),
        (b" \n\t\r\n ", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"text\0more", "NUL at byte 4"),
        (b"caf\xe9 noir", "not UTF-8: byte 0xe9 at 3"),
        (b"\xef\xbb\xbfcaf\xe9 noir", "not UTF-8: byte 0xe9 at 6"),
        (b"x" * (LIMIT_BYTES + 1), "larger than 400 kB"),
    ],
)
def test_an_idea_that_is_not_text_is_refused(tmp_path: Path, raw: bytes, words: str) -> None:
    with pytest.raises(IdeaError, match=words) as caught:
        _load(tmp_path, raw)

    assert caught.value.hint


def test_an_idea_of_the_maximum_size_is_accepted(tmp_path: Path) -> None:
    assert len(_load(tmp_path, b"x" * LIMIT_BYTES).text) == LIMIT_BYTES + 1


@pytest.mark.parametrize("character", ["\u00e9", "\U0001f600", "\x7f", "\t", '"', "- a\n"])
def test_the_largest_idea_can_be_recorded_and_kept(tmp_path: Path, character: str) -> None:
    """Some characters are longer in the journal or in the project than in the file."""
    idea = _load(tmp_path, b"a" + (character * (LIMIT_BYTES // len(character.encode()) - 1)).encode())
    safe = attrs.evolve(idea, text=safe_text(idea.text, strict=True))
    kept = FileWrite(path=PATH, text=render_idea(safe.name, safe.text, {}))
    result = StepResult(subject="docs: initialize", files=(kept,))

    with Journal.open(tmp_path / "journal.db", clock=lambda: datetime.now(UTC)) as journal:
        journal.append("run.started", {"idea": unstructure(safe)}, run="r-1")
        journal.append("step.result", {"result": unstructure(result)}, run="r-1")
        first, second = journal.events()

    assert structure(first.data["idea"], Idea) == safe
    assert structure(second.data["result"], StepResult) == result
    assert validate_storable(result, StepResult) == ""
    assert len(kept.text.encode()) < MAX_BYTES


def test_an_address_is_no_idea_and_the_hint_fetches_it() -> None:
    with pytest.raises(IdeaError, match=r"https://example\.org/idea\.md") as caught:
        load_idea(Path("https://example.org/idea.md"), io.BytesIO())

    assert "curl -fsSL https://example.org/idea.md -o idea.md && gsd run idea.md" in caught.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(IdeaError, match=r"no idea document at .*missing\.md"):
        load_idea(tmp_path / "missing.md", io.BytesIO())


def test_a_folder_is_not_an_idea(tmp_path: Path) -> None:
    with pytest.raises(IdeaError, match="is a folder"):
        load_idea(tmp_path, io.BytesIO())


def test_a_file_below_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")

    with pytest.raises(IdeaError, match="cannot read"):
        load_idea(tmp_path / "plain" / "idea.md", io.BytesIO())
