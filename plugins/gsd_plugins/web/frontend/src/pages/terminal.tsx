/** The session's terminal: replay, then live, with input and resize. */

import { useState, type ReactElement } from "react";

import type { Session } from "../api/types";
import { isEnded, useHub } from "../state/hooks";
import { TerminalScreen } from "../ui/screen";
import { FontSize } from "../ui/common";

export default function TerminalPage({ session }: { session: Session }): ReactElement {
  const hub = useHub();
  const [isTyping, setTyping] = useState(false);
  const [size, setSize] = useState(13);
  const [note, setNote] = useState("");
  const hasEnded = isEnded(session);
  // One that waits for an answer may have no process that reads keys.
  const canType = hub.scope === "control" && !hasEnded && !!session.pid;

  return (
    <section className="stream">
      <div className="stream-bar">
        <button type="button" aria-pressed={isTyping && canType} disabled={!canType} onClick={() => setTyping(!isTyping)}>
          {isTyping && canType ? "Stop typing (Ctrl+Esc)" : "Type here"}
        </button>
        <span className="muted">
          {hasEnded
            ? `The session has ended${session.exit === null ? "" : `, exit code ${session.exit}`}.`
            : !session.pid
              ? "No process runs; an answer continues it."
            : isTyping
              ? "Keys go to the session."
              : "Watching; keys are not sent."}
          {note && ` ${note}`}
        </span>
        <FontSize size={size} onSize={setSize} />
      </div>
      <TerminalScreen session={session} fontSize={size} isTyping={isTyping && canType} onLeave={() => setTyping(false)} onNote={setNote} />
    </section>
  );
}
