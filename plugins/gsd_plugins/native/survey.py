"""survey: describe existing code in ``.planning/codebase/``, before it is planned.

GSD has four mappers; here two agents write the same seven files, because both areas of a pair read the same
code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from gsd_core import (
    AgentTask,
    FileWrite,
    Permanent,
    StepHost,
    StepRequest,
    StepResult,
    StepSituation,
    StepType,
)
from gsd_core.planning.codebase import FOLDER, SECTIONS, missing_sections, render_codebase

from .answers import DocumentsAnswer, acceptance, parse_answer
from .codebase_facts import MIN_SOURCES, Facts, facts_of, source_files
from .models import task_for
from .paths import date_of
from .prompt_context import fence, join, section, system_prompt
from .skills import rules_section

AREAS: Mapping[str, tuple[str, ...]] = {
    "structure": ("STACK.md", "INTEGRATIONS.md", "ARCHITECTURE.md", "STRUCTURE.md"),
    "quality": ("CONVENTIONS.md", "TESTING.md", "CONCERNS.md"),
}
"""What each agent writes."""
MAX_COMPLAINTS = 15
_PATH = re.compile(r"`([\w.@+-]+(?:/[\w.@+-]+)+)(?::\d+(?:-\d+)?)?`")


def is_due(now: StepSituation) -> bool:
    """Whether the project has code that was there before it, and no description of it."""
    planned = [name for name in now.planning.documents if name != "CLAUDE.md"]
    if planned or now.planning.phases:
        return False
    return len(source_files(now.files)) >= MIN_SOURCES


step_type = StepType(
    kind="survey", before="init", due=is_due, writes=(f"{FOLDER}/*.md",), title="Describe the existing code"
)


async def execute(step: StepRequest, host: StepHost) -> StepResult:
    """Have the documents written, and check each against the code."""
    facts = facts_of(step.tree, step.files)
    if not facts.languages:
        raise Permanent("there is no source code to describe", hint="commit the code first")
    files: list[FileWrite] = []
    for area, names in AREAS.items():

        def problems(answer: DocumentsAnswer, names: Sequence[str] = names) -> Sequence[str]:
            if sorted(one.name for one in answer.documents) != sorted(names):
                return (f"documents: exactly these are required: {', '.join(names)}",)
            found = [each for one in answer.documents for each in _problems(step, facts, one.name, one.text)]
            return found[:MAX_COMPLAINTS]

        result = await host.run_agent(area, _task(step, facts, names), acceptance(DocumentsAnswer, problems))
        texts = {one.name: one.text for one in parse_answer(DocumentsAnswer, result.value).documents}
        files += [
            FileWrite(path=f"{FOLDER}/{name}", text=render_codebase(name, texts[name], date_of(step)))
            for name in names
        ]
    return StepResult(subject="docs: map existing codebase", files=tuple(files))


def _task(step: StepRequest, facts: Facts, names: Sequence[str]) -> AgentTask:
    listed = "\n".join(
        f"- {name}: title `{SECTIONS[name][0]}`, sections {', '.join(SECTIONS[name][1])}" for name in names
    )
    return task_for(
        step,
        "codebase-mapper",
        system=system_prompt("survey"),
        prompt=join(
            section("Documents to write", listed),
            section("Facts", fence("facts", facts.as_text())),
            rules_section(step, "codebase-mapper"),
        ),
        answer=DocumentsAnswer,
        turns=60,
    )


def _problems(step: StepRequest, facts: Facts, name: str, text: str) -> Iterator[str]:
    if missing := missing_sections(name, text):
        yield f"{name}: these sections are missing: {', '.join(missing)}"
    if name == "TESTING.md":
        yield from (
            f"{name}: the test command `{command}` (from {source}) is missing"
            for command, source in facts.tests
            if command not in text
        )
    tracked = {*step.files}
    folders = {str(parent) for path in step.files for parent in PurePosixPath(path).parents}
    for path in dict.fromkeys(_PATH.findall(text)):
        # Only what looks like a file of the project: its first folder is one.
        if path.partition("/")[0] in folders and path not in tracked and path not in folders:
            yield f"{name}: there is no `{path}` in the project"
