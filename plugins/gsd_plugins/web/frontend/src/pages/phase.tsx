/** One phase: its plans, summaries, verification with the evidence, gaps and commits. */

import { useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { DetailedPlan, Gap, Phase, PhaseDetail, PhaseList } from "../api/types";
import { count } from "../lib/format";
import { runPath } from "../lib/route";
import { useEventLog, useIsWorked, useResource, useSession } from "../state/hooks";
import { Bar, Elapsed, Empty, Loaded, Skeleton } from "../ui/common";
import { CommitLink, CommitList } from "../ui/commit";
import { PlanGraph } from "../ui/graph";
import { Lanes } from "../ui/lanes";
import { Inline, Markdown } from "../ui/markdown";
import { lasts, phaseState, planState, Status, StatusIcon } from "../ui/status";
import { StepTable } from "../ui/steps";
import { EvidenceMatrix } from "./evidence";
import { AnsweredIn } from "./questions";

export function PhasePage({ session, number }: { session: string; number: string }): ReactElement {
  const found = useResource(addressOf("/sessions/{session}/phases/{phase}", { session, phase: number }));
  const list = useResource(addressOf("/sessions/{session}/phases", { session }));
  const known = list.data?.phases.find((phase) => phase.number === number);
  // Tracing the evidence takes a while; the list of phases is usually there already.
  return (
    <>
      <Neighbors session={session} phases={list.data?.phases ?? []} number={number} />
      {!found.data && !found.error && known ? (
        <>
          <Head session={session} phase={known} />
          <Skeleton lines={4} shape="rows" />
        </>
      ) : (
        <Loaded from={found} lines={4} shape="rows">{(phase) => <Details session={session} phase={phase} list={list.data} />}</Loaded>
      )}
    </>
  );
}

function Neighbors({ session, phases, number }: { session: string; phases: Phase[]; number: string }): ReactElement {
  const index = phases.findIndex((phase) => phase.number === number);
  const [before, after] = index < 0 ? [] : [phases[index - 1], phases[index + 1]];
  return (
    <nav className="neighbors" aria-label="phases">
      <a href={runPath(session)}>All phases</a>
      {before && <a href={runPath(session, "phase", before.number)}>← Phase {before.number}</a>}
      {after && <a href={runPath(session, "phase", after.number)}>Phase {after.number} →</a>}
    </nav>
  );
}

function Head({ session, phase }: { session: string; phase: Omit<Phase, "plans"> }): ReactElement {
  const works = useIsWorked(session);
  const last = useSession(session)?.summary?.last_at ?? phase.started_at;
  return (
    <header className="phase-header">
      <div className="phase-head">
        <h2>
          <span className="muted numeric">Phase {phase.number}</span> {phase.name}
        </h2>
        <Status state={phaseState(phase, phase.status, works)} />
        {phase.started_at && (
          <span className="muted">
            <Elapsed from={phase.started_at} to={phase.completed_at ?? (!lasts(phase) ? phase.started_at : works ? null : last)} />
          </span>
        )}
      </div>
      <p className="goal">
        <Inline text={phase.goal} />
      </p>
      <div className="phase-steps wide">
        {Object.entries(phase.steps).map(([kind, status]) => (
          <span key={kind} className={`phase-step ${status}`}>
            <StatusIcon state={phaseState(phase, status, works)} /> {kind}
          </span>
        ))}
      </div>
    </header>
  );
}

function Details({ session, phase, list }: { session: string; phase: PhaseDetail; list: PhaseList | undefined }): ReactElement {
  const works = useIsWorked(session);
  const steps = useEventLog(session).timeline.stepsOf(works).filter((step) => step.phase === phase.number);
  const done = phase.plans.filter((plan) => plan.status === "done").length;
  const { verification } = phase;
  const idea = useResource(addressOf("/sessions/{session}/requirements", { session }));
  return (
    <>
      <Head session={session} phase={phase} />
      {verification?.gaps.length ? <Gaps gaps={verification.gaps} /> : null}
      <section>
        <h2>
          Plans{" "}
          <span className="muted numeric">
            {done}/{phase.plans.length}
          </span>
        </h2>
        {list && <PlanGraph session={session} list={list} phase={phase.number} onOpen={openPlan} />}
        <Lanes
          session={session}
          steps={steps}
          names={new Map(phase.plans.map((plan) => [plan.id, plan.name]))}
          onOpen={openPlan}
        />
        {phase.plans.length === 0 && <Empty title="No plans yet">The step plan writes them.</Empty>}
        {phase.plans.map((plan) => (
          <PlanDetails key={plan.id} session={session} plan={plan} phase={phase} />
        ))}
      </section>
      <section>
        <h2>
          Verification <Status state={phase.verdict === "missing" ? "pending" : phase.verdict} {...(phase.verdict === "missing" ? { word: "not verified" } : {})} />
        </h2>
        {verification ? (
          <>
            <Score score={verification.score} />
            {phase.requirements_traced.length > 0 && (
              <EvidenceMatrix session={session} requirements={phase.requirements_traced} statements={idea.data?.statements ?? []} isOnePhase />
            )}
            {verification.human.length > 0 && <HumanChecks checks={verification.human} />}
            <Document title="VERIFICATION.md" text={verification.text} />
          </>
        ) : (
          <p className="muted">Not verified yet.</p>
        )}
      </section>
      {(phase.context || phase.research || phase.criteria.length > 0) && (
        <section>
          <h2>Context</h2>
          {phase.criteria.length > 0 && (
            <>
              <h3>Success criteria</h3>
              <ol>
                {phase.criteria.map((text) => (
                  <li key={text}>
                    <Inline text={text} />
                  </li>
                ))}
              </ol>
            </>
          )}
          {phase.context && <Document title="CONTEXT.md" text={phase.context} />}
          {phase.research && <Document title="RESEARCH.md" text={phase.research} />}
        </section>
      )}
      {steps.length > 0 && (
        <section>
          <h2>Steps</h2>
          <StepTable session={session} steps={steps} />
        </section>
      )}
      <section>
        <h2>Commits</h2>
        <CommitList session={session} commits={phase.commits} />
      </section>
      <AnsweredIn session={session} />
    </>
  );
}

function openPlan(id: string): void {
  const plan = document.getElementById(`plan-${id}`);
  if (!(plan instanceof HTMLDetailsElement)) return;
  plan.open = true;
  plan.scrollIntoView({ block: "start" });
  plan.querySelector("summary")?.focus({ preventScroll: true });
}

function Score({ score }: { score: string }): ReactElement | null {
  const [, have, all] = /(\d+)\/(\d+)/.exec(score) ?? [];
  if (!all) return score ? <p>{score}</p> : null;
  const share = (Number(have) / Math.max(1, Number(all))) * 100;
  return (
    <div className="score">
      <span className="numeric">{score}</span>
      <Bar value={share} label="verified must-haves" tone={share === 100 ? "good" : "warn"} />
    </div>
  );
}

function Gaps({ gaps }: { gaps: Gap[] }): ReactElement {
  return (
    <section className="gaps">
      <h2>
        <Status state="gaps_found" word={count(gaps.length, "gap")} />
      </h2>
      <ul>
        {gaps.map((gap, index) => (
          <li key={index}>
            <p>
              <strong>
                <Inline text={gap.truth} />
              </strong>
            </p>
            <p>
              <Inline text={gap.reason} />
            </p>
            {gap.missing.length > 0 && <p className="muted">Missing: {gap.missing.join("; ")}</p>}
            <p className="muted">
              {[gap.about, gap.found_by && `found by ${gap.found_by}`].filter(Boolean).join(" · ")}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function PlanDetails({ session, plan, phase }: { session: string; plan: DetailedPlan; phase: PhaseDetail }): ReactElement {
  const isDone = plan.status === "done";
  const state = planState(plan, phase);
  const isOpen = !["done", "ready", "waiting", "skipped"].includes(plan.status);
  return (
    <details className="plan" open={isOpen} id={`plan-${plan.id}`}>
      <summary data-item="">
        <StatusIcon state={state} />
        <span className="mono">{plan.id}</span>
        <strong>{plan.name}</strong>
        {plan.gap_closure && <span className="badge">gap closure</span>}
        <span className="muted push">
          wave {plan.wave} · {isDone ? "" : `${plan.tasks.filter((task) => task.commit).length}/`}
          {count(plan.tasks.length, "task")}
        </span>
      </summary>
      <div className="plan-body">
        <p>
          <Inline text={plan.objective} />
        </p>
        <ol className="tasks">
          {plan.tasks.map((task) => (
            <li key={task.number}>
              <StatusIcon state={task.commit ? "completed" : isDone ? (phase.verdict === "passed" ? "completed" : "claimed") : "pending"} />
              <span>{task.name}</span>
              {task.commit && <CommitLink session={session} sha={task.commit} />}
            </li>
          ))}
        </ol>
        {plan.truths.length > 0 && (
          <>
            <h3>Must be true</h3>
            <ul>
              {plan.truths.map((truth) => (
                <li key={truth.id}>
                  <Inline text={truth.text} />{" "}
                  <span className="muted mono">{[truth.id, [truth.serves].flat().join(", ")].filter(Boolean).join(" → ")}</span>
                </li>
              ))}
            </ul>
          </>
        )}
        <p className="muted">
          {plan.requirements.length > 0 && <>Requirements: {plan.requirements.join(", ")}. </>}
          {plan.depends_on.length > 0 && <>After: {plan.depends_on.join(", ")}. </>}
          Files: {plan.files_modified.join(", ") || "none listed"}.
        </p>
        {plan.summary && <Document title="SUMMARY.md" text={plan.summary} />}
        {plan.text && <Document title="PLAN.md" text={plan.text} />}
      </div>
    </details>
  );
}

function HumanChecks({ checks }: { checks: NonNullable<PhaseDetail["verification"]>["human"] }): ReactElement {
  return (
    <>
      <h3>Checks by a person</h3>
      <ul>
        {checks.map((check) => (
          <li key={check.test}>
            <strong>{check.test}</strong> <Status state={check.result || "pending"} />
            <p className="muted">Expected: {check.expected}</p>
            {check.why && <p className="muted">Why a person: {check.why}</p>}
          </li>
        ))}
      </ul>
    </>
  );
}

/** A planning file, rendered when it is opened. */
function Document({ title, text }: { title: string; text: string }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="document" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <Markdown text={text} />}
    </details>
  );
}
