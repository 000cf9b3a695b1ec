#!/bin/sh
# Installs GSD's own tool into DIR, for the tests that use tests/peer/reader.py, and vitest and husky, for those of
# everyday work in the sandbox: GSD_PEER_DIR=DIR pytest …
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

# The tools for the everyday work in the sandbox, apart: npm would remove the packages above.
mkdir -p tools
cd tools
printf '{"name": "tools", "private": true}\n' > package.json
npm install --no-audit --no-fund --ignore-scripts --no-save vitest@3.2.4 husky@9.1.7
test -x node_modules/.bin/vitest && test -x node_modules/.bin/husky
