"""Sites with all real parts: a Postgres and relays for each, links over TLS between them, one
chain. What each database has on record is compared with the chain: every transaction takes effect
once."""
import unittest

from harness import proc
from harness.relay import cli
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
            # one of them coordinated both
            self.assertEqual(set(a.coordinators()), set(b.coordinators()))
            self.assertEqual(len(a.coordinators()), 1)
            # A sender keeps the guard and the deadline of its transactions, whoever coordinates.
            ended = [site.fails('spec_version => 1') + site.fails('deadline_block => 1')
                     for site in (a, b)]
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

    def test_check_compares_the_sites(self):
        """Any relay of another site says what it has configured, the leader or not."""
        with Sites(3, relays=2, range_blocks=500) as sites:
            sites.wait_leaders()
            relay = sites.all[0].relays[0]
            with open(relay.config) as file:
                text = file.read()

            def check(*changes):
                changed = text
                for old, new in changes:
                    self.assertIn(old, changed)
                    changed = changed.replace(old, new)
                with open(relay.config, 'w') as file:
                    file.write(changed)
                said = cli('check', '--config', relay.config).stdout
                warned = [line.split(None, 2)[2] for line in said.splitlines()
                          if line.startswith('  warn  sites')]
                # and it does
                in_use = [line for line in warned if 'is in use: by this relay if it runs' in line]
                self.assertEqual(len(in_use), 1, said)
                return [line for line in warned if line not in in_use]
            others = sorted(f'site {s.name} ({address})' for s in sites.all[1:]
                            for address in s.addresses)
            self.assertEqual(check(), [])
            self.assertEqual(sorted(check(('range_blocks: 500', 'range_blocks: 400\n  era_blocks: '
                                                                '32\n  approvals: 1\n  '
                                                                'silence_is_down: true'))),
                             [f"account alice: {who} is configured differently; silence_is_down is "
                              'false there, and true here; range_blocks is 500 there, and 400 '
                              'here; approvals is 0 there, and 1 here; '
                              'era_blocks is 64 there, and 32 here' for who in others])
            self.assertEqual(sorted(check(('sites: [a, b, c]', 'sites: [a, b]\n    sites_policy: '
                                                               'sticky'))),
                             [f"account alice: {who} is configured differently; its sites are "
                              'a, b, c there, and a, b here; sites_policy is rotate there, and '
                              'sticky here' for who in others])
            sites.all[1].relays[1].kill()
            self.assertEqual([line.split(': ')[1] for line in check()],
                             [f'no link to {sites.all[1].addresses[1]}'])

    def test_a_burst_takes_few_statements(self):
        """What is signed at a time is granted, and dispatched, in one statement: else a site falls
        behind its chain."""
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
            # a block is a statement at each site
            self.assertLess(more, 300 + 6 * blocks, f'1000 transactions in {blocks} blocks')

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
