/** One run: its head with tabs, and the overview with phase board, plan graph and live activity. */

import { lazy, Suspense, useEffect, useRef, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { Phase, Session, Summary } from "../api/types";
import { dateAndTime, folderName, money, stepWords, timeOfDay } from "../lib/format";
import { RUN_TABS, runPath, type RunTab } from "../lib/route";
import { isEnded, runSummary, useEventLog, useHub, useIsWorked, useResource, useSession } from "../state/hooks";
import { isInProgress, type StepRow } from "../state/timeline";
import { Ago, Bar, ConfirmButton, Elapsed, Empty, Loaded, PlainText, Skeleton } from "../ui/common";
import { PlanGraph } from "../ui/graph";
import { Lanes } from "../ui/lanes";
import { Panels } from "../ui/panels";
import { ResumeButton } from "../ui/resume";
import { Icon, lasts, phaseState, Status, StatusIcon } from "../ui/status";
import { StepTable } from "../ui/steps";
import { CostPage } from "./cost";
import { EvidencePage } from "./evidence";
import { HistoryPage } from "./history";
import { LogPage } from "./log";
import { PhasePage } from "./phase";
import { AnsweredIn, OpenQuestions } from "./questions";
import { About, Progress, whyItEnded } from "./runs";

const TerminalPage = lazy(() => import("./terminal"));

const TAB_NAMES: Record<(typeof RUN_TABS)[number], string> = {
  overview: "Overview",
  evidence: "Evidence",
  history: "Events",
  log: "Log",
  terminal: "Terminal",
  cost: "Cost",
};

export function RunPage({ id, tab, phase }: { id: string; tab: RunTab; phase: string }): ReactElement {
  const hub = useHub();
  const session = useSession(id);
  const tabs = useRef<HTMLElement>(null);
  const isShown = session !== undefined;
  useEffect(() => {
    // On a phone, not all tabs fit; scrollIntoView would move the page, too.
    const bar = tabs.current;
    const current = bar?.querySelector<HTMLElement>("[aria-current]");
    if (bar && current) bar.scrollLeft = current.offsetLeft - bar.offsetLeft - (bar.clientWidth - current.offsetWidth) / 2;
  }, [tab, isShown]);
  if (!session)
    return hub.isLoaded ? (
      <Empty title={`No run ${id}`}>
        It may have been removed. <a href="#/">All runs</a>
      </Empty>
    ) : (
      <Skeleton lines={4} shape="board" />
    );
  return (
    <>
      <RunHead session={session} />
      {/* Chromium leaves a tab that is half in sight where it is. */}
      <nav className="tabs" aria-label="views of the run" ref={tabs} onFocus={(event) => event.target.scrollIntoView({ block: "nearest", inline: "nearest" })}>
        {RUN_TABS.map((name) => (
          <a key={name} href={runPath(id, name)} aria-current={name === tab || (name === "overview" && tab === "phase") ? "page" : undefined}>
            {TAB_NAMES[name]}
          </a>
        ))}
      </nav>
      <RunView session={session} tab={tab} phase={phase} />
    </>
  );
}

function RunView({ session, tab, phase }: { session: Session; tab: RunTab; phase: string }): ReactElement {
  switch (tab) {
    case "phase":
      return <PhasePage session={session.id} number={phase} />;
    case "evidence":
      return <EvidencePage session={session.id} />;
    case "history":
      return <HistoryPage session={session.id} />;
    case "log":
      return <LogPage session={session.id} />;
    case "terminal":
      return (
        <Suspense fallback={<Skeleton lines={8} shape="stream" />}>
          <TerminalPage session={session} />
        </Suspense>
      );
    case "cost":
      return <CostPage session={session.id} />;
    case "overview":
      return <Overview session={session} />;
  }
}

function RunHead({ session }: { session: Session }): ReactElement {
  const hub = useHub();
  const summary = runSummary(hub.sessions, session);
  const canControl = hub.scope === "control";
  const stop = (): void => void hub.act(() => hub.client.post("/sessions/{session}/stop", { session: session.id }, {}));
  const remove = async (): Promise<void> => {
    const done = await hub.act(async () => {
      await hub.client.remove("/sessions/{session}", { session: session.id });
      return true;
    });
    if (done) location.hash = "#/";
  };
  // A later session of the project speaks for its run, and continues it.
  const others = hub.sessions.filter((one) => one.project === session.project && one !== session);
  const later = others.findLast((one) => Number(one.id.slice(1)) > Number(session.id.slice(1)));
  const isRunnable = isEnded(session) && !later && summary && summary.status !== "done" && summary.status !== "running";
  return (
    <header className="run-head">
      <div className="run-title">
        <h1>{folderName(session.project)}</h1>
        <Status state={session.state} />
        <span className="actions">
          {!isEnded(session) && (
            <ConfirmButton confirm="Stop the run?" onConfirm={stop} disabled={!canControl}>
              Stop
            </ConfirmButton>
          )}
          {isRunnable && <ResumeButton session={session} />}
          {isEnded(session) && (
            <ConfirmButton confirm="Remove from the list?" onConfirm={() => void remove()} disabled={!canControl}>
              Remove
            </ConfirmButton>
          )}
        </span>
      </div>
      <About session={session} />
      {later && (
        <p className="muted">
          A later session works on this project: <a href={runPath(later.id)}>{later.id}</a>
        </p>
      )}
      <Figures session={session} summary={summary} />
      {!session.agents && whyItEnded(session) && (
        <div className={`run-reason ${session.state}`}>
          <PlainText text={whyItEnded(session)} lines={2} />
          {session.state === "failed" && <a href={runPath(session.id, "log")}>Open the log</a>}
        </div>
      )}
    </header>
  );
}

function Figures({ session, summary }: { session: Session; summary: Summary | null }): ReactElement {
  const budget = Number(summary?.budget ?? 0);
  const spent = Number(summary?.cost.dollars ?? 0);
  const share = budget > 0 ? (spent / budget) * 100 : 0;
  return (
    <dl className="figures">
      <div>
        <dt>Elapsed</dt>
        <dd>
          <Elapsed from={session.started_at ?? session.created_at} to={session.ended_at} />
        </dd>
      </div>
      {session.agents && (
        <div title="how many agents it may have at a time: the slots of sessions are for all of them">
          <dt>Slots</dt>
          <dd className="numeric">
            {session.agents}
            {session.reason && <span className="muted"> · {session.reason}</span>}
          </dd>
        </div>
      )}
      <div className="wide">
        <dt>Progress</dt>
        <dd className="numeric">
          <Progress summary={summary} />
        </dd>
      </div>
      <div className="wide">
        <dt>Cost of this run</dt>
        <dd className="numeric">
          {money(summary?.cost.dollars, summary?.cost.basis)}
          <span className="muted">{budget > 0 ? ` of $${summary?.budget} (${Math.round(share)} %)` : ""}</span>
          {summary && <span className="muted">, {money(summary.dollars_today)} today</span>}
          {budget > 0 && <Bar value={share} label="budget used" tone={share >= 90 ? "bad" : share >= 70 ? "warn" : "accent"} />}
        </dd>
      </div>
      {session.state === "waiting_checkpoint" && summary?.waits_since ? (
        <div>
          <dt>Waiting since</dt>
          <dd title={summary.waits_since}>
            {dateAndTime(summary.waits_since)}, <Ago at={summary.waits_since} />
          </dd>
        </div>
      ) : (
        <div>
          <dt>Last event</dt>
          <dd>
            <Ago at={summary?.last_at ?? session.updated_at} />
          </dd>
        </div>
      )}
      <div className="run-id">
        <dt>Session</dt>
        <dd className="numeric">
          <span title={session.run ? `run ${session.run}` : undefined}>{session.id}</span>
        </dd>
      </div>
    </dl>
  );
}

function Overview({ session }: { session: Session }): ReactElement {
  const phases = useResource(addressOf("/sessions/{session}/phases", { session: session.id }));
  const log = useEventLog(session.id);
  const works = useIsWorked(session.id);
  const steps = log.timeline.stepsOf(works);
  return (
    <>
      <OpenQuestions session={session.id} />
      <Now session={session} />
      <Loaded from={phases} lines={session.summary?.phases_total ? Math.min(session.summary.phases_total, 6) : 3} shape="board">
        {(list) =>
          list.phases.length ? (
            <>
              <PhaseBoard session={session.id} phases={list.phases} steps={steps} until={works ? null : log.timeline.lastAt} />
              {list.graph.nodes.length > 1 && (
                <section>
                  <h2>{list.phases.some((phase) => phase.plans.length) ? "Plans" : "Order of the phases"}</h2>
                  <PlanGraph session={session.id} list={list} />
                  <Lanes session={session.id} steps={steps} names={planNames(list.phases)} />
                </section>
              )}
            </>
          ) : (
            <Empty title="No roadmap yet">The first step of a run writes the roadmap from the idea.</Empty>
          )
        }
      </Loaded>
      {/* What keeps the phases from being read is said once, above. */}
      {phases.error && !phases.data ? null : (
        <section>
          <h2>Steps</h2>
          {log.error && !log.isComplete ? <p className="stale">{log.error}</p> : null}
          {log.isComplete || steps.length ? <StepTable session={session.id} steps={steps} /> : log.error ? null : <Skeleton lines={4} />}
        </section>
      )}
      {phases.data ? <Panels session={session.id} /> : null}
      <AnsweredIn session={session.id} />
    </>
  );
}

/** Every step in progress, with what its agent did last. */
function Now({ session }: { session: Session }): ReactElement | null {
  const log = useEventLog(session.id);
  const phases = useResource(addressOf("/sessions/{session}/phases", { session: session.id }));
  const names = planNames(phases.data?.phases ?? []);
  const works = useIsWorked(session.id);
  const running = log.timeline.stepsOf(works).filter(isInProgress);
  if (!works || !running.length) return null;
  return (
    <section className="now" aria-label="in progress">
      {running.map((step) => {
        const last = log.timeline.lastActivity.get(step.id);
        return (
          <div key={step.id} className="now-step">
            <StatusIcon state={step.status} />
            <span className="now-name">
              <strong title={step.id}>{stepWords(step.id)}</strong> {names.get(step.plan)}
            </span>
            <Elapsed from={step.startedAt} to={null} />
            <span className="now-activity">
              {last ? (
                <>
                  <span className="muted numeric">{timeOfDay(last.at)}</span> {String(last.data.words ?? "")}
                </>
              ) : (
                <span className="muted">{step.note || `started at ${timeOfDay(step.startedAt)}`}</span>
              )}
            </span>
          </div>
        );
      })}
    </section>
  );
}

/** *until* is when the last thing happened, if no process works on the phases any more. */
function PhaseBoard({ session, phases, steps, until }: { session: string; phases: Phase[]; steps: StepRow[]; until: string | null }): ReactElement {
  return (
    <section>
      <h2>Phases</h2>
      {boards(phases).map(({ isBrief, shown }) => (
        <ol
          key={shown[0]?.number}
          className={`board ${isBrief ? "brief" : shown.length > 4 ? "many" : ""}`}
          style={{ maxWidth: isBrief ? "none" : shown.length * WIDEST_CARD }}
        >
          {shown.map((phase) => (
            <li key={phase.number}>
              <a className={`phase-card ${phase.status} ${isBrief ? "brief" : ""}`} href={runPath(session, "phase", phase.number)} data-item="">
                <span className="phase-title">
                  <span className="numeric muted">{phase.number}</span>
                  <strong>{phase.name}</strong>
                  <StatusIcon state={phaseState(phase, phase.status, until === null)} />
                </span>
                <span className="phase-steps">
                  {(isBrief ? [] : Object.entries(phase.steps)).map(([kind, status]) => (
                    <span key={kind} className={`phase-step ${status}`}>
                      <StatusIcon state={phaseState(phase, status, until === null)} /> {kind}
                      {kind === "execute" && phase.plans.length > 0 && (
                        <span className="numeric muted">
                          {phase.plans.filter((plan) => plan.status === "done").length}/{phase.plans.length}
                        </span>
                      )}
                    </span>
                  ))}
                </span>
                <span className="phase-foot muted">
                  {phaseState(phase) === "claimed" && <span>claimed, not verified</span>}
                  {phase.status === "pending" && !phase.plans.length && <span>not planned</span>}
                  {phase.gap_rounds > 0 && (
                    <span>
                      <Icon name="warn" /> {phase.gap_rounds} gap {phase.gap_rounds === 1 ? "round" : "rounds"}
                    </span>
                  )}
                  <span className="numeric">{cost(steps, phase.number)}</span>
                  {phase.started_at && <Elapsed from={phase.started_at} to={phase.completed_at ?? (lasts(phase) ? until : phase.started_at)} />}
                </span>
              </a>
            </li>
          ))}
        </ol>
      ))}
    </section>
  );
}

const WIDEST_CARD = 480;

/**
 * The phases in their order, in groups of cards of the same height.
 *
 * Of many phases, those that are not in progress are one line each, so that the others are in sight.
 */
export function boards(phases: Phase[]): { isBrief: boolean; shown: Phase[] }[] {
  const found: { isBrief: boolean; shown: Phase[] }[] = [];
  for (const phase of phases) {
    const isBrief =
      phases.length > 6 && (phase.status === "completed" || phase.status === "pending") && phase.gap_rounds === 0;
    const last = found.at(-1);
    if (last?.isBrief === isBrief) last.shown.push(phase);
    else found.push({ isBrief, shown: [phase] });
  }
  return found;
}

function cost(steps: StepRow[], phase: string): string {
  const own = steps.filter((step) => step.phase === phase);
  return own.length ? money(own.reduce((sum, step) => sum + step.dollars, 0)) : "";
}

function planNames(phases: Phase[]): ReadonlyMap<string, string> {
  return new Map(phases.flatMap((phase) => phase.plans.map((plan) => [plan.id, plan.name] as const)));
}
