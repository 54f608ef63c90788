"""The baselines that come from npm, each a run of a script of peers/ against a chain and a
database of its own."""
import json
import os

from harness import proc

from .stand import chain, many_accounts

KINDS = {
    'api chain': '@polkadot/api one by one, nonce -1',
    'api hand': '@polkadot/api one by one, nonce by hand',
    'pg-boss 1': 'pg-boss (key_strict_fifo), 1 key',
    'pg-boss 16': 'pg-boss (key_strict_fifo), 16 keys',
    'graphile-worker 1': 'graphile-worker (named queue), 1 key',
    'graphile-worker 16': 'graphile-worker (named queues), 16 keys',
    'naive 1': 'submit, INSERT, UPDATE per event, 1 account',
    'naive 16': 'submit, INSERT, UPDATE per event, 16 accounts',
}
JOBS_PER_S = 600  # more waits than any of them does


class Peers:
    def __init__(self):
        setup = os.path.join(proc.ROOT, 'test', 'bench', 'peers', 'setup.sh')
        self.dir, self.node = proc.run([setup], seconds=900).stdout.split('\n')[:2]

    def rate(self, server, kind, seconds, length, chain_options):
        """What the script says: count, seconds, version, and the rate."""
        name, _, what = kind.partition(' ')
        keys = int(what) if what.isdigit() else 1
        pg = server.fresh()
        devchain = chain(proc.make_dir('txbench-'), *chain_options, accounts=many_accounts(keys))
        database = json.dumps({'host': pg.dir, 'port': 5432, 'user': 'postgres',
                               'database': pg.database})
        jobs = int(seconds * JOBS_PER_S)
        args = {'api': ['api.mjs', devchain.ws, seconds, length, what],
                'naive': ['naive.mjs', devchain.ws, database, keys, seconds, length, jobs]}.get(
                    name, ['queue.mjs', name, devchain.ws, database, keys, jobs, seconds, length])
        out = proc.run([self.node, os.path.join(self.dir, args[0]), *map(str, args[1:])],
                       seconds=seconds * 10 + 120,
                       cwd=self.dir).stdout
        devchain.process.kill()
        got = json.loads(out.splitlines()[-1])
        return {**got, 'tx_per_s': got['count'] / got['seconds']}
