"""IDEA.md: the idea word for word, and what each of its numbered statements became.

:func:`split_statements` numbers what an idea says: each sentence, list item and table row, and each code
block and front matter as a whole. Headings, table heads, HTML comments and markup are not statements: a
heading says what the text below it is about, so every statement names the one that it stands under. A
heading (or table head) with nothing below it is a statement, because otherwise its words would be lost.

A doubtful case is split rather than joined: two halves of a sentence cost a few tokens, but a demand that
shares its number with another one can be forgotten unnoticed.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from gsd_core.files import read_start

from .markdown import MAX_BYTES, cells, clean, document, inline, prose, table
from .model import Requirement, Statement

PATH = ".planning/IDEA.md"
MAX_STATEMENTS = 400
"""A longer idea has its neighboring statements joined, as many as it takes and all equally many."""
MAX_CELL = 300
"""Characters of a statement in the table of IDEA.md; the idea above it has them all."""

CONSTRAINT, OUT_OF_SCOPE, CONTEXT = "constraint", "out of scope", "context"
"""What a statement can become if not a requirement."""

_Kind: TypeAlias = Literal["heading", "head", "prose", "row", "verbatim"]
_Piece: TypeAlias = tuple[int, int]


@attrs.frozen
class _Block:
    """A part of the text: its *pieces* are the ranges of its lines, without list markers and quote signs."""

    kind: _Kind
    pieces: tuple[_Piece, ...]
    level: int = 0
    in_list: bool = False


@attrs.frozen
class _Range:
    """The place of a statement in the text; *text* is what it says."""

    start: int
    end: int
    text: str
    heading: str


def split_statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of an idea, ``S1`` first; the same text always gives the same ones.

    Takes linear time. See the module's description for what counts as a statement, and
    :data:`MAX_STATEMENTS` for long ideas.
    """
    newlines = [match.start() for match in re.finditer("\n", text)]
    return tuple(
        Statement(
            id=f"S{number}", text=one.text, line=bisect_right(newlines, one.start) + 1, heading=one.heading
        )
        for number, one in enumerate(_ranges(text), start=1)
    )


def mark_statements(text: str) -> str:
    """Return the idea with ``[S7]`` in front of its seventh statement, otherwise unchanged."""
    parts: list[str] = []
    at = 0
    for number, one in enumerate(_ranges(text), start=1):
        parts += [text[at : one.start], f"[S{number}] "]
        at = one.start
    return "".join([*parts, text[at:]])


def _ranges(text: str) -> list[_Range]:
    masked, fences = _without_comments(text)
    found = list(_statements(masked, _used_blocks(masked, list(_blocks(masked, fences)))))
    if not found and text.strip():
        # Only punctuation, comments or markup: it is still what somebody wrote.
        start = len(text) - len(text.lstrip())
        return [_Range(start, len(text.rstrip()), _one_line(text), "")]
    size = math.ceil(len(found) / MAX_STATEMENTS)
    if size <= 1:
        return found
    groups = [found[at : at + size] for at in range(0, len(found), size)]
    return [
        _Range(group[0].start, group[-1].end, " ".join(one.text for one in group), group[0].heading)
        for group in groups
    ]


# Lines and blocks

_MARKERS = r"(?:\s|>|(?:[-*+•–]|\d{1,9}[.)]|[A-Za-z]\))\s)*"
_FENCE = re.compile(rf"({_MARKERS})(`{{3,}}|~{{3,}})([^\n]*)")
_HEADING = re.compile(r"\s{0,3}(#{1,6})(?:[ \t]+|$)")
_RULE = re.compile(r"\s*([-*_=])[ \t]*(?:\1[ \t]*){2,}$")
_UNDERLINE = re.compile(r"\s{0,3}(=+|-{2,})\s*$")
_QUOTE = re.compile(r"(?:[ \t]{0,3}>[ \t]?)+")
_ITEM = re.compile(r"\s*(?:[-*+•–]|(\d{1,9})[.)]|[A-Za-z]\))(?:[ \t]+|$)(?:\[[ xX]\](?:[ \t]+|$))?")
_TAGS = re.compile(r"\s*(?:</?[A-Za-z][^<>]*>\s*)+$")
_KEY = re.compile(r"[\w-]+[ \t]*:")
_SETEXT_LENGTH = 100


