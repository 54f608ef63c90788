"""Several sites that send through one account: each has a Postgres of its own with its relays; one
chain; and before each relay a proxy that the other sites reach it through. With frames=True a
second one stands behind it, which loses, doubles and delays single messages between two sites
(frames.py)."""
import itertools
from collections import Counter

from . import proc, sites_invariants
from .certificates import Certificates
from .chain import Chain, Devchain, remark
from .patroni import free_ports
from .postgres import PG_SH, Postgres, server_folder
from .proxy import Proxy
from .relay import Relay
from .world import ALICE

NAMES = 'abcdefgh'
LEADERSHIP = {'expiry_1_ms': 3000, 'heartbeat_ms': 300}


class Site:
    def __init__(self, sites, name, relays):
        self.sites, self.name = sites, name
        self.ports = free_ports(relays)
        self.proxies = [Proxy(('127.0.0.1', sites.before(name, port))) for port in self.ports]
        self.pg = sites.postgres()
        if not self.pg.migrated:
            self.pg.migrate()
        if sites.watch:
            self.pg.query(sites_invariants.WATCH)
        self.relays, self.committed, self.rolled_back = [], {}, []

    @property
    def addresses(self):
        """Where the other sites find its relays."""
        return [f'127.0.0.1:{proxy.port}' for proxy in self.proxies]

    def configure(self, **policy):
        """sites_policy is the account's, the rest are keys of the section."""
        ours = [f'sites: [{", ".join(s.name for s in self.sites.all)}]']
        ours += [f'{k}: {policy.pop(k)}' for k in ('sites_policy',) if k in policy]
        for i, port in enumerate(self.ports):
            relay = Relay(self.sites.dir, f'{self.name}{i + 1}', self.pg.dsn, [self.sites.chain.ws],
                          (self.sites.account, *self.sites.beside.get(self.name, ())),
                          leadership=LEADERSHIP,
                          manager=self.sites.manager,
                          extra=self.sites.section(self, port, self.addresses[i], policy))
            with open(relay.config) as file:
                text = file.read()
            head = f'  - alias: {self.sites.alias}\n'
            with open(relay.config, 'w') as file:
                file.write(text.replace(head, head + ''.join(f'    {line}\n' for line in ours)))
            self.relays.append(relay)

    def start(self):
        for relay in self.relays:
            relay.start()

    def leader(self):
        return next((r for r in self.relays if r.leads(self.sites.alias)), None)

    def wait_leader(self, seconds=30):
        return proc.wait_for(f'site {self.name} to have a leader', self.leader, seconds)

    def enqueue(self, count):
        calls = [remark(f'{self.name} {next(self.sites.serial)}') for _ in range(count)]
        ids = self.pg.query('SELECT txrelay.enqueue(%s, c) FROM unnest(%s::bytea[]) c',
                            (self.sites.alias, calls))
        self.committed.update(zip(calls, (row[0] for row in ids)))

    def fails(self, option):
        """How a transaction with this option ended: it never gets in."""
        tx = self.pg.value(f'SELECT txrelay.enqueue(%s, %s, {option})',
                           (self.sites.alias, remark(f'{self.name} {next(self.sites.serial)}')))
        return proc.wait_for('its end', lambda: [r[0] for r in self.pg.query(
            'SELECT outcome::text FROM txrelay.finished_transactions WHERE id = %s', (tx,))], 30)

    def unfinished(self):
        done = {r[0] for r in self.pg.query(
            'SELECT id FROM txrelay.finished_transactions WHERE id IS NOT NULL')}
        return [t for t in self.committed.values() if t not in done]

    def ended(self):
        return self.pg.value('SELECT count(*) FROM txrelay.finished_transactions '
                             'WHERE id IS NOT NULL')

    def coordinators(self):
        """Sites that coordinated what has ended here."""
        return Counter(r[0] for r in self.pg.query(
            'SELECT coordinator FROM txrelay.finished_transactions WHERE id IS NOT NULL'))

    def sees(self):
        """(state, coordinator) of its leader; None, None: nobody says so now."""
        rows = self.pg.query("SELECT state, coordinator FROM txrelay.sites")
        return rows[0] if rows else (None, None)

    def away(self):
        """The whole site is lost for now."""
        for relay in self.relays:
            relay.kill()
        proc.run([PG_SH, 'stop', self.pg.dir, 'immediate'])

    def back(self):
        proc.run([PG_SH, 'start', self.pg.dir])
        self.start()

    def cut(self):
        for proxy in self.proxies:
            proxy.set('hole')

    def heal(self):
        for proxy in self.proxies:
            proxy.set('pass')


