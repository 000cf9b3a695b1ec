/** Small parts that every page uses: loading, empty and failed states, the age of stale data, side panels. */

import { Component, useEffect, useRef, useState, type ReactElement, type ReactNode } from "react";

import type { Resource } from "../state/hub";
import { useClock, useHub, useNow } from "../state/hooks";
import { ago } from "../lib/format";
import { Icon } from "./status";

export type Shape = "rows" | "table" | "stream" | "cards" | "board" | "text";

/** Widths of words, in percent: the same each time, so that nothing flickers when a view renders again. */
const WORDS = [62, 84, 47, 73, 91, 55, 68, 39];

/** The shape of what comes: rows of a list or a table, lines of a log, cards below or beside each other. */
export function Skeleton({ lines = 3, shape = "table" }: { lines?: number; shape?: Shape }): ReactElement {
  const numbers = Array.from({ length: lines }, (_, index) => index);
  const bone = (index: number): ReactElement => <span key={index} className="bone" style={{ width: `${WORDS[index % WORDS.length]}%` }} />;
  const card = (index: number): ReactElement => (
    <div key={index} className="skeleton-card">
      {[index, index + 3, index + 5, index + 2].map(bone)}
    </div>
  );
  const cells = shape === "stream" ? [0] : [0, 2, 5];
  return (
    <div className={`skeleton ${shape}`} role="status" aria-label="loading">
      {shape === "board" ? (
        <div className="skeleton-board">{numbers.map(card)}</div>
      ) : shape === "cards" ? (
        numbers.map(card)
      ) : shape === "text" ? (
        numbers.map(bone)
      ) : (
        numbers.map((index) => (
          <div key={index} className="skeleton-row">
            <span className="bone" />
            {cells.map((cell) => bone(index * 3 + cell))}
          </div>
        ))
      )}
    </div>
  );
}

/** What this page is, and whose work is in it. */
export function About({ version }: { version: string | undefined }): ReactElement {
  return (
    <p className="muted about">
      gsd {version} ·{" "}
      <a href="licenses.txt" target="_blank" rel="noreferrer">
        Licenses of the packages in this page
      </a>
    </p>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }): ReactElement {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div>{children}</div>}
    </div>
  );
}

export function Problem({ title, hint, children }: { title: string; hint?: string; children?: ReactNode }): ReactElement {
  return (
    <div className="problem" role="alert">
      <Icon name="warn" />
      <div>
        <p>{title}</p>
        {hint && <p className="muted">{hint}</p>}
        {children}
      </div>
    </div>
  );
}

/** A defect in one view must not take the others, the navigation and an open question with it. */
export class Contained extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Problem title={`This view cannot be shown: ${error.message}`} hint="The runs continue. In a terminal, gsd status shows the same; please report this defect.">
        <p>
          <button type="button" onClick={() => this.setState({ error: null })}>
            Try again
          </button>
        </p>
      </Problem>
    );
  }
}

/** What was read, or why it cannot be shown: skeleton, error, or the view with its age if it is stale. */
export function Loaded<T>({
  from,
  children,
  ...skeleton
}: {
  from: Resource<T>;
  lines?: number;
  shape?: Shape;
  children: (data: T) => ReactNode;
}): ReactElement {
  if (from.data !== undefined)
    return (
      <>
        <Age of={from} />
        {children(from.data)}
      </>
    );
  if (from.error && !from.loading) return <Problem title={from.error.message} hint={from.error.hint} />;
  return <Skeleton {...skeleton} />;
}

/** Says how old the data is, but only when it can be outdated. */
function Age({ of }: { of: Resource<unknown> }): ReactElement | null {
  const hub = useHub();
  const now = useNow(5000);
  const isCutOff = hub.lostAt > 0 && hub.link !== "live";
  if (!isCutOff && !of.error) return null;
  return (
    <p className="stale">
      <Icon name="warn" /> as of {ago(now - of.at)}
      {of.error ? `: ${of.error.message}` : ""}
    </p>
  );
}

export function Elapsed({ from, to }: { from: string | null; to: string | null }): ReactElement {
  const now = useClock();
  if (!from) return <span className="numeric">–</span>;
  const end = to ? Date.parse(to) : now;
  const seconds = Math.max(0, Math.floor((end - Date.parse(from)) / 1000));
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return (
    <time className="numeric" dateTime={`PT${seconds}S`}>
      {parts.map((part) => String(part).padStart(2, "0")).join(":")}
    </time>
  );
}

