/**
 * The token: from the URL's fragment, then in sessionStorage, never in a cookie or a query. The last one of this
 * address is in localStorage too: links in notifications have no token and open in a new tab. It means nothing any
 * more once its server has stopped.
 */

const KEY = "gsd.token";
const TOKEN = /(?:^|[#&?])token=([\w.~-]+)/;

/** Take the token out of the fragment, if there is one, and remove it from the address bar and the history. */
export function takeToken(location: Location, history: History, tab: Storage, browser: Storage): string {
  const found = TOKEN.exec(location.hash);
  if (found?.[1]) {
    storeToken(found[1], tab, browser);
    const rest = location.hash.replace(TOKEN, "").replace(/^#?[&?]/, "");
    const route = rest.startsWith("/") || rest.startsWith("#/") ? `#${rest.replace(/^#/, "")}` : "#/";
    history.replaceState(null, "", `${location.pathname}${location.search}${route}`);
  }
  return tab.getItem(KEY) ?? browser.getItem(KEY) ?? "";
}

/** Return the token in what a person pasted: the token itself, or the URL that `gsd serve` printed. */
export function tokenIn(pasted: string): string {
  return TOKEN.exec(pasted)?.[1] ?? (/^[\w.~-]+$/.test(pasted.trim()) ? pasted.trim() : "");
}

export function storeToken(token: string, tab: Storage, browser: Storage): void {
  tab.setItem(KEY, token);
  browser.setItem(KEY, token);
}
