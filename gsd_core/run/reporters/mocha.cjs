"use strict";
const { write } = require("./cases.cjs");

exports.mochaHooks = {
  afterEach() {
    const test = this.currentTest;
    write(test.file ?? "", test.titlePath(), test.state === "passed" ? "passed" : "failed");
  },
};
