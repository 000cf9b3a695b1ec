"""Exact facts of a text: what a text that is derived from it has to repeat.

A fact is recognized by its form alone, in a small closed grammar. Everything else is ignored, so that an
honest paraphrase passes. There are three kinds:

- *words* that are given literally: in quotes, in code, a URL, a path, a file name, a time, a date, a version;
- *numbers*, in digits or in English words, with the unit if it is one of time, size or percent ("one minute"
  is 60 seconds), and with a bound ("at most", "more than", "20 or fewer");
- *orders*: "newest first" is descending, "oldest first" ascending, and "alphabetical" a third one.

Examples ("such as …", "like `…`") and code blocks have no facts: a requirement states the rule, not its
illustration.
"One" is a number only before a unit of less than a day, because otherwise it usually counts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Literal, TypeAlias

import attrs

FactKind: TypeAlias = Literal["words", "number", "order"]


@attrs.frozen(kw_only=True)
class Fact:
    """An exact fact; *text* is how it was said, which does not count in comparisons.

    *value* is normalized: words in lower case without quotes, a number in the smallest *unit* of its kind.
    *bound* says on which side of the number the limit is: ``above`` it ("at most", "more than") or ``below``
    it ("at least", "less than"). "More than 30 is refused" and "at most 30 is accepted" are the same limit.
    """

    kind: FactKind
    value: str
    unit: str = ""
    bound: str = ""
    text: str = attrs.field(eq=False)


# The grammar

_CODE_BLOCK = re.compile(r"(?:`{3,}|~{3,})[^`~]*(?:`{3,}|~{3,}|$)|\A---\n.*", re.DOTALL)
# Possessive and bounded, because a long text that is not closed would otherwise take quadratic time.
_WORDS = re.compile(
    r"""
    (?P<ticks>`+).{1,300}?(?P=ticks)
    | "[^"]{1,300}" | “[^”]{1,300}” | „[^“”]{1,300}[“”] | «[^»]{1,300}» | ‘[^’]{1,300}’
    | (?<!\w)'[^']{1,300}'(?!\w)
    | https?://[^\s<>()"]*[^\s<>()".,;:!?]
    | (?<![\w/<.:])(?:~|\.{1,2})?/\w[\w./-]*(?<![.-])
    | (?<![\w/.-])[\w-]{2,}+(?:[./][\w-]+)*(?:\.[a-z][a-z0-9]{1,4}(?![\w/])|/(?=[\s,;:)]|$))
    | (?<![\w.:])\d{1,2}:\d{2}(?![\w:])
    | (?<![\w.-])\d{4}-\d{2}-\d{2}(?![\w-])
    | (?<![\w.])\d+(?:\.\d+){2,}(?!\w)
    """,
    re.VERBOSE,
)
_QUOTES = re.compile("[`\"“”„«»‘’']")
_EXAMPLE = re.compile(
    # Masked words are NULs. A comma ends the example, unless another one of the same form follows.
    r"\b(?:such as|for example|for instance|e\.g\.|like(?= \0)),?"
    r"(?:[^.;!?),–—]|,(?= (?:(?:or|and) )?[\d\0]))*",
    re.IGNORECASE,
)
_SMALL = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_NUMBER_WORDS = {
    **{word: value for value, word in enumerate(_SMALL, start=1)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    **_MULTIPLES,
    "a": 1,
}
_UNITS = {
    name: (unit, Decimal(factor))
    for unit, factor, names in (
        ("s", "0.001", "ms millisecond"),
        ("s", "1", "s sec second"),
        ("s", "60", "min minute"),
        ("s", "3600", "h hour"),
        ("s", "86400", "day"),
        ("s", "604800", "week"),
        ("month", "1", "month"),
        ("month", "12", "year"),
        ("byte", "1", "byte"),
        ("kb", "1", "kb kilobyte"),
        ("mb", "1", "mb megabyte"),
        ("gb", "1", "gb gigabyte"),
        ("%", "1", "% percent"),
    )
    for name in names.split()
}
MAX_DECIMALS = 3
"""Of a number that stands for another one in a larger unit: 90 seconds are 1.5 minutes."""
_CALENDAR = ("day", "week", "month", "year")


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(words)})"


