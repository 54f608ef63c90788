#!/usr/bin/env bash
# purity.sh CC BASE.a CORE.a...: the cores call base/, each other (the table of layers says which) and a few functions of
# the C library that depend on their arguments alone. A clock, a socket, the environment, a random number or SQL in a core
# is a finding. The last lines prove that the check can fail.
set -uo pipefail
cc=$1 base=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Of base/: not the log (it prints the time) and not the failpoints (they read the environment).
nm --defined-only "$base" | awk 'NF == 3 && $2 ~ /[TDBR]/ { print $3 }' | grep -vE '^(log_|failpoint_)' | sort -u >"$tmp/allowed"
printf '%s\n' free malloc calloc realloc exit qsort bsearch memchr memcmp memcpy memmove memset snprintf vsnprintf strcasestr \
  strchr strcmp strcspn strlen strncmp strrchr strspn strstr strtoll strtoul strtoull bcmp >>"$tmp/allowed"
for core in "$@"; do nm --defined-only "$core" | awk 'NF == 3 && $2 ~ /[TDBR]/ { print $3 }'; done >>"$tmp/allowed"

# Prints what ARCHIVE calls and may not; the names of instrumentation and of 128-bit arithmetic are left out.
impure() {
  nm --defined-only "$1" | awk 'NF == 3 { print $3 }' | cat - "$tmp/allowed" | sort -u >"$tmp/known"
  nm -u "$1" | awk '$1 == "U" { print $2 }' | grep -vE '^(__asan|__ubsan|__sanitizer|__stack_chk|__gcov|__[a-z]+_chk$|_GLOBAL_|__u?(div|mod)ti3$|__multi3$)' |
    sort -u | comm -23 - "$tmp/known"
}

bad=0
for core in "$@"; do
  calls=$(impure "$core" | tr '\n' ' ')
  [ -z "$calls" ] || { echo "$core is not pure: it calls $calls"; bad=1; }
done

printf '#include <time.h>\nlong f(void);\nlong f(void)\n{\n    struct timespec t;\n    clock_gettime(CLOCK_MONOTONIC, &t);\n    return t.tv_sec;\n}\n' >"$tmp/a.c"
"$cc" -c -o "$tmp/a.o" "$tmp/a.c" && ar rc "$tmp/a.a" "$tmp/a.o"
[ "$(impure "$tmp/a.a")" = clock_gettime ] || { echo "purity: a core that reads a clock was not found"; bad=1; }
[ $# -gt 0 ] || { echo "purity: no core was given"; bad=1; }
[ $bad = 0 ] && echo "$# cores are pure, and the check can fail"
exit $bad
