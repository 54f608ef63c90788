"""What only a fork-aware pool does to a relay: words that come late or never. The other tests run
under it with TXRELAY_POOL=fork-aware."""
import unittest

from harness import cases, proc

FORK_AWARE = ('--pool-type', 'fork-aware', '--block-ms', '0')


class ForkAware(cases.CaseTest):
    def test_out_of_the_view_and_back_in_silence(self):
        """The money goes: the view lets go of both and nobody is told; the same bytes are known,
        however often. It comes back: they are included."""
        world = self.world(*FORK_AWARE)
        world.set(finality=False)  # else the words would come, late
        txs = world.enqueue_many(['one', 'two'])
        sent = world.wait_pool(2)
        account = '0x' + sent[0].signer.hex()
        world.chain.rpc('dev_setBalance', {'account': account, 'free': 2000000})
        world.wait_pool(0)
        proc.wait_for('the same bytes again and again', lambda: self.again(world) >= 4)
        self.assertEqual(set(world.results()), {'ok', '1013'})
        self.assertEqual([world.row(tx)['stage'] for tx in txs], ['pending', 'pending'])
        self.assertFalse({'invalid', 'dropped'} & {state for tx in txs for state in world.told(tx)})
        world.chain.rpc('dev_setBalance', {'account': account, 'free': 10 ** 15})
        world.wait_pool(2)
        world.set(finality=True, block_ms=100)
        self.assert_once(world)
        self.assert_one_hash_each(world)

    @staticmethod
    def again(world):
        """A block each time it looks: the relay sends again what the pool does not show."""
        world.blocks(1, empty=True)
        return world.results().get('1013', 0)

    def test_invalid_after_eleven_final_blocks(self):
        """The late `invalid`: the mempool lets go of the bytes; with the money back the
        transaction is still sent once."""
        world = self.world(*FORK_AWARE)
        tx = world.enqueue('late')
        sent, = world.wait_pool(1)
        account = '0x' + sent.signer.hex()
        world.chain.rpc('dev_setBalance', {'account': account, 'free': 2000000})
        world.wait_pool(0)
        world.blocks(13, empty=True)
        proc.wait_for('the follower to be told', lambda: 'invalid' in world.told(tx))
        world.chain.rpc('dev_setBalance', {'account': account, 'free': 10 ** 15})
        world.chain.rpc('dev_clearBans')
        world.set(block_ms=100)
        self.assert_once(world)

    def test_finality_timeout_by_distance(self):
        """Finality stalls, the pool gives the transaction up; it is read from the blocks when they
        are final."""
        world = self.world(*FORK_AWARE, '--finality-timeout-blocks', '3')
        world.set(finality=False)
        tx = world.enqueue('stalled')
        world.wait_pool(1)
        world.blocks(1)
        world.wait_state(tx, 'in_block')
        world.blocks(5)
        proc.wait_for('the follower to be told', lambda: 'finality_timeout' in world.told(tx))
        world.set(finality=True)
        world.set(block_ms=100)
        self.assert_once(world)
        self.assert_one_hash_each(world)

    def test_reorganizations_without_retracted(self):
        """The block with it is replaced three times; only other inBlocks tell."""
        world = self.world(*FORK_AWARE)
        world.set(finality=False)
        tx = world.enqueue('moved')
        world.wait_pool(1)
        world.blocks(1)
        world.wait_state(tx, 'in_block')
        for keep in (True, False, True):
            world.chain.rpc('dev_reorg', {'depth': 1, 'keep': keep})
        world.blocks(1)
        world.set(finality=True)
        world.blocks(2)
        self.assert_once(world)
        self.assert_one_hash_each(world)
        self.assertNotIn('retracted', world.told(tx))


if __name__ == '__main__':
    unittest.main()
