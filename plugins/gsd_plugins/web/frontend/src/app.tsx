/** The frame of the page: rail, connection, notices, keys; and the page that the address names. */

import { lazy, Suspense, useCallback, useEffect, useRef, useState, type FormEvent, type ReactElement } from "react";

import { addressOf } from "./api/address";
import { tokenIn } from "./api/token";
import { canAlert, followAlerts, toggleAlerts, wantsAlerts } from "./state/alerts";
import { ago, folderName, money } from "./lib/format";
import { isTyping, KEYS, moveFocus, useKeys } from "./lib/keys";
import { go, RUN_TABS, runPath, useRoute, type Route } from "./lib/route";
import { useHub, useNow, useResource } from "./state/hooks";
import { PluginsPage } from "./pages/plugins";
import { QuestionsPage } from "./pages/questions";
import { RunPage } from "./pages/run";
import { ranked, RunsPage, spentToday } from "./pages/runs";
import { StartPage } from "./pages/start";
import { About, Contained, Empty, Panel, Skeleton } from "./ui/common";
import { Icon, Status, StatusIcon } from "./ui/status";

const TerminalsPage = lazy(() => import("./pages/terminals"));

export function App({ onToken }: { onToken: (token: string) => void }): ReactElement {
  const hub = useHub();
  const route = useRoute();
  const [hasHelp, setHelp] = useState(false);
  const pending = useRef("");
  const main = useRef<HTMLElement>(null);

  const press = useCallback(
    (key: string, event: KeyboardEvent): void => {
      const first = pending.current;
      pending.current = "";
      if (first === "g") {
        const target = { r: "#/", q: "#/q", t: "#/terminals", p: "#/plugins", n: "#/new" }[key];
        if (target) go(target);
        return;
      }
      if (key === "g") pending.current = "g";
      else if (key === "?") setHelp(true);
      else if (key === "j" || key === "k") moveFocus(key === "j" ? 1 : -1);
      else if (key === "t") toggleTheme();
      else if (key === "/") {
        const search = document.querySelector<HTMLInputElement>("main input[type=search]");
        search?.focus();
        if (search) event.preventDefault();
      } else if ((key === "[" || key === "]") && route.page === "run") {
        const now = RUN_TABS.findIndex((tab) => tab === route.tab);
        const next = (Math.max(0, now) + (key === "]" ? 1 : RUN_TABS.length - 1)) % RUN_TABS.length;
        go(runPath(route.session, RUN_TABS[next] ?? "overview"));
      }
    },
    [route],
  );
  useKeys(press);
  useEffect(() => {
    const leave = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && isTyping(event.target)) (event.target as HTMLElement).blur();
    };
    addEventListener("keydown", leave);
    return () => removeEventListener("keydown", leave);
  }, []);
  useTitle(route);
  useEffect(followAlerts, []);
  useEffect(() => {
    // scrollTo returns a promise in some browsers, and an effect may not.
    void main.current?.scrollTo(0, 0);
  }, [location.hash]);

  if (hub.link === "refused") return <Refused onToken={onToken} wasConnected={hub.isLoaded} />;
  return (
    <div className="frame">
      <a className="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <Rail route={route} onHelp={() => setHelp(true)} />
      <div className="content">
        <Disconnected />
        <main ref={main} id="main" tabIndex={0}>
          <div className={route.page === "terminals" || (route.page === "run" && ["history", "log", "terminal"].includes(route.tab)) ? "column fill" : "column"}>
            <Contained key={location.hash}>
              <Page route={route} />
            </Contained>
          </div>
        </main>
      </div>
      <Notices />
      {hasHelp && (
        <Panel title="Keys" onClose={() => setHelp(false)}>
          <dl className="pairs keys">
            {KEYS.map(([keys, what]) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
          <About version={hub.server?.version} />
        </Panel>
      )}
    </div>
  );
}

function Page({ route }: { route: Route }): ReactElement {
  switch (route.page) {
    case "runs":
      return <RunsPage />;
    case "new":
      return <StartPage />;
    case "questions":
      return <QuestionsPage question={route.question} />;
    case "plugins":
      return <PluginsPage />;
    case "terminals":
      return (
        <Suspense fallback={<Skeleton lines={8} shape="stream" />}>
          <TerminalsPage />
        </Suspense>
      );
    case "run":
      return <RunPage key={route.session} id={route.session} tab={route.tab} phase={route.phase} />;
    case "unknown":
      return (
        <Empty title="No such page">
          <a href="#/">All runs</a>
        </Empty>
      );
  }
}

const RAIL_RUNS = 30;

function Rail({ route, onHelp }: { route: Route; onHelp: () => void }): ReactElement {
  const hub = useHub();
  const asked = useResource(addressOf("/questions"));
  const open = (asked.data?.questions ?? []).filter((question) => !question.answer_given);
  const sessions = ranked(hub.sessions);
  const here = (page: Route["page"]): "page" | undefined => (route.page === page ? "page" : undefined);
  return (
    <nav className="rail" aria-label="main">
      <div className="brand">
        <strong>gsd</strong>
        <Connection />
      </div>
      <ul className="rail-main">
        <li>
          <a href="#/" aria-current={here("runs")}>
            <RailIcon d="M3 4h10M3 8h10M3 12h6" /> Runs
          </a>
        </li>
        <li>
          <a href="#/q" aria-current={here("questions")}>
            <RailIcon d="M3 3.5h10v7H8l-3 2.5v-2.5H3z" /> Questions
            {open.length > 0 && (
              <span className="badge ask" aria-label={`${open.length} open`}>
                {open.length}
              </span>
            )}
          </a>
        </li>
        <li>
          <a href="#/terminals" aria-current={here("terminals")}>
            <RailIcon d="M2.5 3.5h11v9h-11zM5 6.5l2 1.5-2 1.5M8.5 10h2.5" /> Terminals
          </a>
        </li>
        <li>
          <a href="#/plugins" aria-current={here("plugins")}>
            <RailIcon d="M6 2.5v3M10 2.5v3M4 5.5h8v2.5a4 4 0 0 1-8 0zM8 12v2" /> Plugins
          </a>
        </li>
      </ul>
      <ul className="rail-runs" aria-label="runs">
        {sessions.slice(0, RAIL_RUNS).map((session) => (
          <li key={session.id}>
            <a href={runPath(session.id)} aria-current={route.page === "run" && route.session === session.id ? "page" : undefined}>
              <StatusIcon state={session.state} />
              <span className="rail-name" title={session.project}>{folderName(session.project)}</span>
              <span className="muted numeric">{session.id}</span>
            </a>
          </li>
        ))}
        {sessions.length > RAIL_RUNS && (
          <li>
            <a href="#/" className="muted">
              All {sessions.length} runs
            </a>
          </li>
        )}
      </ul>
      <div className="rail-foot">
        <Spent />
        <Alerts />
        <button type="button" className="quiet" onClick={toggleTheme} aria-label="light or dark theme" title="theme (t)">
          <RailIcon d="M8 2.5a5.5 5.5 0 1 0 5.5 5.5A4.2 4.2 0 0 1 8 2.5z" />
        </button>
        <button type="button" className="quiet" onClick={onHelp} aria-label="keys" title="keys (?)">
          <kbd>?</kbd>
        </button>
      </div>
    </nav>
  );
}

function RailIcon({ d }: { d: string }): ReactElement {
  return (
    <svg className="icon rail-icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}

function Spent(): ReactElement {
  return <span className="muted numeric rail-spent">{money(spentToday(useHub().sessions))} today</span>;
}

/** Whether the browser tells when a question opens; it is asked for its permission on the first click. */
function Alerts(): ReactElement | null {
  const hub = useHub();
  const [isOn, setOn] = useState(wantsAlerts);
  if (!canAlert) return null;
  const toggle = async (): Promise<void> => {
    const found = await toggleAlerts().catch((error: unknown) => String(error));
    if (typeof found === "string") hub.notify("error", "No notifications", found, "alerts");
    else hub.notify("info", found ? "The browser tells you when a question opens, while this page is open" : "Notifications are off", "", "alerts");
    setOn(found === true);
  };
  return (
    <button type="button" className="quiet" aria-pressed={isOn} onClick={() => void toggle()} aria-label="notify me of questions" title="notify me of questions">
      <RailIcon d={`M8 2.5a3.6 3.6 0 0 1 3.6 3.6c0 3 1.4 4.4 1.4 4.4H3s1.4-1.4 1.4-4.4A3.6 3.6 0 0 1 8 2.5zM6.7 13h2.6${isOn ? "" : "M3 3l10 10"}`} />
    </button>
  );
}

function Connection(): ReactElement {
  const hub = useHub();
  const word = hub.link === "live" ? "connected" : hub.link === "lost" ? "disconnected" : "connecting";
  const state = hub.link === "live" ? "completed" : hub.link === "lost" ? "failed" : "waiting";
  return (
    <span className="connection" role="status">
      <Status state={state} word={word} />
    </span>
  );
}

function Disconnected(): ReactElement | null {
  const hub = useHub();
  const now = useNow();
  // A short break is repaired before anybody has read the banner.
  if (!hub.lostAt || now - hub.lostAt < 1500) return null;
  return (
    <div className="banner" role="alert">
      <Icon name="warn" />
      <span>
        {hub.isLoaded ? (
          <>
            Disconnected {ago(now - hub.lostAt)}. What is shown may be outdated; the runs continue.
          </>
        ) : (
          <>The server cannot be reached: {hub.startError?.message}.</>
        )}
      </span>
      <button type="button" onClick={() => hub.reconnect()}>
        Reconnect
      </button>
    </div>
  );
}

function Notices(): ReactElement {
  const hub = useHub();
  return (
    <div className="notices" role="status" aria-live="polite">
      {hub.notices.map((notice) => (
        <div key={notice.id} className={`notice ${notice.kind}`}>
          <Icon name={notice.kind === "error" ? "warn" : "check"} className={notice.kind === "error" ? "tone-bad" : "tone-good"} />
          <div>
            <p>{notice.text}</p>
            {notice.hint && <p className="muted">{notice.hint}</p>}
          </div>
          <button type="button" className="quiet" aria-label="dismiss" onClick={() => hub.dismiss(notice.id)}>
            <Icon name="cross" />
          </button>
        </div>
      ))}
    </div>
  );
}

/** Without a valid token, there is nothing to show: ask for one. */
export function Refused({
  onToken,
  wasConnected = false,
}: {
  onToken: (token: string) => void;
  wasConnected?: boolean;
}): ReactElement {
  const [isWrong, setWrong] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const token = tokenIn(String(new FormData(event.currentTarget).get("token") ?? ""));
    setWrong(!token);
    if (token) onToken(token);
  };
  return (
    <main className="refused">
      <h1>gsd</h1>
      {wasConnected ? (
        <p role="alert">
          The server was started again with a new token. The runs continued meanwhile. With the new token, this page
          shows them again, where it was. <code>gsd serve --keep-token</code> keeps the token.
        </p>
      ) : (
        <p>This page needs the token of the running server, which changes with each start unless it is kept.</p>
      )}
      <form onSubmit={submit}>
        <label>
          <span>
            The address that <code>gsd serve</code> printed, or the token in it
          </span>
          <input name="token" type="password" autoComplete="off" required autoFocus />
        </label>
        <button type="submit" className="primary">
          Open
        </button>
        {isWrong && <p role="alert">That is neither an address with a token nor a token.</p>}
      </form>
    </main>
  );
}

function useTitle(route: Route): void {
  const hub = useHub();
  const asked = useResource(addressOf("/questions"));
  const open = (asked.data?.questions ?? []).filter((question) => !question.answer_given).length;
  const session = route.page === "run" ? hub.sessions.find((one) => one.id === route.session) : undefined;
  const name = session ? folderName(session.project) : route.page === "questions" ? "Questions" : "Runs";
  const title = `${open ? `(${open}) ` : ""}${name} · gsd`;
  useEffect(() => {
    document.title = title;
  }, [title]);
}

const THEME_KEY = "gsd.theme";

export function applyTheme(): void {
  const theme = localStorage.getItem(THEME_KEY);
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

function toggleTheme(): void {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem(THEME_KEY, root.dataset.theme);
}
