#!/usr/bin/env bash
# freeze.sh VERSION: what a release does to the schema, before its commit is tagged. It marks every migration as frozen in
# schema/migrations/MANIFEST, and keeps the database that `txrelay migrate` makes, empty, as pg_dump gives it:
# test/upgrade/VERSION/dump.sql, which test/lint and the test of upgrades hold later builds to.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
version=${1:?usage: test/upgrade/freeze.sh VERSION}
manifest=schema/migrations/MANIFEST
program=build/dev/main/txrelay

{
  sed -n '/^#/p' $manifest
  (cd schema/migrations && sha256sum -- *.sql) | sed 's/^\([0-9a-f]*\)  /frozen \1 /'
} >$manifest.new
mv $manifest.new $manifest

cmake --build build/dev --target txrelay >/dev/null
"$program" --version | grep -F "txrelay $version," >/dev/null ||
  { echo "freeze.sh: this is $("$program" --version), not $version: change project(VERSION) in CMakeLists.txt" >&2; exit 1; }
dir=$(mktemp -d)
trap 'test/harness/pg.sh stop "$dir" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
chmod 755 "$dir"
dsn=$(test/harness/pg.sh start "$dir" | tail -n 1)
psql -XAtq "$dsn" -c 'CREATE DATABASE kept'
dsn=$(sed 's/dbname=[^ ]*/dbname=kept/' <<<"$dsn")
"$program" migrate --database "$dsn" >&2
mkdir -p "test/upgrade/$version"
# The months of finished_transactions are those of this day: the first migrate or relay makes others.
pg_dump --no-owner --dbname "$dsn" | sed '/^-- Dumped /d; /^\\\(un\)\?restrict /d' >"test/upgrade/$version/dump.sql"

# A program that is older than the database is refused by the number of its schema. So a release whose functions differ from another
# one's has a migration more.
rows() { sed -n "/^COPY txrelay.$2 /,/^\\\\\.$/p" "$1" | cut -f 1-2; }
for other in test/upgrade/*/dump.sql; do
  [ "$other" != "test/upgrade/$version/dump.sql" ] || continue
  if cmp -s <(rows "$other" schema_version) <(rows "test/upgrade/$version/dump.sql" schema_version) &&
    ! cmp -s <(rows "$other" schema_functions) <(rows "test/upgrade/$version/dump.sql" schema_functions); then
    echo "freeze.sh: $other has the same migrations and other functions: add a migration, which may be empty, so that an older" \
      "program refuses this database" >&2
    exit 1
  fi
done
echo "frozen: $manifest and test/upgrade/$version/dump.sql" >&2
