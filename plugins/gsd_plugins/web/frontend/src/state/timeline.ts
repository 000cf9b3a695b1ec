/** What a run's events add up to: its steps with durations and cost, its questions, its commits. */

import type { GsdEvent } from "../api/types";

export interface StepRow {
  id: string;
  kind: string;
  phase: string;
  plan: string;
  status: "running" | "waiting" | "completed" | "failed" | "skipped" | "interrupted";
  attempts: number;
  startedAt: string;
  endedAt: string;
  dollars: number;
  commits: number;
  subject: string;
  note: string;
}

export interface CostPoint {
  at: number;
  dollars: number;
}

/** The events that the timeline folds, apart from what agents do. */
export const TIMELINE_EVENTS = [
  ...["run.started", "run.opened", "run.closed", "step.started", "step.completed", "step.failed", "step.skipped"],
  ...["step.waiting", "attempt.failed", "task.committed", "cost.changed"],
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

  /** The steps; without a process that works on them (*isWorked*), none is in progress and none takes longer. */
  stepsOf(isWorked: boolean): StepRow[] {
    const rows = [...this.steps.values()];
    if (isWorked) return rows;
    return rows.map((row) =>
      row.status === "running" || row.status === "waiting" ? { ...row, status: "interrupted", endedAt: this.lastAt } : row,
    );
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
        this.update(step, { status: "completed", endedAt: at, subject: text(data.subject), note: "" });
        this.lastActivity.delete(step);
        break;
      case "step.failed":
        this.update(step, { status: "failed", endedAt: at, note: failure(data.error) });
        break;
      case "step.skipped":
        this.update(step, { status: "skipped", endedAt: at, note: text(data.reason) });
        break;
      case "step.waiting":
        this.update(step, { status: "waiting", note: text(data.why) });
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
    const status = this.steps.get(event.step)?.status;
    const isRunning = status === "running" || status === "waiting";
    if (isRunning && event.seq > (this.lastActivity.get(event.step)?.seq ?? 0)) this.lastActivity.set(event.step, event);
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
    });
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
      if (row.status === "running" || row.status === "waiting") {
        row.status = "interrupted";
        row.endedAt = at;
      }
    }
    this.lastActivity.clear();
  }
}

function failure(error: unknown): string {
  if (typeof error === "string") return error;
  if (error && typeof error === "object") {
    const { message, text: words, kind } = error as Record<string, unknown>;
    return text(message) || text(words) || text(kind);
  }
  return "";
}
