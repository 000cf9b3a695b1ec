import { defineConfig } from "vitest/config";
import { serveApi } from "./dev/vite-plugin.ts";

// The built files are committed, and CI compares them with a new build: nothing in them may depend on the
// machine, the folder or the time.
export default defineConfig({
  base: "./",
  html: { cspNonce: "__GSD_NONCE__" },
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    // The preload helper would add links by script; the first load is one file anyway.
    modulePreload: false,
    // An image as a data URL would be refused by a stricter policy than ours.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The wheel redistributes these packages, and their licenses ask for a copy.
    license: { fileName: "licenses.txt" },
  },
  plugins: [serveApi()],
  test: { environment: "jsdom", include: ["tests/**/*.test.{ts,tsx}"], restoreMocks: true },
});
