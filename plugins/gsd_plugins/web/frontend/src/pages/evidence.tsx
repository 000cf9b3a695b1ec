/** Why the result can be trusted: requirement, the idea's words, plans, commits, checks, verdict. */

import { useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { Requirement, RequirementList } from "../api/types";
import { count } from "../lib/format";
import { runPath } from "../lib/route";
import { useResource } from "../state/hooks";
import { Chips, Empty, Loaded, toggled } from "../ui/common";
import { CommitLink } from "../ui/commit";
import { Inline } from "../ui/markdown";
import { Proof } from "../ui/proof";
import { lookOf, Status, StatusIcon } from "../ui/status";

export function EvidencePage({ session }: { session: string }): ReactElement {
  const found = useResource(addressOf("/sessions/{session}/requirements", { session }));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isOpen, setOpen] = useState<boolean>();
  return (
    <Loaded from={found} lines={8} shape="rows">
      {({ requirements, statements = [] }) => {
        const states = [...new Set(requirements.map(stateOf))];
        const counts = new Map(states.map((state) => [state, requirements.filter((one) => stateOf(one) === state).length]));
        const shown = requirements.filter((one) => !chosen.size || chosen.has(stateOf(one)));
        return requirements.length ? (
          <>
            <div className="page-head">
              <h2>Requirements</h2>
              <Chips
                label="state"
                options={states.map((state) => [state, lookOf(state).word, counts.get(state) ?? 0] as const)}
                chosen={chosen}
                onToggle={(state) => setChosen(toggled(chosen, state))}
              />
              <button type="button" className="push" aria-expanded={isOpen ?? false} onClick={() => setOpen(!isOpen)}>
                {isOpen ? "Collapse all" : "Expand all"}
              </button>
            </div>
            <EvidenceMatrix session={session} requirements={shown} statements={statements} isOpen={isOpen} />
          </>
        ) : (
          <Empty title="No requirements yet">They are written with the roadmap, from the statements of the idea.</Empty>
        );
      }}
    </Loaded>
  );
}

interface MatrixProps {
  session: string;
  requirements: Requirement[];
  statements?: NonNullable<RequirementList["statements"]>;
  /** Leave out the phase, because the page shows only one. */
  isOnePhase?: boolean;
  /** Whether all are open; without it, those that need attention are, and all if they are few. */
  isOpen?: boolean | undefined;
}

/** Its state by the evidence: a tick in REQUIREMENTS.md alone is a claim. */
export function stateOf({ status, evidence }: Requirement): string {
  if (status !== "Complete") return status;
  if (evidence.some((one) => one.status === "assumed")) return "assumed";
  return evidence.some((one) => ["holds", "passed"].includes(one.status)) ? status : "claimed";
}

const FEW = 8;
const SETTLED = new Set(["Complete", "holds", "passed", "Pending"]);

