/** The development server: the page with hot reload, and the interface of a real server behind it. */
import type { Plugin } from "vite";

/** `npm run dev` passes requests to a running `gsd serve`; GSD_SERVE is its address. */
export function serveApi(): Plugin {
  const target = process.env.GSD_SERVE ?? "http://127.0.0.1:3333";
  return {
    name: "gsd-serve",
    apply: "serve",
    config: () => ({ server: { proxy: { "/api": { target, changeOrigin: true, ws: true, headers: { Origin: target } } } } }),
  };
}
