/** The plans of a phase, or the phases, as a graph: columns by dependency, and the critical path. */

export interface Node {
  id: string;
  phase: string;
  depends_on: string[];
}

export interface Placed {
  id: string;
  column: number;
  row: number;
}

export interface Edge {
  from: string;
  to: string;
  isCritical: boolean;
}

export interface Layout {
  nodes: Map<string, Placed>;
  edges: Edge[];
  columns: number;
  rows: number;
}

/** Dependencies on unknown nodes, and those that close a cycle, are left out. *path* is the critical one. */
export function layoutGraph(input: readonly Node[], path: readonly string[]): Layout {
  const known = new Map(input.map((node) => [node.id, node]));
  const column = new Map<string, number>();
  const open = new Set<string>();
  const edges: Edge[] = [];

  const visit = (node: Node): void => {
    if (column.has(node.id)) return;
    open.add(node.id);
    let place = 0;
    for (const id of new Set(node.depends_on)) {
      const other = known.get(id);
      if (!other || open.has(id)) continue;
      visit(other);
      edges.push({ from: id, to: node.id, isCritical: path.indexOf(node.id) > 0 && path[path.indexOf(node.id) - 1] === id });
      place = Math.max(place, (column.get(id) ?? 0) + 1);
    }
    open.delete(node.id);
    column.set(node.id, place);
  };
  input.forEach(visit);

  const filled = new Map<number, number>();
  const nodes = new Map<string, Placed>();
  for (const node of input) {
    const place = column.get(node.id) ?? 0;
    const row = filled.get(place) ?? 0;
    filled.set(place, row + 1);
    nodes.set(node.id, { id: node.id, column: place, row });
  }
  // The plans of a phase wait for all that end the one before. One edge for that is enough: all of them hide the others.
  const joined = new Set<string>();
  edges.sort((a, b) => Number(b.isCritical) - Number(a.isCritical));
  const shown = edges.filter(({ from, to }) => {
    const [before, after] = [known.get(from)?.phase, known.get(to)?.phase];
    const key = `${before} ${to}`;
    const isNew = before === after || !joined.has(key);
    joined.add(key);
    return isNew;
  });
  return { nodes, edges: shown.reverse(), columns: Math.max(0, ...filled.keys()) + 1, rows: Math.max(0, ...filled.values()) };
}
