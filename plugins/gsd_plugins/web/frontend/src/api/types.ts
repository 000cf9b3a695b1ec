/** The shapes of the HTTP interface, as API.md describes them. Unknown fields are ignored. */

export type SessionState = "idle" | "running" | "waiting_checkpoint" | "completed" | "failed" | "stopped";
export type Scope = "control" | "read";

export interface Cost {
  dollars: string | null;
  tokens: number;
  calls: number;
  basis: string;
}

export interface ActiveStep {
  id: string;
  kind: string;
  phase: string | null;
  status: string;
  attempt: number;
  started_at: string | null;
  until: string | null;
}

export interface Summary {
  status: string;
  idea: string | null;
  progress: number | null;
  phases_total: number;
  phases_complete: number;
  plans: { total: number; done: number };
  questions: number;
  steps: ActiveStep[];
  cost: Cost;
  budget: string | null;
  reason: string;
  waits_for: string | null;
  started_at: string | null;
  last_at: string | null;
}

export interface Session {
  id: string;
  slot: number | null;
  project: string;
  command: string[];
  state: SessionState;
  checkpoint: string | null;
  reason: string;
  run: string | null;
  exit: number | null;
  pid: number | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  updated_at: string;
  summary?: Summary | null;
}

export interface ServerInfo {
  version: string;
  epoch: string;
  number: number;
  scope: Scope;
  slots: number;
  started_at: string;
}

export interface SessionList {
  epoch: string;
  number: number;
  sessions: Session[];
}

export interface Task {
  number: number;
  name: string;
  type: string;
  commit: string | null;
}

export interface Plan {
  id: string;
  phase: string;
  name: string;
  objective: string;
  wave: number;
  depends_on: string[];
  autonomous: boolean;
  files_modified: string[];
  requirements: string[];
  tasks: Task[];
  has_summary: boolean;
  gap_closure: boolean;
  status: string;
}

export interface Phase {
  number: string;
  name: string;
  goal: string;
  depends_on: string[];
  requirements: string[];
  status: string;
  in_range: boolean;
  steps: Record<string, string>;
  active: ActiveStep[];
  plans: Plan[];
  gap_rounds: number;
  verdict: string;
  started_at: string | null;
  completed_at: string | null;
}

export interface PhaseList {
  milestone: string | null;
  milestone_name: string | null;
  name: string | null;
  phases: Phase[];
}

export interface Gap {
  truth: string;
  about: string;
  status: string;
  reason: string;
  artifacts: { path: string; issue: string }[];
  missing: string[];
  found_by: string;
}

export interface Commit {
  sha: string;
  subject: string;
  step: string;
  phase: string | null;
  plan: string | null;
  task: string | null;
  at: string;
}

export interface CommitPatch extends Commit {
  patch: string;
  truncated: boolean;
}

export interface StepDone {
  id: string;
  kind: string;
  status: string;
  attempts: number;
  seconds: number | null;
  started_at: string | null;
  ended_at: string | null;
  commit: string | null;
  cost: Cost | null;
}

export interface DetailedPlan extends Plan {
  text: string;
  summary: string;
  truths: { id: string; text: string; serves: string | string[] }[];
  artifacts: { path: string; provides: string }[];
}

export interface Requirement {
  id: string;
  text: string;
  category: string;
  version: string;
  done: boolean;
  statements: string[];
  phase: string | null;
  plans: string[];
  commits: string[];
  checks: { id: string; command: string; status: string; result: string }[];
  evidence: { about: string; status: string; proof: string }[];
  status: string;
  reason: string;
}

export interface RequirementList {
  requirements: Requirement[];
  statements?: { id: string; text: string; line: number; heading: string }[];
}

export interface PhaseDetail extends Omit<Phase, "plans"> {
  context: string;
  research: string;
  criteria: string[];
  plans: DetailedPlan[];
  verification: {
    status: string;
    score: string;
    verified: string | null;
    text: string;
    gaps: Gap[];
    human: { test: string; expected: string; why: string; result: string }[];
  } | null;
  requirements_traced: Requirement[];
  history: StepDone[];
  commits: Commit[];
}

export interface Option {
  number: number;
  label: string;
  description: string;
  recommended: boolean;
}

export interface Question {
  id: string;
  kind: string;
  step: string;
  header: string;
  text: string;
  reason: string;
  options: Option[];
  multiple: boolean;
  free_text: boolean;
  human_only: boolean;
  asked_at: string | null;
  answer_given: boolean;
  answer_with: string;
  session?: string;
  project?: string;
}

export interface AnsweredQuestion {
  id: string;
  header: string;
  text: string;
  step: string;
  words: string;
  by: string;
  via: string;
  how: string;
  at: string | null;
}

export interface GsdEvent {
  seq: number;
  name: string;
  at: string;
  run: string;
  step: string;
  data: Record<string, unknown>;
}

export interface EventPage {
  events: GsdEvent[];
  next: number;
  more: boolean;
}

export interface OutputPage {
  start: number;
  end: number;
  dropped: boolean;
  ended: boolean;
  text: string;
}

export interface CostGroup {
  dollars: string | null;
  calls: number;
  turns: number;
  tokens: { total: number; input: number; output: number; cache_read: number; cache_write: number };
  [by: string]: unknown;
}

export interface CostReport {
  total: CostGroup;
  budget: Record<string, unknown> | null;
  by: string;
  groups: CostGroup[];
}

export interface Plugin {
  name: string;
  about: string;
  source: string;
  status: string;
  reason: string | null;
  distribution: string | null;
  version: string | null;
  hooks: string[];
  notes: string[];
  last_failures: unknown[];
}

export interface FileLines {
  path: string;
  first: number;
  last: number;
  total: number;
  lines: string[];
}

export type Change =
  | { number: number; session: string; state: Session | null }
  | { number: number; session: string; event: GsdEvent };

/** What the server sends over the WebSocket; exactly one of the fields is set, apart from `number`. */
export interface ServerMessage {
  hello?: { epoch: string; number: number; scope: Scope; version: string };
  frame?: Change[];
  number?: number;
  resync?: boolean;
  output?: { session: string; start: number; end: number; dropped: boolean; text: string };
  terminal?: { session: string; start: number; end: number; dropped: boolean; ended: boolean; data: string };
  error?: { code: string; message: string; hint?: string };
  pong?: unknown;
}
