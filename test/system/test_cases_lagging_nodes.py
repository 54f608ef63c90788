"""Public reports: nodes that lag, several endpoints (test/cases.md). Case 134:
test_cases_stale_nonces, test_29_134."""
import time
import unittest

from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.chain import Devchain


class FamilyN(CaseTest):
    def two_nodes(self, **kwargs):
        """The world's chain, sixty blocks high, and a node of the same chain that has none of
        them."""
        genesis = ('--genesis-ms', str(int(time.time() * 1000)))
        world = self.world(*genesis, start=False, **kwargs)
        world.blocks(60)
        behind = Devchain(proc.make_dir('txb-'), '--block-ms', '0', *genesis)
        self.addCleanup(behind.process.kill)
        self.assertEqual(behind.rpc('chain_getBlockHash', 0),
                         world.chain.rpc('chain_getBlockHash', 0))
        return world, behind

    def test_132_a_node_that_is_far_behind_is_left(self):
        """The good node fails, the other one is sixty blocks behind: refused, and nothing is sent
        to it."""
        world, behind = self.two_nodes()
        relay = world.relay('one', endpoints=[world.chain.ws, behind.ws])
        world.wait_leader(relay)
        world.ready(relay)
        world.enqueue('before')
        self.assert_once(world)
        world.script({'match': {'method': 'chain_getBlockHash', 'times': 0},
                      'action': {'error': {'code': -32000, 'message': 'busy'}}})
        world.chain.rpc('dev_cutConnections')
        relay.wait_log('it is behind')
        world.chain.rpc('dev_clearScript')
        world.enqueue_many([f'after {i}' for i in range(5)])
        self.assert_once(world)
        self.assertEqual(behind.submits(), [])

    def test_132_134_restart_onto_a_node_that_is_far_behind(self):
        """A fresh relay finds the lagging node first. The rows it has are younger than that node:
        it says so, sends nothing there, and ends on the other node."""
        world, behind = self.two_nodes()
        first = world.relay('one', endpoints=[world.chain.ws])
        world.wait_leader(first)
        world.ready(first)
        world.set(paused=True)
        world.enqueue_many([f'pooled {i}' for i in range(3)])
        world.wait_pool(3)
        first.kill()
        heir = world.relay('heir', endpoints=[behind.ws, world.chain.ws])
        world.wait_leader(heir)
        world.enqueue('new')
        world.set(paused=False)
        self.assert_once(world)
        self.assertEqual(behind.submits(), [])
        self.assert_one_hash_each(world)


if __name__ == '__main__':
    unittest.main()
