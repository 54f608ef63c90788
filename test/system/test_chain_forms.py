"""Chains whose extrinsics have another form than the relay's key, its bytes on record or its build
know."""
import unittest

from harness import metadata, proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.relay import cli
from harness.world import ALICE

EVE = ('eve', 'ethereum', '0x5fb92d6e98884f76de468fa3f6278f8807c48bebc13595d45af5bdc4da702133')
UNKNOWN = metadata.extension('RestrictOrigins', metadata.TYPE_BOOL, metadata.TYPE_UNIT)


class ChainForms(CaseTest):
    def test_bytes_on_record_that_no_longer_decode(self):
        """The leader dies after it has sent. Its bytes get into a block, and the next leader's
        node describes every block by a runtime with one more signed extension, as a pruning node
        does after an upgrade. The hash shows that the block has our bytes: no transaction ends as
        `usurped`."""
        world = self.world()
        world.set(paused=True)
        txs = world.enqueue_many([f'before {i}' for i in range(3)])
        world.wait_pool(3)
        world.relays[0].kill()
        world.set(paused=False)
        world.wait_blocks(4)
        world.script(*metadata.rules(world.chain,
                                     metadata.extension('CheckMetadataHash', metadata.TYPE_BOOL,
                                                        metadata.TYPE_BOOL)))
        world.wait_leader(world.relay('heir'))
        self.assertEqual([world.wait_end(tx)[0] for tx in txs], ['ok'] * 3)

    def held_lines(self, world, alias):
        """What the log says of an account that is held: the alert, and nothing that repeats
        itself."""
        log = world.relays[0].text().splitlines()
        return [line for line in log if f'account={alias}' in line
                and ('account.alert' in line or 'store.refused' in line)]

    def test_a_key_that_the_chain_does_not_take(self):
        """An ethereum key on a chain of 32-byte accounts: `check` says so, the account is held
        with the reason, and the other account of the relay works."""
        world = self.world(accounts=(ALICE, EVE))
        relay = world.relays[0]
        checked = cli('check', '--config', relay.config, check=False)
        self.assertEqual(checked.returncode, 1)
        self.assertRegex(checked.stdout, r'BAD +key +eve: a key of scheme ethereum cannot sign for '
                                         r'this chain: its accounts '
                                         r'have 32 bytes, its signatures are MultiSignature')
        tx = world.enqueue('by eve', alias='eve')
        world.wait_suspension('signing', alias='eve')
        world.wait_reason('a key of scheme ethereum cannot sign', 'eve')
        self.assertIn('eve', cli('blocked', '--database', world.pg.dsn).stdout)
        proc.wait_for('the leader to hear that it is stored', lambda: [
            a['suspension'] for a in relay.status()['accounts'] if a['alias'] == 'eve']
            == ['signing'])
        self.assertEqual(world.wait_end(world.enqueue('by alice'))[0], 'ok')
        world.wait_blocks(20)
        self.assertEqual(len(self.held_lines(world, 'eve')), 1, self.held_lines(world, 'eve'))
        self.assertEqual(world.row(tx)['stage'], 'outbox')
        world.cancel(tx)

    def test_an_upgrade_to_a_chain_that_cannot_be_signed_for(self):
        """It says so once and waits; the next upgrade takes the key again, and everything goes on
        by itself."""
        world = self.world()
        world.wait_end(world.enqueue('before'))
        world.script(*metadata.rules(world.chain, UNKNOWN))
        world.chain.rpc('dev_upgrade', {})
        world.wait_suspension('signing')
        txs = world.enqueue_many([f'meanwhile {i}' for i in range(3)])
        world.wait_reason('RestrictOrigins')
        checked = cli('check', '--config', world.relays[0].config, check=False)
        self.assertEqual(checked.returncode, 1)
        self.assertIn('RestrictOrigins', checked.stdout)
        world.wait_blocks(20)
        self.assertEqual(len(self.held_lines(world, 'alice')), 1, self.held_lines(world, 'alice'))
        self.assertEqual(world.attempts()[1:], [])
        world.chain.rpc('dev_clearScript', {})
        world.chain.rpc('dev_upgrade', {})
        self.assertEqual([world.wait_end(tx)[0] for tx in txs], ['ok'] * 3)
        self.assertIsNone(world.suspension())

    def test_bytes_of_an_unknown_extension(self):
        """The configuration gives its bytes: it is signed for. (devchain takes no such bytes: the
        refusal as a bad proof shows that they were sent.) What the file says wrong is refused."""
        world = self.world(start=False)
        world.script(*metadata.rules(world.chain, UNKNOWN,
                                     metadata.extension('AuthorizeCall', metadata.TYPE_UNIT,
                                                                              metadata.TYPE_UNIT)))
        relay = world.relay('one', start=False)
        relay.configure('chain', extensions='[{name: RestrictOrigins, explicit: "0x01"}]')
        checked = cli('check', '--config', relay.config)
        self.assertRegex(checked.stdout, 'ok +extensions +.*supported; RestrictOrigins is 0x01')
        for bad, why in (('[{name: RestrictOrigins, explicit: 0x0101}]',
                          'do not fit the chain.s signed extension RestrictOrigins'),
                         ('[{name: CheckNonce, explicit: 0x00}]', 'txrelay knows CheckNonce'),
                         ('[{name: RestrictOrigins, explicit: nope}]',
                          'the bytes of RestrictOrigins are not hexadecimal')):
            other = world.relay(f'bad {len(world.relays)}', start=False).configure('chain',
                                                                                   extensions=bad)
            done = cli('check', '--config', other.config, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout + done.stderr, why)
        world.wait_leader(relay.start())
        tx = world.enqueue('with the bytes')
        proc.wait_for('an attempt', lambda: world.attempts())
        extrinsic = world.attempts()[0][6]
        self.assertEqual(extrinsic[extrinsic.index(bytes.fromhex('d43593')) + 32 + 65], 1)
        self.assertIsNone(world.suspension())
        relay.kill()
        world.relays.clear()
        world.committed.pop(tx, None)


if __name__ == '__main__':
    unittest.main()
