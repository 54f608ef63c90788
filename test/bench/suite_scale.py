"""scale: what an account costs that does nothing, and the same load spread over more and more of
them. For each number of accounts and relays (all serve all): seconds until every account is led,
then for --idle-seconds nothing happens (CPU, statements, memory), then --scale-count transactions
are enqueued in one commit, evenly, until the last has ended."""
import http.client
import json
import re
import time

from harness import proc
from harness.relay import Relay

from .stand import ERAS, MARK, DurablePostgres, call_of, chain, children_cpu_s, cpu_s, save, table

# Each account hears of each block. With the 5 ms of the other suites that is two million times a
# second for 10,000 of them, and measures just that; with the 2 to 12 s of real chains it is
# nothing.
CHAIN = ('--instant', '--instant-delay-ms', '100')
CALL = call_of(100)
ENDED = MARK + 'SELECT count(*) FROM txrelay.finished_transactions'
LED_S, ENDED_S = 120, 300  # what takes longer is told instead of a figure
BALANCE = str(10 ** 18)


def seeds(count):
    """Accounts by their raw seeds: a path below the development phrase costs a derivation of
    milliseconds each."""
    return [(f'bench{i}', 'sr25519', f'0x{i + 1:064x}') for i in range(count)]


def fund(node, ids):
    host, port = re.search(r'//(.*):(\d+)', node.ws).groups()
    line = http.client.HTTPConnection(host, int(port), timeout=30)
    for i, id_ in enumerate(ids):
        line.request('POST', '/',
                     json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'dev_setBalance', 'params': [
            {'account': '0x' + bytes(id_).hex(), 'free': BALANCE, 'block': i + 1 == len(ids)}]}),
            {'Content-Type': 'application/json'})
        answer = json.loads(line.getresponse().read())
        assert 'error' not in answer, answer
    line.close()


def rss(pid):
    with open(f'/proc/{pid}/status') as file:
        return int(re.search(r'VmRSS:\s+(\d+)', file.read()).group(1)) * 1024


class Crowd:
    def __init__(self, server, accounts, relays):
        self.pg = server.fresh()
        self.accounts, directory = seeds(accounts), proc.make_dir('txbench-')
        self.node = chain(directory, *CHAIN)
        self.relays = [Relay(directory, f'r{i}', self.pg.dsn, [self.node.ws], self.accounts,
                             manager=ERAS)
                       for i in range(relays)]
        self.db = self.pg.connect()
        self.cur = self.db.cursor()

    def ask(self, sql):
        self.cur.execute(MARK + sql)
        return self.cur.fetchone()[0]

    def ready(self):
        """Accounts that were led by somebody at some time."""
        return len({alias for r in self.relays
                    for alias in re.findall(r'=account\.ready account=(\S+)', r.text())})

    def lost(self):
        return sum(r.text().count('=leader.lost ') for r in self.relays)

    def start(self):
        begun = time.monotonic()
        for r in self.relays:
            r.start()
        proc.wait_for('every account to be led', lambda: self.ready() >= len(self.accounts), LED_S,
                      0.5)
        took = time.monotonic() - begun
        fund(self.node, [r[0] for r in self.pg.query('SELECT account_id FROM txrelay.accounts '
                                                     'ORDER BY account')])
        return took

    def cpu(self):
        return [cpu_s(r.process.pid)
                for r in self.relays], children_cpu_s(self.pg.postmaster), cpu_s(
                    self.node.process.pid)

    def statements(self):
        return self.ask("SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements s "
                        "JOIN pg_database d ON d.oid = s.dbid "
                        "WHERE d.datname = current_database() AND query NOT LIKE "
                        f"'%{MARK.strip()}%'")

    def idle(self, seconds):
        """Per second."""
        self.pg.query('VACUUM ANALYZE')
        self.rest()
        (relays, database, _), said, begun = self.cpu(), self.statements(), time.monotonic()
        proc.wait_for('the time of the measurement', lambda: time.monotonic() - begun >= seconds,
                      seconds + 60, 0.5)
        passed = time.monotonic() - begun
        relays_end, database_end, _ = self.cpu()
        return {'relays_cpu': (sum(relays_end) - sum(relays)) / passed, 'most_of_one_relay': max(
            b - a for a, b in zip(relays, relays_end)) / passed,
            'postgres_cpu': (database_end - database) / passed,
            'statements': (self.statements() - said) / passed,
            'rss': max(rss(r.process.pid) for r in self.relays)}

    def rest(self):
        """Until the start is over: a second in which the relays used less than a twentieth of
        one."""
        last = {'cpu': sum(self.cpu()[0])}

        def resting():
            before, last['cpu'] = last['cpu'], sum(self.cpu()[0])
            return last['cpu'] - before < 0.05
        try:
            proc.wait_for('the relays to rest', resting, 15, 1)
        except TimeoutError:
            pass  # then that is what they cost

    def load(self, count):
        """Transactions a second, from the commit to the last end."""
        self.ask(f"SELECT count(txrelay.enqueue('bench' || n % {len(self.accounts)}, "
                 f"'\\x{CALL.hex()}')) "
                 f"FROM generate_series(0, {count - 1}) n")
        begun, cpu = self.ask('SELECT extract(epoch FROM clock_timestamp())::float8'), self.cpu()
        proc.wait_for('everything to end', lambda: self.ask(ENDED.removeprefix(MARK)) == count,
                      ENDED_S, 0.2)
        after = self.cpu()
        ended = self.ask('SELECT extract(epoch FROM max(finished_at))::float8 '
                         'FROM txrelay.finished_transactions')
        wrong = self.ask("SELECT count(*) FROM txrelay.finished_transactions WHERE outcome <> 'ok'")
        assert not wrong, f'{wrong} did not end well'
        return {'tx_per_s': count / (ended - begun), 'relay_us': (sum(after[0]) - sum(cpu[0])) * 1e6
                / count,
                'postgres_us': (after[1] - cpu[1]) * 1e6 / count}

    def close(self):
        self.db.close()
        for r in self.relays:
            r.kill()
        self.node.process.kill()


