/** What a session printed, as text: virtualized, searched, followed, with a jump to errors. */

import { useDeferredValue, useEffect, useMemo, useReducer, useRef, useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { OutputPage } from "../api/types";
import { compact, count } from "../lib/format";
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

const FIRST_BYTES = 1 << 18;
const PAGE_BYTES = 1 << 19;
/** Above it, the oldest lines are forgotten again while new ones come. */
const KEPT_LINES = 400_000;

interface Line {
  text: string;
  lower: string;
  kinds: ReadonlySet<Kind>;
  isRedraw: boolean;
}

const NO_LINES: Line[] = [];
const NO_KINDS: ReadonlySet<Kind> = new Set();

/** A line with all that a filter asks for: the patterns take too long to be tried for each key. */
function lineOf(text: string): Line {
  const kinds = KINDS.filter((kind) => PATTERNS[kind].test(text));
  return { text, lower: text.toLowerCase(), kinds: kinds.length ? new Set(kinds) : NO_KINDS, isRedraw: REDRAW.test(text) };
}

/** A line that is written again from its start (a progress line) is one line: the last one counts. */
function linesIn(text: string): string[] {
  return text.split(/\r*\n/).map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1));
}

/** The text of one session's output: its end first, then what the socket brings, and older output on demand. */
class OutputText {
  lines: Line[] = [];
  isLoaded = false;
  hasEnded = false;
  error = "";
  isReadingPast = false;
  /** Where what is known begins, in bytes. */
  begin = 0;
  /** Whether output before that is not kept any more. */
  isDropped = false;
  private cursor = -FIRST_BYTES;
  /** The end of a line whose start was not read. */
  private head = "";
  private partial = "";
  private isReading = false;
  private again = false;

  constructor(
    private readonly hub: Hub,
    private readonly session: string,
    private readonly changed: () => void,
  ) {}

  get hasPast(): boolean {
    return this.begin > 0 && !this.isDropped;
  }

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
          const page = await this.page(this.cursor, PAGE_BYTES);
          const isFirst = this.cursor < 0;
          if (isFirst) this.begin = page.start;
          this.hasEnded = page.ended;
          if (page.end <= this.cursor) break;
          this.cursor = page.end;
          this.append(page.text, isFirst && page.start > 0);
          this.isLoaded = true;
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

  /** Read the page before what is known. */
  async readPast(): Promise<void> {
    if (this.isReadingPast || !this.hasPast) return;
    this.isReadingPast = true;
    this.changed();
    try {
      const wanted = Math.max(0, this.begin - PAGE_BYTES);
      let text = "";
      let at = wanted;
      while (at < this.begin) {
        const page = await this.page(at, this.begin - at);
        this.isDropped ||= page.dropped;
        if (page.end <= at) break;
        text += page.text;
        at = page.end;
      }
      const found = linesIn(text + this.head);
      this.head = wanted > 0 ? (found.shift() ?? "") : "";
      this.begin = wanted;
      this.lines = [...found.map(lineOf), ...this.lines];
      this.error = "";
    } catch (error) {
      this.error = asApiError(error).message;
    } finally {
      this.isReadingPast = false;
      this.changed();
    }
  }

  take(chunk: { start: number; end: number; text: string }): void {
    if (this.isReading || chunk.start !== this.cursor) {
      if (chunk.end > this.cursor) void this.read();
      return;
    }
    this.cursor = chunk.end;
    this.append(chunk.text, false);
    this.changed();
  }

  private page(cursor: number, limit: number): Promise<OutputPage> {
    return this.hub.client.get(addressOf("/sessions/{session}/output", { session: this.session, cursor, limit }));
  }

  private append(text: string, isCut: boolean): void {
    const parts = linesIn(this.partial + text);
    if (isCut && parts.length > 1) this.head = parts.shift() ?? "";
    const known = this.partial ? this.lines.slice(0, -1) : this.lines;
    this.partial = parts.pop() ?? "";
    this.lines = [...known, ...parts.map(lineOf), ...(this.partial ? [lineOf(this.partial)] : [])];
    if (this.lines.length > KEPT_LINES) {
      this.lines = this.lines.slice(-KEPT_LINES);
      this.isDropped = true;
    }
  }
}

