#!/usr/bin/env bash
# moves.sh TXSIM SEEDS LIST PROGRAM...: every move of the tables of phases and of a row's states (relay/core) is made by the
# simulator in one of the kept seeds. In place of those in LIST, which few seeds make, a scenario of PROGRAM... suffices.
set -euo pipefail
txsim=$1 seeds=$2 list=$3
shift 3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The names of the moves, "A --> B", one a line.
never_made() { { grep ' --> ' || true; } | cut -d: -f1 | sort; }

[ $# -gt 0 ] || { echo "moves.sh: no scenarios"; exit 1; }
for program in "$@"; do
  TXRELAY_MOVES=$tmp/moves "$program" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
done
touch "$tmp/none"
! "$txsim" --seeds 0 --moves "$tmp/none" >"$tmp/out" || { echo "moves.sh: with no seed every move was made"; exit 1; }
"$txsim" --file "$seeds" --moves "$tmp/none" >"$tmp/sim" || true # 1: a move is missing, which the list may have
grep -q '^every invariant held$' "$tmp/sim" || { cat "$tmp/sim"; exit 1; }
"$txsim" --seeds 0 --moves "$tmp/moves" >"$tmp/scenarios" || true # they need not make all of them
never_made <"$tmp/out" >"$tmp/all"
never_made <"$tmp/sim" >"$tmp/sim.never"
never_made <"$tmp/scenarios" >"$tmp/scenarios.never"
grep -v '^#' "$list" | never_made >"$tmp/listed"
! comm -13 "$tmp/listed" "$tmp/sim.never" | grep . || { echo "moves.sh: the simulator does not make these"; exit 1; }
! comm -23 "$tmp/listed" "$tmp/all" | grep . || { echo "moves.sh: $list has these, and the tables do not"; exit 1; }
! comm -12 "$tmp/sim.never" "$tmp/scenarios.never" | grep . || { echo "moves.sh: nobody makes these"; exit 1; }
