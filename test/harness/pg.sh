#!/bin/bash
# A private Postgres for tests: own directory, unix socket only unless --tcp is given, no fsync unless --fsync. Version 15 or
# that of PG_BIN; without a 15, the newest one that is installed.
#
#   pg.sh bin                           prints the folder of the server's programs; pg.sh version, which version they are
#   pg.sh folder                        makes a folder for a server, and prints it
#   pg.sh start DIR [--tcp PORT] [--fsync] [-- postgres options...]   prints the DSN
#   pg.sh stop DIR [fast|immediate]     pg.sh restart DIR [fast|immediate]
#   pg.sh dsn DIR                       pg.sh pid DIR
#   pg.sh psql DIR [psql options...]
#
# Run by root, the server and its files belong to `postgres` (or `nobody`): Postgres refuses to run as root. DIR may
# be missing; start makes it, and one that holds a cluster is started again as it is. The server gets the variables of the
# file DIR/environment, if there is one. Waits have a deadline.
set -euo pipefail

OLDEST=13
WAIT_S=${PG_WAIT_S:-30}
BUILD=$(dirname "$(readlink -f "$0")")/../../build

die() { echo "pg.sh: $*" >&2; exit 1; }

# Debian, PGDG on Fedora, Fedora, or wherever PATH has it.
find_bin() {
    local bin version found="" newest=0
    for bin in ${PG_BIN:-/usr/lib/postgresql/*/bin /usr/pgsql-*/bin "$(dirname "$(command -v postgres || echo /usr/bin/postgres)")"}; do
        [ -x "$bin/postgres" ] || continue
        version=$("$bin/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
        found="$found $bin ($version)"
        [ "$version" -ge $OLDEST ] || continue
        [ "$version" != 15 ] || version=1000000
        if [ "$version" -gt $newest ]; then newest=$version BIN=$bin; fi
    done
    [ $newest -gt 0 ] || die "no Postgres $OLDEST or newer${found:+ but$found}: install one, or set PG_BIN to the folder that holds its programs"
}

# In memory where there is room for it: tables come and go at each test, and on a disk the file system's work on their files
# was two fifths of all.
folder() {
    local at=/tmp
    if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt $((4 << 20)) ] 2>/dev/null; then at=/dev/shm; fi
    at=$(mktemp -d "$at/txpg-XXXXXXXX")
    chmod 755 "$at"
    echo "$at"
}

# The user that the server runs as: us, or an unprivileged one when we are root.
server_user() {
    if [ "$(id -u)" -ne 0 ]; then id -un
    elif id postgres >/dev/null 2>&1; then echo postgres
    else echo nobody
    fi
}

as_server() {
    if [ "$(id -u)" -ne 0 ]; then "$@"
    else setpriv --reuid "$(server_user)" --regid "$(id -g "$(server_user)")" --clear-groups env HOME="$DIR" "$@"
    fi
}

dsn() {
    if [ -s "$DIR/tcp" ]; then echo "host=127.0.0.1 port=$(cat "$DIR/tcp") user=postgres dbname=postgres"
    else echo "host=$DIR port=5432 user=postgres dbname=postgres"
    fi
}

init_data() { # FOLDER
    as_server "$BIN/initdb" -D "$1" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$DIR/initdb.log" 2>&1 ||
        { cat "$DIR/initdb.log" >&2; die "initdb failed (can $(server_user) enter $DIR?)"; }
}

# initdb takes a second, and a run of all tests wants a hundred clusters: the first one of a version is kept and copied. All
# have its system identifier, which nothing here looks at.
fresh_data() {
    local kept
    kept=$BUILD/initdb/$(cksum <<<"$(server_user) $BIN $("$BIN/postgres" --version)" | cut -d' ' -f1)
    if ! mkdir -p "$BUILD/initdb" 2>/dev/null || [ ! -w "$BUILD/initdb" ]; then
        init_data "$DIR/data"
        return
    fi
    (
        flock 9
        [ ! -d "$kept" ] || exit 0
        init_data "$DIR/data"
        rm -rf "$kept.new"
        cp -a "$DIR/data" "$kept.new" && mv "$kept.new" "$kept" && rm -rf "$DIR/data" || exit
    ) 9>"$BUILD/initdb/lock" || exit
    cp -a "$kept" "$DIR/data"
}

start() {
    local port="" fsync=off
    while [ $# -gt 0 ]; do
        case $1 in
        --tcp) port=$2; shift 2 ;;
        --fsync) fsync=on; shift ;;
        --) shift; break ;;
        *) die "start: unknown option $1" ;;
        esac
    done
    [ ${#DIR} -le 90 ] || die "$DIR is too long for a socket's path (107 bytes): use a shorter one"
    mkdir -p "$DIR"
    if [ ! -f "$DIR/data/PG_VERSION" ]; then
        [ "$(id -u)" -ne 0 ] || chown "$(server_user)" "$DIR"
        fresh_data
        cat >>"$DIR/data/postgresql.conf" <<CONF
unix_socket_directories = '$DIR'
listen_addresses = '${port:+127.0.0.1}'
port = ${port:-5432}
fsync = $fsync
full_page_writes = $fsync
shared_buffers = 64MB
dynamic_shared_memory_type = mmap
max_connections = 100
log_line_prefix = '%m %p %a '
CONF
        echo -n "$port" >"$DIR/tcp"
        # Kept, so that restart uses them as well; each as one line.
        printf '%s\n' "$@" >"$DIR/options"
    fi
    boot
    dsn
}

boot() {
    local options=() environment=() line
    while IFS= read -r line; do [ -z "$line" ] || options+=("$line"); done <"$DIR/options"
    [ ! -f "$DIR/environment" ] || mapfile -t environment <"$DIR/environment"
    touch "$DIR/server.log"
    [ "$(id -u)" -ne 0 ] || chown "$(server_user)" "$DIR/server.log"
    as_server env "${environment[@]}" "$BIN/pg_ctl" -D "$DIR/data" -l "$DIR/server.log" -t "$WAIT_S" -W -o "${options[*]@Q}" start >/dev/null ||
        { tail -20 "$DIR/server.log" >&2; die "the server did not start"; }
    local port deadline=$((SECONDS + WAIT_S))
    port=$(cat "$DIR/tcp")
    until "$BIN/pg_isready" -q -h "$DIR" -p "${port:-5432}" -t 1; do
        if [ $SECONDS -ge $deadline ]; then
            tail -20 "$DIR/server.log" >&2
            die "not ready after $WAIT_S s"
        fi
        read -r -t 0.05 <> <(:) || true
    done
}

halt() {
    [ -f "$DIR/data/postmaster.pid" ] || return 0
    as_server "$BIN/pg_ctl" -D "$DIR/data" -t "$WAIT_S" -m "${1:-fast}" stop >/dev/null
}

[ "$*" != folder ] || { folder; exit; }
find_bin
[ "$*" != bin ] || { echo "$BIN"; exit; }
[ "$*" != version ] || { "$BIN/postgres" --version; exit; }
[ $# -ge 2 ] || die "usage: pg.sh bin|version|folder, or pg.sh start|stop|restart|dsn|pid|psql DIR ..."
COMMAND=$1
mkdir -p "$2"
DIR=$(cd "$2" && pwd)
shift 2
cd /
case $COMMAND in
start) start "$@" ;;
stop) halt "$@" ;;
restart) halt "$@"; boot; dsn ;;
dsn) dsn ;;
pid) head -1 "$DIR/data/postmaster.pid" ;;
psql) exec "$BIN/psql" -X "$(dsn)" "$@" ;;
*) die "unknown command $COMMAND" ;;
esac
