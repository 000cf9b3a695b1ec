"""The report of a run as one HTML page: no scripts, nothing loaded, every text escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from importlib.resources import files

import attrs

from gsd_core.machine.state import State
from gsd_core.planning.model import Plan, Planning
from gsd_core.planning.traceability import RecordedCase, RecordedResult, Trace, TracedCheck, count_verified
from gsd_core.sanitize import first_line, one_line, safe_text

from .amounts import cost_text, counted, dollars_text, duration_text, tokens_text
from .cost import Costs, remarks
from .markup import Html, el, join, prose, style, text
from .phases import PhaseRow, phase_rows
from .plan_graph import STATE_WORDS, NodeState, plan_graph
from .status import active_steps
from .story import answered_by, step_words
from .summary import Decision, GapFound, RunSummary, StepDone

MAX_TEXT = 240
"""How many characters of a question or a reason are shown where it is only mentioned."""
MAX_PATCH_LINES = 400
"""How many lines of one commit are shown; the number of the others follows."""

_VERDICTS = {
    "Complete": ("✓", "good"),
    "In Progress": ("▸", "warn"),
    "Blocked": ("✗", "bad"),
    "Error": ("✗", "bad"),
}
_STATUS = {
    "completed": ("✓", "good"),
    "in_progress": ("▸", "warn"),
    "running": ("▸", "warn"),
    "waiting": ("…", "warn"),
    "failed": ("✗", "bad"),
    "cut off": ("✗", "bad"),
}
_OUTCOMES = {"done": ("✓", "good"), "running": ("▸", "warn"), "failed": ("✗", "bad"), "gaps": ("✗", "bad")}
_EVIDENCE = {"holds": ("✓", "good"), "human": ("…", "warn"), "assumed": ("?", "warn"), "open": ("·", "")}


@attrs.frozen(kw_only=True)
class ReportedCommit:
    """A commit of the run; *patch* is empty if it cannot be read any more."""

    sha: str
    subject: str
    step: str
    patch: str = ""


@attrs.frozen(kw_only=True)
class Report:
    """All that the page shows. *about* are pairs of a name and a value, such as the agent's."""

    planning: Planning
    state: State
    summary: RunSummary
    rows: tuple[Trace, ...]
    commits: tuple[ReportedCommit, ...]
    written_at: datetime
    version: str
    status: str
    about: tuple[tuple[str, str], ...] = ()


GENERATOR = "gsd-core report"
"""By this a report is recognized, within its first kilobytes."""


def render_report(report: Report) -> str:
    """Return the page as text."""
    sheet = files("gsd_core.views").joinpath("report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = report.planning.name or report.state.idea_name or "gsd"
    sections = [
        ("attention", "Before you trust it", _attention(report)),
        ("evidence", "Evidence", _matrix(report)),
        ("phases", "Phases", _phases(report)),
        ("cost", "Time and cost", _costs(report)),
        ("questions", "Questions and answers", [_decision(one) for one in report.summary.decisions]),
        ("gaps", "Gaps found and closed", [_gap(one) for one in report.summary.gaps]),
        ("commits", "Commits", [_commit(one) for one in report.commits]),
    ]
    sections = [section for section in sections if section[2]]
    links = [el("a", heading, href=f"#{name}") for name, heading, _ in sections]
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="generator", content=GENERATOR),
        el("title", f"{title}: report"),
        style(sheet),
    )
    parts = [el("section", el("h2", heading), *content, id=name) for name, heading, content in sections]
    nav = el("nav", links, aria_label="Sections")
    at = f"{report.written_at.astimezone():%d %B %Y, %H:%M}"
    footer = el(
        "footer",
        el("p", f"Written by gsd {report.version} on {at}. This file runs no scripts and loads nothing."),
        el("p", "What a verified requirement means: gsd's page “What exit code 0 means”."),
    )
    body = el("body", _header(report, title), nav, *parts, footer)
    return f"<!doctype html>\n{el('html', head, body, lang='en').markup}\n"


