#!/usr/bin/env bash
# Each lint must be able to fail: plant one fault at a time in a small tree, and expect its finding. The layer table
# must stop the configure step as well.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fails=0
ran=0

fresh() {
  rm -rf "$tmp/t" && mkdir -p "$tmp/t/base/include/base" "$tmp/t/store" "$tmp/t/chain/codec" "$tmp/t/chain/node" "$tmp/t/relay" "$tmp/t/net"
  cp "$root/CMakeLists.txt" "$root/.clang-format" "$tmp/t/"
  printf 'int base_nothing(void);\n' >"$tmp/t/base/include/base/x.h"
  printf '#include "base/x.h"\n\nint base_nothing(void)\n{\n    return 0;\n}\n\nint main(void)\n{\n    return base_nothing();\n}\n' >"$tmp/t/base/x.c"
}
expect() { # name, text of the finding
  local out
  ran=$((ran + 1))
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
fresh && printf '#include "../store/a.h"\n' >"$tmp/t/base/a.c" && expect relative 'by a relative path'
fresh && mkdir -p "$tmp/t/relay/core/tx" && printf '#include "loop/loop.h"\n' >"$tmp/t/relay/core/tx/a.c" && expect core 'relay/core/tx may not use'
fresh && printf '#include <store/store.h>\n' >"$tmp/t/base/a.c" && expect brackets 'may not use'
fresh && printf '#include <uv.h>\n' >"$tmp/t/store/a.c" && expect door 'whose door is'
fresh && printf '#include <libpq-fe.h>\n' >"$tmp/t/relay/a.c" && expect door 'whose door is'
fresh && printf '#include <libwebsockets.h>\n' >"$tmp/t/chain/node/a.c" && expect door 'whose door is'
fresh && printf '#include <nghttp2/nghttp2.h>\n' >"$tmp/t/chain/node/a.c" && expect door 'whose door is'
fresh && printf '#include <protobuf-c/protobuf-c.h>\n' >"$tmp/t/net/a.c" && expect door 'whose door is'
fresh && printf '#include <secp256k1.h>\n' >"$tmp/t/chain/codec/a.c" && expect door 'whose door is'
fresh && printf '#include "chain/keys/keys.h"\n' >"$tmp/t/chain/codec/a.c" && expect room 'chain/codec may not use'
fresh && printf 'void f(char *a)\n{\n    strcpy(a, "x");\n}\n' >"$tmp/t/base/a.c" && expect banned 'banned call'
fresh && printf 'void f(void)\n{\n    sleep(1);\n}\n' >"$tmp/t/base/a.c" && expect banned 'banned call'
fresh && printf '/* TODO: later */\n' >"$tmp/t/base/a.c" && expect todo 'TODO'
fresh && printf 'const char *m = "author_submitExtrinsic";\n' >"$tmp/t/relay/a.c" && expect sender 'sends extrinsics'
fresh && printf 'void f(void)\n{\n    node_submit_start();\n}\n' >"$tmp/t/relay/a.c" && expect sender 'sends extrinsics'
fresh && printf 'void f(void)\n{\n    ws__conn_write();\n}\n' >"$tmp/t/chain/node/a.c" && expect gate 'past the gate'
fresh && printf 'echo "$out" | %s -q x\n' grep >"$tmp/t/a.sh" && expect pipe 'stops early'
fresh && printf 'npm_in "$dir" %s "x@1"\n' install >"$tmp/t/a.sh" && expect npm 'without a lock file'
fresh && printf '%s HEAD\n' '<<<<<<<' >"$tmp/t/a.md" && expect marker 'a conflict marker'
fresh && printf 'const char *q = "DELETE FROM x";\n' >"$tmp/t/store/a.c" && expect sql 'SQL in a C string'
aggregate() { # its name, folder
  fresh && mkdir -p "$tmp/t/$2" && printf 'SELECT %s(f(x)) FROM t;\n' "$1" >"$tmp/t/$2/01_a.sql"
}
aggregate array_agg schema/functions && expect aggregate 'without ORDER BY: schema/functions/01_a.sql: array_agg'
aggregate json_agg http/sql && expect aggregate 'without ORDER BY: http/sql/01_a.sql: json_agg'
aggregate jsonb_agg hook/sql && expect aggregate 'without ORDER BY: hook/sql/01_a.sql: jsonb_agg'
aggregate string_agg store/sql && expect aggregate 'without ORDER BY: store/sql/01_a.sql: string_agg'

# The manifest of migrations.
migrations() { # lines of the manifest
  fresh && mkdir -p "$tmp/t/schema/migrations" && printf 'SELECT 1;\n' >"$tmp/t/schema/migrations/0001_a.sql" &&
    printf 'SELECT 2;\n' >"$tmp/t/schema/migrations/0002_b.sql" && printf '%s\n' "$@" >"$tmp/t/schema/migrations/MANIFEST"
}
one=$(printf 'SELECT 1;\n' | sha256sum | cut -d' ' -f1)
two=$(printf 'SELECT 2;\n' | sha256sum | cut -d' ' -f1)
migrations '# a list' "frozen $one 0001_a.sql" 'open - 0002_b.sql'
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: a manifest that is right is refused: $out"; fails=1; fi
printf 'SELECT 3;\n' >"$tmp/t/schema/migrations/0002_b.sql"
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: an open migration may not change: $out"; fails=1; fi
printf 'SELECT 3;\n' >"$tmp/t/schema/migrations/0001_a.sql" && expect frozen 'is released and must not change'
migrations "frozen $one 0001_a.sql" && expect manifest 'lists other files'
migrations "frozen $one 0001_a.sql" "frozen $two 0002_b.sql" 'open - 0003_c.sql' && expect manifest 'lists other files'
migrations "open - 0001_a.sql" "frozen $two 0002_b.sql" && expect manifest 'before it is not'
migrations "frozen $one 0001_a.sql" 'thawed - 0002_b.sql' && expect manifest 'neither open nor frozen'

# The kept database of a release.
released() { # the manifest agrees with the files; the database has the first file as it was released
  migrations "$@" && mkdir -p "$tmp/t/test/upgrade/0.1.0" &&
    printf 'COPY txrelay.schema_version (version, name, checksum, applied_at) FROM stdin;\n1\t0001_a.sql\t%s\tnow\n\\.\n' "$one" >"$tmp/t/test/upgrade/0.1.0/dump.sql"
}
released "frozen $one 0001_a.sql" 'open - 0002_b.sql'
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: a release that is kept is refused: $out"; fails=1; fi
printf 'SELECT 3;\n' >"$tmp/t/schema/migrations/0003_c.sql" && echo 'open - 0003_c.sql' >>"$tmp/t/schema/migrations/MANIFEST"
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: a new migration is refused: $out"; fails=1; fi
released 'open - 0001_a.sql' 'open - 0002_b.sql' && printf 'SELECT 3;\n' >"$tmp/t/schema/migrations/0001_a.sql" && expect release 'must not change or go'
released 'open - 0002_b.sql' && rm "$tmp/t/schema/migrations/0001_a.sql" && expect release 'must not change or go'
released "frozen $one 0001_a.sql" 'open - 0002_b.sql' && printf -- '--\n' >"$tmp/t/test/upgrade/0.1.0/dump.sql" && expect release 'has no rows of schema_version'
fresh && printf '/* The operator is told of it. */\n' >"$tmp/t/base/a.c" && expect wording 'docs/glossary.md replaces'
fresh && mkdir -p "$tmp/t/docs" && printf 'It polls so often that it sees it.\n' >"$tmp/t/docs/a.md" && expect wording 'docs/glossary.md replaces'
fresh && mkdir -p "$tmp/t/docs" && printf 'And nobody `somebody` leads it.\n' >"$tmp/t/docs/a.md" && expect actor 'does not name the actor'
fresh && mkdir -p "$tmp/t/test" && printf 'def test_S13_a_call(self):\n    pass\n' >"$tmp/t/test/a.py" && expect names 'named after a list'
fresh && mkdir -p "$tmp/t/test" && printf 'static void p08_p09_a_call(void **state)\n' >"$tmp/t/test/a.c" && expect names 'named after a list'
wide=$(printf 'x%.0s' {1..101})
fresh && printf '/* %s */\n' "$wide" >"$tmp/t/base/a.c" && expect width 'over 100 columns'
fresh && printf '%s\n' "$wide" >"$tmp/t/a.md" && expect width 'over 100 columns'
fresh && mkdir -p "$tmp/t/schema/functions" && printf -- '-- %s\n' "$wide" >"$tmp/t/schema/functions/a.sql" && expect width 'over 100 columns'
fresh && mkdir -p "$tmp/t/test" && printf '# %s\n' "$wide" >"$tmp/t/test/a.py" && expect width 'over 100 columns'

# The map of a folder in a header.
map() { # files that the header of store/ lists; the folder has a.c to e.c
  fresh && for c in a b c d e; do echo "int store_$c;" >"$tmp/t/store/$c.c"; done && { echo '/* A map:'; printf ' *   %s what it has\n' "$@"; echo ' */'; } >"$tmp/t/store/x.h"
}
map a.c b.c c.c d.c e.c
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: a map that is right is refused: $out"; fails=1; fi
map a.c b.c c.c d.c f.c && expect map 'is not its folder: < f.c > e.c'

# A README for each folder, of a page.
explained() { # the README of store/, which has a folder pg/
  fresh && mkdir -p "$tmp/t/store/pg" "$tmp/t/base/include" && printf '# a tree\n' | tee "$tmp/t/README.md" "$tmp/t/base/README.md" >/dev/null &&
    printf 'SELECT 1;\n' >"$tmp/t/store/pg/a.sql" && printf "$1" >"$tmp/t/store/README.md"
}
explained '| `pg/` | requests |\n'
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: folders that are explained are refused: $out"; fails=1; fi
explained 'requests\n' && expect readme 'store/pg has no README.md'
explained '| `pg/` | requests |\n' && rm "$tmp/t/base/README.md" && expect readme 'base has no README.md'
explained "| \`pg/\` |\n$(printf '\\n%.0s' {1..60})" && expect readme 'more than 60 lines'

# The page of attacks.
attacks() { # lines of the page
  fresh && mkdir -p "$tmp/t/docs" "$tmp/t/test" && printf 'def test_a(self):\n    pass\n' >"$tmp/t/test/a.py" &&
    printf 'static void holds(void **state)\n{\n    (void)state;\n}\n' >"$tmp/t/test/a.c" && printf '%s\n' "$@" >"$tmp/t/docs/security.md"
}
attacks '| a | mended: so. | `test/a.py: test_a`, `test/a.c: holds` |' '| b | mended: so. No test. | |' '| c | open: why. | |'
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: a page of attacks that is right is refused: $out"; fails=1; fi
attacks '| a | mended: so. | `test/b.py: test_a` |' && expect attacks 'which does not exist'
attacks '| a | mended: so. | `test/a.py: test_a, test_b` |' && expect attacks 'the test test_b, which is not in'
attacks '| a | mended: so. | `test/a.c: hold` |' && expect attacks 'the test hold, which is not in'
attacks '| a | mended: so. | `test/a.py` |' && expect attacks 'mended without a test'

# Planted faults.
faults() { # entries of the table
  fresh && printf '/* clang-format off */\n' >"$tmp/t/base/include/base/plant.h" &&
    printf '    X(%s, "x", "x")\n' "$@" >>"$tmp/t/base/include/base/plant.h" &&
    printf 'int f(void)\n{\n    return PLANTED(FIRST) + PLANTED(SECOND) + PLANTED(FIRST);\n}\n' >"$tmp/t/base/a.c"
}
faults FIRST SECOND
if ! out=$(bash "$here/lint.sh" "$tmp/t" 2>&1); then echo "selftest: planted faults that are right are refused: $out"; fails=1; fi
faults FIRST SECOND THIRD && expect plant 'without a hook.*< THIRD'
faults FIRST SECOND SECOND && expect plant 'twice.*< SECOND'
faults FIRST && expect plant 'a hook without an entry.*> SECOND'

# A member of the manager that another file owns, and a state.h without owners.
owned() {
  fresh && mkdir -p "$tmp/t/relay/core/tx" &&
    printf 'struct load { /* %s */\n    int at;\n};\nstruct manager {\n    struct load load;\n};\n' "$1" >"$tmp/t/relay/core/tx/state.h" &&
    printf 'void f(struct manager *m)\n{\n    m->load.at = 1;\n}\n' >"$tmp/t/relay/core/tx/$2"
}
owned 'load.c alone' chain.c && expect owner 'chain.c:3 writes m->load, which is of load.c'
owned 'load.c' chain.c && expect owners 'names no owner'
owned 'load.c alone' load.c
if out=$(bash "$here/lint.sh" "$tmp/t" 2>&1 | grep 'another file owns'); then echo "selftest: the owner may not write: $out"; fails=1; fi

# A function that only a test calls, and one that the list keeps although no test calls it.
fresh && printf 'int base_dead(void);\n' >"$tmp/t/base/include/base/y.h" && mkdir -p "$tmp/t/test" &&
  printf 'int base_dead(void)\n{\n    return 0;\n}\n' >"$tmp/t/base/a.c" &&
  printf 'int main(void)\n{\n    return base_dead();\n}\n' >"$tmp/t/test/a.c" && expect unused 'base_dead, which'
fresh && printf 'int key_verify(void);\n' >"$tmp/t/base/include/base/y.h" && expect kept 'key_verify, which'

# A fault that could not be planted is not looked for.
planted=$(grep -cE '(&&|^) *expect [a-z]' "$here/selftest.sh")
if [ "$ran" -ne "$planted" ]; then echo "selftest: $ran of $planted faults were planted"; fails=1; fi

# The table of edges at configure time.
cp -r "$root/cmake" "$root/CMakeLists.txt" "$tmp/t/" && mkdir -p "$tmp/t/chain/codec" && printf 'int codec_x;\n' >"$tmp/t/chain/codec/a.c"
printf 'layer(base)\n' >"$tmp/t/base/CMakeLists.txt" && printf 'int base_x;\n' >"$tmp/t/base/a.c"
rm -rf "$tmp/t/store" && printf 'layer(chain/codec USES base store)\n' >"$tmp/t/chain/codec/CMakeLists.txt"
if out=$(cmake -S "$tmp/t" -B "$tmp/b" -G Ninja 2>&1) || ! grep -q "may not use 'store'" <<<"$out"; then
  echo "selftest: the layer table let a forbidden edge through: $(tail -3 <<<"$out")"
  fails=1
fi

# A core that includes or calls what is above base/ must not build, even where the lint was not asked.
mkdir -p "$tmp/p/base/include/base" "$tmp/p/loop/include/loop" "$tmp/p/relay/core/tx"
cp -r "$root/cmake" "$tmp/p/"
{ printf 'cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES C)\nset(TXRELAY_WERROR ON)\nenable_testing()\n'
  printf 'include(cmake/warnings.cmake)\ninclude(cmake/layer.cmake)\n'
  grep '^layer_edges' "$root/CMakeLists.txt"
  printf 'add_subdirectory(base)\nadd_subdirectory(loop)\nadd_subdirectory(relay/core/tx)\n'
  printf 'add_executable(uses uses.c)\ntarget_link_libraries(uses PRIVATE relay_core_tx)\n'; } >"$tmp/p/CMakeLists.txt"
printf 'int f(void);\nint main(void)\n{\n    return f();\n}\n' >"$tmp/p/uses.c"
printf 'layer(base)\n' >"$tmp/p/base/CMakeLists.txt" && printf 'int base_x;\n' >"$tmp/p/base/a.c"
printf 'layer(loop USES base)\n' >"$tmp/p/loop/CMakeLists.txt"
printf 'int loop_x(void);\n' >"$tmp/p/loop/include/loop/x.h"
printf '#include "loop/x.h"\nint loop_x(void)\n{\n    return 0;\n}\n' >"$tmp/p/loop/a.c"
printf 'layer(relay/core/tx USES base)\n' >"$tmp/p/relay/core/tx/CMakeLists.txt"
core() { # name, text of the file, what the build must say
  printf "$2" >"$tmp/p/relay/core/tx/a.c"
  local out
  out=$(cmake -S "$tmp/p" -B "$tmp/p/b" -G Ninja 2>&1 && cmake --build "$tmp/p/b" 2>&1)
  local rc=$?
  if [ -z "$3" ]; then
    [ $rc = 0 ] || { echo "selftest: a pure core does not build: $(tail -5 <<<"$out")"; fails=1; }
  elif [ $rc = 0 ] || ! grep -q "$3" <<<"$out"; then
    echo "selftest: a core with $1 was built: $(tail -3 <<<"$out")"
    fails=1
  fi
}
core 'nothing wrong' 'int f(void);\nint f(void)\n{\n    return 0;\n}\n' ''
core 'an include' '#include "loop/x.h"\nint f(void);\nint f(void)\n{\n    return 0;\n}\n' 'loop/x.h: No such file'
core 'a call' 'int loop_x(void);\nint f(void);\nint f(void)\n{\n    return loop_x();\n}\n' 'undefined reference to `loop_x'

[ $fails = 0 ] && echo "lint self-test: every lint can fail"
exit $fails
