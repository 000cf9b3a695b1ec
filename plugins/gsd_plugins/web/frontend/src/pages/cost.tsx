/** What a run costs: over time, and by phase, step, model or day. */

import { useEffect, useRef, useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { CostReport } from "../api/types";
import { compact, count, money, timeOfDay } from "../lib/format";
import { useEventLog, useResource, useSession } from "../state/hooks";
import { Empty, Loaded, Problem } from "../ui/common";
import type { CostPoint } from "../state/timeline";

const GROUPINGS = ["phase", "step", "model", "day"] as const;

export function CostPage({ session }: { session: string }): ReactElement {
  const [by, setBy] = useState<(typeof GROUPINGS)[number]>("phase");
  const report = useResource(addressOf("/sessions/{session}/cost", { session, by }));
  const log = useEventLog(session);
  const budget = Number(useSession(session)?.summary?.budget ?? 0);
  // Without the table, an empty chart would say that nothing was spent.
  if (report.error && !report.data) return <Problem title={report.error.message} hint={report.error.hint} />;
  return (
    <>
      <section>
        <h2>Over time</h2>
        <SizedChart points={log.timeline.cost} budget={budget} />
      </section>
      <section>
        <div className="page-head">
          <h2>By {by}</h2>
          <div className="chips" role="group" aria-label="group by">
            {GROUPINGS.map((name) => (
              <button key={name} type="button" className="chip" aria-pressed={name === by} onClick={() => setBy(name)}>
                {name}
              </button>
            ))}
          </div>
        </div>
        <Loaded from={report} lines={4}>
          {(data) => <CostTable report={data} />}
        </Loaded>
      </section>
    </>
  );
}

function CostTable({ report }: { report: CostReport }): ReactElement {
  if (!report.groups.length) return <Empty title="No calls yet" />;
  // Without prices, the bars compare tokens, and without those, calls.
  const measures = [
    (group: CostReport["total"]) => Number(group.dollars ?? 0),
    (group: CostReport["total"]) => group.tokens.total,
    (group: CostReport["total"]) => group.calls,
  ];
  const chosen = measures.findIndex((measure) => measure(report.total) > 0);
  const measure = measures[Math.max(0, chosen)] ?? (() => 0);
  const columns = COLUMNS.filter(([name, value]) => name === "Cost" || value(report.total) > 0);
  const most = Math.max(...report.groups.map(measure), Number.MIN_VALUE);
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="cost">
      <table className="costs">
        <thead>
          <tr>
            <th>{report.by}</th>
            <th className="share-head">{["Dollars", "Tokens", "Calls"][Math.max(0, chosen)]} compared</th>
            {columns.map(([name]) => (
              <th key={name} className="right">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.groups.map((group, index) => (
            <tr key={index}>
              <td>{String(group[report.by] ?? "") || "no phase"}</td>
              <td className="share">
                <span style={{ width: `${(measure(group) / most) * 100}%` }} />
              </td>
              <Numbers group={group} columns={columns} />
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th>Total</th>
            <td className="share" />
            <Numbers group={report.total} columns={columns} />
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

/** Columns after the name. An agent need not report turns or tokens: a column that knows nothing is left out. */
const COLUMNS: readonly (readonly [name: string, value: (group: CostReport["total"]) => number, text: (value: number) => string])[] = [
  ["Cost", (group) => Number(group.dollars ?? Number.NaN), (value) => money(value)],
  ["Calls", (group) => group.calls, String],
  ["Turns", (group) => group.turns, orNone(String)],
  ["Tokens", (group) => group.tokens.total, orNone(compact)],
  ["From cache", (group) => group.tokens.cache_read, compact],
];

function orNone(text: (value: number) => string): (value: number) => string {
  return (value) => (value > 0 ? text(value) : "–");
}

function Numbers({ group, columns }: { group: CostReport["total"]; columns: typeof COLUMNS }): ReactElement {
  return (
    <>
      {columns.map(([name, value, text]) => (
        <td key={name} className="numeric right">
          {text(value(group))}
        </td>
      ))}
    </>
  );
}

const HEIGHT = 180;
const LEFT = 52;
const BOTTOM = 22;

/** Drawn in the size that it has, so that its words are as large as all others. */
function SizedChart({ points, budget }: { points: CostPoint[]; budget: number }): ReactElement {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={box}>
      <CostChart points={points} budget={budget} width={width} />
    </div>
  );
}

/** Cumulated dollars as steps, with the budget as a line. */
export function CostChart({ points, budget, width }: { points: CostPoint[]; budget: number; width: number }): ReactElement {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return <Empty title="No calls yet">Each call of an agent adds a point.</Empty>;
  if (last.dollars === 0)
    return <Empty title="No cost so far">{count(points.length, "call")}, none of which was billed or has a known price.</Empty>;
  const ticks = moneyTicks(Math.max(last.dollars, budget > 0 && budget < last.dollars * 3 ? budget : 0));
  const most = ticks.at(-1) ?? 1;
  const span = Math.max(1, last.at - first.at);
  const x = (at: number): number => LEFT + ((at - first.at) / span) * (width - LEFT - 8);
  const y = (dollars: number): number => HEIGHT - BOTTOM - (dollars / most) * (HEIGHT - BOTTOM - 10);
  const path = thinned(points).reduce((line, point) => `${line}H${x(point.at).toFixed(1)}V${y(point.dollars).toFixed(1)}`, `M${x(first.at)} ${y(0)}`);
  const label = `cost over time: ${money(last.dollars)} after ${count(points.length, "call")}`;
  return (
    <svg className="chart" width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={label}>
      {ticks.map((tick) => (
        <g key={tick}>
          <path className="grid" d={`M${LEFT} ${y(tick)}H${width - 8}`} />
          <text x={LEFT - 8} y={y(tick) + 4} textAnchor="end">
            {tick > 0 && ticks.every(Number.isInteger) ? `$${tick}` : money(tick)}
          </text>
        </g>
      ))}
      <path className="chart-area" d={`${path}V${y(0)}Z`} />
      <path className="chart-line" d={path} />
      {budget > 0 && budget <= most && (
        <>
          <path className="chart-budget" d={`M${LEFT} ${y(budget)}H${width - 8}`} />
          <text x={width - 8} y={y(budget) - 5} textAnchor="end">
            budget ${budget}
          </text>
        </>
      )}
      {timeTicks(first.at, last.at, Math.floor((width - LEFT) / 90)).map(({ at, label }) => (
        <g key={at}>
          <path className="grid" d={`M${x(at)} ${y(0)}v4`} />
          <text x={x(at)} y={HEIGHT - 4} textAnchor={x(at) > width - 40 ? "end" : "middle"}>
            {label}
          </text>
        </g>
      ))}
    </svg>
  );
}

/** Three to six round numbers from 0 to the first one that is not less than *most*. */
export function moneyTicks(most: number): number[] {
  const size = 10 ** Math.floor(Math.log10(most / 4));
  const step = ([1, 2, 5].find((one) => one * size * 4 >= most) ?? 10) * size;
  // Multiplied, not added: 0.1 + 0.2 is not 0.3.
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30].map((one) => one * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((one) => one * MINUTE),
  ...[1, 2, 3, 6, 12].map((one) => one * HOUR),
  ...[1, 2, 7, 14, 28].map((one) => one * DAY),
];

/** At most *count* round times from *first* to *last*, in milliseconds, and how they are written. */
export function timeTicks(first: number, last: number, count: number): { at: number; label: string }[] {
  const step = TIME_STEPS.find((one) => (last - first) / one < Math.max(1, count)) ?? Math.max(1, last - first);
  // Days and hours begin in the reader's time zone.
  const shift = new Date(first).getTimezoneOffset() * MINUTE;
  const found = [];
  for (let at = Math.ceil((first - shift) / step) * step + shift; at <= last; at += step) {
    const time = new Date(at);
    const day = time.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    const hour = timeOfDay(time.toISOString()).slice(0, step < MINUTE ? 8 : 5);
    found.push({ at, label: step >= DAY ? day : last - first >= DAY ? `${day}, ${hour}` : hour });
  }
  return found.length ? found : [{ at: first, label: timeOfDay(new Date(first).toISOString()) }];
}

/** A chart has 900 columns: more points than that cost time and show nothing. */
function thinned(points: CostPoint[]): CostPoint[] {
  const every = Math.ceil(points.length / 900);
  return every <= 1 ? points : points.filter((_, index) => index % every === 0 || index === points.length - 1);
}
