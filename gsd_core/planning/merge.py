"""Three versions of a planning file, merged by meaning: what ``gsd merge-driver`` does when git merges.

A line with an identity (the checkbox of a phase, the row of a requirement, a field of STATE.md) is the same
line in all versions, whatever it says. So git merges lists of numbers, one for each identity and for each
other text: ticks in neighboring lines are then no conflict. The lines with an identity are merged one by one,
part by part, and items that both sides add in one place are all kept.

The driver of a file sees only its three versions: git writes the other files of a merge at its end, and does
not tell which commits it merges. So ROADMAP.md is counted from its own merged lists, and the numbers of
STATE.md, which has no lists to count, become those of the base and what each side has added to them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import merge as interleave
from itertools import takewhile
from typing import TypeAlias, TypeVar

import attrs

from gsd_core.errors import PlanningError
from gsd_core.model.ids import phase_order

from .frontmatter import as_map
from .markdown import cells
from .milestones import listed_milestone
from .requirements import REQUIREMENT_LINE
from .roadmap import FIELD, HEADING, parse_roadmap, says_complete
from .roadmap_edit import plan_ticks, update_progress
from .state import NOTHING, fields_of, position_fields, show_percent
from .survey import STATE_PHASE, Measure, state_of

MERGED = ("ROADMAP.md", "REQUIREMENTS.md", "STATE.md", "MILESTONES.md")
"""The names of the files that are merged by meaning."""
MAX_WORK = 50_000_000
"""Characters to read for counting phases anew; a file that needs more is not merged by meaning."""

T = TypeVar("T")
Token: TypeAlias = tuple[str, ...]
"""A line: its identity, or its text alone if it has none."""
MergeLines: TypeAlias = Callable[[str, str, str], str]
"""Merges the lines of a base, ours and theirs like ``git merge-file --diff3``."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S*)?")
_SHARE = re.compile(r"\s*\d+\s*/\s*\d+\s*")
_BOX = re.compile(r"^\s*[-*]\s+\[[ xX]\]\s+(.*)$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)]|\|)\s")
_UPDATED = re.compile(r"\W*last updated\W*:", re.IGNORECASE)
# What the line says of its state, apart from its text: "(completed 2026-01-31)", "✓ COMPLETE (2026-01-31)".
_ENDED = re.compile(r"(.*?)( \(completed [^()]*\)| ✓ COMPLETE \([^()]*\))?", re.DOTALL)
_PARTS = re.compile(r"((?<!\\)\||(?<=\[)[ xX](?=\])|(?<![\w/])\d+/\d+(?= plans?\b))")
_STATES = ("pending", "not started", "planned", "in progress")
_PLAN = re.compile(r"\W*(?:Current )?Plan\W*:\W*(\d{1,9})", re.IGNORECASE)
_COUNTER = re.compile(r"(?:completed|total) (?:plans|phases)|total plans completed")
_LATEST = re.compile(r"(?:last|stopped|resume|updated)\b")
_OF = re.compile(r"(?<= of )\d{1,9}")
_NUMBER = re.compile(r"\d{1,9}")


def merge_planning(
    name: str, base: str, ours: str, theirs: str, merge_lines: MergeLines, *, size: int = 7
) -> tuple[str, bool]:
    """Return the merged text of the planning file *name*, and whether it has conflicts.

    They are between markers of *size* characters. Raises :class:`PlanningError` for a file that is not
    understood; then an ordinary merge of its lines is as good.
    """
    texts = (base, ours, theirs)
    if (same := _either(*texts)) is not None:
        return same, False
    windows = [text.count("\r\n") for text in texts]
    mixed = any(ends and ends != text.count("\n") for ends, text in zip(windows, texts, strict=True))
    if mixed or any("\0" in text for text in texts):
        raise PlanningError("is not a text with line ends of one kind", path=name)
    o, a, b = (_Side.of(name, text.replace("\r\n", "\n")) for text in texts)
    merge = _Merge.of(name, o, a, b, size)
    text = merge.text(merge_lines)
    if name == "ROADMAP.md":
        text = _counted(text, ours, theirs)
    elif name == "STATE.md":
        text = _measured(text, ours, theirs)
    return text.replace("\n", "\r\n") if _either(*map(bool, windows)) else text, merge.conflicts


