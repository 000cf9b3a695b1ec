"""The JSON schemas of bodies and answers, by the names that the OpenAPI document and TypeScript use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from gsd_core import EVENT_NAMES, SessionState
from gsd_core.project import output_schema

from .routes import Schema

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
AMOUNT: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}
TEXTS: Schema = {"type": "array", "items": TEXT}


def obj(**fields: Schema) -> Schema:
    """Return the schema of an object that has all *fields*, and may have others."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def arr(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def enum(*values: str) -> Schema:
    """Return the schema of one of these texts."""
    return {"type": "string", "enum": list(values)}


def null(schema: Schema) -> Schema:
    """Return *schema*, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> Schema:
    """Return a reference to one of :func:`components`."""
    return {"$ref": f"#/components/schemas/{name}"}


def both(name: str, **fields: Schema) -> Schema:
    """Return the schema of a component with more fields."""
    return {"allOf": [ref(name), obj(**fields)]}


PROGRESS = enum("pending", "in_progress", "completed", "failed", "skipped")
VERDICT = enum("passed", "gaps_found", "human_needed", "missing", "stale")
COUNTS = obj(total=NUMBER, done=NUMBER)
SCOPE = enum("read", "control")

START_FIELDS: Mapping[str, Schema] = {
    "project": {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^\\u0000]*$"},
    "idea": {"type": "string", "minLength": 1, "maxLength": 500_000, "pattern": "\\S"},
    "idea_file": {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^\\u0000]*$"},
    "resume": {"const": True},
    "step": enum("discuss", "plan", "execute", "verify"),
    "exec": {"type": "string", "minLength": 1, "maxLength": 20_000, "pattern": "^[^\\u0000]*$"},
    "phase": {"type": "string", "pattern": "^\\d{1,5}(\\.\\d{1,5})*$"},
    "phases": {"type": "string", "pattern": "^[\\d.,\\- ]{1,200}$"},
    "agent": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"},
    "depth": enum("quick", "standard", "comprehensive"),
    "model": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9.:/@_\\[\\]-]{0,199}$"},
    "budget": {"type": "string", "pattern": "^\\d{1,7}(\\.\\d{1,4})?$"},
}
START: Schema = {
    "type": "object",
    "properties": START_FIELDS,
    "required": ["project"],
    # An option that is not listed is refused and not ignored: nobody should believe that it counts.
    "additionalProperties": False,
}
EMPTY: Schema = {"type": ["object", "null"], "properties": {}, "additionalProperties": False}
WORDS: Schema = {
    "type": "object",
    "properties": {"words": {"type": "string", "minLength": 1, "maxLength": 20_000}},
    "required": ["words"],
    "additionalProperties": False,
}


def components() -> dict[str, Schema]:
    """Return the schemas of the answers' parts, by name."""
    status = _printed("status")
    # Only the command reads them.
    status["required"] = [name for name in status["required"] if name != "workstreams"]
    step = status["properties"]["active_steps"]["items"]
    return {
        "Error": obj(error=obj(code=TEXT, message=TEXT, hint=TEXT)),
        "Server": obj(
            version=TEXT, epoch=TEXT, number=NUMBER, scope=SCOPE, slots=null(NUMBER), started_at=TIME
        ),
        "Session": _session(),
        "Summary": _summary(),
        "ActiveStep": step,
        "Status": status,
        "Question": status["properties"]["questions"]["items"],
        "AnsweredQuestion": obj(
            id=TEXT,
            text=TEXT,
            step=TEXT,
            kind=TEXT,
            asked_at=null(TIME),
            words=TEXT,
            by=TEXT,
            via=TEXT,
            how=TEXT,
            at=null(TIME),
        ),
        "Answer": obj(question=TEXT, chosen=TEXTS, text=TEXT, by=TEXT, words=TEXT),
        "Plan": _plan(),
        "Phase": _phase(),
        "PhaseDetail": _phase_detail(),
        "Gap": _printed("gaps")["properties"]["gaps"]["items"],
        "StepDone": obj(
            id=TEXT,
            status=enum("running", "completed", "failed", "waiting", "cut_off", "skipped"),
            attempts=NUMBER,
            seconds=AMOUNT,
            started_at=null(TIME),
            commit=null(TEXT),
            failures=TEXTS,
            cost=ref("Costs"),
        ),
        "Commit": obj(
            sha=TEXT,
            subject=TEXT,
            step=TEXT,
            phase=null(TEXT),
            plan=null(TEXT),
            task=null(TEXT),
            at=null(TIME),
        ),
        "Requirement": _printed("requirements")["properties"]["requirements"]["items"],
        "Statement": obj(id=TEXT, text=TEXT, line=NUMBER, heading=TEXT),
        "Event": obj(seq=NUMBER, name=enum(*EVENT_NAMES), at=TIME, run=TEXT, step=TEXT, data=ANY),
        "Change": {
            "type": "object",
            "properties": {
                "number": NUMBER,
                "session": TEXT,
                "state": ref("Session"),
                "event": ref("Event"),
            },
            "required": ["number", "session"],
        },
        "Costs": _costs(),
        "Cost": obj(
            runs=TEXTS,
            total=ref("Costs"),
            budget=null(obj(dollars=TEXT, left=null(TEXT))),
            by=TEXT,
            groups=arr(ref("Costs")),
        ),
        "Plugin": _printed("plugins")["properties"]["plugins"]["items"],
        "Output": obj(start=NUMBER, end=NUMBER, dropped=FLAG, ended=FLAG, text=TEXT),
        "Lines": obj(path=TEXT, first=NUMBER, last=NUMBER, total=NUMBER, lines=TEXTS),
    }


