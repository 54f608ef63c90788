#!/usr/bin/env bash
# Each lint must be able to fail: plant one fault at a time in a small tree, and expect its finding. The layer table
# must stop the configure step as well.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fails=0

fresh() {
  rm -rf "$tmp/t" && mkdir -p "$tmp/t/base/include/base" "$tmp/t/store" "$tmp/t/chain" "$tmp/t/relay"
  cp "$root/CMakeLists.txt" "$root/.clang-format" "$tmp/t/"
  printf 'int base_nothing(void);\n' >"$tmp/t/base/include/base/x.h"
}
expect() { # name, text of the finding
  local out
  out=$(bash "$here/lint.sh" "$tmp/t" 2>&1)
  if [ $? -eq 0 ] || ! grep -q "$2" <<<"$out"; then
    echo "selftest: the $1 lint did not find its fault: $out"
    fails=1
  fi
}
fresh
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: a clean tree is refused: $out"; fails=1; fi
fresh && printf 'int   x ;\n' >"$tmp/t/base/a.c" && expect format 'formatting'
fresh && printf '#include "store/store.h"\n' >"$tmp/t/base/a.c" && expect include 'may not use'
fresh && printf '#include <uv.h>\n' >"$tmp/t/store/a.c" && expect door 'whose door is'
fresh && printf '#include <libpq-fe.h>\n' >"$tmp/t/relay/a.c" && expect door 'whose door is'
fresh && printf 'void f(char *a)\n{\n    strcpy(a, "x");\n}\n' >"$tmp/t/base/a.c" && expect banned 'banned call'
fresh && printf 'void f(void)\n{\n    sleep(1);\n}\n' >"$tmp/t/base/a.c" && expect banned 'banned call'
fresh && printf '/* TODO: later */\n' >"$tmp/t/base/a.c" && expect todo 'TODO'
fresh && printf 'const char *m = "author_submitExtrinsic";\n' >"$tmp/t/relay/a.c" && expect sender 'sends extrinsics'
fresh && printf 'void f(void)\n{\n    node_submit_start();\n}\n' >"$tmp/t/relay/a.c" && expect sender 'sends extrinsics'
fresh && printf 'echo "$out" | %s -q x\n' grep >"$tmp/t/a.sh" && expect pipe 'stops early'
fresh && printf 'const char *q = "DELETE FROM x";\n' >"$tmp/t/store/a.c" && expect sql 'SQL in a C string'

# The table of edges at configure time.
cp -r "$root/cmake" "$root/CMakeLists.txt" "$tmp/t/" && mkdir -p "$tmp/t/chain" && printf 'int chain_x;\n' >"$tmp/t/chain/a.c"
printf 'layer(base)\n' >"$tmp/t/base/CMakeLists.txt" && printf 'int base_x;\n' >"$tmp/t/base/a.c"
rm -rf "$tmp/t/store" && printf 'layer(chain USES base store)\n' >"$tmp/t/chain/CMakeLists.txt"
if out=$(cmake -S "$tmp/t" -B "$tmp/b" -G Ninja 2>&1) || ! grep -q "may not use 'store'" <<<"$out"; then
  echo "selftest: the layer table let a forbidden edge through: $(tail -3 <<<"$out")"
  fails=1
fi
[ $fails = 0 ] && echo "lint self-test: every lint can fail"
exit $fails
