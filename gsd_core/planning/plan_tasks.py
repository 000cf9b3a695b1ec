"""The tasks in a PLAN.md: those of ``<task>`` elements, and of the other forms that real plans have.

A plan without ``<task>`` elements has its tasks as ``<feature>`` elements (``type: tdd``), as sections
(``## Task 1: NAME``), or as prose, lists and checklists. The latter are one task, because a list item need
not be something that can be committed on its own. So a plan always has a task: one without any would count
as executed before anything was done.

A feature is three tasks, one for each commit of GSD's test-driven cycle (its ``references/tdd.md``): the
failing test, the implementation, the cleanup. So is a ``<task tdd="true">`` of any plan, if it adds behavior.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

import attrs

from .markdown import Element, dedented, elements, escape, named, prose, unescape, without
from .model import Cycle, Task, TaskType

MAX_TASKS = 300
MAX_NAME = 80
HUMAN_CHECK = "human-check"
"""The detail of a task with its ``<human-check>`` elements: what a person checks at the end of the phase."""
TASK_PARTS = ("name", "files", "action", "verify", "done")
"""The elements of a task that have a field of :class:`Task`; all others are its ``details``."""

_TASK_PREFIX = re.compile(r"\s*Task\s+[\d.]+\s*[:.—–-]\s*", re.IGNORECASE)
# `src/a.py (new)`: what happens to the file is not part of its path.
_FILE_REMARK = re.compile(
    r"\s\((?:new|creat|modif|updat|edit|delet|remov|read|exist|extend|append)[^()]*\)$", re.I
)
_TYPES: dict[str, TaskType] = {
    "checkpoint:decision": "checkpoint:decision",
    "checkpoint:human-action": "checkpoint:human-action",
    "checkpoint:user": "checkpoint:human-action",
    "manual": "checkpoint:human-action",
}


def read_tasks(body: str, *, name: str, files: Sequence[str], promises: Sequence[str]) -> tuple[Task, ...]:
    """Return the tasks in the *body* of a plan: at least one.

    *name*, *files* and *promises* are those of the plan, for a task that is the whole plan. If there is a
    ``<tasks>`` element, only its content counts: other parts may quote tasks.
    """
    groups = [element.inside for element in named(body, "tasks")] or [body]
    tasks: tuple[Task, ...] = ()
    for element in islice((task for group in groups for task in named(group, "task")), MAX_TASKS + 1):
        task = _task_of_element(len(tasks) + 1, element)
        tasks += cycle_of(task, task.number) if _is_test_driven(task, element) else (task,)
    tasks = tasks or _task_sections("\n".join(groups)) or _features(body, files)
    return tasks or (_whole_plan(body, name, files, promises),)


def _is_test_driven(task: Task, element: Element) -> bool:
    """Whether tests come first: ``tdd="true"``, for a task that describes behavior and names a source file.

    Those conditions are GSD's own (``task.is-behavior-adding``): documents, settings and tests are exempt.
    """
    if element.attributes.get("tdd", "").strip().lower() != "true" or task.type != "auto":
        return False
    sources = (path for path in task.files if not is_test_file(path) and not _NO_SOURCE.search(path.lower()))
    return bool(task.details.get("behavior", "").strip()) and any(sources)


_NO_SOURCE = re.compile(r"\.(?:md|json|ya?ml|toml|ini|cfg|conf|properties)$|(?:^|[\\/])\.env(?:\.[^/]*)?$")


def _features(body: str, files: Sequence[str]) -> tuple[Task, ...]:
    """Return the tasks of each ``<feature>``, which GSD's TDD plans have instead of tasks."""
    found = list(islice(named(body, "feature"), MAX_TASKS + 1))
    check = _verification_command(body)
    tasks: list[Task] = []
    for number, element in enumerate(found, start=1):
        feature = _task_of_element(number, element)
        one = attrs.evolve(
            feature,
            name=feature.name or "the feature",
            files=feature.files or (tuple(files) if len(found) == 1 else ()),
            # The plan's own check is about all features, so only the last one can pass it.
            check=feature.check or (check if number == len(found) else ""),
        )
        tasks += cycle_of(one, len(tasks) + 1)
    return tuple(tasks)


