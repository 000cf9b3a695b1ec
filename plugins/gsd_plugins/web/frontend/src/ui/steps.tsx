/** The steps of a run as a timeline: when, how long, how much. */

import { useState, type ReactElement } from "react";

import { duration, money, stepWords, timeOfDay } from "../lib/format";
import { runPath } from "../lib/route";
import { useClock } from "../state/hooks";
import type { StepRow } from "../state/timeline";
import { Empty } from "./common";
import { Status } from "./status";

const SHOWN = 40;
/** Of the column, in percent: the next one follows at once. */
const WIDTH = 97;

export function StepTable({ session, steps }: { session: string; steps: StepRow[] }): ReactElement {
  const [isAll, setAll] = useState(false);
  const now = useClock();
  if (!steps.length) return <Empty title="No steps yet" />;
  const begin = Math.min(...steps.map((step) => Date.parse(step.startedAt)));
  const end = Math.max(...steps.map((step) => endOf(step, now)));
  const span = Math.max(1, end - begin);
  const newest = [...steps].reverse();
  const shown = isAll ? newest : newest.slice(0, SHOWN);
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="steps">
      <table className="steps">
        <thead>
          <tr>
            <th>Step</th>
            <th>State</th>
            <th>Started</th>
            <th className="right">Took</th>
            <th className="timeline-head">Timeline</th>
            <th className="right">Cost</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((step) => {
            const from = Date.parse(step.startedAt);
            const to = endOf(step, now);
            return (
              <tr key={step.id}>
                <td>
                  <span title={step.id}>
                    {step.phase ? <a href={runPath(session, "phase", step.phase)}>{stepWords(step.id)}</a> : stepWords(step.id)}
                  </span>
                  {step.note && <span className="step-note">{step.note}</span>}
                </td>
                <td>
                  <Status state={step.status} />
                  {step.attempts > 1 && <span className="muted"> attempt {step.attempts}</span>}
                </td>
                <td className="numeric muted">{timeOfDay(step.startedAt)}</td>
                <td className="numeric right">{duration(to - from)}</td>
                <td className="timeline" aria-hidden="true">
                  {step.spans.map((part) => {
                    const [since, until] = [Date.parse(part.from), part.to ? Date.parse(part.to) : now];
                    const isFailed = (step.status === "failed" || step.status === "interrupted") && part === step.spans.at(-1);
                    return (
                      <span
                        key={part.from + part.state}
                        className={`timeline-bar ${isFailed ? "failed" : part.state} ${part.to ? "" : "now"}`}
                        style={{ left: `${((since - begin) / span) * WIDTH}%`, width: `${Math.max(0.6, ((until - since) / span) * WIDTH)}%` }}
                      />
                    );
                  })}
                </td>
                <td className="numeric right">{money(step.dollars)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {newest.length > shown.length && (
        <button type="button" className="quiet" onClick={() => setAll(true)}>
          Show all {newest.length} steps
        </button>
      )}
    </div>
  );
}

function endOf(step: StepRow, now: number): number {
  return step.endedAt ? Date.parse(step.endedAt) : now;
}
