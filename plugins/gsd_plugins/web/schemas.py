"""The JSON schemas of bodies and answers, by the names that the OpenAPI document and TypeScript use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from gsd_core import EVENT_NAMES, SessionState
from gsd_core.project import detail_schema, output_schema

from .errors import CODES
from .routes import Schema
from .sessions_api import SUMMARY

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}
BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
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


def extended(schema: Schema, **fields: Schema) -> Schema:
    """Return the schema of an object with more *fields*, or with other ones of the same names.

    It is not an ``allOf``: the result can be closed, and a generator makes one type of it.
    """
    return obj(**{**schema["properties"], **fields})


def table(of: Schema) -> Schema:
    """Return the schema of an object with any keys."""
    return {"type": "object", "additionalProperties": of}


PROGRESS = enum("pending", "in_progress", "completed", "failed", "skipped")
VERDICT = enum("passed", "gaps_found", "human_needed", "missing", "stale")
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
    "tokens": {"type": "string", "pattern": "^[1-9]\\d{0,11}$"},
    "turns": {"type": "string", "pattern": "^[1-9]\\d{0,7}$"},
}
START: Schema = {
    "type": "object",
    "properties": START_FIELDS,
    "required": ["project"],
    # An option that is not listed is refused and not ignored: nobody should believe that it counts.
    "additionalProperties": False,
}
EMPTY: Schema = {"type": ["object", "null"], "properties": {}, "additionalProperties": False}
WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 20_000}
WORDS: Schema = {**obj(words=WORD), "additionalProperties": False}


def components() -> dict[str, Schema]:
    """Return the schemas of the answers and their parts, by name; the page has types of the same names."""
    return {**_server(), **_sessions(), **_project(), **_run(), **_socket()}


def _server() -> dict[str, Schema]:
    return {
        "Error": obj(error=obj(code=enum(*CODES.values()), message=TEXT, hint=TEXT)),
        "Scope": SCOPE,
        "ServerInfo": obj(
            version=TEXT, epoch=TEXT, number=NUMBER, scope=ref("Scope"), slots=null(NUMBER), started_at=TIME
        ),
        "Plugin": _printed("plugins")["properties"]["plugins"]["items"],
        "PluginList": obj(plugins=arr(ref("Plugin"))),
        "Panel": _printed("panels")["properties"]["panels"]["items"],
        "PanelList": obj(panels=arr(ref("Panel")), failures=_printed("panels")["properties"]["failures"]),
    }


def _sessions() -> dict[str, Schema]:
    session = extended(_printed("stop")["anyOf"][1]["properties"]["session"], state=ref("SessionState"))
    position: Mapping[str, Schema] = {"epoch": TEXT, "number": NUMBER}
    # The problem is why there is no summary, "" if there is none.
    with_summary = extended(session, summary=null(ref("Summary")), problem=TEXT)
    return {
        "SessionState": enum(*get_args(SessionState)),
        # Without the summary of its run: as it was when it changed.
        "SessionRecord": session,
        "Session": with_summary,
        "SessionList": obj(**position, sessions=arr(ref("Session"))),
        "SessionInfo": obj(**position, session=ref("Session")),
        "SessionChanged": obj(session=ref("SessionRecord")),
        "Summary": _summary(),
        "OutputLines": obj(lines=TEXTS, total=NUMBER),
        "OutputPage": obj(start=NUMBER, end=NUMBER, dropped=FLAG, ended=FLAG, text=TEXT),
    }


def _project() -> dict[str, Schema]:
    commit, plan = detail_schema("commit"), detail_schema("plan")
    return {
        "Progress": PROGRESS,
        "Verdict": VERDICT,
        "Plan": plan,
        "DetailedPlan": extended(plan, **detail_schema("texts of a plan")["properties"]),
        "Phase": _phase(),
        "PhaseList": extended(
            detail_schema("phases"), idle=null(TEXT), phases=arr(ref("Phase")), graph=ref("PlanGraph")
        ),
        "PlanGraph": detail_schema("phases")["properties"]["graph"],
        "PhaseDetail": _phase_detail(),
        "Gap": _printed("gaps")["properties"]["gaps"]["items"],
        "Requirement": _printed("requirements")["properties"]["requirements"]["items"],
        "Statement": detail_schema("statement"),
        "RequirementList": extended(_printed("requirements"), statements=arr(ref("Statement"))),
        "Commit": commit,
        "CommitList": obj(commits=arr(ref("Commit"))),
        "CommitPatch": extended(commit, patch=TEXT, truncated=FLAG),
        "FileLines": obj(path=TEXT, first=NUMBER, last=NUMBER, total=NUMBER, lines=TEXTS),
    }


def _run() -> dict[str, Schema]:
    printed = _printed("status")
    # Only the command reads them.
    required = [name for name in printed["required"] if name not in ("next", "workstreams")]
    status: dict[str, Any] = dict(extended(printed, dollars_today=TEXT))
    status["required"] = [*required, "dollars_today"]
    question = status["properties"]["questions"]["items"]
    cost = _printed("cost")
    return {
        "Status": status,
        "ActiveStep": status["properties"]["steps_in_progress"]["items"],
        "StepDone": extended(detail_schema("step"), cost=ref("Costs")),
        "RunQuestion": question,
        # With the session in which it can be answered.
        "Question": extended(question, session=TEXT, project=TEXT),
        "QuestionList": obj(questions=arr(ref("Question")), problems=arr(ref("UnreadProject"))),
        "UnreadProject": obj(session=TEXT, project=TEXT, problem=TEXT),
        "AnsweredQuestion": detail_schema("answered question"),
        "RunQuestions": obj(questions=arr(ref("RunQuestion")), answered=arr(ref("AnsweredQuestion"))),
        "Answer": obj(question=TEXT, chosen=TEXTS, text=TEXT, by=TEXT, words=TEXT),
        "AnswerGiven": obj(answer=ref("Answer")),
        "GsdEvent": obj(seq=NUMBER, name=enum(*EVENT_NAMES), at=TIME, run=TEXT, step=TEXT, data=table(ANY)),
        "EventPage": obj(events=arr(ref("GsdEvent")), next=NUMBER, more=FLAG),
        "Costs": cost["properties"]["total"],
        "CostGroup": cost["properties"]["groups"]["items"],
        "CostReport": extended(cost, total=ref("Costs"), groups=arr(ref("CostGroup"))),
    }


def _socket() -> dict[str, Schema]:
    """Return the messages of the WebSocket. Each has one name that no other has, and some have a number."""
    printed: Mapping[str, Schema] = {
        "session": TEXT,
        "start": NUMBER,
        "end": NUMBER,
        "dropped": FLAG,
        "ended": FLAG,
    }
    about: Mapping[str, Schema] = {"number": NUMBER, "session": TEXT}
    answers: Mapping[str, Schema] = {
        "Hello": obj(hello=obj(epoch=TEXT, number=NUMBER, scope=ref("Scope"), version=TEXT)),
        "Frame": obj(frame=arr(ref("Change")), number=NUMBER),
        "Resync": obj(resync={"const": True}, number=NUMBER),
        "Removed": obj(removed=obj(sessions=TEXTS)),
        "OutputMessage": obj(output=ref("OutputChunk")),
        "TerminalMessage": obj(terminal=ref("TerminalChunk")),
        "Pong": obj(pong=ANY),
    }
    return {
        "Change": {"oneOf": [ref("SessionChange"), ref("EventChange")]},
        "SessionChange": obj(**about, state=ref("SessionRecord")),
        "EventChange": obj(**about, event=ref("GsdEvent")),
        "OutputChunk": obj(**printed, text=TEXT),
        "TerminalChunk": obj(**printed, data=BASE64),
        **answers,
        "ServerMessage": {"oneOf": [*map(ref, answers), ref("Error")]},
        "ClientMessage": _client_message(),
    }


def _client_message() -> Schema:
    session: Mapping[str, Schema] = {"session": TEXT}
    subscribe = obj(**session, after=null(NUMBER), epoch=TEXT, output=FLAG, cursor=NUMBER)
    terminal = obj(**session, cursor=NUMBER, close=FLAG)
    fields = {
        "subscribe": {**subscribe, "required": ["session"]},
        "unsubscribe": obj(**session),
        "terminal": {**terminal, "required": ["session"]},
        "input": obj(**session, data=BASE64),
        "resize": obj(**session, columns=NUMBER, rows=NUMBER),
        "ping": ANY,
    }
    return {**obj(**fields), "required": []}


def _summary() -> Schema:
    status = _printed("status")["properties"]
    return obj(
        **{name: status[name] for name in SUMMARY if name != "dollars_today"},
        phases_planned=NUMBER,
        questions=NUMBER,
        waits_since=null(TIME),
        answers_given=NUMBER,
        dollars_today=TEXT,
        steps=arr(ref("ActiveStep")),
    )


def _phase() -> Schema:
    return extended(
        detail_schema("phase"),
        status=ref("Progress"),
        steps=table(ref("Progress")),
        active=arr(ref("ActiveStep")),
        plans=arr(ref("Plan")),
        verdict=ref("Verdict"),
    )


def _phase_detail() -> Schema:
    found = detail_schema("verification")
    verification = extended(found, status=ref("Verdict"), gaps=arr(ref("Gap")))
    return extended(
        _phase(),
        context=TEXT,
        research=TEXT,
        criteria=TEXTS,
        plans=arr(ref("DetailedPlan")),
        verification=null(verification),
        requirements_traced=arr(ref("Requirement")),
        history=arr(ref("StepDone")),
        commits=arr(ref("Commit")),
    )


def _printed(name: str) -> dict[str, Any]:
    """Return the schema of what a command prints, as a part of another document."""
    return {key: value for key, value in output_schema(name).items() if key not in ("$schema", "title")}