def _lines(text: str) -> list[_Piece]:
    """Return the range of each line, without its line end."""
    found: list[_Piece] = []
    start = 0
    for line in text.split("\n"):
        found.append((start, start + len(line.removesuffix("\r"))))
        start += len(line) + 1
    return found


def _without_comments(text: str) -> tuple[str, dict[int, int]]:
    """Return the text with blanks for its HTML comments, and the lines of code fences: first to last.

    A comment or a fence that is never closed is text: it must not swallow the rest of the idea.
    """
    lines = _lines(text)
    opening = [_FENCE.match(text, *piece) for piece in lines]
    closable = _closable(opening)
    fences: dict[int, int] = {}
    kept: list[str] = []
    copied, at, skip_to, close = 0, 0, 0, 0
    while at < len(lines):
        start, end = lines[at]
        fence = opening[at]
        if start >= skip_to and fence and len(fence[2]) <= closable[at].get(fence[2][0], 0):
            fences[at] = next(n for n in range(at + 1, len(lines)) if _closes(opening[n], fence[2]))
            at = fences[at] + 1
            continue
        position, ticks = max(start, skip_to), 0
        while close >= 0 and (begin := text.find("<!--", position, end)) >= 0:
            if close < begin + 4:
                close = text.find("-->", begin + 4)
            if close < 0:
                break  # no comment can be closed from here on
            ticks += text.count("`", position, begin)
            if ticks % 2:
                position = begin + 4
                continue
            skip_to = close + 3
            kept += [text[copied:begin], re.sub(r"[^\n]", " ", text[begin:skip_to])]
            copied = position = skip_to
        at += 1
    return "".join([*kept, text[copied:]]), fences


def _closable(opening: Sequence[re.Match[str] | None]) -> list[dict[str, int]]:
    """Return for each line the length of the longest closing fence after it, by its character."""
    longest: dict[str, int] = {}
    found: list[dict[str, int]] = []
    for match in reversed(opening):
        found.append(longest)
        if match and not match[3].strip():
            mark = match[2][0]
            longest = {**longest, mark: max(len(match[2]), longest.get(mark, 0))}
    return found[::-1]


def _closes(match: re.Match[str] | None, fence: str) -> bool:
    return bool(match and match[2][0] == fence[0] and len(match[2]) >= len(fence) and not match[3].strip())


def _blocks(text: str, fences: Mapping[int, int]) -> Iterator[_Block]:
    lines = _lines(text)
    paragraph: list[_Piece] = []
    in_list, table = False, False
    at = 0

    def finished() -> Iterator[_Block]:
        if paragraph:
            yield _Block("prose", tuple(paragraph), in_list=in_list)
            paragraph.clear()

    if last := _front_matter(text, lines):
        yield _Block("verbatim", ((0, lines[last][1]),))
        at = last + 1
    while at < len(lines):
        start, end = lines[at]
        if at in fences:
            yield from finished()
            fence = _FENCE.match(text, start, end)
            last = fences[at]
            yield _Block("verbatim", ((fence.start(2) if fence else start, lines[last][1]),))
            at, table = last + 1, False
            continue
        if quote := _QUOTE.match(text, start, end):
            start = quote.end()
        line = text[start:end]
        below = text[slice(*lines[at + 1])] if at + 1 < len(lines) and at + 1 not in fences else ""
        at += 1
        if not line.strip():
            yield from finished()
            table = False
            continue
        # Below an item of a list it is a rule, and the item is a statement.
        underlined = bool(_UNDERLINE.match(line)) and len(paragraph) == 1 and not in_list
        if underlined and _is_title(text[slice(*paragraph[0])]):
            level = 1 if "=" in line else 2
            yield _Block("heading", (paragraph.pop(),), level)
        elif _is_delimiter(line):
            table = True
        elif _RULE.match(line) or _TAGS.match(line):
            yield from finished()
        elif heading := _HEADING.match(text, start, end):
            yield from finished()
            in_list = False
            yield _Block("heading", ((heading.end(), end),), len(heading[1]))
        elif line.lstrip().startswith("|") or table or ("|" in line and _is_delimiter(below)):
            yield from finished()
            yield _Block("head" if _is_delimiter(below) and not table else "row", ((start, end),))
        else:
            item = _ITEM.match(text, start, end)
            # As in Markdown: 2026. at the beginning of a wrapped line is not the item of a list.
            if item and not (paragraph and not in_list and item[1] not in (None, "1")):
                yield from finished()
                in_list = True
                while item and item.end() > start:
                    start = item.end()
                    item = _ITEM.match(text, start, end)
            elif not paragraph and not line.startswith((" ", "\t")):
                in_list = False
            if start < end:
                paragraph.append((start, end))
    yield from finished()


