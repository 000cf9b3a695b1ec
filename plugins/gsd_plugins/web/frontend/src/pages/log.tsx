/** What a session printed, as text: virtualized, searched, followed, with a jump to errors. */

import { useEffect, useMemo, useReducer, useRef, useState, type ReactElement } from "react";

import type { OutputPage } from "../api/types";
import { useHub } from "../state/hooks";
import { Chips, Empty, Problem, Skeleton, toggled } from "../ui/common";
import { VirtualList } from "../ui/virtual";
import { asApiError, type Hub } from "../state/hub";

const KINDS = ["errors", "steps", "commits", "questions"] as const;
type Kind = (typeof KINDS)[number];

const PATTERNS: Record<Kind, RegExp> = {
  errors: /^\s*✗|\berror\b|\bfailed\b|Traceback|\bwarning\b/i,
  steps: /^\s*[▸●✓]/,
  commits: /✓ .*\b[0-9a-f]{9}\b/,
  questions: /^\s*\?/,
};

/** Lines of the live view at the bottom of a terminal: as text, each redraw of it would be two more lines. */
const REDRAW = /(^|│ )Ctrl-C stop( │|$)|^\s*▸ \S+ {2}\d+:\d\d/;

const PAGE_BYTES = 1 << 19;
const KEPT_LINES = 200_000;

/** The text of one session's output, read from a cursor on and completed by what the socket brings. */
class OutputText {
  lines: string[] = [];
  isLoaded = false;
  hasEnded = false;
  isDropped = false;
  error = "";
  private cursor = 0;
  private partial = "";
  private isReading = false;
  private again = false;

  constructor(
    private readonly hub: Hub,
    private readonly session: string,
    private readonly changed: () => void,
  ) {}

  async read(): Promise<void> {
    if (this.isReading) {
      this.again = true;
      return;
    }
    this.isReading = true;
    try {
      do {
        this.again = false;
        for (;;) {
          const path = `/sessions/${encodeURIComponent(this.session)}/output?cursor=${this.cursor}&limit=${PAGE_BYTES}`;
          const page = await this.hub.client.get<OutputPage>(path);
          this.isDropped ||= page.dropped;
          this.hasEnded = page.ended;
          if (page.end <= this.cursor) break;
          this.cursor = page.end;
          this.append(page.text);
          this.changed();
        }
      } while (this.again);
      this.isLoaded = true;
      this.error = "";
    } catch (error) {
      this.error = asApiError(error).message;
    } finally {
      this.isReading = false;
      this.changed();
    }
  }

  take(chunk: { start: number; end: number; text: string }): void {
    if (this.isReading || chunk.start !== this.cursor) {
      if (chunk.end > this.cursor) void this.read();
      return;
    }
    this.cursor = chunk.end;
    this.append(chunk.text);
    this.changed();
  }

  private append(text: string): void {
    // A line that is written again from its start (a progress line) is one line: the last one counts.
    const parts = (this.partial + text).split(/\r*\n/).map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1));
    const known = this.partial ? this.lines.slice(0, -1) : this.lines;
    this.partial = parts.pop() ?? "";
    this.lines = [...known, ...parts, ...(this.partial ? [this.partial] : [])].slice(-KEPT_LINES);
  }
}

export function LogPage({ session }: { session: string }): ReactElement {
  const hub = useHub();
  const [version, changed] = useReducer((number: number) => number + 1, 0);
  const [output, setOutput] = useState<OutputText>();
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<Kind>>(new Set());
  const [hasRedraws, setRedraws] = useState(false);
  const [isFollowing, setFollowing] = useState(true);
  const [target, setTarget] = useState<{ index: number }>();
  const lastError = useRef(-1);
  const isLive = hub.link === "live";

  useEffect(() => {
    const text = new OutputText(hub, session, changed);
    setOutput(text);
    void text.read();
    return hub.followOutput(session, (chunk) => text.take(chunk));
  }, [hub, session]);
  useEffect(() => {
    if (isLive && output?.isLoaded) void output.read();
  }, [isLive, output]);

  const lines = output?.lines ?? [];
  const shown = useMemo(() => {
    const wanted = query.trim().toLowerCase();
    const kinds = [...chosen].map((kind) => PATTERNS[kind]);
    return lines
      .map((text, index) => ({ text, number: index + 1 }))
      .filter(
        ({ text }) =>
          (hasRedraws || !REDRAW.test(text)) &&
          (!wanted || text.toLowerCase().includes(wanted)) && (!kinds.length || kinds.some((pattern) => pattern.test(text))),
      );
  }, [lines, version, query, chosen, hasRedraws]);
  const errors = useMemo(() => shown.filter(({ text }) => PATTERNS.errors.test(text)).length, [shown]);

  const jump = (): void => {
    const isError = ({ text }: { text: string }): boolean => PATTERNS.errors.test(text);
    const next = shown.findIndex((line, index) => index > lastError.current && isError(line));
    const index = next >= 0 ? next : shown.findIndex(isError);
    lastError.current = index;
    setFollowing(false);
    setTarget({ index });
  };

  if (!output?.isLoaded && !lines.length) return output?.error ? <Problem title={output.error} /> : <Skeleton lines={12} />;
  return (
    <section className="stream">
      <div className="stream-bar">
        <input type="search" placeholder="Search (/)" aria-label="search the log" value={query} onChange={(event) => setQuery(event.target.value)} />
        <Chips label="kind of line" options={KINDS.map((kind) => [kind, kind] as const)} chosen={chosen} onToggle={(kind) => setChosen(toggled(chosen, kind))} />
        <button type="button" className="chip" aria-pressed={hasRedraws} onClick={() => setRedraws(!hasRedraws)} title="each redraw of the terminal's live view">
          redraws
        </button>
        <span className="push stream-actions">
          <button type="button" onClick={jump} disabled={!errors}>
            Next error
          </button>
          <button type="button" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
            {isFollowing ? "Following" : "Follow"}
          </button>
        </span>
      </div>
      {output?.error && <p className="stale">{output.error}</p>}
      {output?.isDropped && <p className="muted">Older output is not kept any more.</p>}
      {shown.length ? (
        <VirtualList
          count={shown.length}
          rowHeight={20}
          label="log"
          follow={isFollowing}
          onFollowChange={setFollowing}
          target={target}
          row={(index) => {
            const line = shown[index];
            if (!line) return null;
            const isError = PATTERNS.errors.test(line.text);
            return (
              <div key={index} className={`log-line ${isError ? "error" : ""} ${target?.index === index ? "found" : ""}`}>
                <span className="line-number">{line.number}</span>
                <span className="log-text">{line.text || " "}</span>
              </div>
            );
          }}
        />
      ) : lines.length ? (
        <Empty title="No line matches">Clear the search or the filters.</Empty>
      ) : (
        <Empty title="Nothing printed yet" />
      )}
    </section>
  );
}
