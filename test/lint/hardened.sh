#!/usr/bin/env bash
# hardened.sh FILE...: refuse programs and shared libraries that were linked without what the preset `release` asks for.
# `./dev build release` runs it; hardened_test.sh shows that each flag counts.
#
# The CET note (IBT, SHSTK) is not looked for: the linker leaves it out where one object has none, and Debian 12's startup
# objects have none. The landing pads are looked for in its place.
set -euo pipefail
bad=0
wants() { # what, file, command...: its output is not empty
  local what=$1 file=$2
  shift 2
  [ -n "$("$@" 2>/dev/null)" ] || { echo "hardened: $file: $what"; bad=1; }
}
header() { readelf -hW "$1" | grep 'Type:.*DYN'; }
segment() { readelf -lW "$1" | grep "$2"; }
dynamic() { readelf -dW "$1" | grep -E "$2"; }
symbol() { readelf -W --dyn-syms "$1" | grep -E " UND $2"; }
# main of a program, what a library exports first.
lands() {
  local name
  name=$(readelf -sW "$1" | awk '$4 == "FUNC" && $8 == "main" { print $8; exit }')
  [ -n "$name" ] || name=$(readelf -W --dyn-syms "$1" | awk '$4 == "FUNC" && $5 == "GLOBAL" && $7 != "UND" { print $8; exit }')
  objdump -d --no-show-raw-insn --disassemble="${name%%@*}" "$1" | grep endbr64
}
# Every file in C was compiled with this switch. Its debug information has the switches, of a file of its own each.
compiled() {
  local all
  all=$(readelf -wi --dwarf-depth=1 "$1" | grep 'DW_AT_producer.*GNU C') || return 0
  grep -qv -e "$2" <<<"$all" || echo yes
}
for file in "$@"; do
  [ -f "$file" ] || { echo "hardened: $file is missing"; exit 1; }
  wants 'is no position-independent executable (-fPIE -pie)' "$file" header "$file"
  wants 'has no read-only relocations (-z relro)' "$file" segment "$file" GNU_RELRO
  wants 'binds symbols late (-z now)' "$file" dynamic "$file" '\(BIND_NOW\)|BIND_NOW|NOW'
  wants 'has an executable stack (-z noexecstack)' "$file" segment "$file" 'GNU_STACK .* RW '
  wants 'has no stack protector (-fstack-protector-strong)' "$file" symbol "$file" __stack_chk_fail
  wants 'has no checked copies (_FORTIFY_SOURCE=3)' "$file" symbol "$file" '__mem(cpy|move|set)_chk'
  wants 'has files whose variables begin with whatever was there (-g -ftrivial-auto-var-init=zero)' "$file" \
    compiled "$file" -ftrivial-auto-var-init=zero
  wants 'has files whose stack may jump over the guard page (-g -fstack-clash-protection)' "$file" \
    compiled "$file" -fstack-clash-protection
  [ "$(uname -m)" != x86_64 ] || wants 'has no landing pads (-fcf-protection)' "$file" lands "$file"
done
exit $bad