CYCLE: tuple[Cycle, ...] = ("red", "green", "refactor")
RED, GREEN, REFACTOR = "Add failing tests for: ", "Implement: ", "Clean up: "
"""How the names of a feature's tasks begin; the rest is the feature's name."""


def cycle_of(feature: Task, number: int) -> tuple[Task, Task, Task]:
    """Return the tasks of a test-driven *feature*, from *number* on.

    The feature's details are its ``behavior``, which the tests describe, and its ``implementation``; others
    belong to the implementation.
    """
    behavior = feature.details.get("behavior", "")
    how = feature.details.get("implementation", "") or feature.action
    tests = tuple(path for path in feature.files if is_test_file(path))
    code = tuple(path for path in feature.files if path not in tests)
    done = feature.done or "the tests pass, and the first commit has them unchanged"
    red = attrs.evolve(
        feature,
        number=number,
        name=RED + feature.name,
        type="auto",
        files=tests,
        action=behavior or how,
        done="the tests fail, because what they describe is not there yet",
        details={"behavior": behavior} if behavior else {},
        cycle="red",
    )
    others = {
        name: text for name, text in feature.details.items() if name not in ("behavior", "implementation")
    }
    details = {**({"implementation": how} if how else {}), **others}
    green = attrs.evolve(
        red,
        number=number + 1,
        name=GREEN + feature.name,
        files=code,
        action=how or behavior,
        done=done,
        details=details,
        cycle="green",
    )
    refactor = attrs.evolve(
        green,
        number=number + 2,
        name=REFACTOR + feature.name,
        action="Clean up the implementation if that improves it; the behavior and the tests stay as they are",
        details={},
        cycle="refactor",
    )
    return red, green, refactor


def parts_of(tasks: Sequence[Task]) -> Iterator[tuple[Task, ...]]:
    """Yield what is one element of a plan each: the three tasks of a cycle, or a single task."""
    at = 0
    while at < len(tasks):
        # A cycle that a model's plan has broken up is not an element.
        size = 3 if tuple(task.cycle for task in tasks[at : at + 3]) == CYCLE else 1
        yield tuple(tasks[at : at + size])
        at += size


def feature_of(red: Task, green: Task) -> Task:
    """Return the feature that the tasks of a cycle come from: the reverse of :func:`cycle_of`."""
    details = {**red.details, **green.details}
    name, files = red.name.removeprefix(RED), (*green.files, *red.files)
    return attrs.evolve(green, name=name, files=files, action="", details=details, cycle="")


def is_test_file(path: str) -> bool:
    """Whether a path looks like that of a test, by the conventions of common languages."""
    file = PurePosixPath(path)
    in_test_folder = not {"test", "tests", "__tests__", "spec"}.isdisjoint(file.parts[:-1])
    return in_test_folder or file.name == "conftest.py" or is_named_as_test(path)


def is_named_as_test(path: str) -> bool:
    """Whether runners of tests look for test cases in a file, by its name."""
    name = PurePosixPath(path).name
    stem = name.partition(".")[0].lower()
    return (
        stem.startswith("test_")
        or stem.endswith(("_test", "-test", "_spec"))
        or ".test." in name
        or ".spec." in name
    )


# Parts of a plan that are not instructions.
_FRAME = ("context", "execution_context", "output", "verification", "success_criteria")
_TITLE = re.compile(
    r"^#[ \t]+(?:Phase[ \t]+[\w.-]+[ \t]+)?(?:Plan[ \t]+[\w.-]+[ \t]*[:—–-]+[ \t]*)?(.+)$", re.M
)


def _whole_plan(body: str, name: str, files: Sequence[str], promises: Sequence[str]) -> Task:
    """Return the plan as one task: its text is what to do."""
    text = body
    for part in _FRAME:
        text = without(text, part)
    title = _TITLE.search(text)
    named_tasks = [element.text for element in named(body, "tasks")]
    action = "\n\n".join(filter(None, named_tasks)) or text.strip()
    done = "\n".join(element.text for element in named(body, "success_criteria"))
    name = " ".join((prose(title[1]) if title else name).split())
    return Task(
        number=1,
        name=name if len(name) <= MAX_NAME else name[: MAX_NAME - 1].rstrip() + "…",
        files=tuple(files),
        action=action or "\n".join(f"- {promise}" for promise in promises),
        check=_verification_command(body),
        done=done,
    )


