"""What the tests of leadership share: a world that sees every write under an old epoch (I4),
relays that stop at a named point of their program (base/failpoint.h), links that can be broken,
and the log's own clock."""
import math
import os
import re
import signal
import threading
import time
from datetime import datetime, timezone

from . import proc
from .chain import Extrinsic, remark
from .postgres import Postgres, server_folder
from .proxy import Proxy, Submissions
from .world import World

# A single measurement may be late because the machine runs other tests: its bound is this many
# times the promise. Where a test measures often, its median or a quantile has to keep the promise
# itself.
SLOW = float(os.environ.get('TXRELAY_SLOW', '3'))

FAST = {'heartbeat_ms': 400, 'expiry_1_ms': 2000, 'expiry_2_ms': 4000, 'margin_ms': 500}

# Each row that a leader writes carries its epoch. The fence holds the subject's row until the end
# of the transaction, so that no other epoch can be seen here by a write that passed it.
AUDIT = '''
CREATE TABLE public.old_writes (at timestamptz, what text, epoch bigint, current bigint);
CREATE FUNCTION public.audit_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.old_writes SELECT clock_timestamp(), TG_TABLE_NAME, NEW.epoch, l.epoch
    FROM txrelay.leadership l
        WHERE l.subject = NEW.account AND NEW.epoch IS NOT NULL AND NEW.epoch <> l.epoch;
    RETURN NULL;
END
$$;
CREATE TRIGGER audit AFTER INSERT ON txrelay.attempts FOR EACH ROW EXECUTE FUNCTION
public.audit_epoch();
CREATE TRIGGER audit AFTER INSERT ON txrelay.finished_transactions FOR EACH ROW EXECUTE FUNCTION
public.audit_epoch();
CREATE TRIGGER audit AFTER INSERT
OR UPDATE ON txrelay.pending_transactions FOR EACH ROW EXECUTE FUNCTION public.audit_epoch();
'''


_lock = threading.Lock()
_shared = []


class Server(Postgres):
    """A server whose databases are copies of one that is migrated and audited; in memory where
    there is room."""

    def __init__(self, *options):
        super().__init__(server_folder(), durable=False, database='template', options=options)
        self.migrate()
        self.query(AUDIT)


def shared_server():
    with _lock:
        if not _shared:
            _shared.append(Server())
        return _shared[0]


def log_times(text, event):
    """Seconds since 1970 of all lines of that event."""
    stamps = re.findall(rf'time=(\S+Z) level=\w+ event={re.escape(event)} ', text)
    return [datetime.strptime(s, '%Y-%m-%dT%H:%M:%S.%fZ').replace(tzinfo=timezone.utc).timestamp()
            for s in stamps]


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def stopped(relay):
    try:
        with open(f'/proc/{relay.process.pid}/stat') as file:
            return file.read().rsplit(')', 1)[1].split()[0] == 'T'
    except FileNotFoundError:
        return False


def freeze(relay):
    os.kill(relay.process.pid, signal.SIGSTOP)
    proc.wait_for(f'{relay.name} to stand still', lambda: stopped(relay), 10, 0.002)


def thaw(relay):
    os.kill(relay.process.pid, signal.SIGCONT)


def kill(relay):
    """Without letting a stopped one run on first."""
    os.kill(relay.process.pid, signal.SIGKILL)
    relay.process.child.wait()


class Links:
    """A relay's ways to its database and its node, each through a proxy of its own."""

    def __init__(self, world):
        self.database = Proxy(world.socket())
        self.sent = Submissions()
        host, port = re.fullmatch(r'ws://([^:]+):(\d+)/?', world.chain.ws).groups()
        self.node = Proxy((host, int(port)), tap=self.sent)
        self.dsn = (
            f'host=127.0.0.1 port={self.database.port} user=postgres dbname={world.pg.database}')
        self.ws = f'ws://127.0.0.1:{self.node.port}'

    def close(self):
        self.database.close()
        self.node.close()


