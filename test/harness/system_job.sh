#!/usr/bin/env bash
# One file of the system lane: POOL MODULE. Says what it measured; all of its output when it fails.
set -u
cd "$(dirname "$0")/../.."
name="${2#system.test_}-$1"
log="build/system/$name.log"
[ "$1" = fork-aware ] && export TXRELAY_POOL=fork-aware TXRELAY_KILL_ROUNDS=3
export TXRELAY_LANE=system
begun=$SECONDS
(cd test && exec "$PY" -m unittest -v "$2") >"$log" 2>&1
rc=$?
echo "$((SECONDS - begun)) s $name" >>build/system/times
{
  flock 9
  echo "-- $name: $((SECONDS - begun)) s"
  if [ $rc = 0 ]; then grep -vE '\.\.\. ok$|^[A-Z].*\.$|^ok$|^-*$|^$|^OK|^test_' "$log" | tail -60; else tail -150 "$log"; fi
} 9>build/system/lock
exit $rc
