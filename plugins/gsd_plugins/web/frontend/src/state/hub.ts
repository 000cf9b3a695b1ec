/** The state of the page: the connection, the sessions, and what was read about them. Views subscribe to it. */

import { addressOf, type Address } from "../api/address";
import { ApiError, Client } from "../api/client";
import { Link, type LinkState } from "../api/link";
import type { Change, GsdEvent, OutputChunk, Scope, ServerInfo, Session, SessionRecord, TerminalChunk } from "../api/types";
import { alertOf } from "./alerts";
import { EventLog } from "./eventlog";

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  /** When *data* was read, in milliseconds; 0 if it was not. */
  at: number;
  loading: boolean;
}

interface Entry {
  /** Replaced, never changed: views compare what they got with what they have. */
  value: Resource<unknown>;
  users: number;
  dirty: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
  listeners: Set<() => void>;
}

export interface Notice {
  id: number;
  kind: "error" | "info";
  text: string;
  hint: string;
  about: string;
}

type OutputListener = (chunk: OutputChunk) => void;
type TerminalListener = (chunk: TerminalChunk) => void;

/** How long changes are collected before what they touch is read again, in milliseconds. */
const SETTLE_MS = 150;
/** At most this often while a run is busy; a question never waits for it. */
const BUSY_MS = 900;
const EMPTY: Resource<never> = { data: undefined, error: undefined, at: 0, loading: true };
/** How long a question has to be open before the browser tells about it. */
const ALERT_MS = 1000;
/** Events that change nothing but the log. */
const QUIET = new Set(["agent.activity", "notice.failed", "plugin.failed"]);

export class Hub {
  link: LinkState = "connecting";
  /** When the connection was lost, in milliseconds; 0 if there is one. */
  lostAt = 0;
  /** What the token permits; null until the server has said it. */
  scope: Scope | null = null;
  server: ServerInfo | undefined;
  sessions: Session[] = [];
  isLoaded = false;
  startError: ApiError | undefined;
  notices: Notice[] = [];

  readonly client: Client;
  private readonly socket: Link;
  private readonly listeners = new Set<() => void>();
  private readonly entries = new Map<Address<unknown>, Entry>();
  private readonly logs = new Map<string, EventLog>();
  private readonly logListeners = new Map<string, Set<() => void>>();
  private readonly outputs = new Map<string, Set<OutputListener>>();
  private readonly terminals = new Map<string, Set<TerminalListener>>();
  private sessionsTimer: ReturnType<typeof setTimeout> | undefined;
  /** The numbers of the last request for the sessions, and of the last one whose answer is shown. */
  private sessionsAsked = 0;
  private sessionsShown = 0;
  private startTimer: ReturnType<typeof setTimeout> | undefined;
  /** What this page answered, by question, until the journal has an answer. */
  private readonly given = new Map<string, { title: string; words: string }>();
  /** The answers in the journal: with a fast run, they are known before the request that gave one returns. */
  private readonly taken = new Map<string, { words: string; by: string }>();
  private noticeNumber = 0;
  private stamp = 0;

  constructor(base: string, token: string, open?: (url: string, protocols: string[]) => WebSocket) {
    this.client = new Client(base, token);
    this.socket = new Link({
      url: `${base.replace(/^http/, "ws")}/api/v1/ws`,
      token,
      isRefused: () => this.isRefused(),
      ...(open ? { open } : {}),
      events: {
        state: (state) => this.setLink(state),
        scope: (scope) => this.set(() => (this.scope = scope)),
        changes: (changes) => this.take(changes),
        removed: (sessions) => this.forget(sessions),
        resync: () => this.readEverything(),
        output: (chunk) => this.outputs.get(chunk.session)?.forEach((listener) => listener(chunk)),
        terminal: (chunk) => this.terminals.get(chunk.session)?.forEach((listener) => listener(chunk)),
        refusal: (message, hint) => this.notify("error", message, hint),
      },
    });
  }

