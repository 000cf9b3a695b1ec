/** The first page: what is going on, does anyone need me, what did it cost. */

import { useState, type ReactElement } from "react";

import type { Session } from "../api/types";
import { folderName, money } from "../lib/format";
import { runPath } from "../lib/route";
import { useHub } from "../state/hooks";
import { Ago, Bar, Chips, Elapsed, Empty, Skeleton, toggled } from "../ui/common";
import { Icon, Status } from "../ui/status";
import { WaitingQuestions } from "./questions";

const GROUPS = [
  ["active", "active"],
  ["ended", "ended"],
] as const;

export function isEnded(session: Session): boolean {
  return ["completed", "failed", "stopped"].includes(session.state);
}

/** Why the session waits or ended. The summary is about the project's run, which a failed start does not change. */
export function whyItEnded(session: Session): string {
  if (session.reason) return session.reason;
  if (session.state === "completed") return session.summary?.reason ?? "";
  return session.state === "failed" ? `ended with exit code ${session.exit ?? "unknown"}; the log says why` : "";
}

export function RunsPage(): ReactElement {
  const hub = useHub();
  const [chosen, setChosen] = useState<ReadonlySet<"active" | "ended">>(new Set());
  const sessions = [...hub.sessions].reverse().sort((a, b) => rank(a) - rank(b));
  const shown = sessions.filter((session) => !chosen.size || chosen.has(isEnded(session) ? "ended" : "active"));
  const counts = { active: 0, ended: 0 };
  for (const session of sessions) counts[isEnded(session) ? "ended" : "active"] += 1;
  return (
    <>
      <WaitingQuestions />
      <div className="page-head">
        <h1>Runs</h1>
        {sessions.length > 3 && (
          <Chips
            label="state"
            options={GROUPS.map(([value, word]) => [value, word, counts[value]] as const)}
            chosen={chosen}
            onToggle={(value) => setChosen(toggled(chosen, value))}
          />
        )}
        <a className="button primary push" href="#/new">
          Start a run
        </a>
      </div>
      {!hub.isLoaded ? (
        <Skeleton lines={4} shape="rows" />
      ) : sessions.length === 0 ? (
        <Empty title="No runs yet">
          Start one here, or in a terminal: <code>gsd run idea.md --bg</code>. Runs that were started without{" "}
          <code>--bg</code> are not listed.
        </Empty>
      ) : (
        <ul className="runs">
          {shown.map((session) => (
            <RunRow key={session.id} session={session} />
          ))}
        </ul>
      )}
    </>
  );
}

/** Those that wait for a person first, then the active ones, then the ended ones. */
function rank(session: Session): number {
  if (session.state === "waiting_checkpoint") return 0;
  return isEnded(session) ? 2 : 1;
}

/** The command line with short names of files: the folders in front of them say little and hide the rest. */
function commandOf(session: Session): string {
  return ["gsd", ...session.command.map((word) => word.replace(/^(--[\w-]+=)?\/.*\//, "$1"))].join(" ");
}

function RunRow({ session }: { session: Session }): ReactElement {
  const { summary } = session;
  const budget = summary?.budget ?? null;
  const steps = summary?.steps ?? [];
  const reason = whyItEnded(session);
  return (
    <li>
      <a className="run-row" href={runPath(session.id)} data-item="">
        <span className="run-name">
          <strong title={session.project}>{folderName(session.project)}</strong>
          <span className="muted numeric">{session.id}</span>
        </span>
        <span className="run-state">
          <Status state={session.state} />
          {(summary?.questions ?? 0) > (session.state === "waiting_checkpoint" ? 1 : 0) && (
            <span className="badge ask">
              <Icon name="ask" />
              {summary?.questions}
            </span>
          )}
        </span>
        <span className="run-what">
          {session.problem && <span className="tone-bad">cannot be read: {session.problem}</span>}
          {session.problem ? null : reason || steps.map((step) => step.id).join(", ") || <code>{commandOf(session)}</code>}
        </span>
        <span className="run-progress">
          {summary && summary.phases_total > 0 ? (
            <>
              <Bar value={summary.progress ?? 0} label="progress" tone={session.state === "failed" ? "bad" : "accent"} />
              <span className="muted numeric">
                {summary.plans.done}/{summary.plans.total} plans, {summary.phases_complete}/{summary.phases_total} phases
              </span>
            </>
          ) : (
            <span className="muted">no phases yet</span>
          )}
        </span>
        <span className="run-cost numeric">
          {money(summary?.cost.dollars, summary?.cost.basis)}
          {budget && <span className="muted"> / ${budget}</span>}
        </span>
        <span className="run-time muted">
          {isEnded(session) ? (
            <Ago at={session.ended_at} />
          ) : (
            <Elapsed from={session.started_at ?? session.created_at} to={null} />
          )}
        </span>
      </a>
    </li>
  );
}
