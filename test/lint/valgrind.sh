#!/usr/bin/env bash
# valgrind.sh BUILD: every unit test program under memcheck; a leak or an error fails.
set -uo pipefail
build=$1
fails=0
list=$(ctest --test-dir "$build" -N -L unit --show-only=json-v1 | python3 -c '
import json, sys
for t in json.load(sys.stdin)["tests"]:
    if "command" in t and "python" not in t["command"][0]:
        print(" ".join(t["command"]))')
[ -n "$list" ] || { echo "valgrind: no unit tests were found in $build"; exit 1; }
run() {
  out=$(TXRELAY_VALGRIND=1 valgrind -q --child-silent-after-fork=yes --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect --suppressions="$(dirname "$0")/../valgrind.supp" $1 2>&1)
  rc=$?
  if [ $rc -ne 0 ]; then printf 'FAILED (%d) under valgrind: %s\n%s\n' $rc "$1" "$(echo "$out" | tail -40)"; return 1; fi
  echo "ok $(basename ${1%% *})"
}
export -f run
export SHELL=/bin/bash
echo "$list" | sed "s|^|$(printf '%q' "$0") |" >/dev/null
echo "$list" | xargs -P "$(nproc)" -I{} bash -c 'run "{}"' "$0" || fails=1
exit $fails