_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+|,\d{1,2})?"
_WORD = rf"(?:{_any(_TENS)}(?:[- ]{_any(_SMALL[:9])}\b)?|{_any(_SMALL)})"
_VALUE = rf"(?:(?:{_DIGITS}|\b{_WORD}\b)(?:\ {_any(_MULTIPLES)}\b)?|\ba\ {_any(_MULTIPLES)}\b)"
_MORE = "(?:more|greater|larger|bigger|higher|longer|older|later)"
_LESS = "(?:less|fewer|smaller|lower|shorter|younger|newer|earlier)"
_OF = r"\.?(?:[ :=]+[a-z]+){0,2}?[ :=]*"
_NUMBER = re.compile(
    rf"""
    (?:(?P<above>\b{_MORE}\ than\b|\b(?:over|above|exceed\w*|at\ most|up\ to|within)\b
                |\b(?:max(?:imum)?|limit\w*|cap(?:ped)?\ at)\b{_OF}|≤|<=|(?<![-=])>)
      |(?P<below>\b{_LESS}\ than\b|\b(?:under|below|at\ least)\b|\bmin(?:imum)?\b{_OF}|≥|>=|<)
    )?\ ?
    (?<![\w.\#/:\\])(?<!\w[-–])(?P<first>{_VALUE})(?:\ ?(?:-|–|\bto\b|\band\b|\bor\b)\ ?(?P<second>{_VALUE}))?
    (?:[ -]?(?P<unit>{_any(_UNITS)}s?))?(?!\w|[.,:/]\d)
    (?:(?:\ [a-z]+){{0,2}}?\ (?:
         (?P<above_it>at\ most\b(?!\ {_VALUE})|max(?:imum)?\b
                     |(?:or|and)\ (?:{_LESS}|under|below)\b(?!\ than))
        |(?P<below_it>at\ least\b(?!\ {_VALUE})|min(?:imum)?\b
                     |(?:or|and)\ (?:{_MORE}|up|above|over)\b(?!\ than)))
      |(?P<plus>\+)
    )?
    """,
    re.VERBOSE,
)
_MOST = r"(?:newest|latest|youngest|most\ recent|largest|biggest|highest|greatest|longest)"
_LEAST = r"(?:oldest|earliest|smallest|lowest|shortest)"
_ORDER = re.compile(
    rf"""
    \b(?P<alphabetical>(?:reverse[- ])?alphabetical)(?:ly)?\b
    |\b(?:(?P<down>reverse[- ]chronological|descending|{_MOST}\ to\ {_LEAST})
         |(?P<up>chronological|ascending|{_LEAST}\ to\ {_MOST}))
    |\b(?:(?P<most>{_MOST})|{_LEAST})(?:\ \w+){{0,2}}?\s
      (?:first|(?:at|on)\ (?:the\ )?top|(?P<last>last|at\ the\ (?:end|bottom)))\b
    """,
    re.VERBOSE,
)
_PLACEHOLDER = re.compile(r"[A-Z]{3,}\.(?!md|txt|rst)\w+")
"""A name such as ``DIR.bak`` stands for others; only documents such as ``README.md`` are called so."""


def exact_facts(text: str) -> tuple[Fact, ...]:
    """Return the exact facts of *text*, each once."""
    literal, said = _literal_and_rest(text)
    words = (
        Fact(kind="words", value=value, text=one)
        for one in literal
        if not _PLACEHOLDER.fullmatch(one)
        if (value := _plain(_name_of_call(one)).rstrip(",./").removesuffix("()"))
    )
    return tuple(dict.fromkeys([*words, *_numbers(said), *_orders(said)]))


def _literal_and_rest(text: str) -> tuple[list[str], str]:
    """Return what *text* gives literally, and the text without it; both without examples and code blocks."""
    text = _one_line(_CODE_BLOCK.sub(" ", text))
    masked = _WORDS.sub(lambda found: "\0" * len(found[0]), text)
    examples = [found.span() for found in _EXAMPLE.finditer(masked)]
    literal = (
        found[0]
        for found in _WORDS.finditer(text)
        if not any(start <= found.start() < end for start, end in examples)
    )
    return list(literal), _EXAMPLE.sub(" ", masked)


