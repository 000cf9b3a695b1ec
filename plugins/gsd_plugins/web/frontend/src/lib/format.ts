/** Times, money and names as the page shows them. */

export function duration(milliseconds: number): string {
  if (milliseconds >= 0 && milliseconds < 9950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${pad(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function ago(milliseconds: number): string {
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`;
}

export function timeOfDay(iso: string | null | undefined): string {
  if (!iso) return "";
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString("en-GB");
}

export function dateAndTime(iso: string | null | undefined): string {
  if (!iso) return "";
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return "";
  const isToday = time.toDateString() === new Date().toDateString();
  const day = time.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  const hour = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return isToday ? hour : `${day}, ${hour}`;
}

/** The date and the time of day, always both: for what may be days ago. */
export function dateTimeOf(iso: string): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? "" : `${time.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${timeOfDay(iso)}`;
}

/** Dollars; an unknown price is "–", never 0. */
export function money(dollars: string | number | null | undefined, basis = ""): string {
  if (dollars === null || dollars === undefined || dollars === "") return "–";
  const value = Number(dollars);
  if (!Number.isFinite(value)) return "–";
  const about = basis === "priced" || basis === "estimated" ? "about " : "";
  if (value === 0) return "$0";
  return `${about}$${value < 0.01 ? value.toFixed(4) : value.toFixed(2)}`;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
}

export function compact(number: number): string {
  return Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 }).format(number);
}

export function folderName(path: string): string {
  return path.replace(/\/+$/, "").split("/").at(-1) || path;
}

const STEP_WORDS: Record<string, string> = {
  init: "Start of the project",
  roadmap: "Roadmap",
};

/** A step's id, such as 2.1/execute/02.1-03 or audit/v1.0/r2, in words. */
export function stepWords(id: string): string {
  const parts = id.split("/");
  const phase = /^[a-z]/.test(parts[0] ?? "") ? "" : parts.shift();
  const [kind = "", ...rest] = parts;
  const round = /^r(\d+)$/.exec(rest.at(-1) ?? "")?.[1];
  const detail = round ? rest.slice(0, -1) : rest;
  const what = [STEP_WORDS[kind] ?? kind.replaceAll("-", " "), ...detail, round ? `(round ${round})` : ""].filter(Boolean).join(" ");
  return phase ? `Phase ${phase}: ${what}` : what.charAt(0).toUpperCase() + what.slice(1);
}

const EVENT_WORDS: Record<string, string> = {
  "run.opened": "process started",
  "run.closed": "process ended",
  "step.returned": "step has a result",
  "cost.changed": "cost of a call",
};

/** An event's name, such as question.asked, in words. */
export function eventWords(name: string): string {
  return EVENT_WORDS[name] ?? name.replace(/[._]/g, " ");
}

export function shortSha(sha: string): string {
  return sha.slice(0, 9);
}

function pad(number: number): string {
  return String(number).padStart(2, "0");
}

/**
 * A text of several lines in one: what is asked first, then the rest, with the items of a list after each other.
 *
 * *header* is the question in short; the last line of the text may repeat it.
 */
export function oneLine(text: string, header = ""): string {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line && !/^(```|~~~|---+$)/.test(line));
  const isAsked = header.endsWith("?") || (lines.length > 1 && lines.at(-1)?.endsWith("?"));
  const asked = header.endsWith("?") ? header : isAsked ? (lines.pop() ?? "") : "";
  let rest = "";
  for (const line of lines.filter((one) => one !== asked)) {
    const item = /^(?:[-*+]|\d+[.)])\s+(?:\[[ x]\]\s+)?(.*)$/.exec(line)?.[1];
    const isNextItem = item !== undefined && rest !== "" && !/[:.;,!?]$/.test(rest);
    rest += `${rest && (isNextItem ? "; " : " ")}${item ?? line.replace(/^(#+|>)\s+/, "")}`;
  }
  return [asked, rest].filter(Boolean).join(" ").replace(/\*\*|`/g, "");
}
