/**
 * The events of one session's project. The facts come first: they are few, and the timeline needs all of them.
 * What agents did is 20 times as much; its end comes next, and the rest only for the page that shows it.
 */

import { ApiError } from "../api/client";
import type { EventPage, GsdEvent } from "../api/types";
import { Timeline, TIMELINE_EVENTS } from "./timeline";

const PAGE = 5000;
/** How many of the last events are read with the facts. */
const TAIL = 500;

export interface EventQuery {
  after?: number;
  limit?: number;
  last?: number;
  name?: string[];
}

/** Lets each event through once. One record of the journal may be several events, so its position is not enough. */
class Once {
  next = 0;
  private readonly seen = new Set<string>();

  isNew(event: GsdEvent): boolean {
    if (event.seq < this.next) return false;
    const key = JSON.stringify([event.name, event.step, event.data]);
    if (event.seq > this.next) {
      this.next = event.seq;
      this.seen.clear();
    } else if (this.seen.has(key)) return false;
    this.seen.add(key);
    return true;
  }
}

export class EventLog {
  /** Without gaps up to now; the oldest may be missing, see isWhole. */
  events: GsdEvent[] = [];
  timeline = new Timeline();
  /** Whether all facts have been read; before that, the timeline is incomplete. */
  isComplete = false;
  /** Whether the events go back to the first one. */
  isWhole = false;
  error = "";
  hint = "";
  /** Counts up with every change, so that a view knows that it has to render. */
  version = 0;

  private facts = new Once();
  private all = new Once();
  private starts = new Map<number, string>();
  private loading = false;
  private again = false;
  private isReadingPast = false;
  private held: GsdEvent[] = [];

  constructor(
    private readonly read: (query: EventQuery) => Promise<EventPage>,
    private readonly changed: () => void,
  ) {}

  /** Read what is missing up to now; calls while reading make it read once more. */
  async load(): Promise<void> {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    try {
      do {
        this.again = false;
        await this.readFacts();
        await this.readTail();
      } while (this.again);
      this.isComplete = true;
      this.error = "";
      this.held.splice(0).forEach((event) => this.add(event));
    } catch (error) {
      this.error = message(error);
      this.hint = error instanceof ApiError ? error.hint : "";
    } finally {
      this.loading = false;
      this.touch();
    }
  }

  /** Read the events from before those that are known, newest first, while anybody wants them. */
  async loadPast(isWanted: () => boolean): Promise<void> {
    if (this.isReadingPast) return;
    this.isReadingPast = true;
    try {
      while (!this.isWhole && this.isComplete && isWanted()) await this.readPage();
    } catch (error) {
      this.error = message(error);
    } finally {
      this.isReadingPast = false;
      this.touch();
    }
  }

  /** Take live events; while older ones are being read, they wait for their turn. */
  take(events: GsdEvent[]): void {
    if (!this.isComplete || this.loading) {
      this.held.push(...events);
      return;
    }
    events.forEach((event) => this.add(event));
    this.touch();
  }

  private async readFacts(): Promise<void> {
    for (let more = true; more; ) {
      const page = await this.read({ after: Math.max(0, this.facts.next - 1), limit: PAGE, name: [...TIMELINE_EVENTS] });
      page.events.forEach((event) => this.fold(event));
      more = page.more && page.events.length > 0;
      this.touch();
    }
  }

  private async readTail(): Promise<void> {
    if (!this.events.length) {
      const page = await this.read({ last: TAIL });
      this.isWhole = page.events.length < TAIL;
      // So much happened since the facts were read that some of the new ones are before this page.
      if (!this.isWhole && (page.events[0]?.seq ?? 0) > this.facts.next) await this.readFacts();
      page.events.forEach((event) => this.add(event));
      return;
    }
    for (let more = true; more; ) {
      const page = await this.read({ after: Math.max(0, this.all.next - 1), limit: PAGE });
      page.events.forEach((event) => this.add(event));
      more = page.more && page.events.length > 0;
    }
  }

  private async readPage(): Promise<void> {
    const first = this.events[0]?.seq ?? 0;
    const begin = Math.max(0, first - 1 - PAGE);
    const found: GsdEvent[] = [];
    for (let after = begin, more = true; more && after < first; ) {
      const page = await this.read({ after, limit: PAGE });
      found.push(...page.events.filter((event) => event.seq < first));
      more = page.more && page.next > after;
      after = page.next;
    }
    // Another journal may have begun meanwhile.
    if (this.events[0]?.seq !== first) return;
    this.events = [...found, ...this.events];
    // The first record of what is known may have more events than were read.
    this.isWhole = begin === 0;
    this.touch();
  }

  private add(event: GsdEvent): void {
    this.fold(event);
    if (this.all.isNew(event)) this.events.push(event);
  }

  private fold(event: GsdEvent): void {
    if (event.name === "run.started") {
      if (event.seq <= this.facts.next && this.starts.get(event.seq) !== event.run) this.reset();
      this.starts.set(event.seq, event.run);
    }
    if (this.facts.isNew(event)) this.timeline.add(event);
    else if (event.name === "agent.activity") this.timeline.addActivity(event);
  }

  /** The journal was moved away, and another one has begun. */
  private reset(): void {
    this.events = [];
    this.timeline = new Timeline();
    this.facts = new Once();
    this.all = new Once();
    this.starts.clear();
    this.isWhole = true;
  }

  private touch(): void {
    this.version += 1;
    this.changed();
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
