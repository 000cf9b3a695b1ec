/** Addresses of the page: the part after #, such as #/s/s1/phase/2 or #/q/q-5f4a9bb369. */

import { useSyncExternalStore } from "react";

export type Route =
  | { page: "runs" }
  | { page: "new" }
  | { page: "questions"; question: string }
  | { page: "plugins" }
  | { page: "terminals" }
  | { page: "run"; session: string; tab: RunTab; phase: string }
  | { page: "unknown" };

export const RUN_TABS = ["overview", "evidence", "history", "log", "terminal", "cost"] as const;
export type RunTab = (typeof RUN_TABS)[number] | "phase";

export function parseRoute(hash: string): Route {
  const parts = hash.replace(/^#?\/?/, "").split("/").filter(Boolean).map(decode);
  const [first, second = "", third = "", fourth = ""] = parts;
  switch (first) {
    case undefined:
      return { page: "runs" };
    case "new":
      return { page: "new" };
    case "q":
      return { page: "questions", question: second };
    case "plugins":
      return { page: "plugins" };
    case "terminals":
      return { page: "terminals" };
    case "s":
      if (!second) return { page: "runs" };
      if (third === "phase" && fourth) return { page: "run", session: second, tab: "phase", phase: fourth };
      if (!third) return { page: "run", session: second, tab: "overview", phase: "" };
      if ((RUN_TABS as readonly string[]).includes(third))
        return { page: "run", session: second, tab: third as RunTab, phase: "" };
      return { page: "unknown" };
    default:
      return { page: "unknown" };
  }
}

export function runPath(session: string, tab: RunTab = "overview", phase = ""): string {
  const base = `#/s/${encodeURIComponent(session)}`;
  if (tab === "phase") return `${base}/phase/${encodeURIComponent(phase)}`;
  return tab === "overview" ? base : `${base}/${tab}`;
}

export function questionPath(question: string): string {
  return `#/q/${encodeURIComponent(question)}`;
}

export function go(path: string): void {
  location.hash = path.replace(/^#/, "");
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(
    (listener) => {
      addEventListener("hashchange", listener);
      return () => removeEventListener("hashchange", listener);
    },
    () => location.hash,
  );
  return parseRoute(hash);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
