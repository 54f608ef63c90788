"""wake: from the return of an application's COMMIT until the sleeping leader has taken the
transaction, against the plain way: a trigger that notifies per row, and a worker that listens and
takes the row. One transaction at a time, in turn, while both are idle; ours only when the leader
holds its doorbell. "taken" is the database's clock in the taker's own write (ours: admitted_at,
with nonce and signature; the worker's: a DELETE that writes the time), "notified" the worker's
clock when the notification has come. The application's clock and the database's are one:
everything runs on this host."""
import select
import threading
import time

from harness import proc
from harness.chain import remark
from harness.relay import Relay

from .stand import chain, many_accounts, quantiles, table
from .suite_latency import ASLEEP, IDLE

SETUP = '''
CREATE SCHEMA bench;
CREATE TABLE bench.job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account int, call
bytea);
CREATE TABLE bench.taken (id bigint PRIMARY KEY, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION bench.tell() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM pg_notify('bench', NEW.id::text); RETURN NULL; END$$;
CREATE TRIGGER tell AFTER INSERT ON bench.job FOR EACH ROW EXECUTE FUNCTION bench.tell();
'''
TAKE = ('WITH gone AS (DELETE FROM bench.job RETURNING id) INSERT INTO bench.taken (id) SELECT id '
        'FROM gone')


class Worker:
    """The plain way: listens, and takes what there is at each notification."""

    def __init__(self, pg):
        self.db, self.notified, self.over = pg.connect(), {}, False
        self.cur = self.db.cursor()
        self.cur.execute('LISTEN bench')
        self.cur.execute('PREPARE take AS ' + TAKE)
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while not self.over:
            if not select.select([self.db], [], [], 0.2)[0]:
                continue
            self.db.poll()
            now = time.time()
            told = [int(n.payload) for n in self.db.notifies]
            self.db.notifies.clear()
            if told:
                self.cur.execute('EXECUTE take')
            for tx in told:
                self.notified[tx] = now

    def close(self):
        self.over = True
        self.thread.join()
        self.db.close()


def run(server, args):
    pg = server.fresh()
    pg.query(SETUP)
    directory = proc.make_dir('txbench-')
    accounts = many_accounts(1)
    node = chain(directory, '--instant', accounts=accounts)
    relay = Relay(directory, 'wake', pg.dsn, [node.ws], accounts).start()
    relay.wait_log('account.ready')
    worker = Worker(pg)
    db = pg.connect()
    cur = db.cursor()
    commits, plain_commits = {}, {}

    def ask(sql):
        cur.execute(sql)
        return cur.fetchone()[0]

    for i in range(args.wake_count):
        proc.wait_for('the relay to be idle', lambda: ask(IDLE) and ask(ASLEEP), 30, 0.005)
        call = remark(b'%0100d' % i)
        tx = ask(cur.mogrify('SELECT txrelay.enqueue(%s, %s)', ('bench0', call)))
        commits[tx] = time.time()
        tx = ask(cur.mogrify('INSERT INTO bench.job (account, call) VALUES (1, %s) RETURNING id',
                             (call,)))
        plain_commits[tx] = time.time()
        proc.wait_for('the worker', lambda: tx in worker.notified, 30, 0.005)
    proc.wait_for('everything to end', lambda: ask(IDLE), 60)
    admitted = pg.query('SELECT id, extract(epoch FROM admitted_at)::float8 '
                        'FROM txrelay.finished_transactions')
    taken = pg.query('SELECT id, extract(epoch FROM at)::float8 FROM bench.taken')
    assert len(admitted) == len(
        taken) == args.wake_count, f'{len(admitted)} and {len(taken)} of {args.wake_count}'
    worker.close()
    relay.stop()
    node.process.kill()
    stages = {
        'txrelay, leader asleep: taken': [at - commits[tx] for tx, at in admitted],
        'NOTIFY per row, worker: notified': [worker.notified[tx] - at
                                             for tx, at in plain_commits.items()],
        'NOTIFY per row, worker: taken': [at - plain_commits[tx] for tx, at in taken],
    }
    result = {k: {q: v * 1000 if q != 'n' else v for q, v in quantiles(s).items()}
              for k, s in stages.items()}
    table(f'wake: ms from the return of the COMMIT, {args.wake_count} of each in turn',
          ['', 'p50', 'p99', 'max'],
          [[k, *(f'{v[q]:.2f}' for q in ('p50', 'p99', 'max'))] for k, v in result.items()])
    return {'count': args.wake_count, 'ms': result}
