/** Every event of a run: searched, filtered by kind, followed live. */

import { useDeferredValue, useEffect, useMemo, useRef, useState, type ReactElement } from "react";

import type { GsdEvent } from "../api/types";
import { count, dateTimeOf, eventWords, money, oneLine, stepWords, timeOfDay } from "../lib/format";
import { useEventLog } from "../state/hooks";
import { Chips, Empty, Panel, Problem, Skeleton, toggled } from "../ui/common";
import { Icon } from "../ui/status";
import { VirtualList } from "../ui/virtual";

const GROUPS = ["steps", "commits", "questions", "problems", "agent", "cost", "other"] as const;
type Group = (typeof GROUPS)[number];

const TONES: Record<Group, string> = {
  steps: "busy",
  commits: "good",
  questions: "ask",
  problems: "bad",
  agent: "idle",
  cost: "idle",
  other: "idle",
};

export function groupOf(event: GsdEvent): Group {
  const { name, data } = event;
  if (/failed|escalated|^gap\./.test(name) || (name === "run.closed" && Number(data.exit) > 0)) return "problems";
  if (name.startsWith("question.")) return "questions";
  if (name === "task.committed") return "commits";
  if (name === "agent.activity") return data.kind === "error" || data.kind === "retry" ? "problems" : "agent";
  if (name === "cost.changed") return "cost";
  return /^(step|phase|run)\./.test(name) ? "steps" : "other";
}

/** An event in a few words; the panel has all of it. */
export function summaryOf({ name, data }: GsdEvent): string {
  const words = (key: string): string => (typeof data[key] === "string" || typeof data[key] === "number" ? String(data[key]) : "");
  switch (name) {
    case "agent.activity":
      return words("words");
    case "task.committed":
      return `${words("name")} (${words("commit").slice(0, 9)})`;
    case "step.completed":
      return words("subject");
    case "question.asked": {
      const inquiry = data.inquiry as { questions?: { text?: string }[] } | undefined;
      return inquiry?.questions?.map((one) => oneLine(one.text ?? "")).join(" / ") ?? "";
    }
    case "question.answered":
      return [words("words"), words("by") && `by ${words("by")}`].filter(Boolean).join(", ");
    case "gap.found":
      return (data.gaps as { truth?: string }[] | undefined)?.map((gap) => gap.truth ?? "").join("; ") ?? "";
    case "cost.changed":
      return [data.dollars ? money(words("dollars"), words("basis")) : "", data.tokens ? count(Number(data.tokens), "token") : ""].filter(Boolean).join(", ") || count(Number(data.calls ?? 1), "call");
    case "run.closed":
      return [words("outcome"), words("reason")].filter(Boolean).join(": ");
    default:
      break;
  }
  const error = data.error;
  if (error && typeof error === "object") return String((error as Record<string, unknown>).message ?? "");
  return ["name", "idea", "reason", "why", "subject", "outcome", "kind", "error"].map(words).filter(Boolean).join(" ");
}

interface Known {
  group: Group;
  text: string;
}

const known = new WeakMap<GsdEvent, Known>();

/** The group and the text to search in, made once: a filter reads them of 100,000 events. */
function knownOf(event: GsdEvent): Known {
  let found = known.get(event);
  if (!found) {
    found = { group: groupOf(event), text: `${event.name} ${eventWords(event.name)} ${event.step} ${stepWords(event.step)} ${summaryOf(event)}`.toLowerCase() };
    known.set(event, found);
  }
  return found;
}

