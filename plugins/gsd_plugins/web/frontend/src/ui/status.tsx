/** A state as an icon and a word, never by color alone. */

import type { ReactElement } from "react";

export type Tone = "good" | "bad" | "busy" | "ask" | "idle" | "warn";

interface Look {
  tone: Tone;
  icon: keyof typeof ICONS;
  word: string;
}

const ICONS = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4.5 4.5l7 7m0-7l-7 7",
  dot: "M8 4.2a3.8 3.8 0 1 1 0 7.6a3.8 3.8 0 1 1 0-7.6z",
  play: "M6 4.5l5.5 3.5L6 11.5z",
  ask: "M5.8 6a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.4M8 12h.01",
  pause: "M6 4.5v7m4-7v7",
  skip: "M4.5 4.5L8.5 8l-4 3.5m4-7v7m3.5-7v7",
  stop: "M5 5h6v6H5z",
  warn: "M8 4v5m0 2.5h.01",
  claim: "M8 3.6a4.4 4.4 0 1 1 0 8.8a4.4 4.4 0 1 1 0-8.8zM6 8h4",
  half: "M8 3.6a4.4 4.4 0 1 1 0 8.8a4.4 4.4 0 1 1 0-8.8zM8 5.2a2.8 2.8 0 0 1 0 5.6zM9 6v4",
} as const;

const LOOKS: Record<string, Look> = {
  completed: { tone: "good", icon: "check", word: "completed" },
  done: { tone: "good", icon: "check", word: "done" },
  passed: { tone: "good", icon: "check", word: "passed" },
  holds: { tone: "good", icon: "check", word: "holds" },
  Complete: { tone: "good", icon: "check", word: "complete" },
  active: { tone: "good", icon: "check", word: "active" },
  running: { tone: "busy", icon: "play", word: "running" },
  in_progress: { tone: "busy", icon: "half", word: "in progress" },
  result: { tone: "busy", icon: "play", word: "writing" },
  waiting_checkpoint: { tone: "ask", icon: "ask", word: "waits for you" },
  human_needed: { tone: "ask", icon: "ask", word: "a person has to look" },
  parked: { tone: "ask", icon: "ask", word: "waits for an answer" },
  waiting: { tone: "warn", icon: "pause", word: "waits" },
  idle: { tone: "idle", icon: "pause", word: "queued" },
  pending: { tone: "idle", icon: "dot", word: "pending" },
  ready: { tone: "idle", icon: "dot", word: "ready" },
  begun: { tone: "idle", icon: "half", word: "begun" },
  merging: { tone: "busy", icon: "play", word: "merging" },
  conflict: { tone: "warn", icon: "warn", word: "conflict" },
  delayed: { tone: "warn", icon: "pause", word: "tried again later" },
  Error: { tone: "bad", icon: "warn", word: "not traced" },
  "In Progress": { tone: "busy", icon: "half", word: "in progress" },
  Blocked: { tone: "bad", icon: "warn", word: "blocked" },
  not_shown: { tone: "warn", icon: "warn", word: "not shown" },
  Pending: { tone: "idle", icon: "dot", word: "pending" },
  missing: { tone: "bad", icon: "cross", word: "missing" },
  fails: { tone: "bad", icon: "cross", word: "fails" },
  partial: { tone: "warn", icon: "half", word: "holds in part" },
  uncertain: { tone: "warn", icon: "warn", word: "uncertain" },
  human: { tone: "ask", icon: "ask", word: "a person has to look" },
  open: { tone: "idle", icon: "dot", word: "open" },
  unverified: { tone: "warn", icon: "warn", word: "unverified" },
  stale: { tone: "warn", icon: "warn", word: "outdated" },
  claimed: { tone: "idle", icon: "claim", word: "claimed" },
  assumed: { tone: "warn", icon: "warn", word: "assumed" },
  gaps_found: { tone: "bad", icon: "warn", word: "gaps found" },
  failed: { tone: "bad", icon: "cross", word: "failed" },
  violated: { tone: "bad", icon: "cross", word: "violated" },
  interrupted: { tone: "warn", icon: "stop", word: "interrupted" },
  stopped: { tone: "idle", icon: "stop", word: "stopped" },
  skipped: { tone: "idle", icon: "skip", word: "skipped" },
};

interface PhaseLike {
  status: string;
  verdict: string;
  started_at: string | null;
}

/**
 * A phase that is only marked as complete, or whose work nobody verified, is not shown as done, nor are its steps.
 * Nothing of it is in progress if no process works on it.
 */
export function phaseState(phase: PhaseLike, step = phase.status, isWorked = true): string {
  if (step === "in_progress" && !isWorked) return "begun";
  const isShown = phase.verdict === "passed" || (phase.status !== "completed" && phase.started_at);
  return step === "completed" && !isShown ? "claimed" : step;
}

/** Whether the phase has begun and not ended: one of its plans may have failed while others go on. */
export const lasts = (phase: PhaseLike): boolean => phase.status === "in_progress" || phase.status === "failed";

/** A plan with a SUMMARY.md alone, such as one of an imported project, is said to be done: nothing shows it. */
export function planState(plan: { status: string; tasks: readonly { commit: string | null }[] }, phase: { verdict: string }): string {
  const isShown = phase.verdict === "passed" || plan.tasks.some((task) => task.commit);
  if (plan.status === "waiting") return "pending";
  return plan.status === "done" && !isShown ? "claimed" : plan.status;
}

/** A state that a later version of the server knows, or none at all, is shown, too. */
export function lookOf(state: string | null | undefined): Look {
  if (!state) return { tone: "idle", icon: "dot", word: "not yet" };
  return LOOKS[state] ?? { tone: "idle", icon: "dot", word: state.replaceAll("_", " ") };
}

export function Icon({ name, className = "" }: { name: keyof typeof ICONS; className?: string }): ReactElement {
  return (
    <svg className={`icon ${className}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

export function StatusIcon({ state }: { state: string | null }): ReactElement {
  const look = lookOf(state);
  return (
    <span className={`status-icon tone-${look.tone}`} role="img" aria-label={look.word} title={look.word}>
      <Icon name={look.icon} />
    </span>
  );
}

export function Status({ state, word }: { state: string | null; word?: string }): ReactElement {
  const look = lookOf(state);
  return (
    <span className={`status tone-${look.tone}`}>
      <span className="status-icon">
        <Icon name={look.icon} />
      </span>
      {word ?? look.word}
    </span>
  );
}
