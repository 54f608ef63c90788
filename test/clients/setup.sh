#!/usr/bin/env bash
# setup.sh: builds what clients/ publishes, into build/clients: the tarball of `npm pack` and the wheel. Installs the drivers
# that the tests use from npm (package-lock.json pins them) and the packed client beside them, and unpacks the wheel.
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
DIR=$ROOT/build/clients
mkdir -p "$DIR"
exec 9>"$DIR/.lock"
flock 9

want=$(cat "$HERE/package.json" "$HERE/package-lock.json" | sha256sum)
if [ "$(cat "$DIR/installed" 2>/dev/null)" != "$want" ]; then
  echo "clients: installing $(grep -c '"node_modules/' "$HERE/package-lock.json") npm packages into $DIR (once)" >&2
  rm -f "$DIR/installed"
  cp "$HERE/package.json" "$HERE/package-lock.json" "$HERE/.npmrc" "$DIR/"
  (cd "$DIR" && npm ci --ignore-scripts) >"$DIR/npm.log" 2>&1 || { tail -30 "$DIR/npm.log" >&2; exit 1; }
  echo "$want" >"$DIR/installed"
fi

rm -rf "$DIR/node_modules/txrelay" "$DIR/python"
mkdir -p "$DIR/node_modules/txrelay" "$DIR/python"
"$ROOT/clients/pack.sh" "$DIR/packed"
tar -xzf "$DIR"/packed/txrelay-*.tgz -C "$DIR/node_modules/txrelay" --strip-components=1
cp "$HERE/clients.mjs" "$HERE/types.ts" "$DIR/" # Node resolves an import from the file's own folder
/usr/bin/python3 -m zipfile -e "$DIR"/packed/txrelay-*.whl "$DIR/python"
