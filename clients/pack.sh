#!/usr/bin/env bash
# pack.sh FOLDER: makes what is published of the clients: FOLDER/txrelay-VERSION.tgz for npm and a wheel for PyPI.
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
mkdir -p "${1:?usage: pack.sh FOLDER}"
OUT=$(cd "$1" && pwd)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cp -r "$HERE/node" "$HERE/python" "$WORK/"
for package in node python; do cp "$HERE/../LICENSE" "$WORK/$package/"; done
rm -f "$OUT"/txrelay-*.tgz "$OUT"/txrelay-*.whl
(cd "$WORK/node" && npm pack --silent --pack-destination "$OUT") >&2
# setuptools writes into the folder that it builds.
(cd "$WORK/python" && /usr/bin/python3 -c 'import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])' "$OUT") \
  >"$WORK/wheel.log" 2>&1 || { tail -30 "$WORK/wheel.log" >&2; exit 1; }