# "- [ ] `npm test`", "- `npm test` passes": an item that is nothing but a command and its success.
_COMMAND_ITEM = re.compile(
    r"^\s*(?:[-*]|\d+[.)])\s+(?:\[[ xX]\]\s+)?`([^`]+)`\s*"
    r"(?:(?:passes|succeeds|is green|exits?(?: with)?(?: code)? 0|works without errors?)\.?)?\s*$"
)
_SINGLE_WORD_COMMANDS = ("make", "pytest", "tox", "nox")
# The beginning of a line that can only be a command: "go test" is one, "go through the pages" is not.
_TEST_COMMAND = re.compile(
    r"(?:(?:npm|yarn|pnpm|bun|deno|go|cargo|make|dotnet|mvn|swift|mix) (?:run )?test\b|npx \w|pytest\b"
    r"|python3? -m (?:pytest|unittest)\b|uv run \w|node --test\b|bundle exec \w|\./gradlew \w)[^\n]*$"
)


def _verification_command(body: str) -> str:
    """Return the commands of ``<verification>`` as one: ``<automated>`` elements, or items of its list.

    Other text there is for people: a command in the middle of a sentence may be one that must fail.
    """
    commands: list[str] = []
    for part in named(body, "verification"):
        automated = [read_command(element.inside) for element in named(part.inside, "automated")]
        items = [match[1].strip() for line in part.text.split("\n") if (match := _COMMAND_ITEM.match(line))]
        items = [item for item in items if " " in item or item in _SINGLE_WORD_COMMANDS]
        whole = part.text.strip()
        # GSD's template for TDD has the bare test command here.
        bare = [read_command(whole)] if _FENCED.fullmatch(whole) or _TEST_COMMAND.match(whole) else []
        commands += automated or items or ([] if "\n" in "".join(bare) else bare)
    return " && ".join(dict.fromkeys(filter(None, commands)))


def _task_of_element(number: int, element: Element) -> Task:
    parts: dict[str, Element] = {}
    for part in elements(element.inside):
        parts.setdefault(part.name, part)
    texts = {name: part.text for name, part in parts.items()}
    verify, check, human = _read_verify(parts.get("verify"))
    # A checkpoint of an unknown kind waits for a person too.
    kind = element.attributes.get("type", "").strip().lower()
    other: TaskType = "checkpoint:human-verify" if kind.startswith("checkpoint") else "auto"
    paths = (_FILE_REMARK.sub("", part.strip(" -`\t")) for part in re.split(r"[,\n]", texts.get("files", "")))
    details = {name: text for name, text in texts.items() if text and name not in (*TASK_PARTS, HUMAN_CHECK)}
    return Task(
        number=number,
        name=_TASK_PREFIX.sub("", texts.get("name", ""), count=1).strip(),
        type=_TYPES.get(kind, other),
        files=tuple(path.replace("&#44;", ",") for part in paths if (path := part.strip("` \t"))),
        action=texts.get("action", ""),
        verify=verify,
        check=check,
        done=texts.get("done", ""),
        details={**details, HUMAN_CHECK: human} if human else details,
    )


def _read_verify(element: Element | None) -> tuple[str, str, str]:
    """Return the text of ``<verify>``, the command in ``<automated>``, and its ``<human-check>`` elements.

    Source of the latter: GSD's ``references/planner-human-verify-mode.md``.
    """
    if element is None:
        return "", "", ""
    commands = [read_command(part.inside) for part in named(element.inside, "automated")]
    check = " && ".join(filter(None, commands))
    blocks = [f"<{HUMAN_CHECK}>{part.inside}</{HUMAN_CHECK}>" for part in named(element.inside, HUMAN_CHECK)]
    text = without(without(element.inside, "automated"), HUMAN_CHECK)
    return unescape(text, "verify").strip(), check, "\n".join(blocks)


_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_QUOTED_OR_ENTITY = re.compile(rf"'[^']*'|\"[^\"]*\"|{_ENTITY.pattern}")
_CDATA = re.compile(r"<!\[CDATA\[(.*)\]\]>", re.DOTALL)
_FENCED = re.compile(r"```[\w-]*\n([^`]+)```|`([^`]+)`")
# GSD's planners write this for a test that an earlier task has yet to create.
_NO_COMMAND = re.compile(r"MISSING\b|(?:none|n/a|-|—)$", re.IGNORECASE)


