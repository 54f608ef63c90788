#!/usr/bin/env bash
# The Debian package of this commit: the same bytes from another folder; and on a fresh Debian (debootstrap, as root) it is
# built without cmocka, installed, upgraded, a person follows docs/tutorial.md with it, it is removed and purged, and nothing
# is left. Needs the network; not part of ./dev test.
# package.sh [SUITE...]     default: bookworm trixie; "bytes" alone compares two builds and installs nothing
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$PWD/build/packages
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(bytes bookworm trixie)
say() { printf '== %s\n' "$*"; }
fail() { echo "package: $*" >&2; exit 1; }
mkdir -p "$work"

bytes() {
  local folder deb=()
  for folder in one other/folder; do
    rm -rf "${work:?}/$folder"
    git clone -q . "$work/$folder"
    deb+=("$("$work/$folder/dev" package)")
  done
  cmp "${deb[@]}" || fail "two folders, two packages"
  say "the same bytes from two folders: $(sha256sum "${deb[0]}" | cut -c1-16)"
}

in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root chroot "$root" "$@"; }
# All paths but those of packages that came along, and what dpkg and the linker write about them.
paths() {
  (cd "$root" && find etc usr lib var opt srv home -not -path 'var/lib/dpkg*' -not -path 'var/cache/*' -not -path 'var/log/*' \
    -not -path 'var/lib/apt/*' -not -name 'ld.so.cache*' -not -name '*-' -not -name '.pwd.lock' | sort)
  cat "$root/etc/passwd" "$root/etc/group"
}

# The whole tutorial by the user `person`, with the installed program, a Postgres of this Debian and devchain; on a network
# and among processes of its own, so that its ports are free and nothing stays. The transaction that fails on purpose must be
# explained by `status`, by the metrics and by the log.
person() {
  local said=$work/tutorial-$1.log
  /usr/bin/python3 -B test/install/tutorial.py >"$root/tmp/tutorial.sh"
  rm -rf "$root/tmp/tutorial" "$root/tmp/pg"
  in_root install -d -o person /tmp/tutorial
  unshare --net --pid --fork --mount --kill-child bash -euo pipefail -c '
    ip link set lo up
    mount -t proc proc "$1/proc"
    export PATH=/src/build/devchain/test/devchain:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/tmp/tutorial PGUSER=postgres
    export DB="postgresql:///app?host=/tmp/pg" NODE=ws://127.0.0.1:9944
    as_person() { chroot "$root" setpriv --reuid person --regid person --clear-groups sh -c "cd /tmp/tutorial && $1"; }
    root=$1
    chroot "$root" /src/test/harness/pg.sh start /tmp/pg
    chroot "$root" psql -q -h /tmp/pg postgres -c "CREATE DATABASE app"
    as_person "bash /tmp/tutorial.sh"
    echo ">>> status"
    as_person "txrelay status --outcome dispatch_error --database \"\$DB\" --wide"
    chroot "$root" /src/test/harness/pg.sh stop /tmp/pg
  ' person "$root" >"$said" 2>&1 || { tail -60 "$said"; tail -5 "$root"/tmp/tutorial/*.log; fail "$1: the tutorial failed"; }
  grep -q '^exit code 4$' "$said" || fail "$1: wait did not end with 4"
  grep -q 'Balances.InsufficientBalance' <<<"$(sed '1,/^>>> status$/d' "$said")" || fail "$1: status does not have the reason"
  grep -qF 'txrelay_finished_total{account="alice",outcome="dispatch_error"} 1' "$said" || fail "$1: the metrics do not count the failure"
  grep -q 'event=transaction.ended .*outcome=dispatch_error .*Balances.InsufficientBalance' "$said" ||
    fail "$1: the log does not have the reason"
  grep -q 'nothing is wrong' "$said" || fail "$1: the audit"
  say "$1: a person followed the tutorial, and found the reason of a failure in status, in metrics and in the log"
}