def _header(report: Report, title: str) -> Html:
    planning, state = report.planning, report.state
    milestone = " ".join(filter(None, [planning.milestone, planning.milestone_name]))
    began = f"{report.summary.started_at.astimezone():%d %B %Y, %H:%M}" if report.summary.started_at else ""
    facts = [
        f"from {state.idea_name}" if state.idea_name else "",
        milestone if planning.phases else "",
        f"began {began}" if began else "",
    ]
    facts += [f"{name} {value}" for name, value in report.about if value]
    return el(
        "header",
        el("h1", text(title)),
        el("p", text(planning.core_value)) if planning.core_value else "",
        el("p", join([text(fact) for fact in facts if fact], " · "), class_="quiet"),
        _tiles(report),
    )


def _tiles(report: Report) -> Html:
    summary, rows = report.summary, phase_rows(report.state)
    wanted = [row for row in report.rows if not _is_later(row)]
    verified = count_verified(wanted)
    sign, color = _OUTCOMES.get(report.status, ("●", "warn"))
    working = [str(one.id) for one in active_steps(report.state) if report.status == "running"]
    outcome = f"exit code {report.state.exit}" if report.state.closed else ", ".join(working)
    finished = sum(row.status == "completed" for row in rows)
    assumed = len(summary.assumed)
    answers = sum(one.answer is not None for one in summary.decisions)
    elapsed = ""
    if summary.processes > 1 and summary.started_at and summary.last_at:
        passed = duration_text(summary.last_at - summary.started_at)
        elapsed = f"in {summary.processes} processes, over {passed}"
    tiles: list[tuple[str, str | Html, str]] = [
        ("State", _badge(sign, report.status, color), outcome),
        ("Phases complete", f"{finished} of {len(rows)}", ""),
        ("Requirements verified", f"{verified} of {len(wanted)}", ""),
        ("Time worked", duration_text(summary.worked), elapsed),
        ("Cost", _amount(summary.costs), tokens_text(summary.costs.usage)),
        ("Commits", str(len(summary.commits)), ""),
        ("Questions answered", str(answers), f"{assumed} of them assumed" if assumed else ""),
    ]
    return el(
        "dl",
        [
            el("div", el("dt", name), el("dd", value, el("div", more, class_="more") if more else ""))
            for name, value, more in tiles
        ],
        class_="tiles",
    )


def _attention(report: Report) -> list[Html]:
    """Return what a reader should know before trusting the result."""
    items: list[Html] = []
    if report.state.closed not in (None, "done"):
        reason = one_line(report.state.reason, MAX_TEXT)
        items.append(el("li", f"The run ended ({report.state.closed}): ", text(reason)))
    unanswered = [first_line(one.text, MAX_TEXT) for one in report.summary.decisions if one.answer is None]
    link = el("a", "Open question", href="#questions")
    items += [el("li", link, ": ", text(question)) for question in unanswered]
    for one in report.summary.assumed:
        assert one.answer is not None
        question, answer = text(first_line(one.text, MAX_TEXT)), text(one_line(one.answer.words, MAX_TEXT))
        items.append(el("li", "Assumed, nobody looked: ", question, " → ", answer, f" ({one.step})"))
    doubtful = [row for row in report.rows if row.status in ("Error", "Blocked") or row.reason]
    why = [f"{row.requirement.id} is not verified: {row.reason or row.status}" for row in doubtful]
    items += [el("li", text(reason)) for reason in why]
    items += [el("li", "Not covered by this run: ", text(note)) for note in report.state.notes]
    return [el("div", el("ul", items), class_="card attention")] if items else []


