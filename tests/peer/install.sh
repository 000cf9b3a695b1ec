#!/bin/sh
# Installs GSD's own tool into DIR, for the tests that use tests/peer/reader.py: GSD_PEER_DIR=DIR pytest …
set -eu
dir=${1:?usage: install.sh DIR}
mkdir -p "$dir"
cd "$dir"
[ -f package.json ] || printf '{"name": "peer", "private": true}\n' > package.json
npm install --no-audit --no-fund --ignore-scripts --no-save @opengsd/gsd-core@1.14.0
test -f node_modules/@opengsd/gsd-core/gsd-core/bin/gsd-tools.cjs
