"""Sites with all real parts: a Postgres and relays for each, links over TLS between them, one chain. What each database has on
record is compared with the chain: every transaction takes effect once."""
import unittest

from harness import proc
from harness.sites import Sites


class SitesTest(unittest.TestCase):
    def coordinator(self, sites, seconds=30):
        """The site that coordinates now, as all of `sites` see it."""
        def one():
            seen = {site.sees()[1] for site in sites}
            return seen.pop() if len(seen) == 1 and None not in seen else None
        name = proc.wait_for('one coordinator', one, seconds)
        return next(site for site in sites[0].sites.all if site.name == name)

    def test_two_sites_lose_relays_one_of_them_and_the_link(self):
        with Sites(2) as sites:
            a, b = sites.all
            sites.wait_leaders()
            for site in (a, b):
                site.enqueue(1)
            sites.settle()
            self.assertEqual(set(a.coordinators()), set(b.coordinators()))  # one of them coordinated both
            self.assertEqual(len(a.coordinators()), 1)
            # A sender keeps the guard and the deadline of its transactions, whoever coordinates.
            ended = [site.fails('spec_version => 1') + site.fails('deadline_block => 1') for site in (a, b)]
            self.assertEqual(ended, [['failed', 'expired']] * 2)
            for site in (a, b):
                site.enqueue(20)
            first = self.coordinator(sites.all)
            other = b if first is a else a
            first.relays[0].kill()
            first.enqueue(10)
            other.enqueue(10)
            first.relays[0].start()
            sites.settle()
            # One site has stopped as a whole: the other one still sends.
            for site in (a, b):
                site.enqueue(20)
            first.away()
            other.enqueue(20)
            proc.wait_for('the other site to go on', lambda: not other.unfinished(), 60)
            first.back()
            sites.settle()
            # Both sites send while they cannot reach each other.
            for site in (a, b):
                site.cut()
                site.enqueue(20)
            proc.wait_for('both to go on', lambda: not a.unfinished() and not b.unfinished(), 60)
            for site in (a, b):
                site.heal()
                site.enqueue(10)
            sites.settle()

    def test_a_chain_that_has_only_its_first_block(self):
        """It makes one when there is something to include, so the sites begin at block 0."""
        with Sites(2, block_ms=None, chain=('--instant',)) as sites:
            sites.wait_leaders()
            self.assertEqual(sites.chain.finalized_number(), 0)
            for site in sites.all:
                site.enqueue(3)
            sites.settle(30)

    def test_a_burst_takes_few_statements(self):
        """What is signed at a time is granted, and dispatched, in one statement: else a site falls behind its chain."""
        def requests():
            return sum(site.relays[0].status()['requests']['started_total'] for site in sites.all)
        with Sites(2) as sites:
            sites.wait_leaders()
            for site in sites.all:
                site.enqueue(1)
            sites.settle()
            before, block = requests(), sites.chain.finalized_number()
            for site in sites.all:
                site.enqueue(500)
            sites.settle()
            more, blocks = requests() - before, sites.chain.finalized_number() - block
            self.assertLess(more, 300 + 6 * blocks, f'1000 transactions in {blocks} blocks')  # a block is a statement at each site

    def test_three_sites_with_two_relays_each(self):
        with Sites(3, relays=2) as sites:
            sites.wait_leaders()
            for site in sites.all:
                site.enqueue(30)
            one = sites.all[0]
            one.leader().kill()
            for site in sites.all:
                site.enqueue(10)
            sites.settle()
            sites.all[1].away()
            for site in (sites.all[0], sites.all[2]):
                site.enqueue(20)
                proc.wait_for('the others to go on', lambda site=site: not site.unfinished(), 60)
            sites.all[1].back()
            sites.settle()


if __name__ == '__main__':
    unittest.main()
