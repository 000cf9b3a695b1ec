#!/bin/sh
# Installs GSD's own tool into DIR, for the tests that use tests/peer/reader.py, and vitest and husky, for those of
# everyday work in the sandbox: GSD_PEER_DIR=DIR pytest …
set -eu
dir=${1:?usage: install.sh DIR}
mkdir -p "$dir"
cd "$dir"
[ -f package.json ] || printf '{"name": "peer", "private": true}\n' > package.json
npm install --no-audit --no-fund --ignore-scripts --no-save @opengsd/gsd-core@1.14.0
test -f node_modules/@opengsd/gsd-core/gsd-core/bin/gsd-tools.cjs

# The tools for the everyday work in the sandbox, apart: npm would remove the packages above.
mkdir -p tools
cd tools
printf '{"name": "tools", "private": true}\n' > package.json
npm install --no-audit --no-fund --ignore-scripts --no-save vitest@3.2.4 husky@9.1.7
test -x node_modules/.bin/vitest && test -x node_modules/.bin/husky
