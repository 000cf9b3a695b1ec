/** The citations in a verdict's evidence: lines of files, and commands. */

export type Piece =
  | { kind: "text"; text: string }
  | { kind: "lines"; path: string; first: number; last: number; text: string }
  | { kind: "command"; command: string; exit: number; text: string };

const CITATION = /`([^`]+)` \(exit (-?\d+)\)|((?:[\w.@+-]+\/)*[\w.@+-]*[A-Za-z][\w.@+-]*):(\d+)(?:-(\d+))?(?!\d)/g;

export function piecesOf(proof: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of proof.matchAll(CITATION)) {
    const [text, command, exit, path, first, last] = match;
    if (match.index > end) pieces.push({ kind: "text", text: proof.slice(end, match.index) });
    if (command !== undefined) pieces.push({ kind: "command", command, exit: Number(exit), text });
    else if (path) {
      const from = Number(first);
      pieces.push({ kind: "lines", path, first: from, last: last ? Number(last) : from, text });
    }
    end = match.index + text.length;
  }
  if (end < proof.length) pieces.push({ kind: "text", text: proof.slice(end) });
  return pieces;
}
