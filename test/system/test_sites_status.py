"""What applications see of transactions of an account that has sites, whichever site coordinates:
the same words at each."""
import json
import select
import unittest

import psycopg2

from harness import proc
from harness.cases import on_submit, refusal
from harness.chain import remark
from harness.sites import Sites


class Ear:
    """Who hears every change at a site."""

    def __init__(self, site):
        self.connection = psycopg2.connect(site.pg.dsn)
        self.connection.autocommit = True
        for channel in ('pending_tx_new', 'pending_tx_update', 'pending_tx_removed'):
            self.connection.cursor().execute(f'LISTEN {channel}')

    def states(self):
        """{id: [state, ...]} of what was heard."""
        while select.select([self.connection], [], [], 0)[0]:
            self.connection.poll()
            if not self.connection.notifies:
                break
        self.connection.poll()
        found = {}
        for note in self.connection.notifies:
            said = json.loads(note.payload)
            found.setdefault(said['id'],
                             []).append(said.get('state') or said.get('outcome', 'back'))
        return found


class Statuses(unittest.TestCase):
    def test_tip_and_deadline_hold_whichever_site_coordinates(self):
        """The deadline is nearer than the end of an era."""
        with Sites(2, block_ms=300) as sites:
            sites.wait_leaders()
            for site in sites.all:
                site.pg.query("SELECT txrelay.account_policy('alice', '{\"tip_cap\": 20}')")
            last, sent = sites.chain.finalized_number() + 46, {}
            for site in sites.all:
                call = remark(f'in time at {site.name}')
                sent[call] = site.pg.value(
                    'SELECT txrelay.enqueue(%s, %s, deadline_block => %s, tip => 7)',
                    ('alice', call, last))
                site.committed[call] = sent[call]
            sites.settle()
            # one of them coordinated both
            self.assertEqual(len({tuple(site.coordinators()) for site in sites.all}), 1)
            on_chain = {x.call: (number, x) for number, _, _, x in sites.chain.walk()}
            for site in sites.all:
                for call, tx in site.committed.items():
                    number, x = on_chain[call]
                    self.assertEqual(x.tip, 7)
                    self.assertLessEqual(number, last)
                    tip, death = site.pg.query('SELECT tip, era_death FROM txrelay.history(%s)',
                                               (tx,))[0]
                    self.assertEqual(tip, 7)
                    self.assertLessEqual(death, last)

    def test_refusals_of_a_node_are_in_each_place(self):
        """As those of an account without sites (test_obstacles.py)."""
        with Sites(2) as sites:
            sites.wait_leaders()
            rule, = sites.chain.rpc('dev_script', {'rules': [on_submit(refusal(1018),
                                                                       times=0)]})['ids']
            for site in sites.all:
                site.enqueue(1)
            # who submits: the coordinator of both
            site = proc.wait_for('an obstacle', lambda: next((s for s in sites.all if s.pg.query(
                "SELECT 1 FROM txrelay.blocked_accounts WHERE code = 'refused' "
                "AND reason LIKE '%%nonce 0%%Unactionable%%'")), None), 60)
            relay, (tx,) = site.leader(), site.committed.values()
            proc.wait_for('it in the status of the transaction', lambda: site.pg.value(
                'SELECT waits FROM txrelay.status(%s)', [tx]).startswith('refused: '), 30)
            told = proc.wait_for('it in the status of the relay', lambda: next(
                (a for a in relay.control({'cmd': 'status'})['accounts']
                 if a['obstacle'] == 'refused'), None), 30)
            self.assertIn('Unactionable', told['obstacle_text'])
            relay.wait_log('account.blocked account=alice .*code=refused .*Unactionable')
            relay.wait_log('account.alert account=alice .*a node refuses nonce .*Unactionable')
            self.assertIn('txrelay_blocked_seconds{account="alice",reason="refused"}',
                          relay.control({'cmd': 'metrics'})['text'])
            proc.wait_for('it in the history', lambda: [r for r in site.pg.query(
                'SELECT error FROM txrelay.history(%s)', [tx]) if 'Unactionable' in (r[0] or '')],
                30)
            sites.chain.rpc('dev_clearScript', {'id': rule})
            sites.settle()
            relay.wait_log('account.goes_on account=alice .*was=refused')

    def test_a_reaped_account_is_held_at_every_site(self):
        with Sites(2) as sites:
            sites.wait_leaders()
            for site in sites.all:
                site.enqueue(2)
            sites.settle()
            address = sites.all[0].pg.value(
                "SELECT address FROM txrelay.accounts WHERE alias = 'alice'")
            for free in (0, 10 ** 18):
                sites.chain.rpc('dev_setBalance', {'account': address, 'free': str(free)})
            for site in sites.all:
                site.enqueue(1)
            for site in sites.all:
                def blocked(site=site):
                    return [r for r in site.pg.query('SELECT reason FROM txrelay.blocked_accounts')
                            if r[0] and 'reaped' in r[0]]
                (text,), = proc.wait_for('the obstacle', blocked, 60)
                self.assertRegex(text, r'nonce is 0 at block \d+ and was 4: the account was '
                                       r'reaped; pause it')
            used = sites.chain.finalized_number()
            proc.wait_for('some blocks', lambda: sites.chain.finalized_number() > used + 20, 30)
            self.assertEqual([x.call for _, _, _, x in sites.chain.walk(used)], [])
            self.assertEqual([site.pg.value("SELECT count(*) FROM txrelay.finished_transactions "
                                            "WHERE id IS NOT NULL") for site in sites.all],
                             [2, 2])
            # The way out that the text and docs/sites.md name.
            for site in sites.all:
                site.pg.query("SELECT txrelay.account_pause('alice', 'reaped')")
            proc.wait_for('the eras of the former life to end',
                          lambda: sites.chain.finalized_number() > used + 70, 60)
            for site in sites.all:
                site.pg.query("SELECT txrelay.account_unsite('alice')")
            for site in sites.all:
                site.pg.query("SELECT txrelay.account_resume('alice')")
                for relay in site.relays:
                    relay.kill()
                    relay.start()
            for site in sites.all:
                proc.wait_for('its end', lambda site=site: not site.unfinished(), 60)
            self.assertEqual(sorted(x.nonce for _, _, _, x in sites.chain.walk(used)), [0, 1])

    def test_each_site_shows_the_block_before_it_is_final(self):
        with Sites(2, chain=('--finality-lag', '4')) as sites:
            sites.wait_leaders()
            ears = [Ear(site) for site in sites.all]
            for site in sites.all:
                site.enqueue(5)
            sites.settle()
            for site, ear in zip(sites.all, ears):
                ids = set(site.committed.values())
                heard = proc.wait_for('the last word', lambda ear=ear,
                                      ids=ids: (lambda s: s if ids == {
                    i for i, words in s.items() if words[-1] == 'ok'} else None)(ear.states()), 60)
                for tx, words in heard.items():
                    # a fork of the chain may repeat one
                    told = [w for i, w in enumerate(words) if not i or words[i - 1] != w]
                    self.assertEqual(told, ['signed', 'broadcast', 'in_block', 'finalized', 'ok'],
                                     f'{tx} at {site.name}: {words}')
                self.assertEqual(site.pg.value('SELECT count(*) FROM txrelay.finished_transactions '
                                               'WHERE in_block_at >= finished_at'), 0)


if __name__ == '__main__':
    unittest.main()