export function HistoryPage({ session }: { session: string }): ReactElement {
  const log = useEventLog(session);
  const [chosen, setChosen] = useState<ReadonlySet<Group>>(new Set());
  const [query, setQuery] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const [target, setTarget] = useState<{ index: number }>();
  const [open, setOpen] = useState<GsdEvent | null>(null);
  const lastError = useRef(-1);
  const { version, events, isComplete } = log;
  useEffect(() => {
    let isShown = true;
    if (isComplete) void log.loadPast(() => isShown);
    return () => {
      isShown = false;
    };
  }, [log, isComplete]);

  const counts = useMemo(() => {
    const found = new Map<Group, number>();
    for (const event of events) {
      const { group } = knownOf(event);
      found.set(group, (found.get(group) ?? 0) + 1);
    }
    return found;
    // The list grows in place; its version tells when.
  }, [events, version]);
  const wanted = useDeferredValue(query.trim().toLowerCase());
  const shown = useMemo(() => {
    if (!chosen.size && !wanted) return events;
    return events.filter((event) => {
      const { group, text } = knownOf(event);
      return (!chosen.size || chosen.has(group)) && (!wanted || text.includes(wanted));
    });
  }, [events, version, chosen, wanted]);

  const jump = (): void => {
    const next = shown.findIndex((event, index) => index > lastError.current && knownOf(event).group === "problems");
    const index = next >= 0 ? next : shown.findIndex((event) => knownOf(event).group === "problems");
    lastError.current = index;
    if (index >= 0) {
      setFollowing(false);
      setTarget({ index });
    }
  };

  if (log.error && !events.length) return <Problem title={log.error} hint={log.hint} />;
  if (!log.isComplete && !events.length) return <Skeleton lines={12} shape="stream" />;
  return (
    <section className="stream">
      <div className="stream-bar">
        <input type="search" placeholder="Search (/)" aria-label="search events" value={query} onChange={(event) => setQuery(event.target.value)} />
        <Chips
          label="kind of event"
          options={GROUPS.filter((group) => counts.has(group)).map((group) => [group, group, counts.get(group) ?? 0] as const)}
          chosen={chosen}
          onToggle={(group) => setChosen(toggled(chosen, group))}
        />
        <span className="push stream-actions">
          <button type="button" onClick={jump} disabled={!counts.get("problems")}>
            Next problem
          </button>
          <button type="button" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
            {isFollowing ? "Following" : "Follow"}
          </button>
        </span>
      </div>
      <p className="stream-note" role="status" aria-busy={!log.isWhole}>
        {!log.isWhole && <>Reading older events … </>}
        {shown.length === events.length ? count(events.length, "event") : `${shown.length.toLocaleString("en-US")} of ${count(events.length, "event")}`}
        {events[0] && <>, since {dateTimeOf(events[0].at)}</>}
      </p>
      {shown.length ? (
        <VirtualList
          head={shown[0]?.seq}
          count={shown.length}
          rowHeight={26}
          narrow={{ below: 720, rowHeight: 62 }}
          label="events"
          follow={isFollowing}
          onFollowChange={setFollowing}
          target={target}
          row={(index) => {
            const event = shown[index];
            if (!event) return null;
            const { group } = knownOf(event);
            return (
              <button type="button" key={index} className={`event ${target?.index === index ? "found" : ""}`} onClick={() => setOpen(event)}>
                <span className="numeric muted">{timeOfDay(event.at)}</span>
                <span className={`event-name tone-${TONES[group]}`}>
                  {group === "problems" && <Icon name="warn" />}
                  {eventWords(event.name)}
                </span>
                <span className="event-step" title={event.step}>
                  {stepWords(event.step)}
                </span>
                <span className="event-text">{summaryOf(event)}</span>
              </button>
            );
          }}
        />
      ) : (
        <Empty title={events.length ? "No event matches" : "No events yet"}>
          {events.length ? "Clear the search or the filters." : "What the run does appears here."}
        </Empty>
      )}
      {open && (
        <Panel title={eventWords(open.name)} onClose={() => setOpen(null)}>
          <dl className="pairs">
            <dt>At</dt>
            <dd>{open.at}</dd>
            <dt>Step</dt>
            <dd>{open.step ? `${stepWords(open.step)} (${open.step})` : "–"}</dd>
            <dt>Event</dt>
            <dd>
              {open.name}, position {open.seq}
            </dd>
            <dt>Run</dt>
            <dd>{open.run}</dd>
          </dl>
          <pre tabIndex={0}>{JSON.stringify(open.data, null, 2)}</pre>
        </Panel>
      )}
    </section>
  );
}
