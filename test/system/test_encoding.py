"""R10: a database whose encoding is SQL_ASCII stores any bytes. No text stops an account, a reader
or a command."""
import unittest

import psycopg2

from harness import proc
from harness.relay import cli
from harness.world import ALICE, BOB, World

JOSE = b"Jos\xe9"  # Latin-1


class Latin(unittest.TestCase):
    def raw(self, world, sql, values=b''):
        """Bytes as they are: a session of an application whose client_encoding is another one."""
        db = psycopg2.connect(world.pg.dsn)
        db.autocommit = True
        db.set_client_encoding('SQL_ASCII')
        with db.cursor() as cur:
            cur.execute(sql.encode() % values if values else sql.encode())
            rows = cur.fetchall() if cur.description else []
        db.close()
        return rows

    def test_one_text_that_does_not_convert(self):
        with World(accounts=(ALICE, BOB),
                   database="ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'") as world:
            relay = world.relay('one')
            world.wait_leader(relay)
            world.wait_leader(relay, 'bob')
            # Refused at the door, each way in.
            for sql in (b"enqueue('alice', '\\x00001c706f69736f6e6564', creator => '%s')",
                        b"enqueue('alice', '\\x0000', key => '%s')",
                        b"enqueue_many('alice', ARRAY['\\x0000'::bytea], ARRAY['%s'])",
                        b"enqueue_many('alice', ARRAY['\\x0000'::bytea], creator => '%s')"):
                with self.subTest(sql), self.assertRaises(psycopg2.Error) as caught:
                    self.raw(world, 'SELECT txrelay.' + sql.decode(), JOSE)
                self.assertEqual(caught.exception.pgcode, 'TR011')
            # There already, as a former version took it.
            bad = world.enqueue('poisoned')
            key = world.pg.value("SELECT txrelay.enqueue('alice', '\\x00000c6b6579', key => 'k')")
            self.raw(world, "UPDATE txrelay.outbox SET creator = '%s', key = coalesce(key, '') "
                            "|| '%s'", (JOSE, JOSE))
            self.raw(world, "UPDATE txrelay.pending_transactions SET creator = '%s', error = '%s'",
                     (JOSE, JOSE))
            tail = proc.Process([proc.TXRELAY, 'tail', '--json', '--since', '2026-01-01T00:00:00Z',
                                 '--database', world.pg.dsn],
                                f'{world.dir}/tail.log')
            world.enqueue('after it')
            world.enqueue("bob's", alias='bob')
            proc.wait_for('every transaction to end', lambda: world.pg.value(
                'SELECT count(*) FROM txrelay.finished_transactions WHERE id IS NOT NULL') == 4)
            self.raw(world, "SET session_replication_role = replica; UPDATE "
                            "txrelay.finished_transactions SET creator = '%s', key = '%s', "
                     "error = '%s'", (JOSE, JOSE, JOSE))
            for command in (('status',), ('status', str(bad)), ('history', str(key)), ('blocked',),
                            ('accounts',)):
                cli(*command, '--database', world.pg.dsn)
            self.assertIn('Jos?', cli('status', str(bad), '--database', world.pg.dsn).stdout)
            again = proc.Process([proc.TXRELAY, 'tail', '--json', '--since', '2026-01-01T00:00:00Z',
                                  '--database', world.pg.dsn],
                                 f'{world.dir}/again.log')
            for reader in (tail, again):
                proc.wait_for('all ends', lambda r=reader: r.text().count('"outcome":"ok"') >= 4)
            self.assertIn('Jos?', again.text())
            self.assertIsNone(again.child.poll())


if __name__ == '__main__':
    unittest.main()
