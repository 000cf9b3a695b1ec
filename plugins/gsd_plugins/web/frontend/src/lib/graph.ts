/** The plans of a phase, or the phases, as a graph: columns by dependency, and the critical path. */

export interface Node {
  id: string;
  dependsOn: string[];
  /** What the node adds to the length of a path: its number of tasks, for example. */
  weight: number;
  /** The column at least; plans have waves. */
  wave?: number;
}

export interface Placed {
  id: string;
  column: number;
  row: number;
}

export interface Layout {
  nodes: Map<string, Placed>;
  edges: { from: string; to: string; isCritical: boolean }[];
  critical: Set<string>;
  columns: number;
  rows: number;
}

/** Dependencies on unknown nodes, and those that close a cycle, are left out. */
export function layoutGraph(input: readonly Node[]): Layout {
  const known = new Map(input.map((node) => [node.id, node]));
  const column = new Map<string, number>();
  const length = new Map<string, number>();
  const before = new Map<string, string>();
  const open = new Set<string>();
  const edges: { from: string; to: string }[] = [];

  const visit = (node: Node): void => {
    if (column.has(node.id)) return;
    open.add(node.id);
    let place = Math.max(0, (node.wave ?? 1) - 1);
    let longest = 0;
    for (const id of new Set(node.dependsOn)) {
      const other = known.get(id);
      if (!other || open.has(id)) continue;
      visit(other);
      edges.push({ from: id, to: node.id });
      place = Math.max(place, (column.get(id) ?? 0) + 1);
      if ((length.get(id) ?? 0) > longest) {
        longest = length.get(id) ?? 0;
        before.set(node.id, id);
      }
    }
    open.delete(node.id);
    column.set(node.id, place);
    length.set(node.id, longest + Math.max(1, node.weight));
  };
  input.forEach(visit);

  const critical = new Set<string>();
  const ends = [...length].sort((a, b) => b[1] - a[1]);
  for (let id = edges.length ? ends[0]?.[0] : undefined; id; id = before.get(id)) critical.add(id);

  const used = [...new Set(column.values())].sort((a, b) => a - b);
  const filled = new Map<number, number>();
  const nodes = new Map<string, Placed>();
  for (const node of input) {
    const place = used.indexOf(column.get(node.id) ?? 0);
    const row = filled.get(place) ?? 0;
    filled.set(place, row + 1);
    nodes.set(node.id, { id: node.id, column: place, row });
  }
  return {
    nodes,
    edges: edges.map((edge) => ({ ...edge, isCritical: critical.has(edge.to) && before.get(edge.to) === edge.from })),
    critical,
    columns: used.length,
    rows: Math.max(0, ...filled.values()),
  };
}
