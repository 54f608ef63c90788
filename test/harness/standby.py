"""A physical standby of a private Postgres."""
import os
import shutil

from . import proc
from .postgres import PG_SH, Postgres
from .proxy import Proxy

BIN = os.environ.get('PG_BIN', '/usr/lib/postgresql/15/bin')


class Standby(Postgres):
    """A streaming copy of a server, through a proxy. environment: of its postgres alone."""

    def __init__(self, primary, environment=None):
        self.dir = proc.make_dir('txpgs-')
        self.stream = Proxy(os.path.join(primary.dir, '.s.PGSQL.5432'))
        owner = os.stat(f'{primary.dir}/data')
        os.chown(self.dir, owner.st_uid, owner.st_gid)
        as_owner = ['setpriv', '--reuid', str(owner.st_uid), '--regid', str(owner.st_gid),
                    '--clear-groups'] if os.getuid() == 0 else []
        data = f'{self.dir}/data'
        proc.run([*as_owner, f'{BIN}/pg_basebackup', '-D', data, '-X', 'stream', '-c', 'fast',
                  '--no-sync',
                  '-d', f'host=127.0.0.1 port={self.stream.port} user=postgres'], cwd='/')
        with open(f'{data}/postgresql.auto.conf', 'a') as file:
            file.write(f"unix_socket_directories = '{self.dir}'\n"
                       f"primary_conninfo = 'host=127.0.0.1 port={self.stream.port} "
                       "user=postgres'\n"
                       "wal_retrieve_retry_interval = '100ms'\n")
        open(f'{data}/standby.signal', 'w').close()
        for name in ('tcp', 'options'):
            shutil.copy(f'{primary.dir}/{name}', self.dir)
        with open(f'{self.dir}/environment', 'w') as file:
            file.writelines(f'{k}={v}\n' for k, v in (environment or {}).items())
        self.admin_dsn = proc.run([PG_SH, 'start', self.dir]).stdout.strip().splitlines()[-1]
        proc.on_exit(self.stop)
        self.database = primary.database
        self.dsn = self.dsn_of(self.database)

    def caught_up(self, primary):
        goal = primary.value('SELECT pg_current_wal_lsn()')
        proc.wait_for('the standby to have all',
                      lambda: self.value('SELECT pg_last_wal_replay_lsn() >= %s', (goal,)), 30)

    def cut(self):
        """What is committed from here on never gets to it."""
        self.stream.set('refuse')
        self.stream.cut()

    def promote(self):
        assert self.value('SELECT pg_promote(false)')
        proc.wait_for('the standby to be promoted',
                      lambda: not self.value('SELECT pg_is_in_recovery()'), 180)
