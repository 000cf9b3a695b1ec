// @vitest-environment node
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";

const STATIC = join(import.meta.dirname, "../../static");
/** Of everything that is loaded first, compressed: over a slow tunnel, 100 kB take about a second. */
const BUDGET_BYTES = 250_000;
/** Loaded when somebody opens a terminal, and never. */
const LATER = /^(assets\/terminal-.*|licenses\.txt)$/;

it("is small when it is loaded first", () => {
  const files = readdirSync(STATIC, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(STATIC.length + 1));
  const first = files.filter((file) => !LATER.test(file));
  const total = first.reduce((sum, file) => sum + gzipSync(readFileSync(join(STATIC, file))).length, 0);

  expect(first).toContain("index.html");
  expect(first.some((file) => file.endsWith(".js"))).toBe(true);
  expect(total).toBeLessThan(BUDGET_BYTES);
});