class LeadWorld(World):
    def __init__(self, *options, **kwargs):
        kwargs.setdefault('leadership', FAST)
        kwargs['postgres'] = kwargs.get('postgres') or shared_server()
        super().__init__(*options, **kwargs)
        self.links = []
        self.server_log = os.path.join(self.pg.dir, 'server.log')
        self.server_log_from = os.path.getsize(self.server_log)

    def close(self):
        super().close()
        for links in self.links:
            links.close()

    def socket(self):
        return os.path.join(self.pg.dir, '.s.PGSQL.5432')

    def linked(self, name, start=True, **kwargs):
        """(relay, its links)"""
        links = Links(self)
        self.links.append(links)
        return self.relay(name, start, dsn=links.dsn, endpoints=[links.ws], **kwargs), links

    def ready(self, relay, seconds=20):
        relay.wait_log('account.ready', seconds)
        return relay

    def pair(self, **kwargs):
        """(leader, its links, follower), both up."""
        leader, links = self.linked('v', **kwargs)
        self.ready(leader)
        heir = self.relay('h')
        heir.wait_log('relay.running')
        return leader, links, heir

    def leader(self):
        return next((r for r in self.relays if r.alive() and not stopped(r) and r.leads('alice')),
                    None)

    def enqueue_together(self, contents):
        """In one transaction."""
        db = self.pg.connect(autocommit=False)
        with db.cursor() as cur:
            for content in contents:
                cur.execute('SELECT txrelay.enqueue(%s, %s)', ('alice', remark(content)))
                self.committed[remark(content)] = cur.fetchone()[0]
        db.commit()
        db.close()

    # ---- what the database sees ----

    def sessions(self, relay, columns='pid', name=None):
        """Rows of pg_stat_activity of a relay's sessions; name: control, work, listen."""
        return self.pg.query(f'''SELECT {columns} FROM pg_stat_activity
                                 WHERE datname = current_database()
                                 AND application_name LIKE %s''',
                              (f'%-{relay.process.pid}-%{name or ""}',))

    def quiet(self, relay):
        """What a stopped relay had on the way to the database is done."""
        proc.wait_for('its statements to be done',
                      lambda: all(s == 'idle' for s, in self.sessions(relay, 'state')), 15, 0.01)

    def claim(self):
        """Of the only account: (epoch, holder, expiry_1, expiry_2 as seconds since 1970,
        mid-submission)."""
        return self.pg.query('''SELECT epoch, holder, extract(epoch
                                FROM expiry_1)::float8, extract(epoch FROM expiry_2)::float8,
                                txrelay.mid_submission(account) FROM txrelay.leaders''')[0]

    def epoch(self):
        return self.pg.value('SELECT epoch FROM txrelay.leadership')

    def old_writes(self):
        return self.pg.query('SELECT what, epoch, current FROM public.old_writes ORDER BY at')

    def refused(self, relay):
        """So many of its statements the fence refused, and its renewals that found another's
        claim."""
        with open(self.server_log, errors='replace') as file:
            file.seek(self.server_log_from)
            fenced = re.findall(rf'-{relay.process.pid}-\S* \w+ ERROR:  stale epoch', file.read())
        return len(fenced) + relay.text().count('the renewal was refused')

    def stored(self, raw):
        return self.pg.value('SELECT count(*) FROM txrelay.attempts WHERE hash = %s',
                             (Extrinsic(raw).hash,)) > 0

    def sent_as_it_was(self, relay, links, moment):
        """What it has sent since a moment (of time.monotonic()) and before it made another claim,
        as it may where its successor's renewals come too late."""
        offset = time.time() - time.monotonic()
        claims = [t - offset for t in log_times(relay.text(), 'leader.acquired')]
        again = min([t for t in claims if t > moment], default=math.inf)
        return [raw for when, raw in links.sent.sent if moment < when < again]

    # ---- the end of every test ----

    def steps_down(self, relay, seconds=20):
        def follows():
            status = relay.status()
            return status and all(a['role'] == 'follower' for a in status['accounts'])
        try:
            proc.wait_for(f'{relay.name} to follow', follows, seconds)
        except TimeoutError as e:
            raise TimeoutError(f'{e}: {relay.status()}\n{relay.text()[-4000:]}') from None

    def settle(self, seconds=90):
        db = self.pg.connect()
        with db.cursor() as cur:
            def ended():
                cur.execute(
                    'SELECT count(*) FROM txrelay.finished_transactions WHERE id = ANY (%s)',
                            (list(self.committed.values()),))
                return cur.fetchone()[0] == len(self.committed)
            try:
                proc.wait_for('every transaction to end', ended, seconds, 0.05)
            except TimeoutError:
                seconds = 0  # it is told below
        db.close()
        figures = super().settle(seconds)
        assert figures['finalized'] == len(self.committed), figures
        found = self.old_writes()
        assert not found, f'I4: written under an old epoch: {found[:5]}'
        died = [r.name for r in self.relays if r.process
                and r.process.child.poll() not in (None, 0, -signal.SIGKILL)]
        assert not died, f'{died}: died by themselves'
        return figures