def _matrix(report: Report) -> list[Html]:
    if not report.rows:
        return []
    words = {one.id: one for one in report.planning.statements}
    shown = {commit.sha for commit in report.commits}
    heads = ("Requirement", "In the words of the idea", "Plans", "Commits", "Checks", "Evidence", "Verdict")
    rows: list[Html] = []
    for row in report.rows:
        statements = [words[name] for name in row.requirement.statements if name in words]
        sign, color = _VERDICTS.get(row.status, ("·", "quiet"))
        verdict = f"later ({row.requirement.version})" if _is_later(row) else row.status
        why = el("p", prose(row.reason), class_="small") if row.reason else ""
        rows.append(
            el(
                "tr",
                el("th", el("code", row.requirement.id), " ", prose(row.requirement.text), scope="row"),
                _cell(heads[1], _list(el("q", text(one.text)) for one in statements)),
                _cell(heads[2], join([el("code", plan) for plan in row.plans])),
                _cell(heads[3], join([_commit_link(sha, shown) for sha in row.commits])),
                _cell(heads[4], _list(_checks(row.checks))),
                _cell(heads[5], _list(_evidence(row.evidence))),
                _cell(heads[6], _badge(sign, verdict, color), why),
            )
        )
    return [_table([el("th", name, scope="col") for name in heads], rows, class_="matrix")]


def _table(heads: list[Html], rows: list[Html], class_: str | None = None) -> Html:
    table = el("table", el("thead", el("tr", heads)), el("tbody", rows), class_=class_)
    return el("div", table, class_="scroll")


def _is_later(row: Trace) -> bool:
    """Whether the requirement is for a later version, so that no phase has to deliver it."""
    return not row.requirement.version.startswith("v1") and not row.phase


def _cell(label: str, *content: Html | str | list[str | Html]) -> Html:
    filled = [part for part in content if part and (not isinstance(part, Html) or part.markup)]
    return el("td", *filled, data_label=label if filled else None)


def _list(items: Iterator[Html]) -> Html:
    listed = [el("li", item) for item in items]
    return el("ul", listed) if listed else Html("")


def _checks(checks: Sequence[TracedCheck]) -> Iterator[Html]:
    """Yield each command with its result once, and how often: many plans have the same checks."""
    found: dict[tuple[str, object], list[TracedCheck]] = {}
    for check in checks:
        result = check.result
        found.setdefault((check.command, result and (result.status, result.proof)), []).append(check)
    for same in found.values():
        check, result = same[-1], same[-1].result
        sign, color = _EVIDENCE.get(result.status, ("✗", "bad")) if result else ("·", "quiet")
        outcome = f" {result.proof}" if result and result.proof else ("" if result else " not run yet")
        said = text(outcome + (f" ({len(same)} times)" if len(same) > 1 else ""))
        command = el("code", check.command)
        yield el("span", el("span", sign, class_=color), " ", command, said, _cases(check.cases))


def _cases(cases: Sequence[RecordedCase]) -> Html:
    """Return the test cases of a check, and without what each fails."""
    if not cases:
        return Html("")
    listed = _list(el("span", el("code", one.name), text(f": {one.fails_without}")) for one in cases)
    summary = f"{counted(len(cases), 'test case')}, and what each fails without"
    return el("details", el("summary", summary), listed)


