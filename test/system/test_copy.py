"""A database that is brought back from a copy of its disk: no other timeline says so, but the
chain's nonce is above the table's. What the copy has in its outbox and the chain already holds is
adopted, not sent again (docs/design.md, section 4)."""
import shutil
import unittest

from harness import proc
from harness.chain import remark
from harness.leadership import LeadWorld, Server, kill
from harness.postgres import PG_SH


class Copied(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.world = LeadWorld('--block-ms', '100', postgres=self.server)
        self.addCleanup(self.world.close)
        self.addCleanup(self.server.stop)
        self.copy = proc.make_dir('txcopy-') + '/data'
        self.relay = self.world.relay('first')
        self.world.ready(self.relay)
        self.world.enqueue_together([f'before {i}' for i in range(5)])
        self.world.settle()
        self.assertEqual(self.relay.stop(), 0)

    def while_down(self, act):
        proc.run([PG_SH, 'stop', self.server.dir, 'fast'])
        act()
        proc.run([PG_SH, 'start', self.server.dir])

    def data(self):
        return f'{self.server.dir}/data'

    def take(self):
        self.while_down(lambda: proc.run(['cp', '-a', self.data(), self.copy]))

    def bring_back(self):
        def swap():
            shutil.rmtree(self.data())
            proc.run(['cp', '-a', self.copy, self.data()])
        self.while_down(swap)

    def lead(self):
        readies = self.relay.text().count('account.ready')
        self.relay.start()
        proc.wait_for('it to lead', lambda: self.relay.text().count('account.ready') > readies, 30)

    def calls(self):
        return [x.call for _, _, _, x in self.world.chain.walk()]

    def test_160_what_the_copy_has_in_its_outbox_is_not_sent_again(self):
        world = self.world
        world.enqueue_together([f'twice {i}' for i in range(5)])
        self.take()
        self.lead()
        world.enqueue_together([f'lost {i}' for i in range(3)])
        world.settle()
        kill(self.relay)
        world.foreign |= {x.hash for _, _, _, x in world.chain.walk()
                          if x.call in [remark(f'lost {i}') for i in range(3)]}
        for i in range(3):
            del world.committed[remark(f'lost {i}')]
        self.bring_back()
        self.lead()
        world.enqueue_together(['after'])
        figures = world.settle()
        calls = self.calls()
        self.assertEqual(len(calls), len(set(calls)), 'nothing twice')
        self.assertEqual(figures['finalized'], 11)
        self.assertIn('5 were adopted by their calls', self.relay.text())
        self.assertEqual(world.pg.value("SELECT nonce FROM txrelay.finished_transactions "
                                        "WHERE id = %s",
                                        (world.committed[remark('after')],)), 13)
        print(f'\n  a copy brought back: {figures}')

    def test_160_an_operator_orders_it(self):
        """The copy is older than anybody remembers, and its account has a nonce that says nothing:
        an operator names the block."""
        world = self.world
        self.assertGreater(world.pg.value("SELECT txrelay.account_reconcile('alice')"), 0)
        self.lead()
        world.enqueue_together(['goes on'])
        world.settle()
        self.assertIsNone(world.pg.value("SELECT reconcile_from FROM txrelay.accounts"))


if __name__ == '__main__':
    unittest.main()