def _either(base: T | None, ours: T, theirs: T) -> T | None:
    """Return the value that a three-way merge has; ``None`` if both sides changed it differently."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else None


def _counted(text: str, ours: str, theirs: str) -> str:
    """Return a roadmap with the numbers of the phases whose plans neither side knew as they are now."""
    known = plan_ticks(ours), plan_ticks(theirs)
    changed = {
        phase: "In Progress" if any(plans.values()) else "Planned"
        for phase, plans in plan_ticks(text).items()
        if plans and all(plans != side.get(phase) for side in known)
    }
    if len(changed) * len(text) > MAX_WORK:
        raise PlanningError("is too large to be counted", path="ROADMAP.md")
    for phase, status in changed.items():
        text = update_progress(text, phase, status, None)
    return text


def _measured(text: str, ours: str, theirs: str) -> str:
    """Return a STATE.md with the percentage of the plans in its frontmatter, if neither side knew them."""
    read = (as_map(state_of({"STATE.md": one}).get("progress")) for one in (text, ours, theirs))
    now, *known = ([one.get("completed_plans"), one.get("total_plans")] for one in read)
    done, total = (int(one) if isinstance(one, str) and _NUMBER.fullmatch(one) else 0 for one in now)
    if now in known or not total:
        return text
    return show_percent(text, Measure(plans=total, executed=min(done, total)).percent)


@attrs.frozen
class _Side:
    """A version: its lines, what they are, and those with an identity."""

    text: str
    lines: list[str]
    tokens: list[Token]
    known: dict[Token, str]

    @classmethod
    def of(cls, name: str, text: str) -> _Side:
        lines = text.split("\n")
        found = dict(_identities(name, text, lines))
        times = Counter(found.values())
        # Of two lines that cannot be told apart, nobody knows which one a side has changed.
        known = {at: one for at, one in found.items() if times[one] == 1}
        tokens = [known.get(at, (line,)) for at, line in enumerate(lines)]
        return cls(text, lines, tokens, {one: lines[at] for at, one in known.items()})

    def line(self, token: Token) -> str:
        """Return the line as it is in this version."""
        return self.known.get(token, token[0])

    def place(self) -> tuple[object, ...]:
        """Return how far the project is by this STATE.md, to be compared."""
        fields = {token[-1]: line for token, line in self.known.items() if token[0] == "field"}
        phase = STATE_PHASE.match(fields.get("phase") or fields.get("current phase", ""))
        plan = _PLAN.match(fields.get("plan") or fields.get("current plan", ""))
        return phase_order(phase[1]) if phase else (), int(plan[1]) if plan else 0, self.latest(), self.text

    def latest(self) -> str:
        """Return when the project was last worked on by this STATE.md, as ISO text."""
        said = (line for one, line in self.known.items() if one[0] == "field" and _LATEST.match(one[-1]))
        return max(_DATE.findall("\n".join(said)), default="")


def _identities(name: str, text: str, lines: Sequence[str]) -> Iterator[tuple[int, Token]]:
    """Yield the lines that have an identity; of two for a line, the last one counts."""
    heading = ""
    for at, line in enumerate(lines):
        if match := HEADING.match(line):
            heading = match[2]
        elif (row := cells(line)) and set(line) - set("|-: ") and not _DATE.match(row[0].strip("*` ")):
            yield at, ("row", heading, row[0].strip("*` "))
        elif match := REQUIREMENT_LINE.match(line):
            yield at, ("requirement", match[5])
        elif match := _BOX.match(line):
            yield at, ("box", heading, match[1])
        elif heading.lower().endswith("milestones") and (found := listed_milestone(line)):
            yield at, ("milestone", heading, found.version)
        elif _UPDATED.match(line):
            yield at, ("field", heading, "last updated")
    if name == "STATE.md":
        yield from ((at, ("field", above, field)) for at, above, field in fields_of(text))
    if name != "ROADMAP.md":
        return
    roadmap = parse_roadmap(text)
    yield from ((one.line, ("phase", one.milestone, one.number)) for one in roadmap.entries)
    for section in roadmap.sections:
        yield section.line, ("section", section.milestone, section.number)
        yield from ((plan.line, ("plan", section.number, plan.id)) for plan in roadmap.details(section).plans)
        for at in range(section.line + 1, section.end):
            if (match := FIELD.match(lines[at])) and match[1].lower() == "plans":
                yield at, ("plans", section.milestone, section.number)


@attrs.define
class _Merge:
    """A merge of three versions; *conflicts* is whether one was found so far."""

    name: str
    base: _Side
    ours: _Side
    theirs: _Side
    size: int
    position: frozenset[str]
    conflicts: bool = False

    @classmethod
    def of(cls, name: str, base: _Side, ours: _Side, theirs: _Side, size: int) -> _Merge:
        """Return the merge; *position* are the fields of STATE.md that both sides have moved on."""
        names = position_fields() | {"percent"} if name == "STATE.md" else frozenset[str]()
        fields = [token for token in base.known if token[0] == "field" and token[-1] in names]
        moved = all(any(side.known.get(one) != base.known[one] for one in fields) for side in (ours, theirs))
        return cls(name, base, ours, theirs, size, names if moved else frozenset())

    def text(self, merge_lines: MergeLines) -> str:
        """Return the merged text."""
        # A line that one side has removed stands for its text: to change it and to remove it is a conflict.
        named = self.base.known.keys() & self.ours.known.keys() & self.theirs.known.keys()
        # A line that was there, and is something else by what is around it now, is not new.
        old = {*self.base.lines}
        for token, line in (*self.ours.known.items(), *self.theirs.known.items()):
            if token not in self.base.known and line not in old and token[0] != "field":
                named.add(token)
        numbers: dict[Token, int] = {}
        given: list[str] = []
        for side in (self.base, self.ours, self.theirs):
            pairs = zip(side.tokens, side.lines, strict=True)
            found = (token if token in named else (line,) for token, line in pairs)
            given.append("".join(f"{numbers.setdefault(token, len(numbers))}\n" for token in found))
        tokens, lines = list(numbers), list[str]()
        # The parts of a conflict: ours, the base's and theirs.
        hunk: list[list[Token]] = []
        for line in merge_lines(*given).splitlines():
            if not line.isdecimal():
                hunk.append([])
            elif hunk:
                hunk[-1].append(tokens[int(line)])
            else:
                lines += self._shown([tokens[int(line)]])
            if line.startswith(">"):
                lines += self._settled(*hunk[:3])
                hunk = []
        return "\n".join(lines)

    def _shown(self, tokens: Sequence[Token]) -> list[str]:
        """Return the merged lines; of one that is a conflict, both sides between markers."""
        shown: list[str] = []
        for token in tokens:
            base, ours, theirs = (side.known.get(token) for side in (self.base, self.ours, self.theirs))
            if ours is None or theirs is None:
                shown.append(ours or theirs or token[0])
            elif (merged := self._merged(token, base, ours, theirs)) is not None:
                shown.append(merged)
            else:
                shown += self._conflict([ours], [theirs])
        return shown

    def _conflict(self, ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
        self.conflicts = True
        marks = ("<" * self.size + " ours", "=" * self.size, ">" * self.size + " theirs")
        return [marks[0], *ours, marks[1], *theirs, marks[2]]

    def _settled(self, ours: list[Token], base: list[Token], theirs: list[Token]) -> list[str]:
        """Return the lines for a place where both sides added lines, or changed those without identity."""
        before: list[Token] = []
        after: list[Token] = []
        if (union := self._union(ours, base, theirs)) is None:
            before = _same_start(ours, theirs)
            ours, theirs = ours[len(before) :], theirs[len(before) :]
            after = _same_start(ours[::-1], theirs[::-1])[::-1]
            ours, theirs = ours[: len(ours) - len(after)], theirs[: len(theirs) - len(after)]
            union = self._union(ours, base, theirs)
        if union is not None:
            return self._shown([*before, *union, *after])
        both = [*map(self.ours.line, ours)], [*map(self.theirs.line, theirs)]
        return [*self._shown(before), *self._conflict(*both), *self._shown(after)]

    def _union(self, ours: list[Token], base: list[Token], theirs: list[Token]) -> list[Token] | None:
        """Return what both sides added, each item and section once, in order; ``None`` if it is other text.

        A placeholder such as ``None yet.`` may be gone.
        """
        a, b = _blocks(self.ours, ours), _blocks(self.theirs, theirs)
        is_other = any(b.get(key, block) != block for key, block in a.items())
        # What is before the first heading belongs to the section above.
        kinds = [{kind for kind, _ in side} for side in (a, b)]
        levels = {kind for kind in kinds[0] | kinds[1] if kind.startswith("#")}
        texts = all(side - levels for side in kinds) and "text" in kinds[0] | kinds[1]
        if is_other or texts or (a and b and len(levels) > 1) or not all(map(_is_placeholder, base)):
            return None
        newest_first = self.name == "MILESTONES.md"

        def order(key: tuple[str, str]) -> tuple[object, ...]:
            return key[0].startswith("#") != newest_first, _natural(key[1])

        merged = [_BLANK] if _BLANK in ours[:1] + theirs[:1] else []
        for key in dict.fromkeys(interleave(a, b, key=order, reverse=newest_first)):
            if key[0] in levels and merged and merged[-1] != _BLANK:
                merged.append(_BLANK)
            merged += {**a, **b}[key]
        return [*merged, *([_BLANK] if _BLANK in ours[-1:] + theirs[-1:] and merged[-1:] != [_BLANK] else [])]

    def _merged(self, token: Token, base: str | None, ours: str, theirs: str) -> str | None:
        """Return a line that both sides may have changed; ``None`` if they say something different."""
        field = token[-1] if token[0] == "field" else ""
        if _COUNTER.fullmatch(field) and base not in (ours, theirs):
            return _added(_NUMBER, base, ours, theirs, max(ours, theirs, key=_natural))
        a, b = self.ours, self.theirs
        if field in self.position:
            # One side has all of them: the plan of one would be wrong in the phase of the other.
            if field in ("progress", "percent"):
                # So much is done for sure.
                return min(ours, theirs, key=lambda line: ([*map(int, _NUMBER.findall(line))], line))
            further = ours if a.place() > b.place() else theirs
            later = ours if (a.latest(), a.place()) > (b.latest(), b.place()) else theirs
            line = later if _LATEST.match(field) else further
            return _added(_OF, base, ours, theirs, line) if field == "phase" else line
        if (same := _either(base, ours, theirs)) is not None:
            return same
        if token[0] == "plans":
            return max(ours, theirs, key=_natural)  # it is counted anew
        if field == "last updated":
            return max(ours, theirs, key=lambda line: (_DATE.findall(line), line))
        return _merged_parts(base, ours, theirs)


_BLANK: Token = ("",)


def _same_start(ours: Sequence[Token], theirs: Sequence[Token]) -> list[Token]:
    pairs = zip(ours, theirs, strict=False)
    return [token for token, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _is_placeholder(token: Token) -> bool:
    is_none = NOTHING.match(token[0].strip(" -*")) is not None
    return len(token) == 1 and (is_none or not token[0].strip("|- "))


def _blocks(side: _Side, tokens: Sequence[Token]) -> dict[tuple[str, str], list[Token]]:
    """Return the items, the sections and the other texts that *tokens* consist of."""
    found: dict[tuple[str, str], list[Token]] = {}
    level = 0
    last: list[Token] = []
    while tokens and tokens[-1] == _BLANK:
        tokens = tokens[:-1]
    for token in tokens:
        line = side.line(token)
        heading = HEADING.match(line)
        begins = len(heading[1]) if heading else 0
        is_item = len(token) > 1 or _ITEM.match(line)
        if not (begins and begins <= (level or begins)) and (
            level or (last and not is_item and line[:1] in ("", " ", "\t"))
        ):
            last.append(token)
        elif begins or line:
            level = begins
            key = ("#" * begins if begins else "item" if is_item else "text", " ".join(token))
            last = found.setdefault(key if key not in found else ("text", f"{key[1]} {len(found)}"), [])
            last.append(token)
    return found


def _added(pattern: re.Pattern[str], base: str | None, ours: str, theirs: str, line: str) -> str:
    """Return *line* with the number of the base, and what each side has added to it."""
    found = [pattern.search(one or "") for one in (base, ours, theirs)]
    was, mine, others = (int(one[0]) if one else -1 for one in found)
    return line if None in found else pattern.sub(str(max(0, mine + others - was)), line, count=1)


def _merged_parts(base: str | None, ours: str, theirs: str) -> str | None:
    """Return a line that both sides changed in different parts; ``None`` if they changed the same part."""
    a, b, o = (_parts(line) for line in (ours, theirs, base or ""))
    was = o if base is not None and len(o) == len(a) else [None] * len(a)
    merged = [_merged_part(*three) for three in zip(was, a, b, strict=True)] if len(a) == len(b) else [None]
    return None if None in merged else "".join(filter(None, merged))


def _parts(line: str) -> list[str]:
    """Return the cells of a row, or the box, the text and the state of a line; joined they are the line."""
    ended = _ENDED.fullmatch(line)
    return [*_PARTS.split(ended[1]), ended[2] or ""] if ended else [line]


def _merged_part(base: str | None, ours: str, theirs: str) -> str | None:
    if (same := _either(base, ours, theirs)) is not None:
        return same
    if {ours, theirs} <= {" ", "x", "X"}:
        return "x"
    a, b = _rank(ours), _rank(theirs)
    if a != b and min(a, b) >= 0:
        return ours if a > b else theirs
    # The later date, the higher count.
    is_date = _DATE.search(ours) and _DATE.sub("", ours) == _DATE.sub("", theirs)
    is_share = _SHARE.fullmatch(ours) and _SHARE.fullmatch(theirs)
    return max(ours, theirs, key=_natural) if is_date or is_share else None


def _rank(status: str) -> int:
    word = status.strip().lower()
    return len(_STATES) if says_complete(word) else _STATES.index(word) if word in _STATES else -1


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that orders numbers in texts by their values."""
    parts = re.split(r"(\d{1,18})", text)
    return (*((int(part), "") if at % 2 else (0, part) for at, part in enumerate(parts)), (0, text))
