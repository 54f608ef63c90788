#!/usr/bin/env bash
# valgrind.sh BUILD [all]: the unit test programs under memcheck; an error or a lost block fails. TXRELAY_VALGRIND=1 tells the
# replayed fuzz targets and the longest tests to run fewer rounds: all of them run under asan. What memcheck sees and asan does not is
# memory that was never written, and for that each line runs once: a core's own test does that, and a search of its states
# (label search) is left out. `all` (./dev test memcheck) runs the node's tests and the links' as well, which take half of the time.
set -uo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
export SUPP=$here/../valgrind.supp TXRELAY_VALGRIND=1
list=$(ctest --test-dir "$build" -N -L unit --show-only=json-v1 | /usr/bin/python3 -c '
import json, sys
for t in json.load(sys.stdin)["tests"]:
    if len(t.get("command", [])) == 1:
        print(t["command"][0])' |
  grep -vE '/(chain_codec_random|chain_crypto_keys|chain_extrinsic_vectors|chain_metadata|commands)_test$|/relay_manager_answer$|/devchain_' |
  grep -vE '/(listen_flood|site_promise)_test$' | # large numbers of what other tests of the same lines do once
  grep -vE '/(chain_(rpc|rpc_tls|node|node_submit)|site_room)_test$') # minutes each; then those whose deadlines memcheck overruns
[ "${2:-}" = all ] || list=$(grep -vE '/(chain_node_[a-z]+|site_link|feed_room|net_grpc|http_events)_test$' <<<"$list")

long='_(scale|follow|confirm)(_test)?$' # half a minute and more: they begin
list=$(grep -E "$long" <<<"$list"; grep -vE "$long" <<<"$list")

[ -n "$list" ] || { echo "valgrind: no unit tests were found in $build"; exit 1; }
run() {
  local start=$SECONDS out rc
  out=$(timeout 600 valgrind -q --read-inline-info=no --child-silent-after-fork=yes --error-exitcode=99 --leak-check=full \
    --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --suppressions="$SUPP" "$1" 2>&1)
  rc=$?
  if [ $rc -ne 0 ] && [ -z "${2:-}" ]; then
    printf 'once more: %s (%d)\n' "$1" $rc
    run "$1" again
    return
  fi
  if [ $rc -ne 0 ]; then
    printf 'FAILED (%d) under valgrind: %s\n%s\n' $rc "$1" "$(echo "$out" | tail -40)"
    return 1
  fi
  printf 'ok %s (%d s)\n' "$(basename "$1")" $((SECONDS - start))
}
export -f run
echo "$list" | xargs -P "$(($(nproc) + 1))" -I{} bash -c 'run {}'