  async start(): Promise<void> {
    try {
      this.server = await this.client.get(addressOf("/server"));
      const list = await this.client.get(addressOf("/sessions"));
      this.scope = this.server.scope;
      this.set(() => {
        this.sessions = list.sessions;
        this.isLoaded = true;
        this.startError = undefined;
      });
      this.socket.start(list.epoch, list.number);
    } catch (error) {
      const failure = asApiError(error);
      this.set(() => (this.startError = failure));
      if (failure.status === 401 || failure.status === 403) this.setLink("refused");
      else {
        this.setLink("lost");
        this.startTimer = setTimeout(() => void this.start(), 2000);
      }
    }
  }

  close(): void {
    clearTimeout(this.startTimer);
    clearTimeout(this.sessionsTimer);
    for (const entry of this.entries.values()) clearTimeout(entry.timer);
    this.socket.close();
  }

  reconnect(): void {
    if (this.isLoaded) this.socket.retryNow();
    else {
      clearTimeout(this.startTimer);
      void this.start();
    }
  }

  // Subscriptions of views

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Counts up with every change of the fields above. */
  readonly version = (): number => this.stamp;

  watch(path: Address<unknown>, listener: () => void): () => void {
    const entry = this.entry(path);
    entry.users += 1;
    entry.listeners.add(listener);
    if ((entry.dirty || entry.value.data === undefined) && !entry.value.loading) void this.read(path);
    return () => {
      entry.users -= 1;
      entry.listeners.delete(listener);
    };
  }

  resource<T>(path: Address<T>): Resource<T> {
    return (this.entries.get(path)?.value ?? EMPTY) as Resource<T>;
  }

  log(session: string): EventLog {
    let log = this.logs.get(session);
    if (!log) {
      log = new EventLog(
        (query) => this.client.get(addressOf("/sessions/{session}/events", { session, ...query })),
        () => this.logListeners.get(session)?.forEach((listener) => listener()),
      );
      this.logs.set(session, log);
      void log.load();
    }
    return log;
  }