def _session() -> Schema:
    times = {f"{name}_at": null(TIME) for name in ("created", "started", "ended", "updated")}
    return obj(
        id=TEXT,
        slot=null(NUMBER),
        project=TEXT,
        command=TEXTS,
        state=enum(*get_args(SessionState)),
        checkpoint=null(TEXT),
        reason=TEXT,
        run=null(TEXT),
        exit=null(NUMBER),
        pid=null(NUMBER),
        **times,
    )


def _summary() -> Schema:
    return obj(
        status=TEXT,
        idea=null(TEXT),
        agent=null(TEXT),
        progress=NUMBER,
        phases_total=NUMBER,
        phases_complete=NUMBER,
        plans=COUNTS,
        questions=NUMBER,
        steps=arr(ref("ActiveStep")),
        cost=obj(dollars=null(TEXT), tokens=NUMBER, calls=NUMBER, basis=null(TEXT)),
        budget=null(TEXT),
        reason=TEXT,
        exit=null(NUMBER),
        waits_for=null(TEXT),
        started_at=null(TIME),
        last_at=null(TIME),
    )


def _costs() -> Schema:
    kinds = ("total", "input", "output", "cache_read", "cache_write")
    return obj(
        dollars=null(TEXT),
        calls=NUMBER,
        calls_of_unknown_cost=NUMBER,
        estimated_calls=NUMBER,
        turns=NUMBER,
        tokens=obj(**dict.fromkeys(kinds, NUMBER)),
    )


def _plan() -> Schema:
    return obj(
        id=TEXT,
        phase=TEXT,
        name=TEXT,
        objective=TEXT,
        wave=NUMBER,
        depends_on=TEXTS,
        autonomous=FLAG,
        files_modified=TEXTS,
        requirements=TEXTS,
        tasks=arr(obj(number=NUMBER, name=TEXT, type=TEXT, commit=null(TEXT))),
        has_summary=FLAG,
        gap_closure=FLAG,
        status=enum("pending", "in_progress", "completed", "failed"),
    )


def _phase() -> Schema:
    return obj(
        number=TEXT,
        name=TEXT,
        goal=TEXT,
        depends_on=TEXTS,
        requirements=TEXTS,
        status=PROGRESS,
        steps={"type": "object", "additionalProperties": PROGRESS},
        active=arr(ref("ActiveStep")),
        plans=arr(ref("Plan")),
        gap_rounds=NUMBER,
        in_range=FLAG,
        complete=FLAG,
        verdict=VERDICT,
        started_at=null(TIME),
        completed_at=null(TIME),
    )


def _phase_detail() -> Schema:
    plan = both(
        "Plan",
        text=TEXT,
        summary=TEXT,
        truths=arr(obj(id=TEXT, text=TEXT, serves=TEXTS)),
        artifacts=arr(obj(path=TEXT, provides=TEXT)),
    )
    verification = obj(
        status=VERDICT,
        score=TEXT,
        verified=TEXT,
        text=TEXT,
        gaps=arr(ref("Gap")),
        human=arr(obj(test=TEXT, expected=TEXT, why=TEXT, result=TEXT)),
    )
    return both(
        "Phase",
        context=TEXT,
        research=TEXT,
        criteria=TEXTS,
        plans=arr(plan),
        verification=null(verification),
        requirements_traced=arr(ref("Requirement")),
        history=arr(ref("StepDone")),
        commits=arr(ref("Commit")),
    )


def _printed(name: str) -> dict[str, Any]:
    """Return the schema of what a command prints, as a part of another document."""
    return {key: value for key, value in output_schema(name).items() if key not in ("$schema", "title")}
