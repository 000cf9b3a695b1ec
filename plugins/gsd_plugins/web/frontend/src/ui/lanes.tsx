/** Which plans were executed side by side, and when; what each waited for. */

import { useEffect, useRef, type ReactElement } from "react";

import { count, timeOfDay } from "../lib/format";
import { lanesOf, type Stint } from "../lib/lanes";
import { runPath } from "../lib/route";
import { useClock } from "../state/hooks";
import type { StepRow } from "../state/timeline";
import { lookOf, StatusIcon } from "./status";

const LEGEND = { running: "at work", parked: "waits for an answer", waiting: "waits for a time", merging: "being merged", conflict: "conflict" };
/** The least width of all lanes, and of a plan of the longest one, in pixels. */
const NARROWEST = 600;
const NARROWEST_PLAN = 100;

interface Props {
  session: string;
  steps: StepRow[];
  names: ReadonlyMap<string, string>;
  onOpen?: (id: string) => void;
}

/** Nothing is shown as long as one plan was executed after the other: the table of steps is enough for that. */
export function Lanes({ session, steps, names, onOpen }: Props): ReactElement | null {
  const now = useClock();
  const box = useRef<HTMLDivElement>(null);
  const { lanes, most, begin, end } = lanesOf(steps.filter((step) => step.kind === "execute"), now);
  const longest = Math.max(0, ...lanes.map((lane) => lane.length));
  // The newest are in sight.
  useEffect(() => {
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [longest]);
  if (lanes.length < 2) return null;
  const used = new Set(lanes.flat().flatMap((stint) => stint.spans.map((span) => span.state)));
  return (
    <figure>
      <h3 id="lanes">
        Side by side <span className="muted">up to {count(most, "agent")} at once</span>
      </h3>
      <div className="lanes" ref={box} tabIndex={0} role="region" aria-labelledby="lanes">
        <ol style={{ minWidth: Math.max(NARROWEST, longest * NARROWEST_PLAN) }}>
          {lanes.map((lane, index) => (
            <li key={index} aria-label={`lane ${index + 1}`}>
              <ol className="lane">
                {lane.map((stint) => (
                  <Block key={stint.spans[0]?.from} stint={stint} name={names.get(stint.step.plan) ?? ""} session={session} onOpen={onOpen} />
                ))}
              </ol>
            </li>
          ))}
        </ol>
      </div>
      <p className="lanes-legend">
        <span className="numeric">
          {timeOfDay(new Date(begin).toISOString())} to {timeOfDay(new Date(end).toISOString())}
        </span>
        {Object.entries(LEGEND).map(([state, words]) =>
          used.has(state as keyof typeof LEGEND) ? (
            <span key={state}>
              <i className={`span ${state}`} /> {words}
            </span>
          ) : null,
        )}
      </p>
    </figure>
  );
}

function Block({ stint, name, session, onOpen }: { stint: Stint; name: string; session: string; onOpen: Props["onOpen"] }): ReactElement {
  const { step, spans } = stint;
  // A later stint says how it ended.
  const isLast = step.spans.at(-1)?.from === spans.at(-1)?.from;
  const state = isLast ? step.status : "interrupted";
  const parts = spans.map((span) => `${LEGEND[span.state]} from ${timeOfDay(span.from)}${span.to ? ` to ${timeOfDay(span.to)}` : ""}`);
  const words = `${step.plan} ${name}: ${lookOf(state).word}; ${parts.join(", ")}`;
  return (
    <li style={{ left: percent(stint.start), width: percent(stint.length) }}>
      <a
        href={runPath(session, "phase", step.phase)}
        className="lane-block"
        data-item=""
        aria-label={words}
        title={words}
        onClick={(event) => onOpen && (event.preventDefault(), onOpen(step.plan))}
      >
        <span className="lane-name">
          <StatusIcon state={state} />
          <span className="mono">{step.plan}</span>
          <span className="lane-title">{name}</span>
        </span>
        <span className="lane-spans">
          {spans.map((span) => (
            <i key={span.from + span.state} className={`span ${span.state}`} style={{ left: percent(span.start), width: percent(span.length) }} />
          ))}
        </span>
      </a>
    </li>
  );
}

function percent(share: number): string {
  return `${share * 100}%`;
}
