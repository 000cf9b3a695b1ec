"""The scripted agent: plays every role of a case, and repeats itself when it is sent back."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from bench.careless.cases import Case, Json
from gsd_core import AgentHost, AgentResult, AgentTask, Allow, Permanent, StepId, ToolUse
from gsd_core.hook_markers import implements
from gsd_core.hookspecs import gsd_run_agent
from gsd_plugins.rehearsal import Scenario
from gsd_plugins.rehearsal.scenario import is_accepted

ASKED_ID = re.compile(r"^- ((?:\d\d-\d\d:[TD]|\d\d:C)\d+|[A-Z]+-\d+): ", re.MULTILINE)
"""An id that the verifier's prompt asks about."""
REMARK = re.compile(r"^- \d\d-\d\d, task \d+: .*: exit \d+, (.+)$", re.MULTILINE)
"""A remark about a check in the verifier's prompt."""


@attrs.define(eq=False)
class Careless:
    """An agent for *case*; *complaints* are what it was sent back with, each after the name of the role.

    The first complaint that names the mistake ends the run. *shown* is what the verifier's prompt says about
    the checks beside their exit codes: a careless verifier does not read it.
    """

    case: Case
    complaints: list[str] = attrs.field(factory=list[str], init=False)
    shown: list[str] = attrs.field(factory=list[str], init=False)
    prompts: dict[tuple[str, str], str] = attrs.field(factory=dict[tuple[str, str], str], init=False)

    @implements(gsd_run_agent)
    async def run_agent(self, task: AgentTask, host: AgentHost) -> AgentResult | None:
        """Do *task* as the case says."""
        step = StepId.parse(task.step)
        first = self.prompts.setdefault((task.step, task.role), task.prompt)
        if first is not task.prompt and task.role not in ("discusser", "codebase-mapper"):
            self._complain(task.role, task.prompt.removeprefix(first))
        match task.role:
            case "roadmapper":
                return AgentResult(value=roadmap(self.case.story))
            case "codebase-mapper":
                return AgentResult(value=Scenario("A thing.").codebase(task.prompt))
            case "discusser":
                return AgentResult(value=discussion(self.case.story, task.prompt))
            case "debugger":
                return AgentResult(value=Scenario("A thing.").diagnoses(task.prompt))
            case "planner" if step.kind == "execute":
                # A check that passes before its task, or cannot run: the planner has to say whether it stays.
                self._complain("planner", task.prompt)
                check = next(one["check"] for one in self.case.tasks if one["check"] in task.prompt)
                return AgentResult(value={"check": check, "reason": "It is the check of this task"})
            case "planner":
                plans = self.case.story["gap_plans" if step.round else "plans"]
                return AgentResult(value={"plans": [plan_answer(plan) for plan in plans]})
            case "executor":
                return await self._execute(task, host, int(step.detail.rpartition("-")[2]))
            case "verifier":
                return await self._verify(task, host)
            case role:
                raise Permanent(f"the case has no answer for the role {role!r}")

    def _complain(self, role: str, text: str) -> None:
        self.complaints.append(f"{role}: {text}")
        if re.search(self.case.names, self.complaints[-1]):
            raise Permanent("sent back")

    async def _execute(self, task: AgentTask, host: AgentHost, number: int) -> AgentResult:
        plan = self.case.plans[number - 1]
        for place, work in enumerate(plan["tasks"], 1):
            if work.get("skipped"):
                continue
            for path, text in work.get("writes", {}).items():
                use = ToolUse(
                    step=task.step,
                    name="Write",
                    input={"file_path": str(task.tree / path), "content": text},
                    asked_by="agent",
                    tree=task.tree,
                )
                if not isinstance(permission := await host.permit(use), Allow):
                    self._complain("executor", f"{path} may not be written: {permission.reason}")
                    continue
                (task.tree / path).parent.mkdir(parents=True, exist_ok=True)
                (task.tree / path).write_text(text, encoding="utf-8")
            for path in work.get("deletes", ()):
                (task.tree / path).unlink(missing_ok=True)
            claims = work.get("claims", [*work.get("writes", {}), *work.get("deletes", ())])
            report = {"task": place, "files": claims, "note": work.get("note", work["done"])}
            reply = await host.call("task_done", report)
            if not is_accepted(reply):
                self._complain("executor", reply)
        said: Json = {
            "summary": plan.get("objective", plan["name"]),
            "deviations": [],
            "decisions": [],
            "issues": [],
        }
        return AgentResult(value={**said, **plan.get("report", {})})

    async def _verify(self, task: AgentTask, host: AgentHost) -> AgentResult:
        files, said = self.case.files(), self.case.story.get("verify", {})
        verdicts = said.get("verdicts", {})
        proofs = proofs_of(self.case.story)
        asked = dict.fromkeys(ASKED_ID.findall(task.prompt))
        self.shown += REMARK.findall(task.prompt)
        cited = {
            name: verdicts.get(name, {}).get("cite", said.get("cite", proofs.get(name))) for name in asked
        }
        # What no story has a proof for, such as a decision, is proven as the first requirement.
        first_proof = next(iter(proofs.values()), None)
        cited = {
            name: found or (first_proof if re.search(r"^D-|:D", name) else found)
            for name, found in cited.items()
        }
        every = [proof for proof_list in cited.values() for proof in proof_list or ()]
        for proof in said.get("reads", dict.fromkeys(p.partition(":")[0] for p in every if p[0] not in "$!")):
            path, _, lines = proof.partition(":")
            first, _, last = lines.partition("-")
            limits = {"offset": int(first), "limit": int(last) - int(first) + 1} if lines else {}
            use = ToolUse(
                step=task.step,
                name="Read",
                input={"file_path": str(task.tree / path), **limits},
                asked_by="agent",
                tree=task.tree,
                writable=False,
            )
            await host.permit(use)
        exits: dict[str, int] = {}
        for command in said.get("runs", dict.fromkeys(p[2:] for p in every if p[0] in "$!")):
            reply = await host.call("run_command", {"command": command})
            if not (status := re.match(r"exit (\d+)", reply)):
                raise Permanent(f"{command}: {reply}")
            exits[command] = int(status[1])
        answers: list[Json] = []
        for name in asked:
            if name in said.get("omit", ()):
                continue
            given = {"id": name, "status": "holds", "evidence": "Seen in the code and tried", "reason": ""}
            given |= {"missing": [], **verdicts.get(name, {})}
            given["citations"] = [citation(proof, files, exits) for proof in cited[name] or ()]
            given.pop("cite", None)
            answers.append(given)
        return AgentResult(value={"verdicts": answers, "findings": said.get("findings", [])})