def _evidence(evidence: Sequence[RecordedResult]) -> Iterator[Html]:
    """Yield each proof once, with all that it proves: a verifier often cites the same lines again."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in evidence:
        found.setdefault((one.status, one.proof), []).append(one.about)
    for (status, proof), names in found.items():
        sign, color = _EVIDENCE.get(status, ("✗", "bad"))
        word = "" if status == "holds" else f" ({status})"
        about = join([el("code", name) for name in names])
        mark = el("span", sign, class_=color)
        yield el("span", mark, " ", about, word, " ", prose(proof), class_="small")


def _commit_link(sha: str, shown: set[str]) -> Html:
    name = el("code", sha[:7])
    return el("a", name, href=f"#c-{sha}") if sha in shown else name


def _phases(report: Report) -> list[Html]:
    cards: list[Html] = []
    graph = plan_graph(report.planning.phases, report.state, is_running=report.status == "running")
    states: Mapping[str, NodeState] = {node.id: node.state for node in graph.nodes}
    for row in phase_rows(report.state):
        steps = [step for step in report.summary.steps if step.phase == row.number]
        sign, color = _STATUS.get(row.status, ("·", "quiet"))
        status = row.status.replace("_", " ") if row.wanted else "not in range"
        phase = report.planning.phase(row.number)
        cards.append(
            el(
                "div",
                el("h3", f"{row.number}  ", text(row.name), " ", _badge(sign, status, color)),
                el("p", prose(phase.goal), class_="quiet") if phase and phase.goal else "",
                el("p", text(_phase_figures(row, steps)), class_="small"),
                _list(_plan(plan, states[plan.id]) for plan in (phase.plans if phase else ())),
                class_="card",
            )
        )
    return cards


def _plan(plan: Plan, state: NodeState) -> Html:
    words = "not executed" if state in ("ready", "waiting") else STATE_WORDS.get(state, state)
    executed = "" if plan.summary else f" ({words})"
    return el("span", el("code", plan.id), " ", text(plan.name or plan.objective), executed)


def _phase_figures(row: PhaseRow, steps: Sequence[StepDone]) -> str:
    costs = sum((step.costs for step in steps), Costs())
    parts = [f"{row.plans_done} of {counted(row.plans, 'plan')} executed"]
    parts += [counted(row.gap_rounds, "gap round")] if row.gap_rounds else []
    if steps:
        parts.append(duration_text(sum((step.took for step in steps[1:]), steps[0].took)))
        parts.append(_amount(costs))
    return ", ".join(parts)


def _costs(report: Report) -> list[Html]:
    """Return time and cost of each step; the bars show the cost, or the time of a run that cost nothing."""
    steps = report.summary.steps
    if not steps:
        return []
    paid = bool(report.summary.costs.usage.dollars)
    largest = max((_weight(step, paid) for step in steps), default=Decimal(0))
    share = "Share of the cost" if paid else "Share of the time"
    heads = [("Step", ""), ("Time", "number"), ("Calls", "number wide"), ("Tokens", "number wide")]
    heads += [("Cost", "number"), (share, "share")]
    rows: list[Html] = []
    for phase in dict.fromkeys(step.phase for step in steps):
        of_phase = [step for step in steps if step.phase == phase]
        view = report.planning.phase(phase)
        name = f"Phase {phase}" if phase else "Project"
        name += f": {view.name}" if view else ""
        rows.append(_cost_row(text(name), of_phase, None, class_="phase"))
        for step in of_phase:
            bar = _bar(_weight(step, paid), largest)
            rows.append(_cost_row(_step_name(step), [step], bar))
    rows.append(_cost_row(text("Total"), steps, None, class_="phase"))
    table = _table([el("th", name, scope="col", class_=kind or None) for name, kind in heads], rows)
    remark = " ".join(f"{one}." for one in remarks(report.summary.costs))
    return [table, *([el("p", remark, class_="quiet small")] if remark else [])]


def _cost_row(name: Html, steps: Sequence[StepDone], bar: Html | None, class_: str | None = None) -> Html:
    costs = sum((step.costs for step in steps), Costs())
    took = sum((step.took for step in steps[1:]), steps[0].took)
    return el(
        "tr",
        el("td", name),
        el("td", duration_text(took), class_="number"),
        el("td", f"{costs.calls:,}", class_="number wide"),
        el("td", f"{costs.usage.tokens:,}", class_="number wide"),
        el("td", _amount(costs), class_="number"),
        el("td", bar or "", class_="share"),
        class_=class_,
    )


def _step_name(step: StepDone) -> Html:
    about = step_words(step.id).partition(": ")
    words = about[2] or about[0]
    sign, color = _STATUS.get(step.status, ("·", "quiet"))
    again = f" ({step.attempts} attempts)" if step.attempts > 1 else ""
    return el("span", el("span", sign, class_=color), " ", text(f"{words}{again}"), " ", el("code", step.id))


def _weight(step: StepDone, paid: bool) -> Decimal:
    return (step.costs.usage.dollars or Decimal(0)) if paid else Decimal(str(step.took.total_seconds()))


def _bar(value: Decimal, largest: Decimal) -> Html:
    width = f"{(100 * value / largest if largest else Decimal(0)):.1f}"
    return el(
        "svg",
        el("rect", width=width, height="8"),
        class_="bar",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def _decision(one: Decision) -> Html:
    answer = one.answer
    if answer is None:
        outcome = el("p", _badge("…", "open", "warn"), f"  gsd answer {one.id}")
    else:
        who = answered_by(answer)
        at = f", {answer.at.astimezone():%d %B %Y, %H:%M}" if answer.at else ""
        sign = _badge("?", "assumed", "warn") if answer.is_assumption else _badge("✓", "answered", "good")
        outcome = el("p", sign, " ", el("strong", text(answer.words)), " ", text(f"({who}{at})"))
    options = f"options: {', '.join(one.options)}" if one.options else ""
    asked = f"{one.asked_at.astimezone():%H:%M}"
    about = [text(part) for part in (f"{one.step}, asked at {asked}", one.reason, options) if part]
    title = first_line(one.text, MAX_TEXT)
    return el(
        "div",
        el("h3", text(title)),
        # All of it, as it was asked: with its lines, such as the output of a check.
        el("p", text(one.text), class_="small lines") if title != one.text else "",
        outcome,
        el("p", join(about, " · "), class_="quiet small"),
        class_="card",
    )


def _gap(gap: GapFound) -> Html:
    badge = _badge("✓", "closed", "good") if gap.closed_in else _badge("✗", "open", "bad")
    found = f"found by {gap.found_by or 'the verifier'} in {gap.found_in}"
    closed = f"; closed in {gap.closed_in}" if gap.closed_in else ""
    when = f"{found}, {gap.at.astimezone():%d %B %Y, %H:%M}{closed}"
    return el(
        "div",
        el("h3", text(gap.truth), " ", badge),
        el("p", prose(gap.reason)),
        el("p", text(when), class_="quiet small"),
        class_="card",
    )


def _commit(commit: ReportedCommit) -> Html:
    sha, step = el("code", commit.sha[:7]), el("span", commit.step, class_="quiet small")
    heading = el("summary", sha, " ", text(commit.subject), " ", step)
    return el("details", heading, _patch(commit), id=f"c-{commit.sha}")


def _patch(commit: ReportedCommit) -> Html:
    if not commit.patch:
        nothing = "This commit changed nothing below the project's folder, or it cannot be read any more."
        return el("p", nothing)
    # Redacted as a whole: a private key has several lines.
    lines = safe_text(commit.patch).split("\n")
    shown = [el("span", text(line), class_=_LINES.get(line[:1])) for line in lines[:MAX_PATCH_LINES]]
    if len(lines) > MAX_PATCH_LINES:
        more = f"{len(lines) - MAX_PATCH_LINES:,} more lines: git show {commit.sha[:9]}"
        shown.append(el("span", f"… {more}", class_="at"))
    return el("pre", join(shown, "\n"), tabindex="0")


_LINES: Mapping[str, str] = {"+": "add", "-": "del", "@": "at", "d": "at", "i": "at"}


def _badge(sign: str, word: str, color: str) -> Html:
    return el("span", f"{sign} {word}", class_=f"badge {color}".strip())


def _amount(costs: Costs) -> str:
    if not costs.calls:
        return dollars_text(Decimal(0))
    more = " + unknown" if costs.unknown and costs.usage.dollars is not None else ""
    return cost_text(costs.usage) + more
