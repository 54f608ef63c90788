#!/usr/bin/env bash
# Format, include edges, third-party doors, banned calls, SQL in C, unused functions, spelling. Prints every finding; exit 1 if any.
# lint.sh [DIR]: check another tree (the self-test gives it bad ones).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/../..}" || exit 2
bad=0
finding() { echo "lint: $*"; bad=1; }
# What belongs to the tree: git's list, or everything but what builds leave behind where there is no git.
tree() {
  if [ -z "$self" ] && git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
  else
    find . -type f -not -path './build/*' -not -path './.git/*' -not -name '*.pyc' | sed 's|^\./||'
  fi
}
self=${1:-}
# chain/codec/blake3/ and net/llhttp/ are other authors' code, unchanged.
files=$(tree | grep -E '\.[ch]$' | grep -vE '^(chain/codec/blake3|net/llhttp)/')

# Formatting.
if [ -n "$files" ] && ! out=$(clang-format-14 --dry-run -Werror $files 2>&1); then
  finding "formatting (run ./dev format): $(echo "$out" | sed -n 's/^\([^ :]*\):[0-9].*/\1/p' | sort -u | tr '\n' ' ')"
fi

# Include edges: a layer includes its own headers and those of the layers in its row of CMakeLists.txt. A layer is a folder;
# a file belongs to the deepest one that holds it. Private headers are included by their name alone, public ones by their
# layer's path; nobody climbs out with "..".
edges=$(echo "$files" | xargs -r awk '
  function layer_of(path,  l, best) { # the deepest one that holds it
    for (l in may) if (index(path, l "/") == 1 && length(l) > length(best)) best = l
    return best
  }
  FILENAME == "CMakeLists.txt" {
    if (sub(/^layer_edges\(/, "") && sub(/\).*/, "")) { n = split($0, word, / +/); for (i = 1; i <= n; i++) may[word[1]] = may[word[1]] " " word[i] " " }
    next
  }
  FNR == 1 { layer = layer_of(FILENAME) }
  !/^ *# *include *["<]/ { next }
  /^ *# *include *"([^"]*\/)?\.\.\// { print FILENAME ":" FNR " includes by a relative path" }
  layer != "" {
    sub(/^ *# *include *["<]/, ""); sub(/[">].*/, "")
    to = /^[a-z_\/]*\/[^\/]*$/ ? layer_of($0) : ""
    if (to != "" && index(may[layer], " " to " ") == 0) { sub(/\/[^\/]*$/, ""); print FILENAME " includes " $0 "/, which " layer " may not use" }
  }' CMakeLists.txt)
[ -z "$edges" ] || finding "include edges: $edges"

# One door for each library.
door() { # header-regex, allowed path regex
  for f in $(echo "$files" | xargs -r grep -lE "#include <($1)>" 2>/dev/null); do
    grep -qE "$2" <<<"$f" || finding "$f includes <$1>, whose door is $2"
  done
}
door 'uv\.h' '^loop/'
door 'libpq-fe\.h' '^store/|^test/'
door 'sodium\.h|nettle/[a-z0-9]*\.h' '^chain/(codec|keys)/|^test/'
door 'xxhash\.h' '^chain/codec/|^test/'
door 'secp256k1[a-z_]*\.h' '^chain/keys/|^test/'
door 'libwebsockets\.h' '^net/|^test/'
door 'openssl/[a-z0-9_]*\.h' '^net/|^chain/keys/|^election/|^store/|^test/'
door 'nghttp2/nghttp2\.h' '^net/|^test/'
door 'llhttp\.h' '^net/'
door 'protobuf-c/protobuf-c\.h|(feed|site)\.pb-c\.h' '^wire/|^feed/wire/|^site/wire/'
door 'cyaml/cyaml\.h' '^main/'

# Banned calls.
banned='\b(strcpy|strcat|sprintf|vsprintf|strncpy|strncat|atoi|atol|strtok|gmtime|localtime|rand|srand|time|usleep|sleep|alloca|gets|PQexec|PQexecParams|PQprepare|PQconnectdb|PQreset|PQescapeString)\s*\('
hits=$(echo "$files" | banned=$banned xargs -r perl -ne '
  ($code = $_) =~ s{//.*}{}; $code =~ s{/\*.*\*/}{};
  print "$ARGV:$.: $_" if $code =~ /$ENV{banned}/ && $code !~ /"[^"]*$ENV{banned}/ &&
    !($ARGV =~ m{^test/} && $code =~ /\b(PQexec|PQexecParams|PQconnectdb)\s*\(/);
  close ARGV if eof')
[ -z "$hits" ] || finding "banned call: $hits"
product=$(echo "$files" | grep -v '^test/')
hits=$(echo "$product" | grep -v '^loop/' | xargs -r grep -nE '\buv_(now|close|timer_|poll_|run)\w*\s*\(' /dev/null) && finding "uv call outside loop/: $hits"
grep -nE '\b(TODO|FIXME|XXX)\b' $files /dev/null | grep -v '#[0-9]' && finding "TODO without an issue's number"

# Extrinsics leave by one call, whose one caller gives the gate that is asked right before the socket.
sends() { # regex of a call, regex of the files that may: whoever else has it
  hits=$(echo "$product" | grep -vE "$2" | xargs -r grep -nE "$1" /dev/null)
}
# rpc_closed.c only names it; what main/measure_table.c submits no node can decode (main_measure_test).
sends '"author_submit' '^(chain/node/(node_submit|rpc_closed)|main/measure_table)\.c$' &&
  finding "a file that sends extrinsics, whose door is chain/node/node_submit.c: $hits"
sends '\bnode_submit_start\s*\(' '^chain/node/|^relay/account/account_submit\.c$' &&
  finding "a file that sends extrinsics, whose door is relay/account/account_submit.c: $hits"
sends '\b(ws__conn_write|lws_write)\s*\(' '^net/(ws_frame\.c|ws_lws\.c|ws_internal\.h)$' &&
  finding "a file that writes past the gate, which net/ws_frame.c asks: $hits"
if [ -z "$self" ] && ! grep -qzE 'node_submit_start\([^;]*,\s*gate,\s*t,' relay/account/account_submit.c; then
  finding "relay/account/account_submit.c sends without its gate"
fi

# A reader that stops early kills its writer, and under pipefail a pipe that found what it looked for has failed.
early='\| *(head\b|grep +-[a-zA-Z]*[qm])'
hits=$(tree | grep -E '\.sh$|^dev$|^\.ci/' | xargs -r grep -nE "$early" /dev/null) &&
  finding "a pipe into a reader that stops early (use <<< or sed): $hits"

# Packages of npm come by the hashes of a lock file.
hits=$(tree | grep -E '\.sh$|^dev$|^\.ci/|Dockerfile' | grep -v '^test/lint/' |
  xargs -r grep -nE '\bnpm(_in "[^"]*")? +(install|i|add|update|exec)\b|\bnpx\b' /dev/null) &&
  finding "npm installs without a lock file (use npm ci): $hits"

# What a merge leaves behind.
hits=$(tree | grep -vE '^test/vectors/' | xargs -r grep -nE '^(<{7}|>{7}) ' /dev/null) && finding "a conflict marker: $hits"

# SQL lives in files.
hits=$(echo "$files" | grep -E '^(store|listen|main|relay|election|feed|http)/' |
  xargs -r grep -nE '"[^"]*\b(INSERT INTO|UPDATE txrelay|DELETE FROM|FROM txrelay|SELECT .* FROM [a-z_]*(accounts|outbox|transactions|attempts))' /dev/null) &&
  finding "SQL in a C string: $hits"

# An aggregate that makes a list keeps no order of its own: Postgres 16 and later sort the input for a neighbour's DISTINCT. Its
# element says ORDER BY, or the comment before it that any order will do.
hits=$(tree | grep -E '^(schema/functions|[a-z]+/sql)/.*\.sql$' | xargs -r perl -0ne '
  while (/(-- any order\n(?:[^\n]*\n)?[^\n]*?)?\b(?:array|jsonb?|string|xml)_agg(\((?:[^()]++|(?2))*\))([^\n]*)/g) {
    print "$ARGV: $&\n" unless $1 || $2 =~ /ORDER BY/ || $3 =~ /-- any order/ }') && [ -n "$hits" ] &&
  finding "an aggregate that makes a list, without ORDER BY: $hits"

# Migrations: each is in the manifest, in order; those of a release (frozen) have the text that was released.
migrations=schema/migrations
if [ -d $migrations ]; then
  listed=$(sed -nE 's/^(open|frozen) +[^ ]+ +//p' $migrations/MANIFEST)
  there=$(cd $migrations && ls -- *.sql)
  [ "$listed" = "$there" ] || finding "$migrations/MANIFEST lists other files than there are: $(diff <(echo "$listed") <(echo "$there") | grep '^[<>]' | tr '\n' ' ')"
  seen_open=
  while read -r state sum name; do
    case $state in
      '' | '#'*) ;;
      open) seen_open=$name ;;
      frozen)
        [ -z "$seen_open" ] || finding "$migrations/$name is frozen, and $seen_open before it is not"
        has=$(sha256sum "$migrations/$name" 2>&1 | cut -d' ' -f1)
        [ "$has" = "$sum" ] || finding "$migrations/$name is released and must not change (checksum $has, frozen $sum): add a migration"
        ;;
      *) finding "$migrations/MANIFEST: '$state' is neither open nor frozen" ;;
    esac
  done <$migrations/MANIFEST
fi
# The kept database of each release (test/upgrade) is a second record: whoever changes or removes a migration and its line in the
# manifest is found by the checksum that databases of that release have.
for dump in test/upgrade/*/dump.sql; do
  [ -f "$dump" ] || continue
  kept=$(sed -n '/^COPY txrelay.schema_version /,/^\\\./p' "$dump" | grep -P '^\d+\t')
  [ -n "$kept" ] || finding "$dump has no rows of schema_version"
  while IFS=$'\t' read -r _ name sum _; do
    has=$(sha256sum "$migrations/$name" 2>&1 | cut -d' ' -f1)
    [ "$has" = "$sum" ] || finding "$migrations/$name is in databases of the release $(basename "$(dirname "$dump")") and must not change or go (checksum $has, released $sum): add a migration"
  done <<<"$kept"
done

# Wording: phrases that docs/glossary.md and plain English replace (alert or notify, suspended, "for N blocks").
phrases='\b(is|are|was|were|be) told\b|\bstands? still\b|\b(so often|for so long|after so many|whoever)\b|\bfacts:|\bpool\.md\b'
hits=$(tree | grep -E '^(base|loop|net|feed|http|chain|store|listen|election|relay|main|schema|docs)/.*\.(c|h|sql|md)$|^README\.md$' |
  xargs -r grep -nEi "$phrases" /dev/null) && finding "wording that docs/glossary.md replaces: $hits"

# Pages name who acts: an application, an operator, another program, any login.
hits=$(tree | grep '\.md$' | xargs -r perl -ne 's/`[^`]*`//g; print "$ARGV:$.\n" if /\b(no|some|any|every)body\b/i; close ARGV if eof') && [ -n "$hits" ] &&
  finding "a page that does not name the actor (nobody, somebody...): $hits"

# A test is named by what it claims, not by the letter and number of some list.
hits=$(tree | grep -E '^test/.*\.(py|c)$' | xargs -r grep -nE '^ *(def test_|static void (test_)?)([A-Z]|[pbrfc]|bp)[0-9]{1,3}_' /dev/null) &&
  finding "a test that is named after a list: $hits"

# Width: 100 columns of code and of prose. Tables, code blocks and links of a page cannot be wrapped.
# What a release has (migrations, test/upgrade) stays as it was.
in_release=$(sed -n 's|^frozen [^ ]* |schema/migrations/|p' schema/migrations/MANIFEST 2>/dev/null)
wide=$(echo "$files"; tree | grep -E '\.(sql|py)$' | grep -v '^test/upgrade/' | grep -vxF "${in_release:-none}")
hits=$(echo "$wide" | LC_ALL=C xargs -r awk '{ gsub(/[\200-\277]/, "") } length($0) > 100 { print FILENAME ":" FNR }') && [ -n "$hits" ] &&
  finding "a line over 100 columns: $hits"
hits=$(tree | grep '\.md$' | LC_ALL=C xargs -r awk '{ gsub(/[\200-\277]/, "") } FNR == 1 { code = 0 } /^ *```/ { code = !code }
  !code && length($0) > 100 && !/^\|/ && !/https?:/ { print FILENAME ":" FNR }') && [ -n "$hits" ] &&
  finding "a line over 100 columns: $hits"

# A map in the head of a header (five files or more) lists each file of its folder, and no other one.
for f in $(echo "$files" | grep -E '^[^t].*\.h$'); do
  map=$(sed -nE 's/^ \*   ([a-z0-9_*]+\.c) .*/\1/p' "$f")
  [ "$(wc -l <<<"$map")" -ge 5 ] || continue
  folder=$(dirname "$f") folder=${folder%%/include/*}
  listed=$(cd "$folder" && for name in $map; do echo "$name"; done | sort)
  there=$(cd "$folder" && ls -- *.c)
  [ "$listed" = "$there" ] || finding "the map in $f is not its folder: $(diff <(echo "$listed") <(echo "$there") | grep '^[<>]' | tr '\n' ' ')"
done

# Each folder is explained, in a page: by a README of its own, or by a line of the one above it (`folder/`).
if [ -f README.md ]; then
  for dir in $(tree | grep / | grep -vE '(^|/)(\.|include/)|^(docs|test/vectors/|test/fuzz/seeds)' | sed 's|/[^/]*$||' | sort -u); do
    up=$dir
    while [ ! -f "$up/README.md" ] && [[ $up == */* ]]; do up=${up%/*}; done
    below=${dir#"$up"} below=${below#/}
    named=
    [ -f "$up/README.md" ] && named=$(if [ -z "$below" ]; then echo yes; else grep -oE "\`(${below%%/*}|$below)/" "$up/README.md"; fi)
    [ -n "$named" ] || finding "$dir has no README.md, and no README above it names it"
  done
  hits=$(tree | grep '/README\.md$' | xargs -r awk 'FNR == 61 { print FILENAME }') && [ -n "$hits" ] &&
    finding "a README of more than 60 lines (move the rest to docs/): $hits"
fi

# docs/security.md: what is mended names a test (file: name, name), and each one exists.
page=docs/security.md
if [ -f $page ]; then
  while IFS= read -r named; do
    file=${named%%: *}
    [ -f "$file" ] || { finding "$page names $file, which does not exist"; continue; }
    for name in $(tr ',' ' ' <<<"${named#*: }"); do
      case $file in
        *.py) there="^ *def $name\(" ;;
        *.c) there="^static void $name\(" ;;
        *.sh) there="\\b$name\\b" ;;
        *) there="\"$name\"" ;;
      esac
      grep -qE "$there" "$file" || finding "$page names the test $name, which is not in $file"
    done
  done < <(grep -oE '`[a-z0-9_/]+\.[a-z]+: [^`]+`' $page | tr -d '`')
  hits=$(grep -nE '^\|[^|]*\| mended' $page | grep -vE '`[a-z0-9_/]+\.[a-z]+: [^`]+`|No test') && finding "$page: mended without a test: $hits"
fi

# Planted faults: each entry of the table has a hook, and each hook has an entry. A rule that two places enforce has two.
plants=base/include/base/plant.h
if [ -f $plants ]; then
  entries=$(sed -nE 's/^ *X\(([A-Z0-9_]+),.*/\1/p' $plants | sort)
  hooks=$(echo "$files" | grep -vxF $plants | xargs -r grep -ohE '\bPLANTED\([A-Z0-9_]+\)' /dev/null |
    sed -E 's/PLANTED\((.*)\)/\1/' | sort -u)
  [ "$entries" = "$hooks" ] || finding "$plants: an entry without a hook, twice (<), or a hook without an entry (>): $(
    diff <(echo "$entries") <(echo "$hooks") | grep '^[<>]' | tr '\n' ' ')"
fi

# What a header of the product declares is called by the product.
hits=$(echo "$files" | xargs -r python3 -B "$here/unused.py") && [ -z "$hits" ] || finding "a function that nothing calls: $hits"

# What one file of the manager owns, another does not write.
state=relay/core/tx/state.h
if [ -f $state ]; then
  hits=$(echo "$files" | grep -E '^relay/core/tx/[^/]*\.c$' | xargs -r python3 -B "$here/owners.py" $state 2>&1) && [ -z "$hits" ] ||
    finding "a member that another file owns: $hits"
fi

# Spelling of what people read.
if [ -z "${1:-}" ] && command -v codespell >/dev/null; then
  out=$(tree | grep -E '\.(md|h|c|py|sh|sql)$' | grep -vE 'bip39|vectors|package-lock|^net/llhttp/' |
    xargs codespell --ignore-words-list='endpionts,sistem,hel,keypair,keypairs,crate,nd,ser,fo,te,inout,ofo,sie' -q 3 2>&1) || finding "spelling: $out"
fi
exit $bad
