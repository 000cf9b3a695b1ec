// Writes what JavaScript test runners report about each test case into the folder $GSD_CASES. NODE_OPTIONS loads
// this file into each process of Node.js, and names it as a reporter of `node --test`.
"use strict";
const { appendFileSync } = require("node:fs");
const path = require("node:path");

const folder = process.env.GSD_CASES;
const script = path.basename(process.argv[1] ?? "").replace(/\.[cm]?js$/, "");
if (folder && script === "jest") {
  process.argv.push("--json", `--outputFile=${folder}/jest-${process.pid}.json`);
} else if (folder && script === "vitest") {
  process.argv.push("--reporter=default", "--reporter=json", `--outputFile.json=${folder}/vitest-${process.pid}.json`);
} else if (folder && script === "mocha") {
  process.argv.push("--require", path.join(__dirname, "mocha.cjs"));
}

function write(file, titles, outcome) {
  const line = JSON.stringify({ file, titles, outcome });
  appendFileSync(`${folder}/node-${process.pid}.jsonl`, `${line}\n`);
}

module.exports = async function* (events) {
  const titles = [];
  for await (const { type, data } of events) {
    if (type === "test:start") titles[data.nesting] = data.name;
    const ended = type === "test:pass" || type === "test:fail";
    // A file of tests is a test of its own if it has none.
    if (!ended || data.details?.type === "suite" || data.name === data.file) continue;
    const skipped = data.skip !== undefined || data.todo !== undefined;
    const outcome = skipped ? "skipped" : type === "test:pass" ? "passed" : "failed";
    write(data.file ?? "", [...titles.slice(0, data.nesting), data.name], outcome);
  }
};
module.exports.write = write;
