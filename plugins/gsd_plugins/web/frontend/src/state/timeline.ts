/** What a run's events add up to: its steps with durations and cost, its questions, its commits. */

import type { GsdEvent } from "../api/types";

/** What a step did for some time; *to* is empty while it lasts. */
export interface Span {
  from: string;
  to: string;
  state: "running" | "parked" | "waiting" | "merging" | "conflict";
}

export interface StepRow {
  id: string;
  kind: string;
  phase: string;
  plan: string;
  status: Span["state"] | "completed" | "failed" | "skipped" | "interrupted";
  attempts: number;
  startedAt: string;
  endedAt: string;
  dollars: number;
  commits: number;
  subject: string;
  note: string;
  /** What it did when, without the times between two processes. */
  spans: Span[];
}

/** Whether a process works on a step, or would, if it did not wait for something. */
export const isInProgress = (step: StepRow): boolean => ["running", "parked", "waiting", "merging", "conflict"].includes(step.status);

export interface CostPoint {
  at: number;
  dollars: number;
}

/** The events that the timeline folds, apart from what agents do. */
export const TIMELINE_EVENTS = [
  ...["run.started", "run.opened", "run.closed", "step.started", "step.completed", "step.failed", "step.skipped"],
  ...["step.waiting", "step.returned", "merge.failed", "attempt.failed", "task.committed", "cost.changed"],
  ...["question.asked", "question.answered", "question.withdrawn"],
] as const;

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Folds events one at a time, so that 100,000 of them need not be folded again for the next one. */
export class Timeline {
  readonly steps = new Map<string, StepRow>();
  /** Cumulated cost after each agent call, in dollars. */
  readonly cost: CostPoint[] = [];
  readonly lastActivity = new Map<string, GsdEvent>();
  dollars = 0;
  openedAt = "";
  closedAt = "";
  /** When the last event that was folded happened. */
  lastAt = "";
  /** The step of each open question. */
  private readonly asked = new Map<string, string>();

  /** The steps; without a process that works on them (*isWorked*), none is in progress and none takes longer. */
  stepsOf(isWorked: boolean): StepRow[] {
    const rows = [...this.steps.values()];
    if (isWorked) return rows;
    return rows.map((row) => {
      if (!isInProgress(row)) return row;
      const spans = row.spans.map((span) => ({ ...span, to: span.to || this.lastAt }));
      // A run that ended waits for the answer; one that was killed has nobody who would take it.
      const status = row.status === "parked" && this.closedAt ? "parked" : "interrupted";
      return { ...row, status, endedAt: this.lastAt, spans };
    });
  }

  add(event: GsdEvent): void {
    const { name, step, at, data } = event;
    this.lastAt = at;
    switch (name) {
      case "run.opened":
        this.openedAt ||= at;
        this.closedAt = "";
        this.settleRunning(at);
        break;
      case "run.closed":
        this.closedAt = at;
        this.settleRunning(at);
        break;
      case "step.started":
        this.start(event);
        break;
      case "step.completed":
        this.end(step, at, { status: "completed", subject: text(data.subject), note: "" });
        this.lastActivity.delete(step);
        break;
      case "step.failed":
        this.end(step, at, { status: "failed", note: failure(data.error) });
        break;
      case "step.skipped":
        this.end(step, at, { status: "skipped", note: text(data.reason) });
        break;
      case "step.waiting":
        this.move(step, at, "waiting");
        this.update(step, { note: text(data.why) });
        break;
      case "step.returned":
        if (data.merges) this.move(step, at, "merging");
        break;
      case "merge.failed": {
        const row = this.steps.get(step);
        const last = row?.spans.at(-1);
        if (row && last) row.status = last.state = "conflict";
        break;
      }
      case "question.asked":
        for (const question of questionsIn(data.inquiry)) this.asked.set(question, step);
        this.move(step, at, "parked");
        break;
      case "question.answered":
        this.settle([text(data.question)], at);
        break;
      case "question.withdrawn":
        this.settle(Array.isArray(data.questions) ? data.questions.map(text) : [], at);
        break;
      case "attempt.failed":
        this.update(step, { note: failure(data.error) });
        break;
      case "task.committed": {
        const row = this.steps.get(step);
        if (row) row.commits += 1;
        break;
      }
      case "cost.changed":
        this.charge(step, at, Number(data.dollars ?? 0) || 0);
        break;
      case "agent.activity":
        this.addActivity(event);
        break;
      default:
        break;
    }
  }

  /** Activity that was read after later facts still is the last one of its step. */
  addActivity(event: GsdEvent): void {
    const row = this.steps.get(event.step);
    if (row && isInProgress(row) && event.seq > (this.lastActivity.get(event.step)?.seq ?? 0)) this.lastActivity.set(event.step, event);
  }

  private start({ step, at, data }: GsdEvent): void {
    const known = this.steps.get(step);
    this.steps.set(step, {
      id: step,
      kind: text(data.kind),
      phase: text(data.phase),
      plan: text(data.plan),
      status: "running",
      attempts: typeof data.attempt === "number" ? data.attempt : (known?.attempts ?? 0) + 1,
      startedAt: known?.startedAt ?? at,
      endedAt: "",
      dollars: known?.dollars ?? 0,
      commits: known?.commits ?? 0,
      subject: "",
      note: "",
      spans: known?.spans ?? [],
    });
    this.move(step, at, "running");
  }

  /** From now on, a step in progress is in that state. */
  private move(step: string, at: string, state: Span["state"]): void {
    const row = this.steps.get(step);
    if (!row || !isInProgress(row)) return;
    row.status = state;
    if (row.spans.at(-1)?.state === state && !row.spans.at(-1)?.to) return;
    close(row, at);
    row.spans.push({ from: at, to: "", state });
  }

  private end(step: string, at: string, values: Partial<StepRow>): void {
    const row = this.steps.get(step);
    if (row) close(row, at);
    this.update(step, { ...values, endedAt: at });
  }

  /** Questions need no answer any more. */
  private settle(questions: string[], at: string): void {
    for (const question of questions) {
      const step = this.asked.get(question) ?? "";
      this.asked.delete(question);
      if (![...this.asked.values()].includes(step) && this.steps.get(step)?.status === "parked") this.move(step, at, "running");
    }
  }

  private charge(step: string, at: string, dollars: number): void {
    this.dollars += dollars;
    this.cost.push({ at: Date.parse(at), dollars: this.dollars });
    const row = this.steps.get(step);
    if (row) row.dollars += dollars;
  }

  private update(step: string, values: Partial<StepRow>): void {
    const row = this.steps.get(step);
    if (row) Object.assign(row, values);
  }

  /** A step that runs when its process starts or ends did not complete. */
  private settleRunning(at: string): void {
    for (const row of this.steps.values()) {
      if (!isInProgress(row)) continue;
      close(row, at);
      if (row.status !== "parked") row.status = "interrupted";
      row.endedAt = at;
    }
    this.lastActivity.clear();
  }
}

function close(row: StepRow, at: string): void {
  const last = row.spans.at(-1);
  if (last && !last.to) last.to = at;
}

function questionsIn(inquiry: unknown): string[] {
  const { questions } = (inquiry ?? {}) as { questions?: { id?: unknown }[] };
  return Array.isArray(questions) ? questions.map((one) => text(one.id)) : [];
}

function failure(error: unknown): string {
  if (typeof error === "string") return error;
  if (error && typeof error === "object") {
    const { message, text: words, kind } = error as Record<string, unknown>;
    return text(message) || text(words) || text(kind);
  }
  return "";
}
