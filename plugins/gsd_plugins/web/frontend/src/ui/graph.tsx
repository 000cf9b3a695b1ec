/** The plans of phases as a graph: columns by dependency, the critical path thicker and marked in words. */

import { useEffect, useRef, type ReactElement } from "react";

import type { PhaseList } from "../api/types";
import { layoutGraph } from "../lib/graph";
import { runPath } from "../lib/route";
import { lookOf, phaseState, planState } from "./status";

const WIDTH = 192;
const HEIGHT = 44;
const GAP_X = 44;
const GAP_Y = 12;
const MARGIN = 4;
const ATTENTION = ["failed", "parked", "running", "merging", "delayed", "interrupted"];

interface Props {
  session: string;
  list: PhaseList;
  /** Show only the plans of this phase. */
  phase?: string;
  /** What a click does, if the node is on the same page. */
  onOpen?: (id: string) => void;
}

export function PlanGraph({ session, list, phase, onOpen }: Props): ReactElement | null {
  const box = useRef<HTMLDivElement>(null);
  const nodes = list.graph.nodes.filter((node) => phase === undefined || node.phase === phase);
  const states = new Map<string, string>();
  for (const one of list.phases) {
    states.set(one.number, phaseState(one));
    one.plans.forEach((plan) => states.set(plan.id, planState(plan, one)));
  }
  const layout = layoutGraph(nodes, list.graph.critical_path);
  const current = ATTENTION.flatMap((state) => nodes.filter((node) => node.state === state))[0]?.id;
  useEffect(() => {
    const place = current === undefined ? undefined : layout.nodes.get(current);
    if (!box.current || !place) return;
    // With one column of context before it, if both fit. Only for another node: what a person scrolled to stays.
    const left = place.column * (WIDTH + GAP_X);
    box.current.scrollLeft = Math.max(left - WIDTH - GAP_X, left + WIDTH + 2 * MARGIN - box.current.clientWidth);
  }, [current]);
  if (nodes.length < 2) return null;
  const x = (column: number): number => MARGIN + column * (WIDTH + GAP_X);
  const y = (row: number): number => MARGIN + row * (HEIGHT + GAP_Y);
  const width = x(layout.columns) - GAP_X + MARGIN;
  const height = y(layout.rows) - GAP_Y + MARGIN;
  const label = phase === undefined ? "graph of dependencies" : `plans of phase ${phase}`;
  const isPath = layout.edges.some((edge) => edge.isCritical);
  return (
    <figure className="graph">
      <div className="graph-scroll" ref={box} tabIndex={0} role="region" aria-label={label}>
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={label}>
          {layout.edges.map(({ from, to, isCritical }) => {
            const a = layout.nodes.get(from);
            const b = layout.nodes.get(to);
            if (!a || !b) return null;
            const [x1, y1] = [x(a.column) + WIDTH, y(a.row) + HEIGHT / 2];
            const [x2, y2] = [x(b.column), y(b.row) + HEIGHT / 2];
            const bend = Math.max(16, (x2 - x1) / 2);
            return (
              <path
                key={`${from} ${to}`}
                className={isCritical ? "edge critical" : "edge"}
                d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
              />
            );
          })}
          {nodes.map((node) => {
            const place = layout.nodes.get(node.id);
            if (!place) return null;
            const look = lookOf(states.get(node.id));
            const isCritical = isPath && list.graph.critical_path.includes(node.id);
            const waits = node.waits_for.length ? `, waits for ${node.waits_for.join(", ")}` : "";
            const words = `${node.id} ${node.name}: ${look.word}${waits}${isCritical ? ", on the critical path" : ""}`;
            return (
              <a
                key={node.id}
                href={onOpen ? location.hash.split("?")[0] : runPath(session, "phase", node.phase)}
                data-item=""
                aria-label={words}
                onClick={(event) => onOpen && (event.preventDefault(), onOpen(node.id))}
              >
                <title>{words}</title>
                <g transform={`translate(${x(place.column)} ${y(place.row)})`} className={`node tone-${look.tone}`}>
                  <rect className={isCritical ? "critical" : ""} width={WIDTH} height={HEIGHT} rx="6" />
                  <text className="node-id" x="10" y="18">
                    {node.id}
                  </text>
                  <text className="node-state" x={WIDTH - 10} y="18" textAnchor="end">
                    {look.word}
                  </text>
                  <text className="node-title" x="10" y="35">
                    {clip(node.name, 25)}
                  </text>
                </g>
              </a>
            );
          })}
        </svg>
      </div>
      {isPath && (
        <figcaption>
          <svg width="24" height="8" aria-hidden="true">
            <path className="edge critical" d="M0 4h24" />
          </svg>
          critical path: the longest chain of tasks that is left
        </figcaption>
      )}
    </figure>
  );
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
