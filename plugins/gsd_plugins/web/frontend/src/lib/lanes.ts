/**
 * What was executed side by side: as many lanes as plans were in progress at the same time.
 *
 * A plan starts when an agent is free; the one before it may still be merged then, or wait for an answer.
 */

import type { Span, StepRow } from "../state/timeline";

/** The work on a step without a pause; *start* and *length* are shares of the whole width. */
export interface Stint {
  step: StepRow;
  spans: (Span & { start: number; length: number })[];
  start: number;
  length: number;
}

export interface Lanes {
  lanes: Stint[][];
  /** How many were at work at the same time, at most: one that is being merged needs no agent. */
  most: number;
  begin: number;
  end: number;
}

/** How much of a time in which nothing was executed is shown, in milliseconds. */
const IDLE = 2000;

export function lanesOf(rows: readonly StepRow[], now: number): Lanes {
  const until = (span: Span): number => (span.to ? Date.parse(span.to) : now);
  const stints = rows.flatMap((step) => {
    const parts: Span[][] = [];
    for (const span of step.spans) {
      const last = parts.at(-1);
      if (last?.at(-1)?.to === span.from) last.push(span);
      else parts.push([span]);
    }
    return parts.map((spans) => ({ step, spans, from: Date.parse(spans[0]!.from), to: until(spans.at(-1)!) }));
  });
  stints.sort((a, b) => a.from - b.from);
  const begin = stints[0]?.from ?? now;
  let [end, skipped] = [begin, 0];
  const free: number[] = [];
  const placed: { lane: number; skipped: number }[] = [];
  for (const { from, to } of stints) {
    skipped += Math.max(0, from - end - IDLE);
    end = Math.max(end, to);
    const found = free.findIndex((time) => time <= from);
    const lane = found < 0 ? free.length : found;
    free[lane] = to;
    placed.push({ lane, skipped });
  }
  const whole = Math.max(1, end - begin - skipped);
  const lanes: Stint[][] = free.map(() => []);
  stints.forEach(({ step, spans, from, to }, index) => {
    const { lane, skipped: before } = placed[index]!;
    lanes[lane]!.push({
      step,
      start: (from - begin - before) / whole,
      length: (to - from) / whole,
      spans: spans.map((span) => ({
        ...span,
        start: (Date.parse(span.from) - from) / Math.max(1, to - from),
        length: (until(span) - Date.parse(span.from)) / Math.max(1, to - from),
      })),
    });
  });
  const work = stints.flatMap(({ spans }) => spans.filter((span) => span.state === "running"));
  const together = work.map(({ from }) => work.filter((span) => span.from <= from && until(span) > Date.parse(from)).length);
  return { lanes, most: Math.max(0, ...together), begin, end };
}
