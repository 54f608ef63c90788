"""A private Postgres: own data folder, unix socket only (test/harness/pg.sh)."""
import os
import re
import select
import shutil

import psycopg2

from . import proc
from .relay import cli

PG_SH = os.path.join(proc.ROOT, 'test', 'harness', 'pg.sh')

# What a session keeps after the statement, or what is about the session itself.
OF_A_SESSION = re.compile(r"\b(set|reset|set_config|discard|listen|prepare|temp|advisory|begin|"
                          r"pg_backend_pid|pg_sleep|activity|pg_locks|terminate|database|vacuum)\b"
                          r"|advisory|activity", re.I)


def server_folder():
    """In memory where there is room."""
    directory = proc.run([PG_SH, 'folder']).stdout.strip()
    proc.on_exit(lambda: shutil.rmtree(directory, ignore_errors=True))
    return directory


class Postgres:
    migrated = False
    _idle = None  # sessions that query() leaves open

    def __init__(self, directory=None, durable=True, database='txrelay', tcp=None, options=()):
        self.dir = directory or proc.make_dir('txpg-')
        args = [PG_SH, 'start', self.dir] + (['--fsync'] if durable
                                             else []) + (['--tcp', str(tcp)] if tcp
                                                         else []) + ['--', *options]
        self.admin_dsn = proc.run(args).stdout.strip().splitlines()[-1]
        proc.on_exit(self.stop)
        self.database = database
        with self.admin() as db, db.cursor() as cur:
            cur.execute(f'CREATE DATABASE {database}')
            # the superuser tells functions the time
            cur.execute('CREATE ROLE txrelay_clock NOLOGIN')
        self.dsn = self.dsn_of(database)

    def migrate(self):
        """From now on copies are migrated too."""
        cli('migrate', '--database', self.dsn)
        self.migrated = True

    def sibling(self, database, template='template1', options=''):
        """Another database on the same server; `options` of CREATE DATABASE."""
        other = object.__new__(Postgres)
        other.dir, other.admin_dsn, other.database = self.dir, self.admin_dsn, database
        with self.admin() as db, db.cursor() as cur:
            # as files: through the log it takes the server twice as much processor time
            if db.server_version >= 150000:
                options += ' STRATEGY FILE_COPY'
            cur.execute(f'CREATE DATABASE {database} TEMPLATE {template} {options}')
        other.dsn = other.dsn_of(database)
        return other

    def copy(self, database):
        """One with the same content. Its query() keeps a session."""
        other = self.sibling(database, self.database)
        other.migrated, other._idle = self.migrated, []
        return other

    def dsn_of(self, database, user=None):
        parts = dict(p.split('=', 1) for p in self.admin_dsn.split())
        parts['dbname'] = database
        if user:
            parts['user'] = user
        return ' '.join(f'{k}={v}' for k, v in parts.items())

    def admin(self):
        db = psycopg2.connect(self.admin_dsn)
        db.autocommit = True
        return _Closing(db)

    def connect(self, autocommit=True, user=None):
        db = psycopg2.connect(self.dsn_of(self.database, user))
        db.autocommit = autocommit
        return db

    def query(self, sql, args=None):
        """Rows of one statement, on a new session or, in a copy, on that of an earlier statement
        where no test can see the difference: tests poll, and a new session costs the server more
        than most statements."""
        assert not sql.startswith('SELECT FROM'), 'psycopg2 gives no rows that have no column'
        keep = self._idle is not None and not OF_A_SESSION.search(sql)
        db = (self._idle_session() if keep else None) or self.connect()
        try:
            with db.cursor() as cur:
                cur.execute(sql, args)
                rows = cur.fetchall() if cur.description else []
        except BaseException:
            db.close()
            raise
        if keep and not self._idle:
            self._idle.append(db)
        else:
            db.close()
        return rows

    def close(self):
        """The kept session ends; the database stays."""
        while self._idle:
            self._idle.pop().close()

    def _idle_session(self):
        """None: there is none, or the server ended it."""
        try:
            db = self._idle.pop()
        except IndexError:
            return None
        if db.closed or select.select([db], [], [], 0)[0]:
            db.close()
            return None
        return db

    def value(self, sql, args=None):
        return self.query(sql, args)[0][0]

    def restart(self):
        proc.run([PG_SH, 'restart', self.dir])

    def stop(self):
        proc.run([PG_SH, 'stop', self.dir], check=False)


class _Closing:
    def __init__(self, db):
        self.db = db

    def __enter__(self):
        return self.db

    def __exit__(self, *_):
        self.db.close()
