#!/usr/bin/env bash
# run.sh [all]: the SQL contract and the main job on every Postgres version but 15, which all other lanes use.
#
# By default the parts of the contract that have differed between versions: plans, batches, settings and functions of the server.
# `all` (./dev test versions) runs the whole contract on each, and the demo on the newest. Output is in build/versions.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
PY=${PY:-/usr/bin/python3}
OUT=$PWD/../build/versions
PARTS=(test_history test_plans test_policy.Bump test_sessions test_lead.Closed)
MAIN=(system.test_main_job.MainJob.test_call_of_64_KiB system.test_main_job.MainJob.test_two_accounts_two_schemes_rollbacks)

job() { # VERSION sql|parts|main|demo|queue|moves (by dump, to version 18)
  local begun=$SECONDS log="$OUT/$1-$2.log" rc=0
  PG_BIN=$(versions/server.sh "$1")
  export PG_BIN
  case $2 in
    sql) (cd schema && exec "$PY" -B -m unittest discover -s . -p 'test_*.py') >"$log" 2>&1 || rc=$? ;;
    parts) (cd schema && exec "$PY" -B -m unittest "${PARTS[@]}") >"$log" 2>&1 || rc=$? ;;
    moves) TXRELAY_MOVE_TO=$(versions/server.sh 18) "$PY" -B -m unittest system.test_moves >"$log" 2>&1 || rc=$? ;;
    demo) "$PY" demo/demo.py --quiet --transactions 400 --seconds 6 >"$log" 2>&1 || rc=$? ;;
    queue) "$PY" -B -m unittest -v system.test_soak_queue >"$log" 2>&1 || rc=$? ;;
    main) "$PY" -B -m unittest -v "${MAIN[@]}" >"$log" 2>&1 || rc=$? ;;
  esac
  [ $rc = 0 ] || tail -100 "$log"
  echo "-- Postgres $1, $2: $((SECONDS - begun)) s$([ $rc = 0 ] || echo ', FAILED')"
  return $rc
}

if [ $# = 2 ]; then
  job "$@"
  exit
fi
mkdir -p "$OUT"
mapfile -t versions < <(awk '!/^#/ { print $1 }' versions/servers.lock | sort -rn)
for v in "${versions[@]}"; do versions/server.sh "$v" >/dev/null; done
export PY
{
  for v in "${versions[@]}"; do
    if [ "${1:-}" = all ]; then echo "$v sql"; else echo "$v parts"; fi
  done
  echo '13 moves'
  echo "${versions[0]} queue" # before 17 the queue has 8 GiB: ./dev soak queue
  [ "${1:-}" != all ] || echo "${versions[0]} demo"
  echo "${versions[-1]} demo"
  printf '%s main\n' "${versions[@]}"
} | xargs -P "${JOBS:-$(nproc)}" -L 1 versions/run.sh
