"""flat: what must not change a relay's rate. How much waits in the outbox (--backlog): the rate
and the cost of the first
--count that end. And one account that is blocked (its chain account is empty, so the node refuses
to take what it signs) with rows of its own waiting: the rate of the fifteen others beside it,
against the same without its rows."""
import re

from harness import proc
from harness.relay import Relay

from . import bare
from .stand import (ERAS, MARK, call_of, chain, children_cpu_s, cpu_s, log_time, many_accounts,
                    save, show, spread, table)
from .suite_relay import CHAIN

CALL = call_of(100)
ACCOUNTS = 16
ENDED = MARK + "SELECT count(*) >= %s FROM txrelay.finished_transactions WHERE outcome = 'ok'"
NTH = MARK + '''SELECT extract(epoch FROM finished_at)::float8 FROM txrelay.finished_transactions
    WHERE outcome = 'ok'
    ORDER BY finished_at OFFSET %s LIMIT 1'''


class Drain:
    """`waiting` rows over the accounts; the first of them is empty on the chain when `blocked`,
    and has rows of its own then."""

    def __init__(self, server, account_count, waiting, blocked=0):
        self.pg, directory = server.fresh(), proc.make_dir('txbench-')
        self.accounts = many_accounts(account_count)
        self.node = chain(directory, *CHAIN, accounts=self.accounts[1:] if account_count > 1
                          else self.accounts)
        self.relay = Relay(directory, 'flat', self.pg.dsn, [self.node.ws], self.accounts,
                           manager=ERAS).start()
        proc.wait_for('all accounts',
                      lambda: self.relay.text().count('=account.ready ') >= account_count, 60)
        self.relay.stop()
        numbers = [r[0] for r in self.pg.query(
            "SELECT account FROM txrelay.accounts ORDER BY alias = 'bench0' DESC, account")]
        bare.preload(self.pg, 'txrelay.outbox', numbers[1:] or numbers, waiting, CALL)
        if blocked:
            bare.preload(self.pg, 'txrelay.outbox', numbers[:1], blocked, CALL)
        self.pg.query('VACUUM ANALYZE')
        self.pg.query('CHECKPOINT')

    def rate(self, count):
        seen = len(self.relay.text())
        self.relay.start()
        before = self.cpu()
        db = self.pg.connect()
        cur = db.cursor()

        def ended():
            assert self.relay.alive(), self.relay.text()[-2000:]
            cur.execute(ENDED, (count,))
            return cur.fetchone()[0]
        proc.wait_for('them to end', ended, 600, 0.1)
        after = self.cpu()
        db.close()
        start = log_time(re.search(r'.*=account\.ready .*', self.relay.text()[seen:]).group(0),
                         'account.ready')
        last = self.pg.value(NTH, (count - 1,))
        self.relay.kill()
        self.node.process.kill()
        us = [(b - a) * 1e6 / count for a, b in zip(before, after)]
        return {'tx_per_s': count / (last - start), 'relay_us': us[0], 'postgres_us': us[1]}

    def cpu(self):
        return cpu_s(self.relay.process.pid), children_cpu_s(self.pg.postmaster)


def run(server, args):
    small, large = [int(n) for n in args.backlog.split(',')]
    kinds = {
        f'1 account, {small} in the outbox': lambda: Drain(server, 1, small),
        f'1 account, {large} in the outbox': lambda: Drain(server, 1, large),
        f'{ACCOUNTS - 1} accounts': lambda: Drain(server, ACCOUNTS, args.count),
        f'{ACCOUNTS - 1} accounts, and a blocked one': lambda: Drain(server, ACCOUNTS, args.count,
                                                                     args.count // ACCOUNTS),
    }
    count, got = min(args.count, small), {k: [] for k in kinds}
    names = list(kinds)
    for n in range(args.flat_rounds):
        for name in names[n % 2:] + names[:n % 2]:
            got[name].append(kinds[name]().rate(count if name.startswith('1 ') else args.count))
        save(args, 'flat', got)
    rows = []
    for i, (name, all_) in enumerate(got.items()):
        base = got[names[i - i % 2]]
        ratio = spread([a['tx_per_s'] / b['tx_per_s'] for a, b in zip(all_, base)])
        rows.append([name, show(spread([r['tx_per_s'] for r in all_]), 0),
                     show(ratio) if i % 2 else '',
                     *(f'{spread([r[k] for r in all_])["median"]:.0f}'
                       for k in ('relay_us', 'postgres_us'))])
    table(f'flat: {args.flat_rounds} interleaved round(s), median (min..max)',
          ['', 'tx/s', 'of the line above', 'CPU us/tx: relay', 'Postgres'], rows)
    return got
