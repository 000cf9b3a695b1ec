import { describe, expect, it } from "vitest";

import { takeToken, tokenIn } from "../src/api/token";
import { piecesOf } from "../src/lib/evidence";
import { duration, eventWords, money, oneLine, stepWords } from "../src/lib/format";
import { layoutGraph } from "../src/lib/graph";
import { lanesOf } from "../src/lib/lanes";
import { parseRoute, questionPath, runPath } from "../src/lib/route";
import type { GsdEvent, Phase, Requirement, Session } from "../src/api/types";
import { moneyTicks, timeTicks } from "../src/pages/cost";
import { stateOf } from "../src/pages/evidence";
import { summaryOf } from "../src/pages/history";
import { boards } from "../src/pages/run";
import { readDraft, writeDraft } from "../src/state/drafts";
import { runSummary } from "../src/state/hooks";
import { Timeline } from "../src/state/timeline";
import { filesOf } from "../src/ui/patch";
import { phaseState, planState } from "../src/ui/status";

describe("the token", () => {
  const open = (hash: string): string => {
    history.replaceState(null, "", `/${hash}`);
    return takeToken(location, history, sessionStorage, localStorage);
  };

  it("is taken from the fragment and removed from the address bar", () => {
    sessionStorage.clear();
    localStorage.clear();
    expect(open("#token=abc-DEF_1")).toBe("abc-DEF_1");
    expect(location.href).not.toContain("abc");
    expect(sessionStorage.getItem("gsd.token")).toBe("abc-DEF_1");
  });

  it("may come with a deep link, which stays", () => {
    expect(open("#token=abc&/q/q-1")).toBe("abc");
    expect(location.hash).toBe("#/q/q-1");
    expect(open("#/q/q-2?token=xyz")).toBe("xyz");
    expect(location.hash).toBe("#/q/q-2");
  });

  it("is kept for the tab when the address has none", () => {
    expect(open("#/plugins")).toBe("xyz");
    expect(location.hash).toBe("#/plugins");
  });

  it("is known in a new tab, which prefers its own", () => {
    sessionStorage.clear();
    expect(open("#/q/q-3")).toBe("xyz");
    sessionStorage.setItem("gsd.token", "own");
    expect(open("#/q/q-3")).toBe("own");
    sessionStorage.clear();
  });

  it("is found in a pasted address or alone, and in nothing else", () => {
    expect(tokenIn("http://127.0.0.1:3333/#token=abc")).toBe("abc");
    expect(tokenIn(" abc ")).toBe("abc");
    expect(tokenIn("two words")).toBe("");
  });
});

describe("addresses", () => {
  it("survive any id", () => {
    expect(parseRoute(runPath("s1", "phase", "2.1/x"))).toEqual({ page: "run", session: "s1", tab: "phase", phase: "2.1/x" });
    expect(parseRoute(questionPath("q-1"))).toEqual({ page: "questions", question: "q-1" });
    expect(parseRoute("#/s/s1/nothing")).toEqual({ page: "unknown" });
    expect(parseRoute("#/s/%E0%A4%A")).toMatchObject({ page: "run", session: "%E0%A4%A" });
  });
});

describe("the plan graph", () => {
  const node = (id: string, depends_on: string[] = [], phase = "1") => ({ id, phase, depends_on });

  it("places a plan after everything that it depends on, and marks the critical path", () => {
    const layout = layoutGraph([node("c", ["a", "b"]), node("a"), node("b"), node("d", ["a"])], ["b", "c"]);
    expect(layout.nodes.get("a")?.column).toBe(0);
    expect(layout.nodes.get("c")?.column).toBe(1);
    expect(layout.edges.filter((edge) => edge.isCritical)).toEqual([{ from: "b", to: "c", isCritical: true }]);
  });

  it("joins two phases with one edge for each plan, on the critical path if that crosses there", () => {
    const ends = [node("a"), node("b")];
    const layout = layoutGraph([...ends, node("c", ["a", "b"], "2"), node("d", ["a", "b"], "2")], ["b", "c"]);
    expect(layout.edges.map(({ from, to }) => from + to).sort()).toEqual(["ad", "bc"]);
    expect(layout.nodes.get("d")?.column).toBe(1);
  });

  it("survives cycles and unknown dependencies", () => {
    const layout = layoutGraph([node("a", ["b", "zz"]), node("b", ["a"]), node("c", ["c"])], ["zz", "a"]);
    expect(layout.nodes.size).toBe(3);
    expect(layout.edges).toHaveLength(1);
  });

  it("lays out 200 plans", () => {
    const plans = Array.from({ length: 200 }, (_, index) => node(`p${index}`, index >= 10 ? [`p${index - 10}`] : []));
    const layout = layoutGraph(plans, []);
    expect([layout.columns, layout.rows, layout.edges.length]).toEqual([20, 10, 190]);
  });
});

