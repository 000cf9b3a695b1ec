// Runs `gsd-tools verify artifacts|key-links` over many projects in one process, because starting the tool
// costs a second each time. Usage: node peer.cjs VERIFY_MODULE PLAN < FOLDERS; prints a JSON list with one
// list of outputs for each folder.
"use strict";
const fs = require("node:fs");

const [module_, plan] = process.argv.slice(2);
const verify = require(module_);
const folders = JSON.parse(fs.readFileSync(0, "utf8"));

function outputOf(command, folder) {
  const write = fs.writeSync;
  const exit = process.exit;
  let text = "";
  // The tool answers on the standard output, and ends the process after an error.
  fs.writeSync = (fd, data, ...rest) => {
    if (fd !== 1 && fd !== 2) return write(fd, data, ...rest);
    if (fd === 1) text += data;
    return data.length;
  };
  process.exit = (code) => {
    throw new Error(`exit ${code}`);
  };
  try {
    command(folder, plan, false);
  } catch (error) {
    text = text || JSON.stringify({ error: String(error) });
  } finally {
    fs.writeSync = write;
    process.exit = exit;
  }
  return text;
}

const commands = [verify.cmdVerifyArtifacts, verify.cmdVerifyKeyLinks];
const answers = folders.map((folder) => commands.map((command) => outputOf(command, folder)));
fs.writeFileSync(1, JSON.stringify(answers));
process.exitCode = 0;
