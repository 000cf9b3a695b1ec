/** How views read the hub. */

import { createContext, useCallback, useContext, useEffect, useState, useSyncExternalStore, type RefObject } from "react";

import type { Address } from "../api/address";
import type { Session, Summary } from "../api/types";
import type { EventLog } from "./eventlog";
import type { Hub, Resource } from "./hub";

export const HubContext = createContext<Hub | null>(null);

/** The hub; the view renders again when the connection, the sessions or the notices change. */
export function useHub(): Hub {
  const hub = useContext(HubContext);
  if (!hub) throw new Error("no hub above this component");
  useSyncExternalStore(hub.subscribe, hub.version);
  return hub;
}

export function useSession(id: string): Session | undefined {
  return useHub().sessions.find((session) => session.id === id);
}

/** What is known about the run of a session. The last session of a project speaks for all that worked on the same run. */
export function runSummary(sessions: readonly Session[], session: Session): Summary | null {
  const own = sessions.filter((one) => one.project === session.project);
  // One that has just been started has no run yet.
  const isSame = session.run !== "" && own.findLast((one) => one.run)?.run === session.run;
  return session.summary ?? (isSame ? (own.at(-1)?.summary ?? null) : null);
}

export function isEnded(session: Session): boolean {
  return ["completed", "failed", "stopped"].includes(session.state);
}

/** Whether a process works on the project: one that was killed or waits in the queue does not. */
export function isWorked(sessions: readonly Session[], project: string): boolean {
  const isActive = (one: Session): boolean =>
    one.state === "running" || (one.state === "waiting_checkpoint" && one.pid !== null) || one.summary?.status === "running";
  return sessions.some((one) => one.project === project && isActive(one));
}

export function useIsWorked(id: string): boolean {
  const { sessions } = useHub();
  const project = sessions.find((one) => one.id === id)?.project;
  return project !== undefined && isWorked(sessions, project);
}

/** The time up to which something is known to last: it stands still while there is no connection. */
export function useClock(): number {
  const hub = useHub();
  const now = useNow();
  return hub.lostAt && hub.link !== "live" ? hub.lostAt : now;
}

/** What is at the address, kept up to date while the view is shown. Not read if not *wanted*. */
export function useResource<T>(path: Address<T>, wanted = true): Resource<T> {
  const hub = useContext(HubContext);
  if (!hub) throw new Error("no hub above this component");
  const subscribe = useCallback((listener: () => void) => (wanted ? hub.watch(path, listener) : () => undefined), [hub, path, wanted]);
  return useSyncExternalStore(subscribe, () => hub.resource(path));
}

export function useEventLog(session: string): EventLog {
  const hub = useContext(HubContext);
  if (!hub) throw new Error("no hub above this component");
  const log = hub.log(session);
  const subscribe = useCallback((listener: () => void) => hub.watchLog(session, throttled(listener)), [hub, session]);
  useSyncExternalStore(subscribe, () => log.version);
  return log;
}

/** At most one render for each frame of the screen, however many events arrive. */
function throttled(listener: () => void): () => void {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      listener();
    });
  };
}

/** Whether *place* is on the screen of somebody: within the window, of a tab that is not hidden. */
export function useIsSeen(place: RefObject<Element | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    let isNear = false;
    const look = (): void => setSeen(isNear && !document.hidden);
    const observer = new IntersectionObserver((entries) => {
      isNear = entries.at(-1)?.isIntersecting ?? false;
      look();
    });
    if (place.current) observer.observe(place.current);
    document.addEventListener("visibilitychange", look);
    return () => {
      observer.disconnect();
      document.removeEventListener("visibilitychange", look);
    };
  }, [place]);
  return seen;
}

/** The time, in milliseconds, renewed every *every* milliseconds. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
