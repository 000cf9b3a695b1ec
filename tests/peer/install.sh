#!/bin/sh
# Installs GSD's own tool into DIR, for the tests that use tests/peer/reader.py, and husky and runners of JavaScript
# tests, for those of everyday work in the sandbox and of test cases: GSD_PEER_DIR=DIR pytest …
set -eu
dir=${1:?usage: install.sh DIR}
mkdir -p "$dir"
cd "$dir"
[ -f package.json ] || printf '{"name": "peer", "private": true}\n' > package.json
npm install --no-audit --no-fund --ignore-scripts --no-save @opengsd/gsd-core@1.14.0 get-shit-done-cc@1.42.3
test -f node_modules/@opengsd/gsd-core/gsd-core/bin/gsd-tools.cjs
# GSD's commands for Claude Code, as a user has them, for tests/commands.
mkdir -p home
HOME="$PWD/home" node node_modules/get-shit-done-cc/bin/install.js --claude --global < /dev/null
test -f home/.claude/skills/gsd-plan-phase/SKILL.md

# The other tools, apart: npm would remove the packages above.
mkdir -p tools
cd tools
printf '{"name": "tools", "private": true}\n' > package.json
npm install --no-audit --no-fund --ignore-scripts --no-save vitest@3.2.4 husky@9.1.7 \
  jest@29.7.0 mocha@11.1.0
for tool in vitest husky jest mocha; do test -x "node_modules/.bin/$tool"; done
