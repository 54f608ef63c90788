#!/usr/bin/env bash
# hardened_test.sh: a program and a library made with the flags of the preset `release` pass hardened.sh, and without any one
# of the flags that it can see they do not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
flags() {
  python3 - "$here/../../CMakePresets.json" "$1" <<'PY'
import json, sys
preset = next(p for p in json.load(open(sys.argv[1]))['configurePresets'] if p['name'] == 'release')
print(preset['cacheVariables'][sys.argv[2]])
PY
}
cat >t.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* How large p is, is known when it runs: level 3 checks the copy, level 2 does not. */
int copy(const char *text, size_t n)
{
    char *p = malloc(n), small[64];
    memcpy(p, text, n / 2 + 5);
    snprintf(small, sizeof(small), "%s", p);
    free(p);
    return puts(small);
}
#ifdef PROGRAM
int main(int argc, char **argv) { return copy(argv[0], (size_t)argc); }
#endif
C
compile=$(flags CMAKE_C_FLAGS) program=$(flags CMAKE_EXE_LINKER_FLAGS) library=$(flags CMAKE_SHARED_LINKER_FLAGS)
make_both() { # compile flags, linker flags of each
  gcc $1 $2 -DPROGRAM t.c -o t && gcc $1 -fPIC -shared $3 t.c -o t.so
}
fail() { echo "hardened_test: $*" >&2; exit 1; }
make_both "$compile" "$program" "$library"
"$here/hardened.sh" t t.so || fail "the flags of the preset do not pass"
refused() { # what is wrong, words of the finding
  ! "$here/hardened.sh" t t.so >out 2>&1 || fail "$1: not found"
  grep -q -- "$2" out || fail "$1: $(cat out)"
}
# The compiler of a distribution may have some of these by itself, so they are switched off and not left out.
make_both "$compile -fno-stack-protector" "$program" "$library" && refused 'no stack protector' 'stack protector'
make_both "$compile -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2" "$program" "$library" && refused 'level 2' 'checked copies'
make_both "$compile -fPIE" "$program -no-pie" "$library" && refused 'no PIE' 'position-independent'
make_both "$compile" "${program/relro/norelro}" "$library" && refused 'a program without relro' 't: has no read-only'
make_both "$compile" "$program" "${library/relro/norelro}" && refused 'a library without relro' 't.so: has no read-only'
make_both "$compile" "${program/now/lazy}" "$library" && refused 'a program that binds late' 't: binds'
make_both "$compile" "$program" "${library/now/lazy}" && refused 'a library that binds late' 't.so: binds'
make_both "$compile" "${program/noexecstack/execstack}" "$library" && refused 'an executable stack' 'executable stack'
make_both "${compile/auto-var-init=zero/auto-var-init=uninitialized}" "$program" "$library" && refused 'variables' 'auto-var-init'
make_both "$compile -fno-stack-clash-protection" "$program" "$library" && refused 'the guard page' 'stack-clash'
# One file of two without it.
echo 'int other(void) { return 0; }' >other.c
gcc ${compile/-fstack-clash-protection/-fno-stack-clash-protection} -fPIC -c other.c -o other.o
make_both "$compile" "$program other.o" "$library other.o" && refused 'one file' 'stack-clash'
[ "$(uname -m)" != x86_64 ] || { make_both "$compile -fcf-protection=none" "$program" "$library" && refused 'no CET' 'landing pads'; }
