"""Enqueue a transaction and follow it to its end, with plain SQL and LISTEN: psycopg2 and nothing
of ours.

    DB="dbname=shop" python3 follow.py alice 0x00001468656c6c6f [KEY]

A notification is a hint that says "look": it may be missed while the connection is away. So:
LISTEN first, then ask for the status, then wait. After a lost connection the same again. The key
makes the enqueue safe to repeat."""
import json
import os
import select
import sys
import time

import psycopg2

LOOK_S = 30  # a look now and then, should a notification ever be lost


def connect():
    db = psycopg2.connect(os.environ['DB'], application_name='follow example')
    db.autocommit = True  # a session that listens must not stay in a transaction
    return db


def again(what):
    """what(), on a new connection for as long as there is none to be had."""
    while True:
        db = None
        try:
            db = connect()
            return what(db)
        except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
            print('connecting again:', str(error).strip().splitlines()[0], flush=True)
            time.sleep(1)
        finally:
            if db:
                db.close()


def enqueue(db, account, call, key):
    with db.cursor() as cur:
        cur.execute('SELECT txrelay.enqueue(%s, %s, key => %s)', (account, call, key))
        return cur.fetchone()[0]


def follow(db, tx, told):
    """Until it has ended: the outcome. told: the statuses that were printed before the connection
    was lost."""
    with db.cursor() as cur:
        cur.execute('LISTEN pending_tx_new; LISTEN pending_tx_update; LISTEN pending_tx_removed')
        while True:
            cur.execute('SELECT stage, state, block_hash, outcome, error FROM txrelay.status(%s)',
                        (tx,))
            row = cur.fetchone()
            if row is None:
                raise SystemExit(f'transaction {tx} is not known')
            if row not in told[-1:]:
                told.append(row)
                print(tx, *[x for x in row if x], flush=True)
            if row[0] == 'finished':
                return row[3]
            while not any(json.loads(n.payload).get('id') == tx for n in db.notifies):
                db.notifies.clear()
                ready = select.select([db], [], [], LOOK_S)[0]
                db.poll()  # raises when the connection is gone
                if not ready:
                    break
            db.notifies.clear()


def main(account, call, key=None):
    key = key or f'follow-{os.getpid()}-{time.time_ns()}'
    call = bytes.fromhex(call.removeprefix('0x'))
    tx = again(lambda db: enqueue(db, account, call, key))
    print('transaction', tx, flush=True)
    told = []
    outcome = again(lambda db: follow(db, tx, told))
    sys.exit(0 if outcome == 'ok' else 1)


if __name__ == '__main__':
    main(*sys.argv[1:])
