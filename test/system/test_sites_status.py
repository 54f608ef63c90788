"""What applications see of transactions of an account that has sites, whichever site coordinates: the same words at each."""
import json
import select
import unittest

import psycopg2

from harness import proc
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
            found.setdefault(said['id'], []).append(said.get('state') or said.get('outcome', 'back'))
        return found


class Statuses(unittest.TestCase):
    def test_each_site_shows_the_block_before_it_is_final(self):
        with Sites(2, chain=('--finality-lag', '4')) as sites:
            sites.wait_leaders()
            ears = [Ear(site) for site in sites.all]
            for site in sites.all:
                site.enqueue(5)
            sites.settle()
            for site, ear in zip(sites.all, ears):
                ids = set(site.committed.values())
                heard = proc.wait_for('the last word', lambda ear=ear, ids=ids: (lambda s: s if ids == {
                    i for i, words in s.items() if words[-1] == 'ok'} else None)(ear.states()), 10)
                for tx, words in heard.items():
                    told = [w for i, w in enumerate(words) if not i or words[i - 1] != w]  # a fork of the chain may repeat one
                    self.assertEqual(told, ['signed', 'broadcast', 'in_block', 'finalized', 'ok'], f'{tx} at {site.name}: {words}')
                self.assertEqual(site.pg.value('SELECT count(*) FROM txrelay.finished_transactions WHERE in_block_at >= finished_at'), 0)


if __name__ == '__main__':
    unittest.main()