describe("lanes", () => {
  const event = (seconds: number, name: string, plan: string, data: Record<string, unknown> = {}): GsdEvent =>
    ({ seq: seconds, name, at: at(seconds), run: "r", step: `1/execute/${plan}`, data: { kind: "execute", phase: "1", plan, ...data } }) as GsdEvent;
  const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
  const asked = { inquiry: { questions: [{ id: "q-1" }] } };

  it("show what was done at the same time, and what each plan waited for", () => {
    const timeline = new Timeline();
    for (const one of [
      event(0, "step.started", "a"),
      event(0, "step.started", "b"),
      event(20, "question.asked", "b", asked),
      event(40, "step.returned", "a", { merges: true }),
      event(50, "step.completed", "a"),
      event(50, "step.started", "c"),
      event(60, "question.answered", "b", { question: "q-1" }),
      event(70, "step.returned", "c", { merges: true }),
      event(80, "merge.failed", "c"),
    ])
      timeline.add(one);
    const { lanes, most } = lanesOf(timeline.stepsOf(true), 100_000);
    expect(most).toBe(2);
    const shown = lanes.map((lane) => lane.map(({ step, spans }) => [step.plan, step.status, ...spans.map((span) => [span.state, span.length])]));
    expect(shown).toEqual([
      [
        ["a", "completed", ["running", 0.8], ["merging", 0.2]],
        ["c", "conflict", ["running", 0.4], ["conflict", 0.6]],
      ],
      [["b", "running", ["running", 0.2], ["parked", 0.4], ["running", 0.4]]],
    ]);
    expect(timeline.stepsOf(false).map((step) => [step.status, step.spans.every((span) => span.to)])).toEqual([
      ["completed", true],
      ["interrupted", true],
      ["interrupted", true],
    ]);
  });

  it("leave out the night between two processes", () => {
    const timeline = new Timeline();
    const [night, run] = [30_000, { step: "", data: {} }];
    timeline.add(event(0, "step.started", "a"));
    timeline.add({ ...event(10, "run.closed", "a"), ...run });
    timeline.add({ ...event(night, "run.opened", "a"), ...run });
    timeline.add(event(night, "step.started", "a"));
    const { lanes, end } = lanesOf(timeline.stepsOf(true), (night + 10) * 1000);
    expect(lanes).toHaveLength(1);
    expect(lanes[0]?.map((stint) => Math.round(stint.length * 22))).toEqual([10, 10]);
    expect(end).toBe((night + 10) * 1000);
  });
});

describe("evidence", () => {
  it("is split into citations and words", () => {
    const proof = "src/a.py:3-7, `python3 -m unittest -q` (exit 0): it works at 12:30";
    expect(piecesOf(proof)).toEqual([
      { kind: "lines", path: "src/a.py", first: 3, last: 7, text: "src/a.py:3-7" },
      { kind: "text", text: ", " },
      { kind: "command", command: "python3 -m unittest -q", exit: 0, text: "`python3 -m unittest -q` (exit 0)" },
      { kind: "text", text: ": it works at 12:30" },
    ]);
  });

  it("loses no text", () => {
    for (const proof of ["", "README.md:1: yes", "no citation", "a `b` (exit 1)c:2"])
      expect(piecesOf(proof).map((piece) => piece.text).join("")).toBe(proof);
  });
});

