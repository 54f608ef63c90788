"""Chains whose extrinsics have another form than the relay's key, its bytes on record or its build know."""
import unittest

from harness import metadata, proc
from harness.cases import CaseTest, load_tests  # noqa: F401


class ChainForms(CaseTest):
    def test_c1_bytes_on_record_that_no_longer_decode(self):
        """The leader dies after it has sent. Its bytes get into a block, and the next leader's node describes every
        block by a runtime with one more signed extension, as a pruning node does after an upgrade. The hash shows that
        the block has our bytes: no transaction ends as `usurped`."""
        world = self.world()
        world.set(paused=True)
        txs = world.enqueue_many([f'before {i}' for i in range(3)])
        world.wait_pool(3)
        world.relays[0].kill()
        world.set(paused=False)
        world.wait_blocks(4)
        world.script(*metadata.rules(world.chain, metadata.extension('CheckMetadataHash', metadata.TYPE_BOOL, metadata.TYPE_BOOL)))
        world.wait_leader(world.relay('heir'))
        self.assertEqual([world.wait_end(tx)[0] for tx in txs], ['ok'] * 3)


if __name__ == '__main__':
    unittest.main()
