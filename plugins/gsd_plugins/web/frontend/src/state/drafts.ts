/** What somebody has typed and not sent: it survives a reload, another tab of the page and another start of the server. */

import { useCallback, useState } from "react";

const PREFIX = "gsd.draft.";
const KEPT = 50;

export function readDraft<T>(name: string, empty: T): T {
  try {
    const { value } = JSON.parse(localStorage.getItem(PREFIX + name) ?? "") as { value: T };
    return value;
  } catch {
    return empty;
  }
}

/** Keep the draft, or forget it if there is none; of many, those that were changed last are kept. */
export function writeDraft(name: string, value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify({ at: Date.now(), value }));
    const names = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
    if (names.length <= KEPT) return;
    const at = (key: string): number => (JSON.parse(localStorage.getItem(key) ?? "{}") as { at?: number }).at ?? 0;
    names.sort((a, b) => at(a) - at(b)).slice(0, names.length - KEPT).forEach((key) => localStorage.removeItem(key));
  } catch {
    // The browser keeps nothing for this page; then a draft lives as long as its view.
  }
}

/** State that is kept as a draft; set to undefined, it is forgotten. */
export function useDraft<T>(name: string, empty: T): [T, (value: T | undefined) => void] {
  const [value, setValue] = useState<T>(() => readDraft(name, empty));
  const change = useCallback(
    (next: T | undefined): void => {
      writeDraft(name, next);
      setValue(next ?? empty);
    },
    // The empty value is a new object in each render.
    [name],
  );
  return [value, change];
}