def _front_matter(text: str, lines: Sequence[_Piece]) -> int:
    """Return the index of the line that ends the front matter; 0 if there is none."""
    for number, piece in enumerate(lines):
        line = text[slice(*piece)].rstrip()
        if number == 0 and line != "---":
            return 0
        if number == 1 and not _KEY.match(line):
            return 0
        if number and line in ("---", "..."):
            return number
        if not line:
            # Between two rules may be anything; a front matter has no blank lines.
            return 0
    return 0


def _is_delimiter(line: str) -> bool:
    """Whether a line separates a table's head from its rows: ``|---|:--|``."""
    return "|" in line and "-" in line and not line.strip("|-: \t\r")


def _is_title(line: str) -> bool:
    """Whether a line above ``---`` is a heading, and not a sentence above a rule."""
    return len(line) <= _SETEXT_LENGTH and not line.rstrip().endswith((".", "!", "?", ";", ","))


def _used_blocks(text: str, blocks: Sequence[_Block]) -> Iterator[tuple[_Block, str]]:
    """Yield the blocks that contain statements, each with the heading that it is under."""
    heading = ""
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.kind == "heading":
            above, heading = heading, _one_line(text[slice(*block.pieces[0])]).rstrip("# ")
            deeper = following and (following.kind != "heading" or following.level > block.level)
            if not deeper:
                yield attrs.evolve(block, kind="prose"), above
        elif block.kind == "head":
            if following is None or following.kind != "row":
                yield attrs.evolve(block, kind="row"), heading
        else:
            yield block, heading


def _statements(text: str, blocks: Iterable[tuple[_Block, str]]) -> Iterator[_Range]:
    for block, heading in blocks:
        if block.kind == "prose":
            yield from (_Range(start, end, said, heading) for start, end, said in _sentences(text, block))
            continue
        start, end = block.pieces[0]
        raw = text[start:end]
        start += len(raw) - len(raw.lstrip())
        if _has_words(raw):
            said = _row_text(raw) if block.kind == "row" else raw.replace("\r\n", "\n").strip()
            yield _Range(start, end, said, heading)


def _row_text(line: str) -> str:
    row = line.strip()
    parts = (_one_line(part).replace(r"\|", "|") for part in cells(row if row.startswith("|") else f"|{row}"))
    return " | ".join(part for part in parts if part)


