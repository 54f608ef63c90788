#!/usr/bin/env bash
# Installs the driver of the browser (package-lock.json pins it) into build/page, once, and copies our script next to it, because
# Node resolves an import from the file's own folder. Prints the folder. The browser is the distribution's package chromium.
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
DIR=${TXRELAY_PAGE_DIR:-$HERE/../../build/page}
mkdir -p "$DIR"
DIR=$(cd "$DIR" && pwd)
exec 9>"$DIR/.lock"
flock 9 # two at once install once
want=$(cat "$HERE/package.json" "$HERE/package-lock.json" | sha256sum)
if [ "$(cat "$DIR/installed" 2>/dev/null)" != "$want" ]; then
  rm -f "$DIR/installed"
  cp "$HERE/package.json" "$HERE/package-lock.json" "$HERE/.npmrc" "$DIR/"
  if ! (cd "$DIR" && npm ci --ignore-scripts --no-audit --no-fund) >"$DIR/npm.log" 2>&1; then
    tail -30 "$DIR/npm.log" >&2
    echo "page: npm ci failed in $DIR (it needs an npm registry the first time)" >&2
    exit 1
  fi
  echo "$want" >"$DIR/installed"
fi
cmp -s "$HERE/driver.mjs" "$DIR/driver.mjs" || cp "$HERE/driver.mjs" "$DIR/"
echo "$DIR"
