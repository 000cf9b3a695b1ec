"""JSON Schemas (draft 2020-12) of what ``gsd`` prints as JSON.

Objects may get new fields, so a schema allows fields that it does not name. A test compares the schemas with
what the commands print.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import attrs

from gsd_core.machine.state import RunOutcome
from gsd_core.model.event import EVENT_NAMES
from gsd_core.model.gap import GapStatus
from gsd_core.model.panel import Panel
from gsd_core.model.session import SessionState
from gsd_core.planning.health import HealthStatus
from gsd_core.planning.survey import DiskStatus

from .cost import Grouping
from .diagnosis import CheckState, Section
from .phases import Progress
from .planning import CurrentVerdict
from .progress import Summary
from .status import SCHEMA_VERSION, Holder, RunStatus

Schema: TypeAlias = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def values(*kinds: Any) -> Schema:
    """Return the schema of a string with one of the values of these ``Literal`` types."""
    found: list[str] = []
    for kind in kinds:
        for value in get_args(kind):
            found += get_args(value) if get_origin(value) is Literal else [value]
    return {"enum": sorted(set(found))}


def obj(**fields: Schema) -> Schema:
    """Return the schema of an object in which all *fields* are required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def arr(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def table(of: Schema) -> Schema:
    """Return the schema of an object with any keys."""
    return {"type": "object", "additionalProperties": of}


def null(schema: Schema) -> Schema:
    """Return *schema*, or null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def fields_of(kind: type[attrs.AttrsInstance]) -> Schema:
    """Return the schema of an object with the fields of an attrs class."""
    hints = get_type_hints(kind)
    return obj(**{field.name: _of_type(hints[field.name]) for field in attrs.fields(kind)})


def _of_type(kind: Any) -> Schema:
    origin = get_origin(kind)
    if origin is Literal:
        return values(kind)
    if origin in (Union, UnionType):
        [inner] = [part for part in get_args(kind) if part is not type(None)]
        return null(_of_type(inner))
    if origin is Mapping:
        return table(_of_type(get_args(kind)[1]))
    if origin is tuple:
        return arr(_of_type(get_args(kind)[0]))
    return {str: TEXT, int: NUMBER, bool: FLAG}[kind]


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}
TEXTS = arr(TEXT)
COUNTS = obj(total=NUMBER, done=NUMBER)

COSTS = obj(
    dollars=null(TEXT),
    calls=NUMBER,
    calls_of_unknown_cost=NUMBER,
    estimated_calls=NUMBER,
    turns=NUMBER,
    tokens=obj(total=NUMBER, input=NUMBER, output=NUMBER, cache_read=NUMBER, cache_write=NUMBER),
)
COST_GROUP: Schema = {
    **COSTS,
    "properties": {**dict.fromkeys(get_args(Grouping), TEXT), **COSTS["properties"]},
}
"""The field by whose name the calls are grouped says which group it is."""

NEXT = obj(
    **dict.fromkeys(("step", "kind", "phase", "plan", "command", "question"), null(TEXT)),
    reason=TEXT,
    ready=TEXTS,
)
PHASE = obj(
    number=TEXT,
    name=TEXT,
    goal=TEXT,
    depends_on=TEXTS,
    plans=NUMBER,
    summaries=NUMBER,
    status=values(DiskStatus),
    complete=FLAG,
    milestone=null(TEXT),
)
PHASE_OF_RUN = obj(
    number=TEXT,
    name=TEXT,
    status=values(Progress),
    steps=table(values(Progress)),
    plans=COUNTS,
    gap_rounds=NUMBER,
    in_range=FLAG,
    started_at=null(TIME),
    completed_at=null(TIME),
)
QUESTION = obj(
    id=TEXT,
    kind=TEXT,
    step=TEXT,
    header=TEXT,
    text=TEXT,
    reason=TEXT,
    options=arr(obj(number=NUMBER, label=TEXT, description=TEXT, recommended=FLAG)),
    multiple=FLAG,
    free_text=FLAG,
    human_only=FLAG,
    inspection=FLAG,
    asked_at=null(TIME),
    answer_given=FLAG,
    answer=null(TEXT),
    answer_with=TEXT,
)
STEP = obj(
    id=TEXT,
    kind=TEXT,
    phase=null(TEXT),
    status=TEXT,
    attempt=NUMBER,
    started_at=null(TIME),
    until=null(TIME),
)
STATUS = obj(
    run=null(TEXT),
    status=values(RunStatus, RunOutcome),
    idea=null(TEXT),
    agent=null(TEXT),
    sandbox=obj(name=null(TEXT), why=TEXT),
    branch=null(TEXT),
    exit=null(NUMBER),
    reason=TEXT,
    notes=TEXTS,
    started_at=null(TIME),
    last_at=null(TIME),
    waits_for=null(TEXT),
    owner=null(fields_of(Holder)),
    progress=NUMBER,
    percent=NUMBER,
    plans=COUNTS,
    phases_total=NUMBER,
    phases_complete=NUMBER,
    idle=null(TEXT),
    single_steps=null(obj(outcome=values(RunOutcome), exit=NUMBER, reason=TEXT)),
    current_step=null(STEP),
    active_steps=arr(STEP),
    phases=arr(PHASE_OF_RUN),
    assumed=obj(count=NUMBER, checks=arr(obj(id=TEXT, step=TEXT, text=TEXT))),
    not_notified=arr(obj(service=TEXT, reason=TEXT, since=null(TIME), count=NUMBER)),
    questions=arr(QUESTION),
    cost=obj(dollars=null(TEXT), tokens=NUMBER, calls=NUMBER, basis=TEXT),
    budget=null(TEXT),
    next=null(NEXT),
    workstreams=arr(obj(name=TEXT, active=FLAG, phases=NUMBER, complete=NUMBER, error=null(TEXT))),
)
RECORD = obj(
    seq=NUMBER,
    at=TIME,
    run=TEXT,
    epoch=NUMBER,
    kind=TEXT,
    v=NUMBER,
    step=null(TEXT),
    attempt=null(NUMBER),
    data=table(ANY),
)
EVENT = obj(seq=NUMBER, name={"enum": [*EVENT_NAMES]}, at=TIME, run=TEXT, step=null(TEXT), data=table(ANY))
EVIDENCE = arr(obj(about=TEXT, status=TEXT, proof=TEXT))
REQUIREMENT = obj(
    id=TEXT,
    text=TEXT,
    category=TEXT,
    version=TEXT,
    done=FLAG,
    statements=TEXTS,
    phase=null(TEXT),
    plans=TEXTS,
    commits=TEXTS,
    checks=arr(obj(id=TEXT, command=TEXT, status=null(TEXT), result=null(TEXT))),
    evidence=EVIDENCE,
    status=TEXT,
    reason=TEXT,
)
GAP = obj(
    truth=TEXT,
    about=null(TEXT),
    status=values(GapStatus),
    reason=TEXT,
    artifacts=arr(obj(path=TEXT, issue=TEXT)),
    missing=TEXTS,
    found_by=TEXT,
)
ISSUE = obj(code=TEXT, path=TEXT, line=null(NUMBER), message=TEXT, fix=TEXT, repairable=FLAG)
PLUGIN = obj(
    **dict.fromkeys(("name", "source", "status"), TEXT),
    **dict.fromkeys(("about", "reason", "distribution", "version", "sha256", "path"), null(TEXT)),
    hooks=TEXTS,
    notes=TEXTS,
    last_failures=arr(obj(hook=TEXT, error=TEXT)),
)
TODO = obj(id=TEXT, title=TEXT, area=TEXT, severity=null(TEXT), created=null(TEXT), path=TEXT)
HANDED_OVER = obj(asked={"const": True}, pid=NUMBER)
"""The active run does it after its current step."""
PHASE_EDIT = obj(phase=TEXT, name=TEXT, folder=null(TEXT), commit=null(TEXT))
SESSION = obj(
    id=TEXT,
    slot=null(NUMBER),
    project=TEXT,
    command=TEXTS,
    state=values(SessionState),
    checkpoint=null(TEXT),
    reason=TEXT,
    run=null(TEXT),
    exit=null(NUMBER),
    pid=null(NUMBER),
    created_at=TIME,
    started_at=null(TIME),
    ended_at=null(TIME),
    updated_at=TIME,
)
STARTED = obj(session=SESSION)
"""What ``--bg`` prints."""
END = obj(
    run=TEXT,
    outcome=values(RunOutcome),
    exit=NUMBER,
    reason=TEXT,
    notes=TEXTS,
    dollars=null(TEXT),
    commits=NUMBER,
    project=null(
        obj(
            name=TEXT,
            path=TEXT,
            branch=null(TEXT),
            phases=NUMBER,
            phases_complete=NUMBER,
            tasks=NUMBER,
            requirements=NUMBER,
            requirements_verified=NUMBER,
        )
    ),
)
END["properties"] |= {
    "try_it": null(obj(source=TEXT, commands=TEXTS, checked=TEXTS)),
    "worked_seconds": {"type": "number"},
    "processes": NUMBER,
    "cost": COSTS,
    "assumed": arr(obj(question=TEXT, text=TEXT, answer=TEXT, by=TEXT)),
    "questions": arr(QUESTION),
    "next": TEXTS,
}
"""Not required: they are missing if the project cannot be read any more."""
ERROR = obj(error=obj(kind=TEXT, message=TEXT, hint=TEXT), exit=NUMBER)
DRY_RUN = obj(
    project=TEXT,
    new_folder=FLAG,
    idea=null(obj(name=TEXT, sha256=TEXT)),
    due=arr(obj(what=TEXT, step=TEXT, plugin=null(TEXT), why=TEXT)),
    plugins=arr(obj(name=TEXT, status=TEXT, reason=TEXT)),
    settings=arr(obj(name=TEXT, value=TEXT, origin=TEXT)),
)


def _with(schema: Schema, more: Schema) -> Schema:
    return obj(**schema["properties"], **more["properties"])


def either(*schemas: Schema) -> Schema:
    """Return the schema of an object that matches one of *schemas*."""
    return {"type": "object", "anyOf": [*schemas]}


SCHEMAS: Mapping[str, Schema] = {
    "run": either(END, ERROR, DRY_RUN, STARTED),
    "event": EVENT,
    "pause": obj(
        stopped=null(NUMBER),
        phase=null(TEXT),
        plan=null(TEXT),
        next_action=TEXT,
        files=TEXTS,
        commit=null(TEXT),
    ),
    "stop": either(obj(asked=FLAG, pid=null(NUMBER)), obj(session=SESSION)),
    "ps": obj(sessions=arr(SESSION)),
    "questions": obj(run=null(TEXT), questions=arr(QUESTION)),
    "answer": obj(question=TEXT, words=TEXT, taken_by=null(NUMBER), replaced=FLAG),
    "status": STATUS,
    "next": NEXT,
    "progress": obj(
        project=null(TEXT),
        milestone=null(TEXT),
        percent=NUMBER,
        plans=COUNTS,
        phases_complete=NUMBER,
        phases=arr(PHASE),
        recent=arr(fields_of(Summary)),
        decisions=TEXTS,
        blockers=TEXTS,
        todos=arr(obj(id=TEXT, title=TEXT, area=TEXT)),
        next=NEXT,
    ),
    "log": RECORD,
    "watch": RECORD,
    "cost": obj(
        runs=TEXTS,
        total=COSTS,
        budget=null(obj(dollars=TEXT, left=null(TEXT))),
        by=values(Grouping),
        groups=arr(COST_GROUP),
    ),
    "panels": obj(
        panels=arr(_with(fields_of(Panel), obj(plugin=TEXT))), failures=arr(obj(plugin=TEXT, reason=TEXT))
    ),
    "phases": obj(milestones=arr(obj(version=TEXT, name=TEXT, shipped=FLAG)), phases=arr(PHASE)),
    "plans": obj(
        plans=arr(
            obj(
                id=TEXT,
                wave=NUMBER,
                depends_on=TEXTS,
                autonomous=FLAG,
                files_modified=TEXTS,
                requirements=TEXTS,
                tasks=NUMBER,
                has_summary=FLAG,
                gap_closure=FLAG,
            )
        )
    ),
    "gaps": obj(status=values(CurrentVerdict), gaps=arr(GAP), complete=FLAG, without=TEXTS),
    "requirements": obj(requirements=arr(REQUIREMENT)),
    "phase add": either(_with(PHASE_EDIT, obj(asked={"const": False})), HANDED_OVER),
    "phase insert": either(_with(PHASE_EDIT, obj(asked={"const": False})), HANDED_OVER),
    "phase remove": _with(PHASE_EDIT, obj(renumbered=table(TEXT), copy=null(TEXT))),
    "todo add": either(
        _with(TODO, obj(commit=null(TEXT), pending=NUMBER, asked={"const": False})), HANDED_OVER
    ),
    "todo done": either(
        _with(TODO, obj(commit=null(TEXT), pending=NUMBER, asked={"const": False})), HANDED_OVER
    ),
    "todo list": obj(todos=arr(TODO)),
    "trust": obj(
        project=TEXT,
        trusted=FLAG,
        wants=arr(obj(kind=TEXT, name=TEXT, shown=ANY, sha256=TEXT, trusted=FLAG)),
        refused=arr(obj(name=TEXT, origin=TEXT)),
    ),
    "plugins": obj(plugins=arr(PLUGIN)),
    "plugins check": obj(
        plugin=TEXT,
        kind=TEXT,
        ok=FLAG,
        rules=arr(
            obj(id=TEXT, status=TEXT, what=TEXT, why=TEXT, fix=TEXT, problems=TEXTS, reason=null(TEXT))
        ),
    ),
    "plugins info": _with(
        obj(**(PLUGIN["properties"] | {"hooks": arr(ANY)})),
        obj(
            **dict.fromkeys(("provides", "commands"), TEXTS),
            **dict.fromkeys(("turn_off", "turn_on"), null(TEXT)),
            steps=arr(obj(kind=TEXT, before=null(TEXT), title=null(TEXT))),
            settings=arr(obj(name=TEXT, type=TEXT, value=ANY, default=ANY, origin=TEXT)),
        ),
    ),
    "plugins list": obj(
        plugins=arr(obj(name=TEXT, package=TEXT, about=TEXT, hooks=TEXTS, installed=null(TEXT)))
    ),
    "plugins outdated": obj(outdated=arr(obj(package=TEXT, version=TEXT, latest=null(TEXT)))),
    "settings show": obj(settings=arr(obj(name=TEXT, value=ANY, origin=TEXT)), not_trusted=TEXTS),
    "settings set": obj(name=TEXT, value=ANY, path=TEXT),
    "settings unset": obj(name=TEXT, path=TEXT),
    "doctor": obj(
        project=TEXT,
        state=values(CheckState),
        checks=arr(
            obj(section=values(Section), name=TEXT, state=values(CheckState), found=TEXT, fix=null(TEXT))
        ),
        fixed=TEXTS,
    ),
    "health": obj(
        status=values(HealthStatus),
        errors=arr(ISSUE),
        warnings=arr(ISSUE),
        info=arr(ISSUE),
        repairable_count=NUMBER,
        repairs=arr(obj(path=TEXT, codes=TEXTS, diff=TEXT, applied=FLAG)),
    ),
    "paths": obj(paths=arr(obj(name=TEXT, path=null(TEXT), exists=FLAG))),
    "version": obj(gsd=TEXT, python=TEXT, platform=TEXT, git=null(TEXT), libraries=table(null(TEXT))),
}
"""By command; ``run`` is for all commands with ``--output-format json``, ``event`` for ``stream-json``."""

TITLES: Mapping[str, str] = {
    "run": "--output-format json of gsd run, gsd resume and the commands that do one step",
    "event": "a line of --output-format stream-json",
    "log": "a line of gsd log --json",
}


def schema_of(name: str) -> Schema:
    """Return the complete schema of a name in :data:`SCHEMAS`."""
    found = SCHEMAS[name]
    version = {"schema_version": {"const": SCHEMA_VERSION}}
    return {
        "$schema": DIALECT,
        "title": TITLES.get(name, f"gsd {name} --json"),
        **found,
        "properties": {**version, **found.get("properties", {})},
        "required": [*version, *found.get("required", [])],
    }


def file_name(name: str) -> str:
    """Return the name of the file that has the schema of *name* in the reference."""
    return f"{name.replace(' ', '-')}.json"