def patterns_in_code(text: str) -> dict[str, str]:
    """Return what code that does what *text* says has to contain: what it says, and a regular expression.

    These are texts in quotes, of which two words that stand side by side are enough, because a placeholder
    or a line break may stand elsewhere; names in code; and numbers, perhaps in another unit. What may be
    computed or spelled in many ways, such as paths, times of day and commands, is not among it, and no
    number of things without a bound: it may describe the input ("a card number of 16 digits"). The
    expressions are POSIX extended ones, for ``git grep``.
    """
    literal, said = _literal_and_rest(text)
    found = dict[str, str]()
    for one in literal:
        if one.startswith("`"):
            name = re.fullmatch(r"`+(-{0,2}[A-Za-z_][\w.-]*)(?:\(.*\))?`+", one)
            if name and not name[1].isupper() and len(name[1]) > 1:
                found[one] = re.escape(name[1])
        elif _QUOTES.match(one):
            words = re.findall(r"[^\W\d_]{2,}", one)
            pairs = re.findall(r"(?=\b([^\W\d_]{2,})[^\w{}<>$%]{1,3}([^\W\d_]{2,})\b)", one)
            if plain := [pair for pair in pairs if not any(map(_is_placeholder, pair))]:
                found[one] = "|".join(rf"{first}[^[:alnum:]]{{1,4}}{second}" for first, second in plain)
            elif len(words) == 1 and len(words[0]) > 2 and not _is_placeholder(words[0]):
                found[one] = words[0]
    for fact in _numbers(said):
        value = Decimal(fact.value)
        counts = re.search(rf"(?<![\w.]){re.escape(fact.text)} [a-z]{{3,}}s\b", said.casefold())
        if value > 1 and (fact.unit or fact.bound or (fact.text[0].isdecimal() and not counts)):
            found[fact.text] = rf"(^|[^[:alnum:].])({'|'.join(_spellings(value, fact))})([^[:alnum:].]|$)"
    return found


def _is_placeholder(word: str) -> bool:
    return word.isupper() and len(word) > 2


def _spellings(value: Decimal, fact: Fact) -> Iterator[str]:
    """Yield how code may write a number: in another unit, or with the limit on the other side."""
    factors = {
        "s": ("1", "1000", "60", "3600", "86400", "604800"),
        "month": ("1", "12", "30", "31", "365"),
        "%": ("1", "100"),
        **dict.fromkeys(("kb", "mb", "gb"), ("1", "1000", "1024", "1000000", "1048576", "1073741824")),
    }.get(fact.unit, ("1",))
    numbers = {number for factor in map(Decimal, factors) for number in (value * factor, value / factor)}
    if fact.bound:
        # More than 30 is also at least 31.
        numbers |= {value - 1, value + 1}
    if fact.unit == "%":
        # What it is added to, or taken from: 35 % more is 1.35 times as much.
        numbers |= {whole + sign * value / 100 * whole for whole in (1, 100) for sign in (1, -1)}
    for number in sorted(numbers):
        text = format(number.normalize(), "f")
        whole, dot, rest = text.partition(".")
        if dot and (number == value or len(rest) <= MAX_DECIMALS):
            yield rf"{whole if whole != '0' else '0?'}\.{rest}"
        elif not dot and number:
            # Code separates thousands by `_`, and data by `,`.
            yield "[_,]?".join(reversed([text[max(0, at - 3) : at] for at in range(len(text), 0, -3)]))
            if text.endswith("000"):
                yield re.sub("0+$", lambda zeros: f"e{len(zeros[0])}", text)


def _name_of_call(words: str) -> str:
    """Return the name of a call or command in code, whose arguments are often placeholders; else *words*.

    Quoted text with a placeholder ("Hello, NAME") is no exact fact: nothing is left of it.
    """
    if found := re.match(r"`+([\w.-]+)[( ]", words):
        return found[1]
    has_placeholder = " " in words and words.upper() != words and re.search(r"\b[A-Z]{3,}\b", words)
    return "" if has_placeholder else words


