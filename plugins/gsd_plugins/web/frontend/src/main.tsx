import { StrictMode, useMemo, useState, useEffect, type ReactElement } from "react";
import { createRoot } from "react-dom/client";

import { storeToken, takeToken } from "./api/token";
import { App, applyTheme, Refused } from "./app";
import { HubContext } from "./state/hooks";
import { Hub } from "./state/hub";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/parts.css";

function Root(): ReactElement {
  const [token, setToken] = useState(() => takeToken(location, history, sessionStorage, localStorage));
  const hub = useMemo(() => new Hub(location.origin, token), [token]);
  useEffect(() => {
    if (token) void hub.start();
    return () => hub.close();
  }, [hub, token]);
  useEffect(() => {
    // The address with a new token was opened in this tab.
    const changed = (): void => setToken(takeToken(location, history, sessionStorage, localStorage));
    const back = (): void => hub.reconnect();
    addEventListener("hashchange", changed);
    addEventListener("online", back);
    return () => {
      removeEventListener("hashchange", changed);
      removeEventListener("online", back);
    };
  }, [hub]);
  const use = (given: string): void => {
    storeToken(given, sessionStorage, localStorage);
    setToken(given);
  };
  if (!token) return <Refused onToken={use} />;
  return (
    <HubContext value={hub}>
      <App key={token} onToken={use} />
    </HubContext>
  );
}

applyTheme();
const root = document.getElementById("root");
if (root) createRoot(root).render(<StrictMode><Root /></StrictMode>);
