/** Plans or phases as a graph: columns by dependency, the critical path thicker and marked in words. */

import { useEffect, useRef, type ReactElement } from "react";

import { layoutGraph } from "../lib/graph";
import { lookOf } from "./status";

export interface GraphNode {
  id: string;
  title: string;
  status: string;
  dependsOn: string[];
  weight: number;
  wave?: number;
  href: string;
}

const WIDTH = 176;
const HEIGHT = 44;
const GAP_X = 44;
const GAP_Y = 12;
const MARGIN = 4;

interface Props {
  nodes: GraphNode[];
  label: string;
  /** What a click does, if the node is on the same page. */
  onOpen?: (id: string) => void;
}

export function PlanGraph({ nodes, label, onOpen }: Props): ReactElement {
  const box = useRef<HTMLDivElement>(null);
  const current = nodes.find((node) => ["in_progress", "failed", "parked"].includes(node.status))?.id;
  useEffect(() => {
    const element = box.current;
    const place = current === undefined ? undefined : layoutGraph(nodes).nodes.get(current);
    // With one column of context before it. Only for another node: what a person scrolled to stays.
    if (element && place) element.scrollLeft = (place.column - 1) * (WIDTH + GAP_X);
  }, [current]);
  const layout = layoutGraph(nodes);
  const x = (column: number): number => MARGIN + column * (WIDTH + GAP_X);
  const y = (row: number): number => MARGIN + row * (HEIGHT + GAP_Y);
  const width = x(layout.columns) - GAP_X + MARGIN;
  const height = y(layout.rows) - GAP_Y + MARGIN;
  const edges = [...layout.edges].sort((a, b) => Number(a.isCritical) - Number(b.isCritical));
  return (
    <figure className="graph">
      <div className="graph-scroll" ref={box} tabIndex={0} role="region" aria-label={label}>
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={label}>
          {edges.map(({ from, to, isCritical }) => {
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
            const look = lookOf(node.status);
            const isCritical = layout.critical.has(node.id);
            const words = `${node.id} ${node.title}: ${look.word}${isCritical ? ", on the critical path" : ""}`;
            return (
              <a
                key={node.id}
                href={node.href}
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
                    {clip(node.title, 23)}
                  </text>
                </g>
              </a>
            );
          })}
        </svg>
      </div>
      {layout.critical.size > 1 && (
        <figcaption>
          <svg width="24" height="8" aria-hidden="true">
            <path className="edge critical" d="M0 4h24" />
          </svg>
          critical path: the longest chain of dependent tasks
        </figcaption>
      )}
    </figure>
  );
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
