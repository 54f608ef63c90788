"""The page in a browser: it shows what the database has, as it happens, also when relays die;
nothing leaves its origin; axe finds nothing serious. Its pictures stay in build/page."""
import socket
import time
import unittest

from harness import proc
from harness.chain import remark
from harness.leadership import SLOW
from harness.relay import cli
from harness.world import ALICE, BOB, World

from .browser import DESKTOP, PHONE, Browser

CELLS = '''[...document.querySelectorAll('.strip .cell')].map(c => [Number(c.dataset.nonce),
           c.dataset.state])'''


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def world(self, *options, **kwargs):
        world = World(*options, **kwargs)
        self.addCleanup(world.close)
        return world

    def relay(self, world, name, start=True):
        """On a port that stays: a page outlives its relay."""
        relay = world.relay(name, start=False,
                            extra=f'http:\n  listen: tcp:127.0.0.1:{free_port()}\n  rate: 100000\n',
                            leadership={'expiry_1_ms': 3000, 'heartbeat_ms': 300})
        return relay.start() if start else relay

    def url(self, relay):
        return 'http://' + relay.wait_log(r'http.listening .*address=tcp:(\S+)').group(1) + '/'

    def token(self, world, *scopes):
        return cli('token', 'create', '-'.join(scopes), '--scope', ','.join(scopes), '--database',
                   world.pg.dsn).stdout.strip()

    def no_trouble(self, where):
        """A view that is on its way out is paler."""
        proc.wait_for('the view',
                      lambda: not self.browser.js('!!document.querySelector("main[aria-busy]")'),
                      20)
        found = [v for v in self.browser.do('axe') if v['impact'] in ('serious', 'critical')]
        self.assertEqual(found, [], where)

    def strip_of(self, world, alias):
        rows = world.pg.query('''SELECT f.nonce, f.outcome::text
                                 FROM txrelay.finished_transactions f JOIN txrelay.accounts a
                                 USING (account)
                                 WHERE a.alias = %s AND f.nonce IS NOT NULL AND f.id IS NOT NULL
                                 ORDER BY f.nonce DESC LIMIT 60''', (alias,))
        rows += world.pg.query('''SELECT p.nonce, p.state::text FROM txrelay.pending_transactions p
                                  JOIN txrelay.accounts a USING (account)
                                  WHERE a.alias = %s''', (alias,))
        return sorted([list(r) for r in rows])

    def test_it_shows_what_the_database_has_and_does_what_it_says(self):
        b = self.browser
        world = self.world('--block-ms', '250', '--finality-lag', '4', accounts=(ALICE, BOB))
        one, two = self.relay(world, 'relay-a'), self.relay(world, 'relay-b')
        for alias in ('alice', 'bob'):
            proc.wait_for(f'a leader of {alias}', lambda a=alias: one.leads(a) or two.leads(a), 30)
        good = self.token(world, 'read', 'operate')

        # Who has no token learns nothing; a bad one is refused.
        b.do('open', url=self.url(one), dark=False, **DESKTOP)
        self.assertIn('Sign in with a token', b.text())
        self.no_trouble('sign in')
        b.fill('#token', 'txr_' + '0' * 64)
        b.press('Enter')
        b.wait_text('does not know this token')
        b.sign_in(self.url(one), good)
        b.wait_text('Nothing is wrong')
        b.wait('document.querySelectorAll("table")[0].rows.length === 3')  # two relays

        # Live: a transaction is on the strip at once.
        b.go('#/account/alice')
        b.wait_text('Nonces')
        took = []
        for i in range(12):
            begun = time.monotonic()
            tx = world.enqueue(f'live {i}')
            b.wait(f'document.querySelector(\'.strip a[href="#/transaction/{tx}"]\') !== null')
            took.append(time.monotonic() - begun)
        print(f'a committed transaction is on the strip after {sorted(took)[6] * 1000:.0f} ms, at '
              f'most {max(took) * 1000:.0f} ms')
        self.assertLess(sorted(took)[6], 1 * SLOW)
        calls = [remark(f'many {i}') for i in range(90)]
        ids = world.pg.query('SELECT unnest(txrelay.enqueue_many(%s, %s::bytea[], %s::text[]))',
                             ('alice', calls, [f'order-{i}' for i in range(90)]))
        world.committed.update(zip(calls, [i for i, in ids]))
        time.sleep(1.2)  # to have all kinds of cells in the picture
        b.shot('account-desktop-light')
        self.no_trouble('account')
        world.settle()
        proc.wait_for('the strip to equal the table',
                      lambda: b.js(CELLS) == self.strip_of(world, 'alice'), 20, 0.2)

        # One transaction, found by all that is known of it.
        row = world.pg.query("SELECT id, key, '0x' || encode(hash, 'hex'), nonce "
                             "FROM txrelay.finished_transactions WHERE key = 'order-7'")[0]
        for text in (row[1], row[2], str(row[0])):
            b.go('#/')
            b.wait_text('Relays')
            b.fill('#find', text)
            b.press('Enter')
            # that transaction, or a list of what has this id and what this nonce
            b.wait_text('order-7')
        b.fill('#find', 'postgres')
        b.press('Enter')
        b.wait_text('by creator')
        b.go(f'#/transaction/{row[0]}')
        b.wait_text('Ended: ok')
        self.no_trouble('transaction')
        b.shot('transaction-desktop-light')

        # What is wrong comes first, with its reason; a transaction says why it waits, and can be
        # stopped.
        b.go('#/account/bob')
        b.click('[data-action=pause]')
        b.wait_text('Nothing more of it is signed', '#dialog')
        self.no_trouble('dialog')
        b.fill('#dialog-field', 'the treasury is being moved')
        b.click('#dialog button[type=submit]')
        b.wait_text('the treasury is being moved')
        self.assertTrue(world.pg.value("SELECT paused FROM txrelay.leaders WHERE alias = 'bob'"))
        stopped = world.pg.value("SELECT txrelay.enqueue('bob', %s)", (remark('stopped'),))
        b.go('#/')
        b.wait_text('One thing needs you')
        self.assertLess(b.text().index('the treasury is being moved'), b.text().index('Relays'))
        b.shot('now-desktop-light')
        b.go(f'#/transaction/{stopped}')
        b.wait_text('It waits')
        b.click('[data-action=cancel]')
        b.press('Escape')  # not yet
        self.assertIsNone(world.pg.value('SELECT outcome FROM txrelay.status(%s)', (stopped,)))
        b.click('[data-action=cancel]')
        b.click('#dialog button[type=submit]')
        b.wait_text('Ended: cancelled')
        self.assertEqual(world.pg.value('SELECT outcome::text FROM txrelay.status(%s)', (stopped,)),
                         'cancelled')
        b.go('#/account/bob')
        b.click('[data-action=resume]')
        b.click('#dialog button[type=submit]')
        b.wait('document.querySelector("[data-action=pause]") !== null')
        b.go('#/operations')
        b.wait_text('resumed')
        self.assertEqual(b.js('[...document.querySelectorAll("tbody td:nth-child(3)")].map(x => '
                              'x.innerText)')[:3], ['resume', 'cancel', 'pause'])
        self.no_trouble('operations')

        # A form enqueues a call by its name: what it would be, and its fee, come first.
        b.sign_in(self.url(one), self.token(world, 'read', 'enqueue'))
        b.go('#/enqueue')
        b.wait_text('Enqueue a transaction')
        b.fill('#e-account', 'alice')
        b.choose('#e-pallet', 'System')
        b.wait('document.getElementById("e-call") !== null')
        b.choose('#e-call', 'remark')
        b.wait_text('bytes')
        b.fill('#e-arg-0', 'from the form')
        b.click('.enqueue button[type=button]')
        b.wait_text('Fee about')
        self.assertIn('from the form'.encode().hex(), b.text())
        self.no_trouble('enqueue')
        b.click('.enqueue button[type=submit]')
        b.wait_text('Enqueue this transaction?', '#dialog')
        self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.transactions '
                                        'WHERE creator = %s', ('read-enqueue',)), 0)
        b.click('#dialog button[type=submit]')
        b.wait_text('Timeline')
        b.wait_text('remark: "from the form"')
        made, = world.pg.query('SELECT id FROM txrelay.transactions WHERE creator = %s',
                               ('read-enqueue',))
        world.committed[remark('from the form')] = made[0]
        world.settle()

        # A phone in the dark.
        b.sign_in(self.url(one), good, dark=True, **PHONE)
        for hash_, name, words in (('#/', 'now', 'Relays'),
                                   ('#/account/alice', 'account', 'Nonces'),
                                   ('#/transactions', 'transactions', 'order-89'),
                                   ('#/accounts', 'accounts', 'bob')):
            b.go(hash_)
            b.wait_text(words)
            self.no_trouble(f'{name} on a phone')
            self.assertLessEqual(b.js('document.documentElement.scrollWidth'), PHONE['width'], name)
            if name in ('now', 'account'):
                b.shot(f'{name}-phone-dark')

        # With the keyboard alone: the strip is one stop of Tab, and arrows move in it.
        b.go('#/account/alice')
        b.wait('document.querySelectorAll(".strip .cell").length > 9')
        b.js('document.querySelector(".strip .cell[tabindex=\\"0\\"]").focus()')
        at = b.js('Number(document.activeElement.dataset.nonce)')
        b.press('ArrowRight')
        self.assertEqual(b.js('Number(document.activeElement.dataset.nonce)'), at + 1)
        self.assertRegex(b.js('document.activeElement.getAttribute("aria-label")'),
                         rf'^Nonce {at + 1}: transaction \d+, ok$')
        b.press('Enter')
        b.wait_text('Timeline')
        kept = b.do('kept')
        self.assertEqual(kept, {'foreign': [], 'errors': [], 'cookies': [], 'local': [],
                                'session': ['txrelay.token']})

    def test_relays_die_while_somebody_looks(self):
        b = self.browser
        world = self.world('--block-ms', '200')
        leader, other = self.relay(world, 'relay-a'), self.relay(world, 'relay-b', start=False)
        world.wait_leader(leader)
        other.start()
        good = self.token(world, 'read')
        b.sign_in(self.url(other), good)
        b.go('#/account/alice')
        b.wait_text('led by txrelay-relay-a')
        leader.kill()
        b.wait_text('led by txrelay-relay-b')
        b.wait('[...document.querySelectorAll("[aria-label=\\"Who led when\\"] tbody '
               'td:nth-child(2)")].map(x => x.innerText.split("-")[2]).join().startsWith("b,a")')
        b.wait_text('live', '#live')
        world.enqueue('after')
        b.wait('document.querySelector(".strip .cell") !== null')
        b.go('#/')
        b.wait_text('silent')  # the dead one, until it is forgotten
        # The page's own relay dies: what it showed stays, says that it is old, and goes on when the
        # relay is back.
        b.go('#/account/alice')
        b.wait_text('led by txrelay-relay-b')
        other.kill()
        b.wait_text('offline', '#live')
        b.wait_text('What you see may be old')
        self.assertIn('led by txrelay-relay-b', b.text())
        other.start()
        b.wait_text('live', '#live')
        world.wait_leader(other)
        world.enqueue('again')
        b.wait('document.querySelectorAll(".strip .cell").length === 2')
        b.wait('!document.getElementById("trouble")')
        world.settle()
        # A token that is revoked is out, and the page says why.
        cli('token', 'revoke', 'read', '--database', world.pg.dsn)
        b.wait_text('does not know this token')
        self.assertEqual(b.do('kept')['session'], [])

    def test_ten_thousand_accounts_stay_quick(self):
        b = self.browser
        world = self.world('--block-ms', '200')
        relay = self.relay(world, 'relay-a')
        world.wait_leader(relay)
        world.pg.query('''WITH made AS (INSERT INTO txrelay.leadership (kind, lock_key)
            SELECT 'account', i FROM generate_series(1, 10000) i RETURNING subject)
            INSERT INTO txrelay.accounts (account, alias, account_id, scheme, genesis, address)
            SELECT m.subject, 'account-' || to_char(m.subject, 'FM00000'),
            sha256(m.subject::text::bytea), 'sr25519', sha256('x'), '5' || m.subject
            FROM made m''')
        b.sign_in(self.url(relay), self.token(world, 'read'))
        b.wait_text('All 10\u202f000+ accounts')
        begun = time.monotonic()
        b.go('#/accounts')
        b.wait('document.querySelectorAll("tbody tr").length === 100')
        b.click('main > button')
        b.wait('document.querySelectorAll("tbody tr").length === 200')
        print(f'two pages of 10,000 accounts: {(time.monotonic() - begun) * 1000:.0f} ms')
        b.fill('#account', 'account-09900')
        b.press('Enter')
        b.wait_text('nobody leads it')


if __name__ == '__main__':
    unittest.main()
