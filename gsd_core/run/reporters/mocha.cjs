"use strict";
const { realpathSync } = require("node:fs");
const { createRequire } = require("node:module");
const { write } = require("./cases.cjs");

// Mocha has one reporter at a time, and calls no hooks for cases that are skipped.
const Runner = createRequire(realpathSync(process.argv[1]))("mocha/lib/runner.js");
const { emit } = Runner.prototype;
const outcomes = { pass: "passed", fail: "failed", pending: "skipped" };

Runner.prototype.emit = function (event, test, ...rest) {
  if (Object.hasOwn(outcomes, event) && test.type === "test") {
    write(test.file ?? "", test.titlePath(), outcomes[event]);
  }
  return emit.call(this, event, test, ...rest);
};
