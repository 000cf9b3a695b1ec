"""JSON Schemas (draft 2020-12) of what ``gsd`` prints as JSON.

Objects may get new fields, so a schema allows fields that it does not name. A test compares the schemas with
what the commands print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from gsd_core.machine.state import RunOutcome
from gsd_core.model.event import EVENT_NAMES
from gsd_core.model.panel import Panel
from gsd_core.model.session import SESSION
from gsd_core.planning.health import ISSUE, HealthStatus
from gsd_core.planning.todos import TODO
from gsd_core.serializer import (
    ANY,
    FLAG,
    NUMBER,
    SCHEMA_VERSION,
    TEXT,
    TEXTS,
    TIME,
    Schema,
    arr,
    null,
    obj,
    table,
    values,
)
from gsd_core.serializer import schema_of as schema_of_type

from . import project_details as details
from .cost import COSTS, Grouping
from .diagnosis import CHECK, CheckState
from .forecast import FORECAST
from .log import RECORD
from .next import NEXT
from .plan_graph import GRAPH
from .planning import GAPS, MILESTONE, PHASE, PLAN, REQUIREMENT
from .progress import PROGRESS
from .status import PHASE_ROW, QUESTION, STATUS
from .summary import ASSUMED
from .why import WHY

DIALECT = "https://json-schema.org/draft/2020-12/schema"

COST_GROUP: Schema = {
    **COSTS.schema,
    "properties": {**dict.fromkeys(get_args(Grouping), TEXT), **COSTS.schema["properties"]},
}
"""The field by whose name the calls are grouped says which group it is."""

STATUS_PRINTED = obj(
    **STATUS.schema["properties"],
    next=null(NEXT.schema),
    workstreams=arr(obj(name=TEXT, active=FLAG, phases=NUMBER, complete=NUMBER, error=null(TEXT))),
)
EVENT = obj(seq=NUMBER, name={"enum": [*EVENT_NAMES]}, at=TIME, run=TEXT, step=null(TEXT), data=table(ANY))
PLUGIN = obj(
    **dict.fromkeys(("name", "source", "status"), TEXT),
    **dict.fromkeys(("about", "reason", "distribution", "version", "sha256", "path"), null(TEXT)),
    hooks=TEXTS,
    notes=TEXTS,
    last_failures=arr(obj(hook=TEXT, error=TEXT)),
)
HANDED_OVER = obj(asked={"const": True}, pid=NUMBER)
"""The active run does it after its current step."""
PHASE_EDIT = obj(phase=TEXT, name=TEXT, folder=null(TEXT), commit=null(TEXT))
STARTED = obj(session=SESSION.schema)
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
    "cost": COSTS.schema,
    "assumed": arr(ASSUMED.schema),
    "questions": arr(QUESTION.schema),
    "next": TEXTS,
    "hint": TEXT,
    "answers": {"type": "object", "additionalProperties": TEXT},
    "results": TEXTS,
}
"""Not required: most are missing if the project cannot be read any more, the last two unless steps were
asked for alone."""
ERROR = obj(error=obj(kind=TEXT, message=TEXT, hint=TEXT), exit=NUMBER)
DRY_RUN = obj(
    project=TEXT,
    new_folder=FLAG,
    idea=null(obj(name=TEXT, sha256=TEXT)),
    due=arr(obj(what=TEXT, step=TEXT, plugin=null(TEXT), why=TEXT)),
    forecast=null(obj(**FORECAST.schema["properties"], words=TEXTS)),
    plugins=arr(obj(name=TEXT, status=TEXT, reason=TEXT)),
    settings=arr(obj(name=TEXT, value=TEXT, origin=TEXT)),
)


def _with(schema: Schema, more: Schema) -> Schema:
    return obj(**{**schema["properties"], **more["properties"]})


def _or_handed_over(done: Schema) -> Schema:
    """Return the schema of an edit that is *done*, or left to the active run."""
    return either(_with(done, obj(asked={"const": False})), HANDED_OVER)


def either(*schemas: Schema) -> Schema:
    """Return the schema of an object that matches one of *schemas*."""
    return {"type": "object", "anyOf": [*schemas]}


TODO_EDIT = _with(TODO.schema, obj(commit=null(TEXT), pending=NUMBER))
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
    "stop": either(obj(asked=FLAG, pid=null(NUMBER)), obj(session=SESSION.schema)),
    "ps": obj(sessions=arr(_with(SESSION.schema, obj(dollars=null(TEXT), host=TEXT)))),
    "questions": obj(run=null(TEXT), questions=arr(QUESTION.schema)),
    "answer": obj(question=TEXT, words=TEXT, taken_by=null(NUMBER), replaced=FLAG),
    "status": STATUS_PRINTED,
    "next": NEXT.schema,
    "why": WHY.schema,
    "progress": PROGRESS.schema,
    "log": RECORD.schema,
    "watch": RECORD.schema,
    "cost": obj(
        runs=TEXTS,
        total=COSTS.schema,
        budget=null(obj(dollars=TEXT, left=null(TEXT))),
        by=values(Grouping),
        groups=arr(COST_GROUP),
    ),
    "panels": obj(
        panels=arr(_with(schema_of_type(Panel), obj(plugin=TEXT))),
        failures=arr(obj(plugin=TEXT, reason=TEXT)),
    ),
    "phases": obj(milestones=arr(MILESTONE.schema), phases=arr(PHASE.schema)),
    "plans": obj(plans=arr(PLAN.schema)),
    "plan-graph": GRAPH.schema,
    "gaps": GAPS.schema,
    "requirements": obj(requirements=arr(REQUIREMENT.schema)),
    **dict.fromkeys(("phase add", "phase insert"), _or_handed_over(PHASE_EDIT)),
    "phase remove": _with(PHASE_EDIT, obj(renumbered=table(TEXT), copy=null(TEXT))),
    **dict.fromkeys(("todo add", "todo done"), _or_handed_over(TODO_EDIT)),
    "todo list": obj(todos=arr(TODO.schema)),
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
    "doctor": obj(project=TEXT, state=values(CheckState), checks=arr(CHECK.schema), fixed=TEXTS),
    "health": obj(
        status=values(HealthStatus),
        errors=arr(ISSUE.schema),
        warnings=arr(ISSUE.schema),
        info=arr(ISSUE.schema),
        repairable_count=NUMBER,
        repairs=arr(obj(path=TEXT, codes=TEXTS, diff=TEXT, applied=FLAG)),
    ),
    "paths": obj(paths=arr(obj(name=TEXT, path=null(TEXT), exists=FLAG))),
    "version": obj(gsd=TEXT, python=TEXT, platform=TEXT, git=null(TEXT), libraries=table(null(TEXT))),
}
"""By command; ``run`` is for all commands with ``--output-format json``, ``event`` for ``stream-json``."""

DETAILS: Mapping[str, Schema] = {
    "phase": _with(PHASE_ROW.schema, details.PHASE_ENTRY.schema),
    "phases": details.PLANNING.schema,
    "plan": details.PLAN_ENTRY.schema,
    "texts of a plan": details.PLAN_TEXTS.schema,
    "verification": details.VERDICT.schema,
    "statement": details.STATEMENT.schema,
    "commit": details.COMMIT.schema,
    "step": details.STEP_DONE.schema,
    "answered question": details.ANSWERED.schema,
}
"""The parts of :class:`gsd_core.project_details.ProjectDetails`."""

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