describe("patches", () => {
  it("count added and removed lines, and not the header", () => {
    const patch = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n";
    expect(filesOf(patch)).toMatchObject([{ name: "x", added: 1, removed: 1 }]);
  });
});

describe("amounts", () => {
  it("tell an unknown price from none", () => {
    expect([money(null), money("0"), money("1.2"), money("0.0012")]).toEqual(["–", "$0", "$1.20", "$0.0012"]);
  });

  it("have the unit that a person would use", () => {
    expect([duration(2500), duration(59_000), duration(61_000), duration(3_660_000)]).toEqual([
      "2.5 s",
      "59 s",
      "1 min 01 s",
      "1 h 01 min",
    ]);
  });
});

describe("the cost over time", () => {
  it("has round numbers at its side, the last of which is not below the cost", () => {
    expect(moneyTicks(1.96)).toEqual([0, 0.5, 1, 1.5, 2]);
    expect(moneyTicks(2)).toEqual([0, 0.5, 1, 1.5, 2]);
    expect(moneyTicks(0.0042)).toEqual([0, 0.002, 0.004, 0.006]);
    expect(moneyTicks(130)).toEqual([0, 50, 100, 150]);
    for (let most = 0.0001; most < 10_000; most *= 1.37) {
      const ticks = moneyTicks(most);
      expect(ticks.length).toBeGreaterThanOrEqual(3);
      expect(ticks.length).toBeLessThanOrEqual(6);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most * 0.999999);
      expect(ticks.at(-2)).toBeLessThan(most);
    }
  });

  it("has round times below it, and never more than there is space for", () => {
    const start = new Date(2026, 0, 1, 10, 0, 3).getTime();
    const labels = (seconds: number, count = 8): string[] =>
      timeTicks(start, start + seconds * 1000, count).map((tick) => tick.label);
    expect(labels(23)).toEqual(["10:00:05", "10:00:10", "10:00:15", "10:00:20", "10:00:25"]);
    expect(labels(3600, 5)).toEqual(["10:15", "10:30", "10:45", "11:00"]);
    expect(labels(3 * 86_400, 4)).toEqual(["2 Jan", "3 Jan", "4 Jan"]);
    expect(labels(0)).toEqual(["10:00:03"]);
    for (let seconds = 1; seconds < 10_000_000; seconds *= 1.7) expect(labels(seconds, 6).length).toBeLessThanOrEqual(6);
  });
});

it("shows phases of one height beside each other, in their order", () => {
  const phases = (...states: string[]): Phase[] =>
    states.map((status, index) => ({ number: String(index + 1), status, gap_rounds: 0 }) as Phase);
  const shown = (...states: string[]): string[] =>
    boards(phases(...states)).map((board) => `${board.isBrief ? "brief" : "full"} ${board.shown.map((one) => one.number).join(" ")}`);
  expect(shown("completed", "in_progress", "pending")).toEqual(["full 1 2 3"]);
  expect(shown("completed", "completed", "failed", "in_progress", "pending", "pending", "pending")).toEqual([
    "brief 1 2",
    "full 3 4",
    "brief 5 6 7",
  ]);
  expect(shown()).toEqual([]);
});

describe("the summary of a session", () => {
  const session = (id: string, run: string, summary: object | null): Session => ({ id, project: "/p", run, summary }) as Session;

  it("is that of a later session of the same run, which speaks for the project", () => {
    const later = session("s2", "r-1", { agent: "rehearsal" });
    const earlier = session("s1", "r-1", null);
    expect(runSummary([earlier, later], earlier)).toBe(later.summary);
    expect(runSummary([earlier, later], later)).toBe(later.summary);
    const queued = session("s3", "", { agent: "rehearsal" });
    expect(runSummary([earlier, session("s2", "r-1", null), queued], earlier)).toBe(queued.summary);
  });

  it("is unknown if the project has got another run since", () => {
    const earlier = session("s1", "r-1", null);
    expect(runSummary([earlier, session("s2", "r-2", { agent: "claude" })], earlier)).toBeNull();
    expect(runSummary([session("s1", "", null), session("s2", "", null)], session("s1", "", null))).toBeNull();
  });
});

