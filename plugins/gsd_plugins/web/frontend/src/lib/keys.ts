/** Keyboard shortcuts: one list, which the help dialog shows. */

import { useEffect } from "react";

export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["?", "show these keys"],
  ["g r", "go to the runs"],
  ["g q", "go to the questions"],
  ["g t", "go to the terminals"],
  ["g p", "go to the plugins"],
  ["g n", "start a run"],
  ["j / k", "next, previous item of a list"],
  ["Enter", "open the item; answer the question"],
  ["1 – 9", "choose an option"],
  ["↑ / ↓", "move between the options"],
  ["e", "answer in your own words"],
  ["[ / ]", "previous, next tab of a run"],
  ["/", "search"],
  ["t", "light or dark theme"],
  ["Esc", "close the panel; leave the terminal or a field"],
];

/** Whether keys belong to what has the focus, and not to the page. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    /^(TEXTAREA|SELECT)$/.test(target.tagName) ||
    (target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type)) ||
    target.closest(".xterm") !== null
  );
}

export function useKeys(handler: (key: string, event: KeyboardEvent) => void): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      handler(event.key, event);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [handler]);
}

/** Move the focus by *step* among the elements with data-item, as j and k do. */
export function moveFocus(step: number): void {
  const items = [...document.querySelectorAll<HTMLElement>("main [data-item]")].filter((item) => item.offsetParent);
  if (!items.length) return;
  const now = items.indexOf(document.activeElement as HTMLElement);
  const next = now < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, now + step));
  items[next]?.focus();
}