  watchLog(session: string, listener: () => void): () => void {
    const listeners = this.logListeners.get(session) ?? new Set();
    this.logListeners.set(session, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  followOutput(session: string, listener: OutputListener): () => void {
    return follow(this.outputs, session, listener, () => this.socket.followOutput(session));
  }

  followTerminal(session: string, cursor: number, listener: TerminalListener): () => void {
    return follow(this.terminals, session, listener, () => this.socket.followTerminal(session, cursor));
  }

  sendInput(session: string, data: string): boolean {
    return this.socket.send({ input: { session, data } });
  }

  resize(session: string, columns: number, rows: number): void {
    this.socket.send({ resize: { session, columns, rows } });
  }

  // Actions

  /** Do something on the server; a failure becomes a notice, and the result is undefined. */
  async act<T>(what: () => Promise<T>, touched: Address<unknown>[] = []): Promise<T | undefined> {
    try {
      const result = await what();
      for (const path of touched) this.touch(path, 0);
      this.readSessionsSoon(0);
      return result;
    } catch (error) {
      const failure = asApiError(error);
      this.notify("error", failure.message, failure.hint);
      for (const path of touched) this.touch(path, 0);
      return undefined;
    }
  }

  /** Answer a question, and return whether the server has accepted it. */
  async answer(session: string, question: string, words: string, title: string): Promise<boolean> {
    const done = await this.act(
      () => this.client.put("/sessions/{session}/questions/{question}/answer", { session, question }, { words }),
      [addressOf("/questions"), addressOf("/sessions/{session}/questions", { session })],
    );
    if (!done) return false;
    this.given.set(question, { title, words: done.answer.words });
    if (!this.wasReplaced(question)) this.notify("info", `Answered: ${title}`, "", question);
    return true;
  }

  /** Tell the person if somebody answered as well, and the run took that answer. */
  private wasReplaced(question: string): boolean {
    const [given, taken] = [this.given.get(question), this.taken.get(question)];
    if (!given || !taken) return false;
    this.given.delete(question);
    if (given.words === taken.words) return false;
    const hint = "Both answers came at the same time, and the run took the last one.";
    this.notify("error", `${given.title} is already answered: ${taken.words} (by ${taken.by})`, hint, question);
    return true;
  }

  /** A notice takes the place of an earlier one about the same thing, by default with the same text. */
  notify(kind: Notice["kind"], text: string, hint = "", about = text): void {
    const notice = { id: ++this.noticeNumber, kind, text, hint, about };
    const others = this.notices.filter((one) => one.about !== about);
    this.set(() => (this.notices = [...others.slice(-3), notice]));
    if (kind === "info") setTimeout(() => this.dismiss(notice.id), 6000);
  }

  dismiss(id: number): void {
    this.set(() => (this.notices = this.notices.filter((notice) => notice.id !== id)));
  }

  // Changes

  private take(changes: Change[]): void {
    const events = new Map<string, GsdEvent[]>();
    let isUrgent = false;
    let isSummaryOld = false;
    for (const change of changes) {
      if ("event" in change) {
        const known = events.get(change.session) ?? [];
        known.push(change.event);
        events.set(change.session, known);
        isSummaryOld ||= !QUIET.has(change.event.name);
        isUrgent ||= change.event.name.startsWith("question.");
        if (change.event.name === "question.asked") this.alertSoon(change.event, this.projectOf(change.session));
        if (change.event.name === "question.answered") {
          const { question = "", words = "", by = "" } = change.event.data as Record<string, string>;
          this.taken.set(question, { words, by });
          this.wasReplaced(question);
        }
      } else {
        isUrgent ||= this.takeSession(change.session, change.state);
        isSummaryOld = true;
      }
    }
    for (const [session, found] of events) {
      this.projectLogs(session).forEach((log) => log.take(found));
      if (found.some((event) => !QUIET.has(event.name))) this.touchSession(session, isUrgent ? 0 : BUSY_MS);
    }
    if (isSummaryOld) this.readSessionsSoon(isUrgent ? 0 : BUSY_MS);
    this.set(() => undefined);
  }

  /** Alert the person, unless a policy or an answers file has answered by then. */
  private alertSoon(event: GsdEvent, project: string): void {
    setTimeout(() => void alertOf(event, project, this.taken), ALERT_MS);
  }

  /** Update the row, and return whether its state is another one. */
  private takeSession(id: string, state: SessionRecord): boolean {
    const known = this.sessions.find((session) => session.id === id);
    if (!known) this.sessions = [...this.sessions, { ...state, summary: null, problem: "" }];
    else
      this.sessions = this.sessions.map((session) =>
        session.id === id ? { ...state, summary: session.summary, problem: session.problem } : session,
      );
    const isOther = known?.state !== state.state;
    if (isOther) this.touchSession(id, 0);
    return isOther;
  }

  private forget(sessions: string[]): void {
    this.sessionsShown = ++this.sessionsAsked;
    this.set(() => (this.sessions = this.sessions.filter((session) => !sessions.includes(session.id))));
    for (const session of sessions) this.logs.delete(session);
  }

  private projectOf(session: string): string {
    return this.sessions.find((one) => one.id === session)?.project ?? session;
  }

  /** Events are sent for one session of a project; others of the same project show the same journal. */
  private projectLogs(session: string): EventLog[] {
    const project = this.sessions.find((one) => one.id === session)?.project;
    const ids = project ? this.sessions.filter((one) => one.project === project).map((one) => one.id) : [session];
    return ids.flatMap((id) => this.logs.get(id) ?? []);
  }

  private touchSession(session: string, delay: number): void {
    const project = this.sessions.find((one) => one.id === session)?.project;
    for (const path of this.entries.keys()) {
      const owner = /^\/sessions\/([^/?]+)\//.exec(path)?.[1];
      const isSame = owner && this.sessions.find((one) => one.id === owner)?.project === project;
      if (path.startsWith("/questions") || owner === session || isSame) this.touch(path, delay);
    }
  }

  /** Read *path* again if a view shows it, at the latest after *delay* milliseconds. */
  private touch(path: Address<unknown>, delay: number): void {
    const entry = this.entries.get(path);
    if (!entry || /\/(files|commits\/)/.test(path)) return;
    entry.dirty = true;
    if (entry.users === 0) return;
    if (delay === 0) clearTimeout(entry.timer);
    else if (entry.timer) return;
    // A question is shown at once: a person waits for it, or it waits for a person.
    const isQuestion = delay === 0 && path.startsWith("/questions");
    entry.timer = setTimeout(() => void this.read(path), isQuestion ? 0 : Math.max(delay, SETTLE_MS));
  }

  private async read(path: Address<unknown>): Promise<void> {
    const entry = this.entry(path);
    clearTimeout(entry.timer);
    entry.timer = undefined;
    if (entry.value.loading) {
      entry.timer = setTimeout(() => void this.read(path), SETTLE_MS);
      return;
    }
    entry.dirty = false;
    const publish = (values: Partial<Resource<unknown>>): void => {
      entry.value = { ...entry.value, ...values };
      entry.listeners.forEach((listener) => listener());
    };
    publish({ loading: true });
    try {
      publish({ data: await this.client.get(path), error: undefined, at: Date.now(), loading: false });
    } catch (error) {
      const failure = asApiError(error);
      entry.dirty = true;
      publish({ error: failure, loading: false });
      if (failure.status === 401) this.setLink("refused");
    }
  }

  private readSessionsSoon(delay: number): void {
    if (delay === 0) clearTimeout(this.sessionsTimer);
    else if (this.sessionsTimer) return;
    this.sessionsTimer = setTimeout(() => void this.readSessions(), Math.max(delay, SETTLE_MS));
  }

  private async readSessions(): Promise<void> {
    this.sessionsTimer = undefined;
    const number = ++this.sessionsAsked;
    try {
      const list = await this.client.get(addressOf("/sessions"));
      // An answer that was overtaken would bring back what was removed meanwhile.
      if (number < this.sessionsShown) return;
      this.sessionsShown = number;
      this.set(() => (this.sessions = list.sessions));
    } catch {
      // The connection is lost: it says so itself, and everything is read again when it is back.
    }
  }

  private readEverything(): void {
    void this.readSessions();
    for (const log of this.logs.values()) void log.load();
    for (const path of this.entries.keys()) this.touch(path, 0);
  }

  private async isRefused(): Promise<boolean> {
    try {
      await this.client.get(addressOf("/server"));
      return false;
    } catch (error) {
      return error instanceof ApiError && (error.status === 401 || error.status === 403);
    }
  }

  private setLink(state: LinkState): void {
    const wasLost = this.lostAt > 0;
    this.set(() => {
      this.link = state;
      if (state === "live") this.lostAt = 0;
      else if (state !== "connecting" && !wasLost) this.lostAt = Date.now();
    });
    if (state === "live" && wasLost) this.readEverything();
  }

  private entry(path: Address<unknown>): Entry {
    let entry = this.entries.get(path);
    if (!entry) {
      const value = { ...EMPTY, loading: false };
      entry = { value, users: 0, dirty: true, timer: undefined, listeners: new Set() };
      this.entries.set(path, entry);
    }
    return entry;
  }

  private set(change: () => unknown): void {
    change();
    this.stamp += 1;
    this.listeners.forEach((listener) => listener());
  }
}

function follow<L>(all: Map<string, Set<L>>, session: string, listener: L, begin: () => () => void): () => void {
  const listeners = all.get(session) ?? new Set<L>();
  all.set(session, listeners.add(listener));
  const end = begin();
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) end();
  };
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "defect", error instanceof Error ? error.message : String(error));
}
