"""One application session of many, as a process of its own: python -m harness.writer DSN NUMBER
TRANSACTIONS ALIAS...

Transactions at every isolation level, with work of their own that conflicts, a delay before the
commit, every tenth rolled back. One line on standard output for each that ended: commit or
rollback, tries, then for each call: the number of the call, account, priority, id, and when (ns of
the machine's monotonic clock) enqueue was sent and the end was known."""
import random
import sys
import time

import psycopg2
from psycopg2 import errors

from .chain import remark

LEVELS = ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
ITEMS = 256
DELAY_S, LONG_DELAY_S = 0.004, 0.2

TABLES = f'''
CREATE TABLE public.stock (item int PRIMARY KEY, n int NOT NULL);
INSERT INTO public.stock SELECT i, 0 FROM generate_series(1, {ITEMS}) i;
CREATE TABLE public.orders (name text PRIMARY KEY, tx bigint NOT NULL)'''


def call_of(name):
    return remark(f'order {name}')


class Writer:
    def __init__(self, dsn, number, aliases):
        self.db = psycopg2.connect(dsn)
        self.db.autocommit = True  # BEGIN and COMMIT are said here
        self.cur = self.db.cursor()
        self.number, self.aliases, self.dice = number, aliases, random.Random(number)
        self.last = None  # (alias, key, call, id) of one that was committed

    def transaction(self, number):
        dice, names = self.dice, [f'{self.number}.{number}']
        if number % 50 == 0:
            names = [f'{names[0]}.{i}' for i in range(3)]
        alias, priority, level = dice.choice(self.aliases), 5 if dice.random() < 0.1 else 0, LEVELS[
            dice.randrange(3)]
        keys = [f'key {n}' for n in names] if number % 4 == 0 else None
        end, tries = 'ROLLBACK' if number % 10 == 9 else 'COMMIT', 0
        while True:
            tries += 1
            try:
                self.cur.execute(f'BEGIN ISOLATION LEVEL {level}')
                self.work()
                sent = time.monotonic_ns()
                ids = self.enqueue(alias, names, keys, priority)
                time.sleep(LONG_DELAY_S if dice.random() < 0.002 else dice.expovariate(1 / DELAY_S))
                self.cur.execute(end)
                break
            except errors.SerializationFailure:
                self.cur.execute('ROLLBACK')
        known = time.monotonic_ns()
        if keys and end == 'COMMIT':
            self.last = (alias, keys[0], call_of(names[0]), ids[0])
        print(end, tries,
              *(f'{n},{alias},{priority},{tx},{sent},{known}' for n, tx in zip(names, ids)))

    def work(self):
        """Reads some and changes one: under the stricter levels two of these may not go
        together."""
        item = self.dice.randrange(ITEMS) + 1
        self.cur.execute('SELECT sum(n) FROM public.stock WHERE item BETWEEN %s AND %s',
                         (item - 2, item + 2))
        self.cur.execute('UPDATE public.stock SET n = n + 1 WHERE item = %s', (item,))

    def enqueue(self, alias, names, keys, priority):
        calls = [call_of(n) for n in names]
        if len(calls) > 1:
            self.cur.execute('SELECT txrelay.enqueue_many(%s, %s::bytea[], %s::text[], priority '
                             '=> %s)',
                             (alias, calls, keys, priority))
            ids = self.cur.fetchone()[0]
        else:
            self.cur.execute('SELECT txrelay.enqueue(%s, %s, %s, %s)',
                             (alias, calls[0], keys and keys[0], priority))
            ids = [self.cur.fetchone()[0]]
        self.cur.executemany('INSERT INTO public.orders VALUES (%s, %s)', list(zip(names, ids)))
        return ids

    def again(self):
        """What was committed is asked for again with its key: the first id, and nothing new."""
        alias, key, call, tx = self.last
        self.cur.execute('SELECT txrelay.enqueue(%s, %s, %s)', (alias, call, key))
        assert self.cur.fetchone()[0] == tx, f'{key} gave another id than {tx}'


def main(dsn, number, count, *aliases):
    writer = Writer(dsn, int(number), aliases)
    for i in range(1, int(count) + 1):
        writer.transaction(i)
        if writer.last and i % 25 == 0:
            writer.again()


if __name__ == '__main__':
    main(*sys.argv[1:])