def _has_words(text: str) -> bool:
    """Whether the text says anything: a letter, a digit, or a symbol such as an emoji."""
    return any(character.isalnum() or unicodedata.category(character) == "So" for character in text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


# Sentences

_CLOSING = "'\"”’»›)\\]*_~」』）】"
_END = re.compile(rf"([.!?…؟۔।॥։።]+|[。！？｡]+)[{_CLOSING}]*")
_TICKS = re.compile("`+")
# Never the end of a sentence: what they introduce follows.
_INTRODUCING = re.compile(
    r"e\.?g|i\.?e|cf|vs|viz|approx|resp|incl|excl|mr|mrs|ms|dr|prof|st|z\.b|d\.h|u\.a|o\.ä|i\.d\.r|bzw|ca|"
    r"evtl|ggf|vgl|p\.ex|c\.-à-d|p\.ej|т\.[ед]|напр"
)
# Only before a number: "No. 5", but "The answer is no."
_COUNTING = re.compile(r"nos?|nr|figs?|pp?|art|sec|ch|vol|v|ver|max|min|abb|s|стр")
# The end of a sentence if a capital letter follows.
_ENDING = re.compile(r"etc|inc|ltd|co|corp|jr|sr|usw|al")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_WRAP_WIDTH = 60
"""Lines that are shorter, and into which the next word would have fit, end on purpose."""


def _sentences(text: str, block: _Block) -> Iterator[tuple[int, int, str]]:
    """Yield the sentences of a paragraph or list item: start, end, and the text on one line."""
    pieces = [piece for piece in block.pieces if piece[0] < piece[1]]
    joined = "\n".join(text[start:end] for start, end in pieces)
    starts: list[int] = []
    length = 0
    for start, end in pieces:
        starts.append(length)
        length += end - start + 1

    def offset(position: int) -> int:
        at = bisect_right(starts, position) - 1
        return pieces[at][0] + position - starts[at]

    begin = 0
    for boundary in [*_boundaries(joined, starts, block.in_list), len(joined)]:
        sentence = joined[begin:boundary]
        if _has_words(sentence):
            first = begin + len(sentence) - len(sentence.lstrip())
            last = begin + len(sentence.rstrip()) - 1
            yield offset(first), offset(last) + 1, _one_line(sentence)
        begin = boundary


def _boundaries(text: str, line_starts: Sequence[int], in_list: bool) -> list[int]:
    """Return where sentences end, in order: after punctuation, and where a line ends on purpose."""
    code = _code_spans(text)
    begins = [start for start, _ in code]
    found: set[int] = set()
    for match in _END.finditer(text):
        at = bisect_right(begins, match.start()) - 1
        if (at < 0 or code[at][1] <= match.start()) and _ends_sentence(text, match):
            found.add(match.end())
    found |= {position - 1 for position in _deliberate_breaks(text, line_starts, in_list)}
    return sorted(found)


def _code_spans(text: str) -> list[_Piece]:
    """Return the ranges of inline code; a backtick without its counterpart is text."""
    runs = list(_TICKS.finditer(text))
    last = {len(run[0]): number for number, run in enumerate(runs)}
    spans: list[_Piece] = []
    at = 0
    while at < len(runs):
        size = len(runs[at][0])
        if last[size] > at:
            end = next(n for n in range(at + 1, len(runs)) if len(runs[n][0]) == size)
            spans.append((runs[at].start(), runs[end].end()))
            at = end
        at += 1
    return spans


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    mark = match[1]
    if mark[0] in "。！？｡":
        return True
    after = text[match.end() : match.end() + 40]
    if after and not after[0].isspace():
        return False
    following = after.lstrip()[:1]
    if len(mark) > 1 or mark != ".":
        # "wait ... what" is one sentence; "what? no." is two.
        return not (mark.startswith(("..", "…")) and following.islower())
    words = text[max(0, match.start() - 40) : match.start()].split()
    word = words[-1].lstrip("([{\"'“‘«*_").lower() if words else ""
    if _INTRODUCING.fullmatch(word) or (_COUNTING.fullmatch(word) and following.isdigit()):
        return False
    if _ENDING.fullmatch(word) or _DOTTED.fullmatch(word):
        return not (following.islower() or following.isdigit())
    if word.isdigit():
        first = text.rfind("\n", 0, match.start()) + 1
        return following.isupper() and bool(text[first : match.start() - len(word)].strip())
    # An initial, but not a unit: "20 g."
    is_unit = len(words) > 1 and words[-2][-1].isdigit()
    return is_unit or not (len(word) == 1 and word.isalpha() and word != "i")


def _deliberate_breaks(text: str, line_starts: Sequence[int], in_list: bool) -> Iterator[int]:
    """Yield the starts of lines that do not continue the line before: one demand on each line.

    A line that an editor has wrapped is full: the next word did not fit. A line that begins with a small
    letter continues the sentence, in a list always, and in a paragraph that begins with a capital.
    """
    lines = text.split("\n")
    width = max(_WRAP_WIDTH, *map(len, lines)) if len(lines) > 1 else 0
    capitals = in_list or not lines[0].lstrip()[:1].islower()
    for number in range(1, len(lines)):
        before, line = lines[number - 1].rstrip(), lines[number].lstrip()
        word = line.split(maxsplit=1)[0] if line else ""
        fits = len(before) + 1 + min(len(word), 20) <= width
        if fits and not before.endswith((",", "-", "–", "—", "(")) and not (capitals and word[:1].islower()):
            yield line_starts[number]


# The file

_TAG = re.compile(r"<idea-([0-9a-f]{8,64}) name=\"([^\"\n]*)\">")
_STATEMENTS_TITLE = "## Statements"


@attrs.frozen(kw_only=True)
class StatedIdea:
    """What IDEA.md keeps: the idea's file *name*, its *text*, and its *statements* with what they became."""

    name: str
    text: str
    statements: tuple[Statement, ...]


def render_idea(
    name: str, text: str, used_by: Mapping[str, Sequence[str]], reasons: Sequence[tuple[str, str]] = ()
) -> str:
    """Return IDEA.md; :func:`parse_idea` reads it.

    *used_by* says what the statements became, by id. *reasons* are those of requirements that come
    from no statement, or differ from one.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    # A tag that does not occur in the idea, so that no idea can end its own text early.
    tag = next(tag for size in range(8, 65) if (tag := f"idea-{digest[:size]}") not in text)
    rows = [
        (one.id, str(one.line), _shown(one.text), ", ".join(used_by.get(one.id, ())))
        for one in split_statements(text)
    ]
    parts = [
        f"# Idea: {inline(name)}",
        "The idea as it was given, and what became of each of its statements. "
        "Later edits of this file change nothing in the roadmap.",
        f'<{tag} name="{inline(name).replace(chr(34), chr(39))}">\n{text}\n</{tag}>',
        _STATEMENTS_TITLE,
        table(("Statement", "Line", "Text", "Became"), rows),
    ]
    if reasons:
        parts += ["## Reasons", table(("Requirement", "Reason"), reasons)]
    return document(parts)


def _shown(text: str) -> str:
    line = _one_line(clean(text))
    return line if len(line) <= MAX_CELL else f"{line[:MAX_CELL]}…"


@lru_cache(maxsize=4)
def parse_idea(text: str) -> StatedIdea | None:
    """Return what an IDEA.md keeps; ``None`` if the file has another form (it is then somebody else's).

    Cached, because the planning files are read after every step and a long idea takes a second.
    """
    if not (opening := _TAG.search(text)):
        return None
    end = text.find(f"\n</idea-{opening[1]}>", opening.end())
    if end < 0:
        return None
    idea = text[opening.end() + 1 : end]
    by_id = {one.id: one for one in split_statements(idea)}
    table = text[end:].partition(f"\n{_STATEMENTS_TITLE}")[2].partition("\n## ")[0]
    rows = [[part.strip() for part in cells(line)] for line in table.split("\n")]
    known = (row for row in rows if len(row) == 4 and re.fullmatch(r"S\d{1,6}", row[0]))
    statements = tuple(_statement(row, by_id.get(row[0])) for row in known)
    return StatedIdea(name=prose(opening[2]), text=idea, statements=statements)


def _statement(row: Sequence[str], split: Statement | None) -> Statement:
    """Return the statement of a row; the idea above the table has the words that the table cuts off."""
    used_by = tuple(part for one in row[3].split(",") if (part := one.strip()) not in ("", "-"))
    written = prose(row[2].replace(r"\|", "|"))
    if split and written == (prose(inline(_shown(split.text))) or "-"):
        return attrs.evolve(split, used_by=used_by)
    # Edited by hand, or split by another version: what the table says counts.
    return Statement(id=row[0], text=written, line=int(row[1]) if row[1].isdigit() else 0, used_by=used_by)


def read_idea(root: Path) -> StatedIdea | None:
    """Return what the IDEA.md of the project at *root* keeps; ``None`` if it cannot be read.

    The limits of :func:`~gsd_core.planning.markdown.read_text` do not apply: an idea may be one long line.
    """
    try:
        data = read_start(root, PATH, MAX_BYTES + 1)
    except OSError:
        return None
    return parse_idea(data.decode("utf-8", "replace")) if len(data) <= MAX_BYTES else None


def with_statements(
    requirements: Iterable[Requirement], statements: Iterable[Statement]
) -> tuple[Requirement, ...]:
    """Return the requirements with the ids of the statements that they come from."""
    found: dict[str, list[str]] = {}
    for statement in statements:
        for name in statement.used_by:
            found.setdefault(name, []).append(statement.id)
    return tuple(attrs.evolve(one, statements=tuple(found.get(one.id, ()))) for one in requirements)
