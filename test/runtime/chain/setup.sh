#!/usr/bin/env bash
# setup.sh: installs what the tests take from npm (package-lock.json pins it) into build/runtime, makes the chain
# spec there, and copies our scripts next to it, because Node resolves an import from the file's own folder. Prints
# two lines: the folder, and the node binary to use. Repeated, it costs a tenth of a second.
#
# TXRELAY_RUNTIME_DIR: another folder than build/runtime.
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
DIR=${TXRELAY_RUNTIME_DIR:-$ROOT/build/runtime}
NODE_MIN=20

say() { echo "runtime: $*" >&2; }

# Runs npm; its output only matters when it fails.
npm_in() {
  local dir=$1
  shift
  if ! (cd "$dir" && npm "$@" --ignore-scripts --no-audit --no-fund) >"$dir/npm.log" 2>&1; then
    tail -30 "$dir/npm.log" >&2
    say "npm $1 failed in $dir (it needs an npm registry the first time)"
    exit 1
  fi
}

# Debian 12's node is 18; the packages need 20, whose plain binary npm also has.
find_node() {
  local have arch
  have=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
  if [ "$have" -ge "$NODE_MIN" ]; then
    command -v node
    return
  fi
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *) say "node $have is older than $NODE_MIN, and npm has no binary for $(uname -m): install node $NODE_MIN"; exit 1 ;;
  esac
  local dir=$DIR/node binary=$DIR/node/node_modules/node-linux-$arch/bin/node
  if [ ! -x "$binary" ]; then
    say "node $have is older than $NODE_MIN: installing the one of node/package-lock.json from npm"
    mkdir -p "$dir"
    cp "$HERE/node/package.json" "$HERE/node/package-lock.json" "$dir/" # its hash is in the lock file
    npm_in "$dir" ci
    [ -x "$binary" ] || { say "npm did not install node-linux-$arch: its hash is not the one of node/package-lock.json"; exit 1; }
  fi
  echo "$binary"
}

install_packages() {
  local want
  want=$(cat "$HERE/package.json" "$HERE/package-lock.json" | sha256sum)
  [ "$(cat "$DIR/installed" 2>/dev/null)" != "$want" ] || return 0
  say "installing $(grep -c '"node_modules/' "$HERE/package-lock.json") npm packages into $DIR (once)"
  rm -f "$DIR/installed" "$DIR/spec.json"
  cp "$HERE/package.json" "$HERE/package-lock.json" "$HERE/.npmrc" "$DIR/"
  npm_in "$DIR" ci
  echo "$want" >"$DIR/installed"
}

mkdir -p "$DIR"
exec 9>"$DIR/.lock"
flock 9 # two lanes at once install once
NODE=$(find_node)
install_packages
for file in "$HERE"/*.[cm]js "$HERE"/../*.mjs; do
  cmp -s "$file" "$DIR/${file##*/}" || cp "$file" "$DIR/"
done
if [ ! -s "$DIR/spec.json" ] || [ "$DIR/mkspec.mjs" -nt "$DIR/spec.json" ]; then
  "$NODE" "$DIR/mkspec.mjs" "$DIR/spec.json" >&2
fi
echo "$DIR"
echo "$NODE"