class Sites:
    """beside: more accounts of a site, which are its own. chain: options of a devchain, or one
    that runs. postgres: makes a server, or a database."""

    def __init__(self, count=2, relays=1, block_ms=100, frames=False, seed=1, names=NAMES,
                 account=ALICE, beside=None, chain=(),
                 postgres=None, manager=None, watch=True, start=True, **policy):
        self.dir, self.account, self.alias, self.beside, self.manager = proc.make_dir(
            'txs-'), account, account[0], beside or {}, manager
        self.watch, self.postgres = watch, postgres or (lambda: Postgres(server_folder(),
                                                                         durable=False))
        self.serial = itertools.count(1)
        self.borrowed = chain if isinstance(chain, Chain) else None
        blocks = ('--block-ms', str(block_ms), '--finality-lag', '1') if block_ms else ()
        self.chain = self.borrowed or Devchain(self.dir, *blocks, *chain)
        self.files = Certificates()
        self.files.authority()
        self.pairs = None
        if frames:
            from .frames import Fault  # it needs grpcio
            self.pairs = {frozenset(p): Fault(seed + i)
                          for i, p in enumerate(itertools.combinations(names[:count], 2))}
        for name in names[:count]:
            self.files.certificate(name, name)
        self.all = [Site(self, name, relays) for name in names[:count]]
        for site in self.all:
            site.configure(**policy)
        if start:
            self.start()

    def start(self):
        for site in self.all:
            site.start()

    def before(self, name, port):
        """The port to reach this relay by."""
        if not self.pairs:
            return port
        from .frames import FrameProxy
        return FrameProxy(self.files, name, port, self.fault).port

    def fault(self, one, other):
        """What befalls the messages between two sites, either way."""
        return self.pairs[frozenset((one, other))]

    def section(self, site, port, address, policy):
        lines = ['sites:', f'  name: {site.name}', f'  listen: "tcp:127.0.0.1:{port}"',
                 f'  address: "{address}"',
                 f'  cert_file: {self.files.path(site.name)}.pem',
                 f'  key_file: {self.files.path(site.name)}.key',
                 f'  ca_file: {self.files.path("ca.pem")}'] + [f'  {k}: {v}'
                                                               for k, v in policy.items()] + [
                                                                   '  peers:']
        for other in self.all:
            if other is not site:
                lines += [f'    - name: {other.name}', '      targets: '
                                   f'[{", ".join(chr(34) + a + chr(34) for a in other.addresses)}]']
        return '\n'.join(lines) + '\n'

    def wait_leaders(self):
        for site in self.all:
            site.wait_leader()

    def settle(self, seconds=120):
        """Until every transaction of every site has ended; then each is on the chain once."""
        self.wait_ends(seconds)
        return self.check()

    def wait_ends(self, seconds):
        def open_ones():
            return {site.name: site.unfinished() for site in self.all if site.unfinished()}
        try:
            proc.wait_for('every transaction to end', lambda: not open_ones(), seconds, every=0.1)
        except TimeoutError as error:
            raise TimeoutError(f'{error}: '
                        f'{({n: len(t) for n, t in open_ones().items()})}\n{self.text()}') from None

    def check(self):
        for site in self.all:
            for relay in site.relays:
                assert not relay.unparsed(), (
                    f'{relay.name} logged what is no logfmt: {relay.unparsed()[:3]}')
        return sites_invariants.check(self, self.alias)

    def text(self, lines=25):
        parts = []
        for site in self.all:
            for relay in site.relays:
                parts += [f'== {relay.name}'] + relay.text().splitlines()[-lines:]
                if relay.alive():
                    parts.append(str(relay.status()))
            try:
                parts += [str(row) for row in site.pg.query('SELECT v::text FROM txrelay.sites v')]
                parts += [str(row) for row in site.pg.query(
                    "SELECT application_name, state, wait_event, now() - xact_start, left(query, "
                    "60) FROM pg_stat_activity "
                    "WHERE state <> 'idle' AND pid <> pg_backend_pid()")]
            except Exception as error:  # the database may be what failed
                parts.append(str(error).strip())
        if self.pairs:
            parts += [f'{set(pair)}: {len(fault.streams)} streams, {dict(fault.counts)}'
                      for pair, fault in self.pairs.items()]
        return '\n'.join(parts)

    def close(self):
        for site in self.all:
            for relay in site.relays:
                if relay.process and relay.alive():
                    relay.kill()
            for proxy in site.proxies:
                proxy.close()
            site.pg.stop()
        if not self.borrowed:
            self.chain.process.kill()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.text(40), flush=True)
        self.close()
