/**
 * Notifications of the browser when a question opens, if the person has asked for them.
 *
 * They go through a service worker, because browsers on phones have no others. It is only there for them: it keeps
 * nothing and answers no request.
 */

import type { GsdEvent } from "../api/types";
import { folderName, oneLine } from "../lib/format";
import { questionPath } from "../lib/route";

const KEY = "gsd.alerts";
const WORKER = "./sw.js";

/** Browsers have notifications only for pages from this machine or over https. */
export const canAlert = "Notification" in globalThis && "serviceWorker" in navigator;

export function wantsAlerts(): boolean {
  return canAlert && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
}

/** Turn them on or off; return whether they are on, or why they cannot be. */
export async function toggleAlerts(): Promise<boolean | string> {
  if (wantsAlerts()) {
    localStorage.removeItem(KEY);
    return false;
  }
  if ((await Notification.requestPermission()) !== "granted")
    return "The browser does not allow notifications of this page. Its settings for the page change that.";
  await register();
  localStorage.setItem(KEY, "on");
  return true;
}

type Policies = { createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string } };

function register(): Promise<ServiceWorkerRegistration> {
  // The page's policy for contents accepts no address of a script that did not pass here.
  const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  script ??= policies?.createPolicy("gsd", { createScriptURL: () => WORKER }).createScriptURL(WORKER) ?? WORKER;
  return navigator.serviceWorker.register(script);
}

let script: string | undefined;

/** Show the questions of the event that are not *answered*, if nobody looks at the page. */
export async function alertOf(event: GsdEvent, project: string, answered: ReadonlyMap<string, unknown>): Promise<void> {
  if (!wantsAlerts() || (document.visibilityState === "visible" && document.hasFocus())) return;
  const inquiry = event.data.inquiry as { questions?: { id?: string; text?: string; header?: string }[] } | undefined;
  await register();
  const worker = await navigator.serviceWorker.ready;
  for (const { id = "", text = "", header = "" } of inquiry?.questions?.filter((one) => !answered.has(one.id ?? "")) ?? [])
    await worker.showNotification(`${folderName(project)} asks`, {
      body: oneLine(text, header).slice(0, 300),
      // The same question in two windows is one notification.
      tag: id,
      icon: "./icon.svg",
      data: questionPath(id),
    });
}

/** Open what a notification was about, when it is clicked. */
export function followAlerts(): void {
  if (!canAlert) return;
  navigator.serviceWorker.addEventListener("message", (message: MessageEvent) => {
    const { open } = message.data as { open?: unknown };
    if (typeof open === "string" && open.startsWith("#/q/")) location.hash = open;
  });
}
