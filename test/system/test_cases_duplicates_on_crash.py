"""Public reports: duplicates on crash and retry (test/cases.md)."""
import hashlib
import threading
import unittest

import psycopg2

from harness import proc
from harness.cases import ACCOUNT_PREFIX, CaseTest, load_tests, on_submit  # noqa: F401
from harness.chain import put_compact, remark

BOB_ID = bytes.fromhex('8eaf04151687736326c9fea17e25fc5287613693c912909cb226aa4794f26a48')

# A backend that is killed in the middle of a statement, once: sequences do not roll back.
KILL_ONCE = '''
CREATE SEQUENCE public.test_kills;
GRANT USAGE ON SEQUENCE public.test_kills TO PUBLIC;
CREATE FUNCTION public.test_kill() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF nextval('public.test_kills') = 1 THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(0);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER test_kill BEFORE INSERT ON txrelay.{table} FOR EACH ROW {when} EXECUTE FUNCTION
public.test_kill();
'''
# An admission that waits for the test's advisory lock before its first row.
HOLD = '''
CREATE FUNCTION public.test_hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(424242);
    RETURN NEW;
END $$;
CREATE TRIGGER test_hold BEFORE INSERT ON txrelay.pending_transactions FOR EACH ROW EXECUTE
FUNCTION public.test_hold();
'''


def free_balance(world, account_id):
    key = ACCOUNT_PREFIX + hashlib.blake2b(account_id,
                                           digest_size=16).hexdigest() + account_id.hex()
    data = bytes.fromhex(world.chain.rpc('state_getStorage', key)[2:])
    return int.from_bytes(data[16:32], 'little')


class FamilyM(CaseTest):
    def reply_lost(self, action):
        """A payment whose answer never comes is made once, with the first bytes."""
        world = self.world(call_timeout_ms=700)
        before = free_balance(world, BOB_ID)
        rule, = world.script(on_submit(action))
        world.enqueue_raw(b'\x0a\x03\x00' + BOB_ID + put_compact(10 ** 12))
        proc.wait_for('the answer to be lost', lambda: world.script_fired(rule))
        self.assert_once(world)
        self.assertEqual(free_balance(world, BOB_ID) - before, 10 ** 12)
        self.assert_one_hash_each(world)

    def test_124_131_33_connection_cut_after_accept(self):
        self.reply_lost('cut_after')

    def test_124_131_connection_cut_before_accept(self):
        self.reply_lost('cut_before')

    def test_124_131_83_no_reply_after_accept(self):
        self.reply_lost('no_reply')

    def test_124_131_83_no_reply_and_not_accepted(self):
        self.reply_lost('ignore')

    def test_127_backend_killed_between_delete_and_insert(self):
        """The outbox row is deleted and the pending row inserted, or neither."""
        world = self.world()
        world.rows(KILL_ONCE.format(table='pending_transactions', when=''))
        world.enqueue_many([f'atomic {i}' for i in range(10)])
        self.assert_once(world)
        self.assertGreater(world.pg.value('SELECT last_value FROM public.test_kills'), 1)
        self.assertIn('database.', world.relays[0].text())
        self.assertEqual(world.next_nonce(), 10)
        self.assert_one_hash_each(world)

    def test_66_126_relay_killed_between_claim_and_commit(self):
        """kill -9 while the admission is open in the database; it commits after the relay's death.
        The successor finds the rows with nonces; none is given twice, none is skipped."""
        world = self.world()
        world.rows(HOLD)
        holder = world.pg.connect()
        self.addCleanup(holder.close)
        holder.cursor().execute('SELECT pg_advisory_lock(424242)')
        world.enqueue_many([f'claimed {i}' for i in range(5)])
        waiting = ("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 424242 "
                   "AND NOT granted")
        proc.wait_for('the admission to be open', lambda: world.pg.value(waiting))
        world.relays[0].kill()
        holder.cursor().execute('SELECT pg_advisory_unlock(424242)')
        heir = world.relay('heir')
        world.wait_leader(heir)
        world.enqueue('after')
        self.assert_once(world)
        self.assertEqual(world.next_nonce(), 6)
        self.assert_one_hash_each(world)

    def test_8_129_130_same_key_same_record(self):
        """A repeated enqueue gives the first id, before and after the end; another call under the
        key is refused."""
        world = self.world()
        call = remark('keyed')
        world.set(paused=True)
        first = world.pg.value("SELECT txrelay.enqueue('alice', %s, 'order-1')", (call,))
        world.committed[call] = first
        again = [world.pg.value("SELECT txrelay.enqueue('alice', %s, 'order-1')", (call,))
                 for _ in range(3)]
        with self.assertRaises(psycopg2.Error) as caught:
            world.rows("SELECT txrelay.enqueue('alice', %s, 'order-1')", remark('another'))
        self.assertEqual(caught.exception.pgcode, 'TR012')
        self.assertIn('order-1', str(caught.exception))
        self.assertIn(str(first), str(caught.exception))
        world.set(paused=False)
        self.assert_once(world)
        again.append(world.pg.value("SELECT txrelay.enqueue('alice', %s, 'order-1')", (call,)))
        self.assertEqual(set(again), {first})
        self.assert_once(world)
        self.assertEqual(world.next_nonce(), 1)

    def test_130_backend_killed_between_key_and_transaction(self):
        """A key without its transaction is never left behind: the retry makes the record, and it
        is submitted."""
        world = self.world()
        world.rows(KILL_ONCE.format(table='outbox', when=''))
        call = remark('killed once')
        with self.assertRaises(psycopg2.OperationalError):
            world.rows("SELECT txrelay.enqueue('alice', %s, 'order-2')", call)
        world.committed[call] = world.pg.value("SELECT txrelay.enqueue('alice', %s, 'order-2')",
                                               (call,))
        self.assert_once(world)

    def test_129_131_many_callers_one_key(self):
        """Eight sessions retry the same payment at once: one record, one payment."""
        world = self.world()
        before = free_balance(world, BOB_ID)
        call = b'\x0a\x03\x00' + BOB_ID + put_compact(3 * 10 ** 12)
        ids, gate = [], threading.Barrier(8)

        def caller():
            with world.pg.connect() as db, db.cursor() as cur:
                gate.wait()
                cur.execute("SELECT txrelay.enqueue('alice', %s, 'pay-7')", (call,))
                ids.append(cur.fetchone()[0])
            db.close()

        threads = [threading.Thread(target=caller) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(ids), 8)
        self.assertEqual(len(set(ids)), 1)
        world.committed[call] = ids[0]
        self.assert_once(world)
        self.assertEqual(free_balance(world, BOB_ID) - before, 3 * 10 ** 12)


if __name__ == '__main__':
    unittest.main()
