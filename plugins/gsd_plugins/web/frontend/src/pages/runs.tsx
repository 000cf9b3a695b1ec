/** The first page: what is going on, does anyone need me, what did it cost. */

import { useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { Session, Summary } from "../api/types";
import { count, folderName, money, oneLine, stepWords } from "../lib/format";
import { runPath } from "../lib/route";
import { isEnded, runSummary, useHub, useResource } from "../state/hooks";
import { Ago, Chips, Elapsed, Empty, Skeleton, toggled } from "../ui/common";
import { Icon, Status } from "../ui/status";
import { WaitingQuestions } from "./questions";

const GROUPS = [
  ["active", "active"],
  ["ended", "ended"],
] as const;

/** Why the session waits or ended. The summary is about the project's run, which a failed start does not change. */
export function whyItEnded(session: Session): string {
  if (session.reason) return session.reason;
  if (session.state === "completed") return session.summary?.reason ?? "";
  return session.state === "failed" ? `ended with exit code ${session.exit ?? "unknown"}; the log says why` : "";
}

export function RunsPage(): ReactElement {
  const hub = useHub();
  const [chosen, setChosen] = useState<ReadonlySet<"active" | "ended">>(new Set());
  const sessions = ranked(hub.sessions);
  const shown = sessions.filter((session) => !chosen.size || chosen.has(isEnded(session) ? "ended" : "active"));
  const counts = { active: 0, ended: 0 };
  for (const session of sessions) counts[isEnded(session) ? "ended" : "active"] += 1;
  return (
    <>
      <FailedRuns />
      <WaitingQuestions />
      <div className="page-head">
        <h1>Runs</h1>
        {sessions.length > 0 && (
          <span className="muted numeric" title="what the runs of all listed projects have cost on this day">
            {money(spentToday(sessions))} today
          </span>
        )}
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

/** The runs that failed and that nothing has continued since: before everything else. */
function FailedRuns(): ReactElement | null {
  const { sessions } = useHub();
  const failed = ranked(sessions).filter((session) => rank(session, sessions) === 0);
  if (!failed.length) return null;
  return (
    <ul className="waiting failed" aria-label="failed runs">
      {failed.slice(0, 5).map((session) => (
        <li key={session.id}>
          <a href={runPath(session.id)} data-item="">
            <Icon name="cross" className="tone-bad" />
            <strong>{folderName(session.project)} failed</strong>
            <span className="waiting-text">{whyItEnded(session).split("\n")[0]}</span>
            <span>Open</span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** What failed first, then what waits for a person, then what is active, then what has ended; the newest first. */
export function ranked(sessions: readonly Session[]): Session[] {
  return [...sessions].reverse().sort((a, b) => rank(a, sessions) - rank(b, sessions));
}

function rank(session: Session, sessions: readonly Session[]): number {
  const isLast = sessions.findLast((one) => one.project === session.project) === session;
  if (session.state === "failed" && isLast && session.summary?.status !== "running") return 0;
  if (session.state === "waiting_checkpoint") return 1;
  return isEnded(session) ? 3 : 2;
}

/** The dollars of this day: each project once, because its sessions share a journal. */
export function spentToday(sessions: readonly Session[]): number {
  return sessions.reduce((sum, session) => sum + Number(session.summary?.dollars_today ?? 0), 0);
}

/** By whom, where and how protected a run works; what is not what one would expect is said first. */
export function About({ session }: { session: Session }): ReactElement {
  const summary = runSummary(useHub().sessions, session);
  return (
    <span className="run-about muted">
      {summary?.agent === "rehearsal" && <span className="badge warn">rehearsal</span>}
      {summary && !summary.sandbox.name && summary.status !== "none" && (
        <span className="badge warn" title={summary.sandbox.why}>
          no sandbox
        </span>
      )}
      {summary?.agent && summary.agent !== "rehearsal" && <span>{summary.agent}</span>}
      {summary?.branch && <span className="mono">{summary.branch}</span>}
      <span className="mono path">{session.project}</span>
    </span>
  );
}

/** How many phases are complete and how many have plans; percentages of plans would count what nobody has planned. */
export function Progress({ summary }: { summary: Summary | null | undefined }): ReactElement {
  if (!summary) return <span className="muted">–</span>;
  if (!summary.phases_total) return <span className="muted">no phases yet</span>;
  const { phases_total: total, phases_complete: complete, phases_planned: planned, plans } = summary;
  const unplanned = total - Math.max(complete, planned);
  const words = `${complete} of ${count(total, "phase")} complete`;
  return (
    <>
      <span className="bar" role="progressbar" aria-valuenow={complete} aria-valuemin={0} aria-valuemax={total} aria-label={words}>
        <span className="bar-fill" style={{ width: `${(complete / total) * 100}%` }} />
        <span className="bar-fill planned" style={{ width: `${((total - unplanned - complete) / total) * 100}%` }} />
      </span>
      <span className="muted numeric">
        {complete} of {count(total, "phase")}
        {unplanned > 0 && ` (${unplanned} unplanned)`}
        {plans.total > 0 && `, ${plans.done}/${count(plans.total, "plan")}`}
      </span>
    </>
  );
}

/** The command line with short names of files: the folders in front of them say little and hide the rest. */
function commandOf(session: Session): string {
  return ["gsd", ...session.command.map((word) => word.replace(/^(--[\w-]+=)?\/.*\//, "$1"))].join(" ");
}

function RunRow({ session }: { session: Session }): ReactElement {
  const summary = runSummary(useHub().sessions, session);
  const asked = useResource(addressOf("/questions")).data?.questions.find((one) => one.id === session.checkpoint);
  const budget = summary?.budget ?? null;
  const steps = summary?.steps ?? [];
  const working = steps.filter((step) => step.status === "running");
  // What one at work waits for besides is less than what it does, and its question says more than a reason.
  const reason = session.agents || asked ? "" : whyItEnded(session);
  return (
    <li>
      <a className="run-row" href={runPath(session.id)} data-item="">
        <span className="run-name">
          <strong title={session.project}>{folderName(session.project)}</strong>
          <span className="muted numeric">{session.id}</span>
        </span>
        <span className="run-state">
          <Status state={session.state} />
          {(session.summary?.questions ?? 0) > (session.state === "waiting_checkpoint" ? 1 : 0) && (
            <span className="badge ask">
              <Icon name="ask" />
              {session.summary?.questions}
            </span>
          )}
        </span>
        <span className="run-what">
          {session.problem && <span className="tone-bad">cannot be read: {session.problem}</span>}
          {!reason && asked && working.length > 0 && <span className="muted">{working.length} at work · </span>}
          {session.problem ? null : reason || (asked && oneLine(asked.text, asked.header)) || steps.map((step) => stepWords(step.id)).join(", ") || <code>{commandOf(session)}</code>}
          {session.agents && session.reason && <span className="muted"> · {session.reason}</span>}
        </span>
        <span className="run-progress">
          <Progress summary={summary} />
        </span>
        <span className="run-cost numeric">
          {money(summary?.cost.dollars, summary?.cost.basis)}
          {budget && <span className="muted"> / ${budget}</span>}
        </span>
        <span className="run-time muted">
          <Since session={session} />
        </span>
        <About session={session} />
      </a>
    </li>
  );
}

/** Since when it is in its state: how long it runs, waits or has ended. */
function Since({ session }: { session: Session }): ReactElement {
  const asked = session.summary?.waits_since;
  if (isEnded(session)) return <Ago at={session.ended_at} />;
  if (session.state === "idle") return <>queued <Ago at={session.created_at} /></>;
  if (session.state === "waiting_checkpoint" && asked) return <>waits <Elapsed from={asked} to={null} /></>;
  return <Elapsed from={session.started_at ?? session.created_at} to={null} />;
}
