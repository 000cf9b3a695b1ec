/** The terminals of all sessions at once, live; one can have the whole page. */

import { useState, type ReactElement } from "react";

import type { Session } from "../api/types";
import { folderName } from "../lib/format";
import { runPath } from "../lib/route";
import { isEnded, useHub } from "../state/hooks";
import { Chips, Empty, FontSize, Skeleton } from "../ui/common";
import { TerminalScreen } from "../ui/screen";
import { Status } from "../ui/status";

/** Each is an emulator of its own with everything that it shows. */
const SHOWN = 12;
const SHOW = [["ended", "ended sessions too"]] as const;

export default function TerminalsPage(): ReactElement {
  const hub = useHub();
  const [size, setSize] = useState(11);
  const [hasEnded, setEnded] = useState(false);
  const [focused, setFocused] = useState("");
  const [typing, setTyping] = useState("");
  const newest = [...hub.sessions].reverse();
  const wanted = newest.filter((session) => hasEnded || !isEnded(session));
  const sessions = wanted.sort((a, b) => Number(isEnded(a)) - Number(isEnded(b))).slice(0, SHOWN);
  const shown = sessions.some((one) => one.id === focused) ? sessions.filter((one) => one.id === focused) : sessions;
  if (!hub.isLoaded) return <Skeleton lines={8} shape="stream" />;
  return (
    <section className="stream">
      <div className="page-head">
        <h1>Terminals</h1>
        {hub.sessions.length > 0 && <Chips label="show" options={SHOW} chosen={new Set(hasEnded ? ["ended" as const] : [])} onToggle={() => setEnded(!hasEnded)} />}
        {wanted.length > SHOWN && <span className="muted">The newest {SHOWN} of {wanted.length}.</span>}
        {sessions.length > 0 && <FontSize size={size} onSize={setSize} />}
      </div>
      {sessions.length === 0 && (
        <Empty title="No session in progress">
          <a href="#/new">Start a run</a>
          {hub.sessions.length > 0 ? ", or show the ended sessions." : ". Its terminal appears here."}
        </Empty>
      )}
      <ul className={shown.length === 1 ? "terminals one" : "terminals"}>
        {shown.map((session) => (
          <li key={session.id}>
            <TileHead
              session={session}
              isFocused={focused === session.id}
              isTyping={typing === session.id}
              canType={hub.scope === "control" && !isEnded(session) && !!session.pid}
              onFocus={() => setFocused(focused === session.id ? "" : session.id)}
              onType={() => setTyping(typing === session.id ? "" : session.id)}
            />
            <TerminalScreen session={session} fontSize={size} isTyping={typing === session.id && !isEnded(session)} onLeave={() => setTyping("")} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface HeadProps {
  session: Session;
  isFocused: boolean;
  isTyping: boolean;
  canType: boolean;
  onFocus: () => void;
  onType: () => void;
}

function TileHead({ session, isFocused, isTyping, canType, onFocus, onType }: HeadProps): ReactElement {
  const name = `${folderName(session.project)} ${session.id}`;
  return (
    <header className="tile-head">
      <a href={runPath(session.id)}>
        <strong>{folderName(session.project)}</strong>
      </a>
      <span className="muted numeric">{session.id}</span>
      <Status state={session.state} />
      <span className="push">
        {canType && (
          <button type="button" className="quiet" aria-pressed={isTyping} aria-label={`type in ${name}`} onClick={onType}>
            {isTyping ? "Stop typing (Ctrl+Esc)" : "Type"}
          </button>
        )}
        <button type="button" className="quiet" aria-pressed={isFocused} aria-label={`focus ${name}`} onClick={onFocus}>
          {isFocused ? "Show all" : "Focus"}
        </button>
      </span>
    </header>
  );
}