export function EvidenceMatrix({ session, requirements, statements = [], isOnePhase = false, isOpen }: MatrixProps): ReactElement {
  const words = new Map(statements.map((statement) => [statement.id, statement]));
  return (
    <ul className="matrix">
      {requirements.map((one) => (
        <li key={one.id} className="requirement" data-item="" tabIndex={-1}>
          <details open={isOpen ?? (requirements.length <= FEW || !SETTLED.has(stateOf(one)))}>
          <summary title={[...new Set(one.checks.flatMap(({ cases }) => cases.map(needs)))].join("\n")}>
            <span className="mono">{one.id}</span>
            <span className="requirement-text">
              <Inline text={one.text} />
            </span>
            <span className="requirement-counts muted numeric">
              {[count(one.plans.length, "plan"), count(one.commits.length, "commit"), count(one.checks.length, "check")].join(" · ")}
            </span>
            <Status state={stateOf(one)} />
          </summary>
          {one.reason && <p className="requirement-reason">{one.reason}</p>}
          <dl className="chain">
            <div>
              <dt>Idea</dt>
              <dd>
                {one.statements.length === 0 && <Missing what="no statement" />}
                {one.statements.map((id) => (
                  <p key={id}>
                    <span className="mono muted">{id}</span> <Inline text={words.get(id)?.text ?? ""} />
                  </p>
                ))}
              </dd>
            </div>
            <div>
              <dt>Plans</dt>
              <dd>
                {one.plans.length === 0 && <Missing what="no plan" />}
                {one.phase && !isOnePhase && <p className="muted">phase {one.phase}</p>}
                {one.plans.map((plan) => (
                  <p key={plan}>
                    <a className="mono" href={runPath(session, "phase", one.phase ?? plan.split("-")[0] ?? "")}>
                      {plan}
                    </a>
                  </p>
                ))}
              </dd>
            </div>
            <div>
              <dt>Commits</dt>
              <dd>
                {one.commits.length === 0 && <Missing what="no commit" />}
                {one.commits.map((sha) => (
                  <p key={sha}>
                    <CommitLink session={session} sha={sha} />
                  </p>
                ))}
              </dd>
            </div>
            <div>
              <dt>Checks</dt>
              <dd>
                {one.checks.length === 0 && <Missing what="no check" />}
                {alike(one.checks).map(([check, times]) => (
                  <div key={check.id} className="check">
                    <StatusIcon state={check.status ?? "pending"} />
                    <div>
                      <code>{check.command}</code>{" "}
                      <span className="muted">
                        {check.result}
                        {times > 1 && `, in ${times} tasks`}
                      </span>
                      <Cases cases={check.cases} />
                    </div>
                  </div>
                ))}
              </dd>
            </div>
            <div>
              <dt>Verdict</dt>
              <dd>
                {one.evidence.length === 0 && <Missing what="not verified" />}
                {byProof(one.evidence).map(([found, about]) => (
                  <p key={found.about} className="check">
                    <StatusIcon state={found.status} />
                    <span>
                      <span className="mono muted">{about.join(", ")}</span> <Proof session={session} proof={found.proof} />
                    </span>
                  </p>
                ))}
              </dd>
            </div>
          </dl>
          </details>
        </li>
      ))}
    </ul>
  );
}

/** Checks with the same command and result once, and how often: the tasks of a plan often share one. */
function alike(checks: Requirement["checks"]): [Requirement["checks"][number], number][] {
  const found = new Map<string, [Requirement["checks"][number], number]>();
  for (const check of checks) {
    const key = JSON.stringify([check.command, check.status, check.result]);
    found.set(key, [found.get(key)?.[0] ?? check, (found.get(key)?.[1] ?? 0) + 1]);
  }
  return [...found.values()];
}

/** Verdicts with the same proof together, with all that they are about. */
function byProof(evidence: Requirement["evidence"]): [Requirement["evidence"][number], string[]][] {
  const found = new Map<string, [Requirement["evidence"][number], string[]]>();
  for (const one of evidence) {
    const key = JSON.stringify([one.status, one.proof]);
    found.set(key, [found.get(key)?.[0] ?? one, [...(found.get(key)?.[1] ?? []), one.about]]);
  }
  return [...found.values()];
}

type Case = Requirement["checks"][number]["cases"][number];

function needs({ name, fails_without }: Case): string {
  return `${name} fails without: ${fails_without}`;
}

/** The test cases of a check, and what was taken out to see them fail. */
function Cases({ cases }: { cases: Case[] }): ReactElement | null {
  if (!cases.length) return null;
  return (
    <details className="cases">
      <summary className="muted">{count(cases.length, "test case")}, and what each fails without</summary>
      <ul>
        {cases.map((one) => (
          <li key={one.name}>
            <code>{one.name}</code> <span className="muted">{one.fails_without}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Missing({ what }: { what: string }): ReactElement {
  return <p className="muted">{what}</p>;
}
