/** All events of one session's project: read page by page, then kept up to date by the WebSocket. */

import type { EventPage, GsdEvent } from "../api/types";
import { Timeline } from "./timeline";

const PAGE = 5000;

export class EventLog {
  events: GsdEvent[] = [];
  timeline = new Timeline();
  /** Whether the past has been read; before that, what is shown is incomplete. */
  isComplete = false;
  error = "";
  /** Counts up with every change, so that a view knows that it has to render. */
  version = 0;

  private next = 0;
  private loading = false;
  private again = false;
  private seenAtLast = new Set<string>();
  private held: GsdEvent[] = [];

  constructor(
    private readonly read: (after: number, limit: number) => Promise<EventPage>,
    private readonly changed: () => void,
  ) {}

  /** Read everything after the last known event; calls while reading make it read once more. */
  async load(): Promise<void> {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    try {
      do {
        this.again = false;
        let more = true;
        while (more) {
          const page = await this.read(Math.max(0, this.next - 1), PAGE);
          this.append(page.events);
          more = page.more && page.events.length > 0;
        }
      } while (this.again);
      this.isComplete = true;
      this.error = "";
      this.append(this.held.splice(0));
    } catch (error) {
      this.error = error instanceof Error ? error.message : String(error);
    } finally {
      this.loading = false;
      this.touch();
    }
  }

  /** Take a live event; while the past is being read, it waits for its turn. */
  take(events: GsdEvent[]): void {
    if (!this.isComplete || this.loading) {
      this.held.push(...events);
      return;
    }
    this.append(events);
    this.touch();
  }

  private append(events: GsdEvent[]): void {
    for (const event of events) {
      if (event.name === "run.started" && this.isAnotherJournal(event)) this.reset();
      if (!this.isNew(event)) continue;
      this.events.push(event);
      this.timeline.add(event);
    }
    this.touch();
  }

  /** One record of the journal may be several events, so the last position alone does not tell new from known. */
  private isNew(event: GsdEvent): boolean {
    if (event.seq < this.next) return false;
    const key = JSON.stringify([event.name, event.step, event.data]);
    if (event.seq > this.next) {
      this.next = event.seq;
      this.seenAtLast.clear();
    } else if (this.seenAtLast.has(key)) return false;
    this.seenAtLast.add(key);
    return true;
  }

  private isAnotherJournal(event: GsdEvent): boolean {
    return event.seq <= this.next && !this.events.some((known) => known.seq === event.seq && known.run === event.run);
  }

  private reset(): void {
    this.events = [];
    this.timeline = new Timeline();
    this.next = 0;
    this.seenAtLast.clear();
  }

  private touch(): void {
    this.version += 1;
    this.changed();
  }
}
