/** Continue the run of a session: once, however often it is pressed, and only for who still looks at it. */

import { useState, type ReactElement } from "react";

import type { Session } from "../api/types";
import { go, runPath } from "../lib/route";
import { useHub } from "../state/hooks";

export function ResumeButton({ session }: { session: Session }): ReactElement {
  const hub = useHub();
  const [isSending, setSending] = useState(false);
  const resume = async (): Promise<void> => {
    if (isSending) return;
    setSending(true);
    const here = location.hash;
    const body = { project: session.project, resume: true } as const;
    const started = await hub.act(() => hub.client.post("/sessions", {}, body));
    setSending(false);
    // Checking the project takes seconds, and the reader may be elsewhere by now.
    if (started && location.hash === here) go(runPath(started.session.id));
    else if (started) hub.notify("info", `Resumed as session ${started.session.id}`);
  };
  return (
    <button type="button" className="primary" disabled={hub.scope !== "control" || isSending} aria-busy={isSending} onClick={() => void resume()}>
      {isSending ? "Resuming …" : "Resume"}
    </button>
  );
}