def roadmap(story: Json) -> Json:
    """Return the roadmapper's answer."""
    requirements = [
        {"id": name, "category": name.partition("-")[0], "text": text, "statements": statements.split()}
        for name, statements, text in story["requirements"]
    ]
    phase = {
        "name": story["name"],
        "goal": story["goal"],
        "depends_on": [],
        "requirements": [one["id"] for one in requirements],
        "criteria": story["criteria"],
    }
    return {
        "name": story["name"],
        "summary": story["goal"],
        "core_value": story["goal"],
        "requirements": requirements,
        "later": [],
        "out_of_scope": [],
        "constraints": [
            {"type": "technical", "what": what, "why": "The idea says so", "statements": statements.split()}
            for statements, what in story.get("constraints", ())
        ],
        "context": story.get("context", []),
        "phases": [phase],
    }


def discussion(story: Json, prompt: str) -> Json:
    """Return the discusser's answer: the questions that *prompt* does not answer yet."""
    questions = [
        {
            "area": text.rstrip("?"),
            "question": text,
            "why": "The idea leaves it open",
            "options": [{"label": option, "description": option} for option in options],
            "recommended": 1,
        }
        for text, *options in story.get("questions", ())
        if f"- {text}\n" not in prompt
    ]
    empty: Json = {"in_scope": [], "out_of_scope": [], "deferred": [], "discretion": []}
    return {"questions": questions, **empty}


def plan_answer(plan: Json) -> Json:
    """Return a plan as the planner gives it."""
    tasks = [
        {
            "name": task["name"],
            "files": task.get("files", [*task.get("writes", {}), *task.get("deletes", ())]),
            "action": task["action"],
            "verify": task.get("verify", "The check passes"),
            "check": task["check"],
            "done": task["done"],
        }
        for task in plan["tasks"]
    ]
    links = [
        {"from": source, "to": target, "via": via, "pattern": pattern}
        for source, target, via, pattern in plan.get("links", ())
    ]
    named = dict.fromkeys(name for truth in plan["truths"] for name in truth["serves"] if ":" not in name)
    return {
        "name": plan["name"],
        "objective": plan.get("objective", plan["name"]),
        "depends_on": plan.get("depends_on", []),
        "files_modified": list(dict.fromkeys(path for task in tasks for path in task["files"])),
        "requirements": plan.get("requirements", [*named]),
        "truths": [{"text": truth["text"], "serves": truth["serves"]} for truth in plan["truths"]],
        "artifacts": plan.get("artifacts", []),
        "key_links": links,
        "tasks": tasks,
    }


def proofs_of(story: Json) -> Mapping[str, list[str]]:
    """Return the proofs of each truth, and of each requirement and criterion that truths serve, by id."""
    found: dict[str, list[str]] = {}
    for number, plan in enumerate([*story["plans"], *story.get("gap_plans", ())], 1):
        for place, truth in enumerate(plan["truths"], 1):
            for name in (f"01-{number:02}:T{place}", *truth["serves"]):
                found.setdefault(name, []).extend(truth["proof"])
    return {name: list(dict.fromkeys(proofs)) for name, proofs in found.items()}


def citation(proof: str, files: Mapping[str, str], exits: Mapping[str, int]) -> Json:
    """Return *proof* as a citation."""
    if proof[0] in "$!":
        return {"command": proof[2:], "exit": exits.get(proof[2:], 0) if proof[0] == "$" else 0}
    path, _, place = proof.partition(":")
    lines = files.get(path, "").splitlines()
    if match := re.fullmatch(r"(\d+)-(\d+)", place):
        return {"file": path, "first": int(match[1]), "last": int(match[2])}
    first = next((number for number, line in enumerate(lines, 1) if place in line), 0)
    if not first:
        raise ValueError(f"{path} has no line with {place!r}")
    last = min(first + 4, len(lines)) if place else len(lines)
    return {"file": path, "first": first, "last": last}
