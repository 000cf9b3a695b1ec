/** The token of this browser tab: from the URL's fragment, then in sessionStorage, never in a cookie or a query. */

const KEY = "gsd.token";
const TOKEN = /(?:^|[#&?])token=([\w.~-]+)/;

/** Take the token out of the fragment, if there is one, and remove it from the address bar and the history. */
export function takeToken(location: Location, history: History, storage: Storage): string {
  const found = TOKEN.exec(location.hash);
  if (found?.[1]) {
    storage.setItem(KEY, found[1]);
    const rest = location.hash.replace(TOKEN, "").replace(/^#?[&?]/, "");
    const route = rest.startsWith("/") || rest.startsWith("#/") ? `#${rest.replace(/^#/, "")}` : "#/";
    history.replaceState(null, "", `${location.pathname}${location.search}${route}`);
  }
  return storage.getItem(KEY) ?? "";
}

/** Return the token in what a person pasted: the token itself, or the URL that `gsd serve` printed. */
export function tokenIn(pasted: string): string {
  return TOKEN.exec(pasted)?.[1] ?? (/^[\w.~-]+$/.test(pasted.trim()) ? pasted.trim() : "");
}

export function storeToken(token: string, storage: Storage): void {
  storage.setItem(KEY, token);
}

export function forgetToken(storage: Storage): void {
  storage.removeItem(KEY);
}