def missing_facts(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Return those of *facts* that *text* does not contain.

    A number without a unit or a bound is also contained in the same number with one.
    """
    plain, said = _plain(text), _QUOTES.sub("", _one_line(text))
    numbers = {(one.value, one.unit, one.bound) for one in _numbers(said, bare=True)}
    orders = {one.value for one in _orders(said)}

    def is_contained(fact: Fact) -> bool:
        match fact.kind:
            case "words":
                # Whole words only; beside a sign, anything may stand.
                whole = rf"(?:(?<!\w)|(?!\w)){re.escape(fact.value)}(?:(?!\w)|(?<!\w))"
                return bool(re.search(whole, plain))
            case "order":
                return fact.value in orders
            case "number":
                bounds = [bound for *number, bound in numbers if number == [fact.value, fact.unit]]
                return fact.bound in bounds or bool(bounds and not fact.bound)

    return tuple(fact for fact in facts if not is_contained(fact))


def changed_facts(source: str, text: str, rule: str) -> tuple[Fact, ...]:
    """Return the facts of *source* that the *text* derived from it does not contain; *rule* is its core.

    Words that are left out do not count if the rule has none in their place: later prompts quote the source.
    """
    missing = missing_facts(exact_facts(source), text)
    is_changed = any(one.kind == "words" for one in missing_facts(exact_facts(rule), source))
    return tuple(one for one in missing if is_changed or one.kind != "words")


def contradictions(facts: Iterable[Fact], text: str) -> tuple[Fact, ...]:
    """Return those of *facts* that *text* has in another form: another order, another number of that kind.

    Numbers are of one kind if they have the same unit or, without a unit, the same bound.
    """
    others = {_comparable(one) for one in exact_facts(text)}
    missing = (fact for fact in missing_facts(facts, text) if _comparable(fact) in others)
    return tuple(fact for fact in missing if fact.kind == "order" or fact.unit or fact.bound)


def _comparable(fact: Fact) -> tuple[str, ...]:
    return fact.kind, fact.unit or fact.bound


def _one_line(text: str) -> str:
    return " ".join(text.replace("**", "").split())


def _plain(text: str) -> str:
    """Return *text* for the comparison of words: without quotes, and without spaces beside signs."""
    text = _QUOTES.sub("", _one_line(text)).casefold().replace("\\\\", "\\")
    return re.sub(r" ?([^\w\s]) ?", r"\1", text).strip()


def _numbers(text: str, *, bare: bool = False) -> Iterator[Fact]:
    """Yield the numbers of *text*; with *bare*, those with a unit also without it."""
    for found in _NUMBER.finditer(text.casefold()):
        below = found["below"] or found["below_it"] or found["plus"]
        bound = "above" if found["above"] or found["above_it"] else "below" if below else ""
        name = found["unit"] or ""
        unit, factor = _UNITS.get(name) or _UNITS.get(name.removesuffix("s")) or ("", Decimal(1))
        for said in filter(None, (found["first"], found["second"])):
            if said == "one" and (not unit or name.startswith(_CALENDAR)):
                continue
            values = {unit: _value(said) * factor, **({"": _value(said)} if bare else {})}
            for of, value in values.items():
                shown = format(value.normalize(), "f")
                yield Fact(kind="number", value=shown, unit=of, bound=bound, text=found[0].strip())


def _value(said: str) -> Decimal:
    """Return the number that is written as ``1,000``, ``42,50``, ``twenty-five`` or ``two hundred``."""
    first, *rest = said.replace("-", " ").split()
    if first[0].isdecimal():
        first = re.sub(r",(?=\d{3})", "", first).replace(",", ".")
    value = Decimal(_NUMBER_WORDS.get(first, first))
    for word in rest:
        value = value * _MULTIPLES[word] if word in _MULTIPLES else value + _NUMBER_WORDS[word]
    return value


def _orders(text: str) -> Iterator[Fact]:
    for found in _ORDER.finditer(text.casefold()):
        falls = found["down"] or (not found["up"] and bool(found["most"]) != bool(found["last"]))
        value = found["alphabetical"] or ("descending" if falls else "ascending")
        yield Fact(kind="order", value=value, text=found[0])
