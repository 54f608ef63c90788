"""What most system tests want: a database of its own, a devchain, relays, calls that are all
different."""
import itertools
import os
import sys
import threading

from . import invariants, proc
from .chain import Devchain, remark
from .postgres import Postgres, server_folder
from .relay import Relay

ALICE = ('alice', 'sr25519', '//Alice')
BOB = ('bob', 'sr25519', '//Bob')

_lock = threading.Lock()
_shared = {}
_serial = itertools.count(1)


def shared_postgres():
    """One server for the whole run, in memory where there is room; every world has its own
    database on it."""
    with _lock:
        if 'pg' not in _shared:
            _shared['pg'] = Postgres(server_folder(), durable=False, database='template')
            _shared['pg'].migrate()
        return _shared['pg']


class World:
    def __init__(self, *chain_options, accounts=(ALICE,), own_postgres=False, leadership=None,
                 manager=None, postgres=None,
                 database=''):
        self.dir = proc.make_dir('txw-')
        self.number = next(_serial)
        if own_postgres:
            self.pg = Postgres(os.path.join(self.dir, 'pg'), durable=False)
        else:
            server = postgres or shared_postgres()
            if database:
                self.pg = server.sibling(f'world_{self.number}', 'template0', database)
            else:
                self.pg = (server.copy if server.migrated
                           else server.sibling)(f'world_{self.number}')
        if not self.pg.migrated:
            self.pg.migrate()
        self.accounts, self.leadership, self.manager = accounts, leadership, manager
        options = list(chain_options)
        if '--block-ms' not in options and '--instant' not in options:
            options += ['--block-ms', '100']
        if '--finality-lag' not in options:
            options += ['--finality-lag', '1']
        self.chain = Devchain(self.dir, *options)
        self.committed, self.rolled_back, self.relays = {}, [], []
        self.foreign = set()  # hashes of what a test signed with our keys behind the relays' back
        self.lives = 1  # so often the chain may begin an account's nonces

    def relay(self, name, start=True, env=None, **kwargs):
        kwargs.setdefault('leadership', self.leadership)
        kwargs.setdefault('manager', self.manager)
        relay = Relay(self.dir, name, kwargs.pop('dsn', self.pg.dsn),
                      kwargs.pop('endpoints', [self.chain.ws]),
                      kwargs.pop('accounts', self.accounts), env=env, **kwargs)
        self.relays.append(relay)
        return relay.start() if start else relay

    def wait_leader(self, relay, alias='alice', seconds=20):
        proc.wait_for(f'{relay.name} to lead {alias}', lambda: relay.leads(alias), seconds)

    def enqueue(self, content, alias='alice'):
        call = content if isinstance(content,
                                     bytes) and content[:2] == b'\x00\x00' else remark(content)
        tx = self.pg.value('SELECT txrelay.enqueue(%s, %s)', (alias, call))
        self.committed[call] = tx
        return tx

    def enqueue_raw(self, call, alias='alice'):
        tx = self.pg.value('SELECT txrelay.enqueue(%s, %s)', (alias, call))
        self.committed[call] = tx
        return tx

    def unfinished(self):
        done = {r[0] for r in self.pg.query(
            'SELECT id FROM txrelay.finished_transactions WHERE id IS NOT NULL')}
        return [t for t in self.committed.values() if t not in done]

    def settle(self, seconds=120):
        """Wait until every committed transaction has ended, then check the invariants against the
        chain."""
        try:
            proc.wait_for('every transaction to end', lambda: not self.unfinished(), seconds,
                          every=0.1)
        except TimeoutError as error:
            rows = self.pg.query('''SELECT nonce, id, state FROM txrelay.pending_transactions ORDER
                                    BY nonce LIMIT 5''')
            logs = '\n'.join(f'--- {r.name}\n' + '\n'.join(r.text().splitlines()[-15:])
                             for r in self.relays)
            raise TimeoutError(f'{error}; unfinished {self.unfinished()[:5]}; pending '
                               f'{rows}\n{logs}') from None
        return self.check()

    def check(self):
        for relay in self.relays:
            unparsed = relay.unparsed() if os.path.exists(relay.log) else []
            assert not unparsed, f'{relay.name} logged what is no logfmt: {unparsed[:3]}'
        return invariants.check(self.pg, self.chain, self.committed, self.rolled_back,
                                self.submitted(),
                                self.foreign, self.lives)

    def submitted(self):
        return {s['hash'] for s in self.chain.submits() if s.get('signer')}

    def close(self):
        for relay in self.relays:
            if relay.alive():
                relay.kill()
        self.chain.process.kill()
        self.pg.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.tell()
        self.close()

    def tell(self, lines=40):
        """What a failed test leaves for its reader: the world is gone when its output is read."""
        text = []
        for relay in self.relays:
            if os.path.exists(relay.log):
                text += [f'== the end of {relay.log}'] + relay.text().splitlines()[-lines:]
        for view in ('blocked_accounts', 'pending_transactions'):
            try:
                text += [f'== txrelay.{view}'] + [str(row)[:500]
                                                  for row in self.pg.query(
                                                      f'SELECT v::text FROM txrelay.{view} v '
                                                      'LIMIT 5')]
            except Exception as error:  # the database may be what failed
                text.append(str(error).strip())
        print('\n'.join(text), file=sys.stderr, flush=True)


proc.install_signals()  # a run that is ended by a signal cleans up as well