describe("a text in one line", () => {
  it("asks first, and puts the items of a list after each other", () => {
    expect(oneLine("Phase 1 still has gaps:\n- CORE-01\n- `CORE-02`\nWhat now?", "What now?")).toBe("What now? Phase 1 still has gaps: CORE-01; CORE-02");
    expect(oneLine("# Storage\n\nTwo ways:\n\n1. A **file**\n2. SQLite\n\nWhich one?")).toBe("Which one? Storage Two ways: A file; SQLite");
  });

  it("is unchanged if it is one line, except for its marks", () => {
    expect(oneLine("Where are the guests kept?", "Storage")).toBe("Where are the guests kept?");
    expect(oneLine("Keep `a_b__c` - as it is", "Name")).toBe("Keep a_b__c - as it is");
    expect(oneLine("")).toBe("");
  });
});

describe("the cost of a call", () => {
  const of = (data: Record<string, unknown>): string => summaryOf({ seq: 1, name: "cost.changed", at: "", run: "", step: "", data } as never);

  it("leaves out what is not known", () => {
    expect(of({ dollars: "0.21", tokens: 0, calls: 1 })).toBe("$0.21");
    expect(of({ dollars: "0.21", tokens: 1200, calls: 1, basis: "priced" })).toBe("about $0.21, 1,200 tokens");
    expect(of({ dollars: null, tokens: 1, calls: 1 })).toBe("1 token");
    expect(of({ dollars: null, tokens: 0, calls: 1 })).toBe("1 call");
  });
});

describe("a step", () => {
  it("is said in words", () => {
    expect(stepWords("2.1/execute/02.1-03")).toBe("Phase 2.1: execute 02.1-03");
    expect(stepWords("2/verify/r2")).toBe("Phase 2: verify (round 2)");
    expect(stepWords("audit/v1.0")).toBe("Audit v1.0");
    expect(stepWords("init")).toBe("Start of the project");
    expect(eventWords("question.asked")).toBe("question asked");
    expect(eventWords("cost.changed")).toBe("cost of a call");
  });
});

describe("what is done", () => {
  it("is a claim without evidence", () => {
    const now = "2026-11-24T10:00:00Z";
    expect(phaseState({ status: "completed", verdict: "missing", started_at: now })).toBe("claimed");
    expect(phaseState({ status: "completed", verdict: "passed", started_at: null })).toBe("completed");
    expect(phaseState({ status: "in_progress", verdict: "missing", started_at: now }, "completed")).toBe("completed");
    expect(phaseState({ status: "in_progress", verdict: "missing", started_at: null }, "completed")).toBe("claimed");
    expect(planState({ status: "done", tasks: [{ commit: null }] }, { verdict: "stale" })).toBe("claimed");
    expect(planState({ status: "done", tasks: [{ commit: "abc" }] }, { verdict: "missing" })).toBe("done");
    const requirement = { status: "Complete", evidence: [] } as unknown as Requirement;
    expect(stateOf(requirement)).toBe("claimed");
    expect(stateOf({ ...requirement, evidence: [{ about: "A-01", status: "assumed", proof: "" }] })).toBe("assumed");
    expect(stateOf({ ...requirement, evidence: [{ about: "A-01", status: "holds", proof: "" }] })).toBe("Complete");
  });
});

describe("a draft", () => {
  it("is kept until it is sent, and of many the last ones are", () => {
    localStorage.clear();
    for (let number = 0; number < 60; number += 1) writeDraft(`q-${number}`, { words: String(number) });
    expect(readDraft("q-59", null)).toEqual({ words: "59" });
    expect(Object.keys(localStorage).length).toBe(50);
    writeDraft("q-59", undefined);
    expect(readDraft("q-59", null)).toBeNull();
    localStorage.setItem("gsd.draft.q-1", "nonsense");
    expect(readDraft("q-1", "nothing")).toBe("nothing");
  });
});
