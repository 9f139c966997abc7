#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds gradscribe/live_assets/codemirror.js and the file of its licences.  Needs Node 18 or newer and npm; package-lock.json
# fixes the versions, so that the same files come out.  To take newer versions: npm update, then this script.
set -eu
cd "$(dirname "$0")"
out=../../gradscribe/live_assets
npm ci --no-audit --no-fund
npx esbuild entry.js --bundle --format=esm --minify --target=es2020 --charset=ascii --legal-comments=none \
  --outfile="$out/codemirror.js"
node licences.js > "$out/codemirror.LICENSE"
