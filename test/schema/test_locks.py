"""Advisory locks in the hands of a login without rights: which there are, and who waits for one."""
import itertools
import re

from pgcase import DEADLINE_S, ROOT, h32
from test_feeds import FeedCase
from test_signed import extrinsic

PLACES = ('schema/functions', 'store/sql', 'main/sql', 'http/sql')
KEYS = {'9001': 'the doorbell of an account', '9002': 'partitions and migrations',
        'lock_key': 'the leadership of an account'}


def statement(path):
    return (ROOT / path).read_text()


class Locks(FeedCase):
    def setUp(self):
        super().setUp()
        self.relay.rows('SELECT txrelay.token_create(%s, %s, %s)', 'shop', h32('shop'), ['enqueue'])
        self.relay.rows('PREPARE post AS ' + statement('http/sql/enqueue.sql'))
        self.stranger = self.session('nobody')
        self.numbers = itertools.count()
        self.key = self.owner.value('SELECT lock_key FROM txrelay.leadership WHERE subject = %s',
                                    self.alice)

    def test_there_are_no_others(self):
        found = set()
        for path in itertools.chain(*((ROOT / place).glob('*.sql') for place in PLACES)):
            text = re.sub(r'--[^\n]*', '', path.read_text())
            for argument in re.findall(r'pg_(?:try_)?advisory_\w*lock\w*\(([^,)]*)', text):
                found.add('lock_key' if re.fullmatch(r'[\w.]*key', argument) else argument)
        self.assertEqual(found, set(KEYS))

    def held(self):
        """Each lock in each mode, held by the stranger meanwhile."""
        for name, key in (('9001', f'9001, {self.alice}'), ('9002', '9002, 0'),
                          ('lock_key', str(self.key))):
            for mode in ('', '_shared'):
                with self.subTest(lock=KEYS[name], mode=mode):
                    self.stranger.rows(f'SELECT pg_advisory_lock{mode}({key})')
                    yield name
                    self.stranger.rows('SELECT pg_advisory_unlock_all()')

    def enqueue_each_way(self):
        n = next(self.numbers)
        for sql in ("enqueue('alice', '\\x01')", f"enqueue('alice', '\\x01', key => 'k{n}')",
                    f"enqueue('5alice', '\\x01', key => 's{n}')",
                    "enqueue_many('alice', ARRAY['\\x01', '\\x02']::bytea[])"):
            self.app.rows(f'SELECT txrelay.{sql}')
        self.app.rows('SELECT txrelay.enqueue_signed(%s)', extrinsic(f's{n}'))
        failed = self.app.value("SELECT txrelay.enqueue('alice', '\\x01')")
        self.assertEqual(self.app.value('SELECT txrelay.cancel(%s)', failed), 'cancelled')
        self.assertGreater(self.app.value('SELECT txrelay.retry(%s)', failed), failed)
        values = ['alice', '01', f't{n}', *[None] * 12, h32('shop').hex()]
        self.assertIsNotNone(self.relay.value(f"EXECUTE post ({', '.join(['%s'] * len(values))})",
                                              *values))
        self.assertEqual(self.take(n, [b'\x01']), ('taken', n))

    def test_no_application_waits_for_a_stranger(self):
        """An account with strict order too: what its writers wait for is no advisory lock."""
        for s in (self.app, self.relay):
            s.rows(f"SET statement_timeout = '{DEADLINE_S} s'")
        for order in ('any', 'strict'):
            self.policy(order=order)
            for _ in self.held():
                self.enqueue_each_way()

    def test_nothing_of_a_relay_waits_for_a_stranger(self):
        """Of partitions only those that are still to be made, for 2 s; migrations wait a minute
        and name it (test/system/test_schema.py)."""
        self.relay.rows(f"SET statement_timeout = '{DEADLINE_S} s'")
        self.relay.rows('PREPARE arm (bigint[]) AS ' + statement('store/sql/arm_doorbell.sql'))
        self.relay.rows('PREPARE disarm (bigint[]) AS '
                        + statement('store/sql/disarm_doorbell.sql'))
        self.relay.rows('PREPARE take (bigint[]) AS ' + statement('store/sql/take_lock.sql'))
        self.relay.rows('PREPARE asks AS ' + statement('main/sql/check_asks.sql'))
        self.relay.rows('SELECT txrelay.ensure_partitions(2)')
        for name in self.held():
            self.assertEqual(self.relay.value('EXECUTE arm (%s)', [self.alice]), name != '9001')
            self.assertEqual(self.relay.value('EXECUTE take (%s)', [self.key]), name != 'lock_key')
            self.relay.rows('EXECUTE disarm (%s); SELECT pg_advisory_unlock_all()', [self.alice])
            self.relay.rows('EXECUTE asks')
            self.relay.rows('SELECT * FROM txrelay.leader_outbox(%s, %s, 10)', self.alice,
                            self.epoch)
            self.relay.rows('SELECT * FROM txrelay.leader_poll_requests(%s, %s)', self.alice,
                            self.epoch)
            self.relay.rows("SELECT txrelay.leader_cleanup(%s, %s, interval '1 day')", self.alice,
                            self.epoch)
            self.relay.rows("SELECT * FROM txrelay.leader_renew('relay-a', %s, %s, 60000, 60000)",
                            [self.alice], [self.epoch])
            self.relay.rows("SELECT txrelay.drop_partitions(interval '9999 days'), "
                            "txrelay.ensure_partitions(2)")
            self.epoch = self.lead()