def measure(server, accounts, relays, args):
    crowd = Crowd(server, accounts, relays)
    result = {'accounts': accounts, 'relays': relays}
    try:
        result['ready_s'] = crowd.start()
        result['idle'] = crowd.idle(args.idle_seconds)
        result['load'] = crowd.load(args.scale_count)
    except TimeoutError as error:  # a figure as well: the others go on
        result.update(error=str(error), led=crowd.ready())
    result['lost'] = crowd.lost()
    crowd.close()
    return result


def row(result, base):
    name, lost = f'{result["accounts"]} x {result["relays"]}', result['lost']
    if 'error' in result:
        missing = ['not in time'] if 'ready_s' not in result else [f'{result["ready_s"]:.1f}',
                                                                   *[''] * 5, 'not in time']
        return [f'{name} ({result["led"]} led)', *missing, *[''] * (8 - len(missing)), lost]
    i, load, more = result['idle'], result['load'], result['accounts'] - base['accounts']
    each = f'{(i["rss"] - base["idle"]["rss"]) / more:.0f}' if more and 'idle' in base else ''
    return [name, f'{result["ready_s"]:.1f}', f'{i["relays_cpu"] * 100:.2f}',
            f'{i["most_of_one_relay"] * 100:.2f}',
            f'{i["postgres_cpu"] * 100:.2f}', f'{i["statements"]:.1f}', each,
            f'{load["tx_per_s"]:.0f}',
            f'{load["relay_us"]:.0f} / {load["postgres_us"]:.0f}', lost]


def run(_, args):
    # Each account that is led has an advisory lock, and one more while its leader sleeps.
    server = DurablePostgres({'max_locks_per_transaction': '1024'})
    results = []
    for pair in args.scale.split(','):
        results.append(measure(server, *map(int, pair.split('x')), args))
        save(args, 'scale', results)
    # what a relay takes without accounts to speak of
    base = min(results, key=lambda r: r['accounts'])
    table(f'scale: accounts x relays; idle for {args.idle_seconds} s (% of a core), then '
          f'{args.scale_count} transactions over all',
          ['', 'all led s', 'idle: relays %', 'busiest %', 'Postgres %', 'statements/s',
           'bytes/account', 'tx/s',
           'CPU us/tx: relays / Postgres', 'leads lost'], [row(r, base) for r in results])
    return results
