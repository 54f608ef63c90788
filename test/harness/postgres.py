"""A private Postgres: own data folder, unix socket only (test/harness/pg.sh)."""
import os

import psycopg2

from . import proc

PG_SH = os.path.join(proc.ROOT, 'test', 'harness', 'pg.sh')


class Postgres:
    def __init__(self, directory=None, durable=True, database='txrelay', tcp=None):
        self.dir = directory or proc.make_dir('txpg-')
        args = [PG_SH, 'start', self.dir] + (['--fsync'] if durable else []) + (['--tcp', str(tcp)] if tcp else [])
        self.admin_dsn = proc.run(args).stdout.strip().splitlines()[-1]
        proc.on_exit(self.stop)
        self.database = database
        with self.admin() as db, db.cursor() as cur:
            cur.execute(f'CREATE DATABASE {database}')
            cur.execute('CREATE ROLE txrelay_clock NOLOGIN')  # the superuser tells functions the time
        self.dsn = self.dsn_of(database)

    def sibling(self, database):
        """Another database on the same server."""
        other = object.__new__(Postgres)
        other.dir, other.admin_dsn, other.database = self.dir, self.admin_dsn, database
        with self.admin() as db, db.cursor() as cur:
            cur.execute(f'CREATE DATABASE {database}')
        other.dsn = other.dsn_of(database)
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
        """Rows of one statement on a fresh connection."""
        with _Closing(self.connect()) as db, db.cursor() as cur:
            cur.execute(sql, args)
            return cur.fetchall() if cur.description else []

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
