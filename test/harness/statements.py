"""A server that counts what it is asked (pg_stat_statements)."""
import re
import time

from . import proc
from .postgres import PG_SH, Postgres


class CountingServer(Postgres):
    def __init__(self):
        self.dir = proc.make_dir('txpg-')
        self.admin_dsn = proc.run([PG_SH, 'start', self.dir, '--', '-c',
                                   'shared_preload_libraries=pg_stat_statements',
                     '-c', 'pg_stat_statements.track_planning=off']).stdout.strip().splitlines()[-1]
        proc.on_exit(self.stop)
        self.database = 'postgres'
        self.dsn = self.dsn_of(self.database)
        self.query('CREATE EXTENSION pg_stat_statements')

    def rates(self, database, seconds):
        """[(statements a second, ms of the server a second, text)] of that database from now on,
        the most frequent first."""
        self.query('SELECT pg_stat_statements_reset()')
        begun = time.monotonic()
        proc.wait_for('the time of the measurement', lambda: time.monotonic() - begun >= seconds,
                      seconds + 30, 0.2)
        passed = time.monotonic() - begun
        return sorted(((calls / passed, ms / passed, name)
                       for calls, ms, name in self._rows(database)), reverse=True)

    def wait_calm(self, database, accounts):
        """Relays that have just begun to lead look at each account once or twice: until that is
        over."""
        def calm():
            of = {name: rate for rate, _, name in self.rates(database, 1)}
            return of.get('leader_poll_requests',
                          0) + of.get('leader_outbox',
                                      0) < accounts / 100 + 1 and 'leader_due' in of
        proc.wait_for('the accounts to be calm', calm, 60, 0)

    def calls(self, database):
        """{what is called: how often} since the last reset."""
        return {name: calls for calls, _, name in self._rows(database)}

    def _rows(self, database):
        rows = self.query('''SELECT sum(calls)::bigint, sum(total_exec_time), query
                             FROM pg_stat_statements s
                             JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = %s
                             GROUP BY query''', (database,))
        return [(calls, ms, name_of(query)) for calls, ms, query in rows]


def name_of(query):
    """What a reader knows it by: the function of ours that it calls, else its first words."""
    text = re.sub(r'--.*', '', query)
    found = re.search(r'txrelay\.(\w+)\s*\(', text)
    return found.group(1) if found else ' '.join(text.split())[:70]
