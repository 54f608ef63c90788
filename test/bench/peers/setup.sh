#!/usr/bin/env bash
# Installs what the bench measures against (package-lock.json pins it, a node of its own among it) into build/peers, once,
# and copies our scripts next to it, because Node resolves an import from the file's own folder. Prints two lines: the
# folder, and the node binary to use.
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
DIR=${TXRELAY_PEERS_DIR:-$HERE/../../../build/peers}
mkdir -p "$DIR"
DIR=$(cd "$DIR" && pwd)
exec 9>"$DIR/.lock"
flock 9 # two at once install once
want=$(cat "$HERE/package.json" "$HERE/package-lock.json" | sha256sum)
if [ "$(cat "$DIR/installed" 2>/dev/null)" != "$want" ]; then
  echo "bench: installing $(grep -c '"node_modules/' "$HERE/package-lock.json") npm packages into $DIR (once)" >&2
  rm -f "$DIR/installed"
  cp "$HERE/package.json" "$HERE/package-lock.json" "$HERE/.npmrc" "$DIR/"
  if ! (cd "$DIR" && npm ci --ignore-scripts --no-audit --no-fund) >"$DIR/npm.log" 2>&1; then
    tail -30 "$DIR/npm.log" >&2
    echo "bench: npm ci failed in $DIR (it needs an npm registry the first time)" >&2
    exit 1
  fi
  echo "$want" >"$DIR/installed"
fi
for file in "$HERE"/*.mjs; do
  cmp -s "$file" "$DIR/${file##*/}" || cp "$file" "$DIR/"
done
NODE=$(ls "$DIR"/node_modules/node-linux-*/bin/node 2>/dev/null | sed -n 1p)
[ -n "$NODE" ] || { echo "bench: npm has no node binary for $(uname -m): these baselines run on x86_64 and aarch64" >&2; exit 1; }
echo "$DIR"
echo "$NODE"