def read_command(inside: str) -> str:
    """Return the command in an ``<automated>`` element, empty if there is none.

    Plans are not XML, but models write them as if they were: ``a &amp;&amp; b``, ``<![CDATA[a && b]]>``.
    Entities are decoded. If the text has a bare ``&`` or ``<`` as well, it is not escaped as a whole: then
    those between quotes stay, because ``grep '&lt;'`` looks for them.
    """
    raw = dedented(inside).strip()
    if quoted := _CDATA.fullmatch(raw):
        return unescape(dedented(quoted[1]), "automated").strip()
    if fenced := _FENCED.fullmatch(raw):
        raw = (fenced[1] or fenced[2]).strip()
    if _NO_COMMAND.match(raw):
        return ""
    if "<" in raw or "&" in _ENTITY.sub("", raw):
        raw = unescape(raw, "automated")
        return _QUOTED_OR_ENTITY.sub(lambda m: m[0] if m[0][0] in "'\"" else html.unescape(m[0]), raw)
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), raw)


def render_command(command: str) -> str:
    """Return the content of an ``<automated>`` element that :func:`read_command` reads as *command*."""
    text = escape(command, "automated")
    plain = not _ENTITY.search(command) and read_command(text) == command.strip()
    return text if plain else f"<![CDATA[{text}]]>"


# Reading tasks: sections of markdown, `## Task 1: NAME`, with or without fields below the heading

_TASK_HEADING = re.compile(
    r"^ {0,3}(#{2,5})\s*Task\s+(?:[A-Z]-?)?\d{1,4}[\d.]{0,9}[A-Za-z]?\s*(?:[:.)—–-]\s*(.*))?$", re.IGNORECASE
)
_HEADING = re.compile(r"^ {0,3}(#{1,6})\s")
_FIELD = re.compile(
    r"^\s*(?:[-*]\s+)?\*\*(Files?|Action|Verify|Verification|Done)[^*]{0,40}\*\*:?\s*(.*)$", re.IGNORECASE
)
_FIELD_NAMES = {"file": "files", "verification": "verify"}
_QUOTED_PATH = re.compile(r"`([^`\s]+)`")


def _task_sections(body: str) -> tuple[Task, ...]:
    """Return the tasks that are written as headings; a heading in a code fence is text.

    A task ends at the next heading of the same or a higher level.
    """
    found: list[tuple[str, list[str]]] = []
    level, fenced = 0, False
    for line in map(str.rstrip, body.split("\n")):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        task = None if fenced else _TASK_HEADING.match(line)
        heading = None if fenced else _HEADING.match(line)
        if task:
            level = len(task[1])
            found.append((task[2] or "", []))
        elif heading and len(heading[1]) <= level:
            level = 0
        elif level:
            found[-1][1].append(line)
    return tuple(_task_of_section(number, *section) for number, section in enumerate(found, start=1))


def _task_of_section(number: int, name: str, lines: Sequence[str]) -> Task:
    text = "\n".join(lines)
    if any(True for part in ("action", "files", "verify") for _ in named(text, part)):
        # The parts of a <task> element, below a heading instead of inside of it.
        task = _task_of_element(number, Element(name="task", inside=text))
        return attrs.evolve(task, name=prose(name) or task.name)
    fields = _read_fields(lines)
    listed = fields.get("files", "")
    files = _QUOTED_PATH.findall(listed) or re.split(r"[,\n]", listed)
    return Task(
        number=number,
        name=prose(name),
        # An item that contains a space is a remark, and a word without a dot or a slash is a name in it.
        files=tuple(
            path for file in files if re.search(r"[./]", path := file.strip(" -*\t")) and " " not in path
        ),
        action=fields.get("action") or text.strip(),
        verify=fields.get("verify", ""),
        done=fields.get("done", ""),
    )


def _read_fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the fields (``**Files**: …``) of a task; each ends at the next field or at a blank line."""
    fields: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if field := _FIELD.match(line):
            name = field[1].lower()
            current = fields[_FIELD_NAMES.get(name, name)] = [field[2]]
        elif not line.strip():
            current = None
        elif current is not None:
            current.append(line)
    return {name: "\n".join(text).strip() for name, text in fields.items()}