suite() {
  local deb newer begun=$SECONDS
  root=$work/root-$1
  command -v debootstrap >/dev/null || fail "$1: debootstrap is missing. Run: apt-get install debootstrap"
  [ -e "$root/.whole" ] || {
    rm -rf "$root"
    debootstrap --variant=minbase "$1" "$root" http://deb.debian.org/debian >"$work/debootstrap-$1.log" && touch "$root/.whole"
  }
  rm -rf "$root/src"
  git clone -q . "$root/src"
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  trap 'umount "$root/proc"' RETURN
  in_root apt-get update -qq
  # The folder may have been used before: what an earlier run installed must not help this one.
  in_root dpkg --purge txrelay libcmocka-dev >/dev/null 2>&1 || true
  in_root /src/dev package >"$work/$1.log" 2>&1 || { tail -40 "$work/$1.log"; fail "$1: the package does not build"; }
  deb=$(tail -1 "$work/$1.log")
  ! in_root dpkg-query -W libcmocka-dev >/dev/null 2>&1 || fail "$1: the package was built with cmocka installed"
  in_root sh -c "cd /src/build/package && cpack -D CPACK_PACKAGE_VERSION=0.1.1 >/dev/null"
  newer=${deb/0.1.0/0.1.1}
  [ -f "$root/$newer" ] || fail "$1: there is no $newer"
  in_root /src/dev devchain >"$work/$1-devchain.log" 2>&1 || { tail -40 "$work/$1-devchain.log"; fail "$1: devchain does not build"; }
  # First with all it depends on, and with what the person has, so that what is compared later is this package alone.
  in_root mkdir -p /etc/postgresql-common/createcluster.d
  echo 'create_main_cluster = false' >"$root/etc/postgresql-common/createcluster.d/none.conf"
  in_root apt-get install -qq -y --no-install-recommends postgresql >/dev/null
  in_root id person >/dev/null 2>&1 || in_root useradd --create-home person
  in_root apt-get install -qq -y --no-install-recommends "$deb" >/dev/null
  in_root dpkg --purge txrelay >/dev/null
  paths >"$work/before"
  in_root dpkg -i "$deb" >/dev/null
  in_root txrelay --version
  in_root getent passwd txrelay >/dev/null || fail "$1: no user txrelay"
  [ "$(in_root stat -c '%U:%G %a' /etc/txrelay)" = 'root:txrelay 750' ] || fail "$1: /etc/txrelay"
  in_root txrelay check --config /usr/share/doc/txrelay/examples/txrelay.yaml >"$work/check" 2>&1 && fail "$1: check"
  grep -q 'payouts.key' "$work/check" || { cat "$work/check"; fail "$1: check does not name the key that is missing"; }
  in_root sh -c 'cp /usr/share/doc/txrelay/examples/txrelay.yaml /etc/txrelay/ && txrelay keys new /etc/txrelay/payouts.key' >/dev/null
  in_root dpkg -i "$newer" >/dev/null
  [ "$(in_root dpkg-query -W -f='${Version}' txrelay)" = 0.1.1 ] || fail "$1: it was not upgraded"
  in_root test -f /etc/txrelay/txrelay.yaml -a -f /etc/txrelay/payouts.key || fail "$1: the upgrade took the configuration"
  person "$1"
  in_root dpkg --remove txrelay >/dev/null
  in_root test -f /etc/txrelay/payouts.key || fail "$1: the removal took a key"
  rm "$root/etc/txrelay/txrelay.yaml" "$root/etc/txrelay/payouts.key"
  in_root dpkg --purge txrelay >/dev/null 2>&1
  paths >"$work/after"
  diff "$work/before" "$work/after" || fail "$1: the package left something"
  say "$1: built, installed, upgraded, removed, purged; nothing is left ($((SECONDS - begun)) s)"
}

for s in "${suites[@]}"; do
  if [ "$s" = bytes ]; then bytes; else suite "$s"; fi
done
