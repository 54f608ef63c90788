#!/usr/bin/env bash
# Checks the Spin models: the rules hold, and every weakened variant is refuted. One line each.
#   run.sh [MODEL]     leadership, doorbell or sites; without it all
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# check MODEL CLAIM holds|refuted [-DVARIANT...]
check() {
  local model=$1 claim=$2 wanted=$3 dir out seen fair=()
  shift 3
  dir=$(mktemp -d -p "$tmp")
  [ "$claim" = live ] && fair=(-f)
  out=$(cd "$dir" && spin -a "$@" "$here/$model.pml" >spin.log 2>&1 && gcc -O1 -w -DMEMLIM=2000 -o pan pan.c &&
    ./pan -m1000000 -a "${fair[@]}" -N "$claim" 2>&1) || { echo "$model: spin or gcc failed"; cat "$dir/spin.log"; failed=1; return; }
  if grep -q 'max search depth too small\|reached -DMEMLIM' <<<"$out"; then seen=undecided
  elif grep -q 'errors: 0' <<<"$out"; then seen=holds
  else seen=refuted; fi
  local variant="${*//-D/}" states
  states=$(grep -m1 -oE '[0-9]+ states, stored' <<<"$out")
  printf '%-11s %-6s %-28s %-8s %s\n' "$model" "$claim" "${variant:-as built}" "$seen" "${states% stored}"
  if [ "$seen" != "$wanted" ]; then
    echo "  it should be $wanted"
    failed=1
  fi
}

case ${1:-all} in all | leadership)
  for claim in once live; do
    check leadership $claim holds
    check leadership $claim holds -DUNLOCKED
  done
  check leadership once refuted -DNO_EPOCH_IN_WRITE
  check leadership once refuted -DRENEW_ANY -DUNLOCKED
  check leadership once refuted -DNO_LOCK
  check leadership once refuted -DSEND_FIRST
  check leadership live refuted -DEVICT_ANY
  ;;
esac
case ${1:-all} in all | doorbell)
  check doorbell heard holds
  for variant in FLAG THROTTLE NO_SECOND_LOOK; do check doorbell heard refuted -D$variant; done
  ;;
esac
case ${1:-all} in all | sites)
  check sites once holds
  check sites once holds -DOWN -DHEIGHTS=2 -DMAX_FAULTS=0
  for variant in EARLY BY_ID UNGRANTED SILENCE UNFINAL FORGETFUL NO_WAIT WAIT_MEMORY NO_ADOPT NO_BOUND; do
    check sites once refuted -D$variant -DONLY_ONCE
  done
  check sites once refuted -DNONCE_ONLY -DOWN -DHEIGHTS=2 -DONLY_ONCE
  check sites once refuted -DSILENCE # S-I5 by itself
  ;;
esac
exit $failed