export function Ago({ at }: { at: string | null | undefined }): ReactElement | null {
  const now = useNow(5000);
  if (!at) return null;
  return (
    <time dateTime={at} title={at}>
      {ago(now - Date.parse(at))}
    </time>
  );
}

export function Bar({ value, label, tone = "accent" }: { value: number; label: string; tone?: string }): ReactElement {
  const percent = Math.max(0, Math.min(100, value));
  return (
    <div className="bar" role="progressbar" aria-valuenow={Math.round(percent)} aria-valuemin={0} aria-valuemax={100} aria-label={label}>
      <span className={`bar-fill ${tone}`} style={{ width: `${percent}%` }} />
    </div>
  );
}

/** A button that asks once more before it acts; it forgets the first press after a while. */
export function ConfirmButton({
  children,
  confirm,
  onConfirm,
  disabled = false,
}: {
  children: ReactNode;
  confirm: string;
  onConfirm: () => void;
  disabled?: boolean;
}): ReactElement {
  const [isAsking, setAsking] = useState(false);
  useEffect(() => {
    if (!isAsking) return;
    const timer = setTimeout(() => setAsking(false), 4000);
    return () => clearTimeout(timer);
  }, [isAsking]);
  const press = (): void => {
    if (isAsking) onConfirm();
    setAsking(!isAsking);
  };
  return (
    <button type="button" className={isAsking ? "danger solid" : "danger"} disabled={disabled} onClick={press}>
      <span aria-live="polite">{isAsking ? confirm : children}</span>
    </button>
  );
}

/** Details beside the page; on a phone, above it. Esc closes it, and the focus returns to where it was. */
export function Panel({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }): ReactElement {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element && !element.open) element.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="panel"
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <header>
        <h2>{title}</h2>
        <button type="button" className="quiet" onClick={() => dialog.current?.close()} aria-label="close">
          <Icon name="cross" />
        </button>
      </header>
      <div className="panel-body">{children}</div>
    </dialog>
  );
}

const SHOWN_CHARACTERS = 400;

/** What gsd or a program reports, line by line; the rest of a long text is one click away. */
export function PlainText({ text, lines = 4 }: { text: string; lines?: number }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const short = text.split("\n").slice(0, lines).join("\n").slice(0, SHOWN_CHARACTERS);
  const isLong = short.length < text.trimEnd().length;
  return (
    <div className="plain-text">
      <p>
        <Quoted text={isOpen ? text : short} />
        {isLong && !isOpen && " …"}
      </p>
      {isLong && (
        <button type="button" className="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Show less" : "Show all"}
        </button>
      )}
    </div>
  );
}

/** Text with the two marks that messages use, `code` and **strong**: in what programs print, others mean nothing. */
function Quoted({ text }: { text: string }): ReactElement {
  return (
    <>
      {text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part, index) => {
        if (index % 2 === 0) return part;
        return part.startsWith("`") ? <code key={index}>{part.slice(1, -1)}</code> : <strong key={index}>{part.slice(2, -2)}</strong>;
      })}
    </>
  );
}

export function FontSize({ size, onSize }: { size: number; onSize: (size: number) => void }): ReactElement {
  return (
    <span className="push stream-actions" role="group" aria-label="font size">
      <button type="button" onClick={() => onSize(Math.max(8, size - 1))} disabled={size <= 8} aria-label="smaller">
        A−
      </button>
      <button type="button" onClick={() => onSize(Math.min(24, size + 1))} disabled={size >= 24} aria-label="larger">
        A+
      </button>
    </span>
  );
}

export function Chips<T extends string>({
  label,
  options,
  chosen,
  onToggle,
}: {
  label: string;
  options: readonly (readonly [value: T, word: string, count?: number])[];
  chosen: ReadonlySet<T>;
  onToggle: (value: T) => void;
}): ReactElement {
  return (
    <div className="chips" role="group" aria-label={label}>
      {options.map(([value, word, number]) => (
        <button key={value} type="button" className="chip" aria-pressed={chosen.has(value)} onClick={() => onToggle(value)}>
          {word}
          {number !== undefined && <span className="numeric muted">{number.toLocaleString("en-US")}</span>}
        </button>
      ))}
    </div>
  );
}

export function toggled<T>(set: ReadonlySet<T>, value: T): Set<T> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}
