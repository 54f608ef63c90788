#!/usr/bin/env bash
# The lane on a real runtime: ./dev test runtime. Says what it runs on, then runs the tests.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
setup=$(test/runtime/chain/setup.sh)
{ read -r dir; read -r node; } <<<"$setup"
version() { "$node" -p "require('$dir/node_modules/$1/package.json').version"; }
echo "node $("$node" --version), chopsticks $(version @acala-network/chopsticks)," \
  "@polkadot/api $(version @polkadot/api), @scure/sr25519 $(version @scure/sr25519)," \
  "$(/usr/lib/postgresql/15/bin/postgres --version)"
exec /usr/bin/python3 -m unittest discover -v -s test/runtime -t test -p 'test_*.py'