interface Earlier {
  lines: Line[];
  total: number;
  isReading: boolean;
  error: string;
}

const NOTHING_EARLIER: Earlier = { lines: NO_LINES, total: 0, isReading: false, error: "" };
const TYPING_MS = 300;

/** The lines with a text before byte *end*, which this page has not loaded; the server searches them. */
function useEarlier(session: string, text: string, end: number): Earlier {
  const hub = useHub();
  const [found, setFound] = useState(NOTHING_EARLIER);
  useEffect(() => {
    setFound(NOTHING_EARLIER);
    if (!text) return;
    let isWanted = true;
    const publish = (values: Partial<Earlier>): void => {
      if (isWanted) setFound({ ...NOTHING_EARLIER, ...values });
    };
    publish({ isReading: true });
    const timer = setTimeout(() => {
      hub.client.get(addressOf("/sessions/{session}/output/search", { session, text, end })).then(
        ({ lines, total }) => publish({ lines: lines.map(lineOf), total }),
        (error: unknown) => publish({ error: asApiError(error).message }),
      );
    }, TYPING_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [hub, session, text, end]);
  return found;
}

export function LogPage({ session }: { session: string }): ReactElement {
  const hub = useHub();
  const [, changed] = useReducer((number: number) => number + 1, 0);
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

  const lines = output?.lines ?? NO_LINES;
  const isWhole = output?.begin === 0 && !output.isDropped;
  const wanted = useDeferredValue(query.trim().toLowerCase());
  const earlier = useEarlier(session, output?.hasPast ? wanted : "", output?.begin ?? 0);
  const shown = useMemo(() => {
    const found: { line: Line; number: number }[] = [];
    [...earlier.lines, ...lines].forEach((line, index) => {
      if (line.isRedraw && !hasRedraws) return;
      if (chosen.size && ![...line.kinds].some((kind) => chosen.has(kind))) return;
      if (wanted && !line.lower.includes(wanted)) return;
      found.push({ line, number: index + 1 });
    });
    return found;
  }, [earlier, lines, wanted, chosen, hasRedraws]);
  const isError = ({ line }: { line: Line }): boolean => line.kinds.has("errors");
  const errors = useMemo(() => shown.filter(isError).length, [shown]);

  const jump = (): void => {
    const next = shown.findIndex((line, index) => index > lastError.current && isError(line));
    const index = next >= 0 ? next : shown.findIndex(isError);
    lastError.current = index;
    setFollowing(false);
    setTarget({ index });
  };

  if (!output?.isLoaded && !lines.length) return output?.error ? <Problem title={output.error} /> : <Skeleton lines={12} shape="stream" />;
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
      <p className="stream-note" role="status" aria-busy={output?.isReadingPast}>
        {wanted && output?.hasPast && (earlier.isReading ? "Searching the whole output … " : earlier.error ? `Only the end was searched: ${earlier.error}. ` : "In the whole output: ")}
        {shown.length === lines.length ? count(lines.length, "line") : wanted && output?.hasPast ? count(shown.length - earlier.lines.length + earlier.total, "line") : `${shown.length.toLocaleString("en-US")} of ${count(lines.length, "line")}`}
        {earlier.total > earlier.lines.length && `, of which the last ${shown.length.toLocaleString("en-US")} are shown`}
        {output?.isDropped && ". Older output is not kept any more."}
        {output?.hasPast && !wanted && (
          <>
            , the end of the output.{" "}
            <button type="button" className="link" disabled={output.isReadingPast} onClick={() => void output.readPast()}>
              {output.isReadingPast ? "Reading …" : `Load earlier output (${compact(output.begin)}B)`}
            </button>
          </>
        )}
      </p>
      {shown.length ? (
        <VirtualList
          count={shown.length}
          rowHeight={20}
          label="log"
          follow={isFollowing}
          onFollowChange={setFollowing}
          target={target}
          head={output?.begin}
          row={(index) => {
            const found = shown[index];
            if (!found) return null;
            return (
              <div key={index} className={`log-line ${isError(found) ? "error" : ""} ${target?.index === index ? "found" : ""}`}>
                <span className="line-number">{isWhole ? found.number : null}</span>
                <span className="log-text">{found.line.text || " "}</span>
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
