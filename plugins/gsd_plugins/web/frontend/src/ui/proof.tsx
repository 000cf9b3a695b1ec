/** Evidence with its citations: each opens the lines that it names. */

import { useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import { piecesOf } from "../lib/evidence";
import { useResource } from "../state/hooks";
import { Loaded, Panel } from "./common";
import { Inline } from "./markdown";

interface Lines {
  path: string;
  first: number;
  last: number;
}

export function Proof({ session, proof }: { session: string; proof: string }): ReactElement {
  const [shown, setShown] = useState<Lines | null>(null);
  return (
    <span className="proof">
      {piecesOf(proof).map((piece, index) => {
        if (piece.kind === "text") return <Inline key={index} text={piece.text} />;
        if (piece.kind === "command")
          return (
            <span key={index}>
              <code>{piece.command}</code>{" "}
              <span className={piece.exit === 0 ? "tone-good" : "tone-bad"}>exit {piece.exit}</span>
            </span>
          );
        return (
          <button key={index} type="button" className="link mono" onClick={() => setShown(piece)}>
            {piece.text}
          </button>
        );
      })}
      {shown && <LinesPanel session={session} lines={shown} onClose={() => setShown(null)} />}
    </span>
  );
}

const AROUND = 12;

function LinesPanel({ session, lines, onClose }: { session: string; lines: Lines; onClose: () => void }): ReactElement {
  const first = Math.max(1, lines.first - AROUND);
  const wanted = { session, path: lines.path, first, last: lines.last + AROUND };
  const found = useResource(addressOf("/sessions/{session}/files", wanted));
  return (
    <Panel title={`${lines.path}:${lines.first}${lines.last > lines.first ? `-${lines.last}` : ""}`} onClose={onClose}>
      <Loaded from={found} lines={10} shape="text">
        {(file) => (
          <>
            <pre className="file" tabIndex={0}>
              {file.lines.map((line, index) => {
                const number = file.first + index;
                const isCited = number >= lines.first && number <= lines.last;
                return (
                  <span key={number} className={isCited ? "line cited" : "line"}>
                    <span className="line-number">{number}</span>
                    {isCited && <span className="hidden">cited: </span>}
                    {line || " "}
                  </span>
                );
              })}
            </pre>
            <p className="muted">
              As the file is now: {file.total} {file.total === 1 ? "line" : "lines"}.
            </p>
          </>
        )}
      </Loaded>
    </Panel>
  );
}
