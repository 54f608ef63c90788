#!/usr/bin/env bash
# moves.sh TXSIM SEEDS PROGRAM...: every move of the tables of phases and of a row's states (relay/core) is made by a
# scenario of PROGRAM... or by the simulator in one of the kept seeds. The last line proves that the check can fail.
set -euo pipefail
txsim=$1 seeds=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for program in "$@"; do
  TXRELAY_MOVES=$tmp/moves "$program" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
done
"$txsim" --file "$seeds" --moves "$tmp/moves"
touch "$tmp/none"
! "$txsim" --seeds 0 --moves "$tmp/none" >"$tmp/out" || { echo "moves.sh: with no seed every move was made"; exit 1; }
