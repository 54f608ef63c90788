"""A node that lies once, or for a while, and then tells the truth (docs/security.md, "By a node"):
every transaction takes effect once, its record is true, and no account needs an operator."""
import os
import re
import struct
import unittest

from harness import proc
from harness.cases import ACCOUNT_PREFIX, SUBMIT, CaseTest, load_tests  # noqa: F401
from harness.chain import put_compact, remark
from harness.liar import SILENCE, Liar, of_another_chain

NONCES = ('state_getStorage', 'state_queryStorageAt', 'state_call')
EVENTS = '0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7'
FAR = 2 ** 63 - 1
REMARK = b'\x18remark'.hex()


def with_nonce(said, nonce):
    """The message with this nonce for every account in it; None if it holds none."""
    def fix(value):
        return value and '0x' + struct.pack('<I', nonce).hex() + value[10:]
    if said.notified or 'error' in said.message or said.result is None:
        return None
    if said.method == 'state_call':
        return [said.but(fix(said.result))] if said.params[
            0] == 'AccountNonceApi_account_nonce' else None
    if said.method == 'state_getStorage':
        return [said.but(fix(said.result))] if said.params[0].startswith(ACCOUNT_PREFIX) else None
    if said.method != 'state_queryStorageAt' or ACCOUNT_PREFIX not in str(said.result):
        return None
    return [said.but(
        [{**s,
          'changes': [[k, fix(v) if k.startswith(ACCOUNT_PREFIX) else v] for k, v in s['changes']]}
                      for s in said.result])]


class Once:
    """A lie that is told `times` times."""

    def __init__(self, lie, times=1):
        self.lie, self.left = lie, times

    def __call__(self, said):
        messages = self.lie(said) if self.left else None
        self.left -= messages is not None
        return messages


def about(method, change):
    """A lie about what this method answers or this notification tells; a change to None is none."""
    def lie(said):
        if said.method != method or 'error' in said.message:
            return None
        changed = change(said.result)
        return None if changed is None else [said.but(changed)]
    return lie


class LiarTest(CaseTest):
    def lying(self, *options, lie=None, honest=False, chain=None):
        """(a world whose relay 'one' has the liar for its endpoint, the liar). honest: the node
        itself is the second one."""
        world = self.world(*options, start=False)
        liar = Liar(world.chain.ws, lie)
        self.addCleanup(liar.close)
        world.relay('one', endpoints=[liar.url] + ([world.chain.ws] if honest else []), chain=chain)
        proc.wait_for('the accounts',
                      lambda: world.pg.value('SELECT count(*) FROM txrelay.accounts'))
        return world, liar

    def leading(self, *options, **kwargs):
        world, liar = self.lying(*options, **kwargs)
        world.wait_leader(world.relays[0])
        world.ready(world.relays[0])
        return world, liar

    def wait_told(self, liar, *methods, times=1):
        proc.wait_for(f'{times} lies about {methods}',
                      lambda: sum(liar.told(m) for m in methods) >= times)

    def wait_blocked(self, world, code, reason):
        def said():
            row = world.pg.query('SELECT code, reason FROM txrelay.blocked_accounts')
            return row and row[0][0] == code and re.search(reason, row[0][1])
        proc.wait_for(f'{code} in blocked', said)

    def assert_good(self, world, liar):
        """Each transaction took effect once, `ok`, and the next one needs nobody."""
        self.assertIsNone(liar.error)
        world.enqueue(f'number {len(world.committed)}, after the lies')
        self.assert_once(world)
        proc.wait_for('nothing to be blocked', lambda: not world.blocked())
        self.assertEqual(world.next_nonce(), len(world.committed))

    # ---- blocks ----

    def forged(self, world, nonce):
        """Bytes that only look signed by us."""
        body = b'\x84\x00' + world.stranger.public + b'\x01' + os.urandom(
            64) + b'\x00' + put_compact(nonce) + b'\x00' + remark('x')
        return '0x' + (put_compact(len(body)) + body).hex()

    def block_with(self, extrinsic):
        return about('chain_getBlock',
                     lambda r: {**r, 'block': {**r['block'],
                                               'extrinsics': [*r['block']['extrinsics'],
                                                              extrinsic]}})

    def forged_extrinsic(self, chain, why):
        """Finalized blocks show a forged extrinsic at our pending nonce, which the account has
        used up."""
        world, liar = self.leading(chain=chain)
        world.set(paused=True)
        world.policy(usurped='requeue')
        tx = world.enqueue('twice?')
        world.wait_pool(1)
        show = self.block_with(self.forged(world, 0))
        liar.tell(lambda said: show(said) or with_nonce(said, 1))
        world.blocks(2, empty=True)
        world.relays[0].wait_log(why)
        self.assertIsNone(world.row(tx)['outcome'])
        liar.tell(None)
        world.set(paused=False)
        self.assertEqual(world.wait_end(tx), ('ok', None))
        self.assertEqual(world.row(tx)['nonce'], 0)
        self.assert_good(world, liar)

    def test_a_forged_extrinsic_is_not_in_the_block(self):
        self.forged_extrinsic({}, 'do not have the extrinsicsRoot of its header')

    def test_a_forged_extrinsic_has_a_wrong_signature(self):
        self.forged_extrinsic({'verify_blocks': 'false'}, 'its signature is wrong')

    def test_a_swallowed_extrinsic_is_shown_in_a_block(self):
        """The node never submits it, says that it is in a block, and shows it there."""
        world, liar = self.leading()
        raw = []

        def swallow(method, params):
            if method != SUBMIT:
                return None
            raw.append(params[0])
            return 'swallowed'
        liar.reply = swallow
        tx = world.enqueue('swallowed')
        self.wait_told(liar, SUBMIT)
        liar.tell(self.block_with(raw[0]))
        self.wait_told(liar, 'chain_getBlock', times=2)
        self.assertIsNone(world.row(tx)['outcome'])
        liar.tell(None)
        liar.reply = None
        self.assert_good(world, liar)

    # ---- nonces ----

    def nonce_for_a_while(self, nonce, pending):
        """The account's nonce is this one in every answer for some blocks, while so many of ours
        wait in the pool."""
        world, liar = self.leading()
        world.wait_end(world.enqueue('before'))
        world.set(paused=True)
        ids = world.enqueue_many([f'pending {i}' for i in range(pending)])
        if pending:
            world.wait_pool(pending)
        liar.tell(lambda said: with_nonce(said, nonce))
        world.blocks(4, empty=True)
        self.wait_told(liar, *NONCES, times=2)
        return world, liar, ids

    def a_nonce_that_cannot_be(self, nonce, pending):
        world, liar, ids = self.nonce_for_a_while(nonce, pending)
        world.wait_alert(f'account\'s nonce is {nonce} .*cannot be')
        ids.append(world.enqueue('during the lie'))
        world.blocks(2, empty=True)
        for tx in ids:
            self.assertIsNone(world.row(tx)['outcome'])
        liar.tell(None)
        world.set(paused=False)
        self.assert_good(world, liar)

    def test_the_nonce_is_the_highest_of_all(self):
        self.a_nonce_that_cannot_be(2 ** 32 - 1, 0)

    def test_the_nonce_is_a_million(self):
        self.a_nonce_that_cannot_be(10 ** 6, 0)

    def test_the_nonce_is_the_highest_of_all_beside_pending_ones(self):
        self.a_nonce_that_cannot_be(2 ** 32 - 1, 3)

    def test_the_nonce_uses_up_what_is_in_the_pool(self):
        """That can be: nothing ends, and an operator resumes the account when the node has taken
        it back."""
        world, liar, ids = self.nonce_for_a_while(500, 3)
        world.wait_alert('account nonce is 500')
        for tx in ids:
            self.assertIsNone(world.row(tx)['outcome'])
        liar.tell(None)
        world.blocks(2, empty=True)
        world.wait_alert('was 500: the account was reaped')
        world.set(paused=False)
        world.resume()
        for tx in ids:
            self.assertEqual(world.wait_end(tx), ('ok', None))
        self.assert_good(world, liar)

    def test_another_endpoint_contradicts_the_nonce(self):
        """Said of final blocks for as long as three of ours wait in the pool: nobody is needed
        afterwards."""
        world, liar = self.leading(honest=True)
        world.set(paused=True)
        ids = world.enqueue_many([f'pending {i}' for i in range(3)])
        world.wait_pool(3)
        liar.tell(lambda said: with_nonce(said, 500))
        world.blocks(1, empty=True)
        world.relays[0].wait_log('node.contradicted')
        self.assertEqual(world.next_nonce(), 3)
        self.wait_blocked(world, 'contradicted', "says that the account's nonce is 500; .*says "
                                                 "that the nonce is 0, not 500")
        liar.tell(None)
        world.blocks(2, empty=True)
        world.set(paused=False)
        for tx in ids:
            self.assertEqual(world.wait_end(tx), ('ok', None))
        self.assert_good(world, liar)

    def test_a_quorum_holds_what_one_endpoint_finalizes(self):
        """The other endpoint names another hash at the height: nothing ends before both name
        one."""
        world, liar = self.lying(honest=True, chain={'quorum': 2})
        world.wait_leader(world.relays[0])
        world.ready(world.relays[0])
        world.enqueue('before')
        self.assert_once(world)
        world.relays[0].kill()
        world.wait_leader(world.relay('two', endpoints=[world.chain.ws, liar.url],
                                      chain={'quorum': 2}))
        other = about('chain_getBlockHash', lambda block: block and '0x' + '77' * 32)
        liar.tell(lambda said: other(said) if said.params != [0] else None)
        tx = world.enqueue('held')
        self.wait_blocked(world, 'unconfirmed', 'says that the block is 0x7777')
        self.assertIsNone(world.row(tx)['outcome'])
        liar.tell(None)
        self.assertEqual(world.wait_end(tx), ('ok', None))
        self.assert_good(world, liar)

    def test_a_quorum_holds_what_one_endpoint_says_of_a_result(self):
        """The other one has other events: nothing ends before both say the same."""
        def lie(said):
            return [said.but('0x00')] if said.method == 'state_getStorage' and said.params[
                0] == EVENTS else None
        world = self.world(start=False)
        liar = Liar(world.chain.ws, lie)
        self.addCleanup(liar.close)
        world.wait_leader(world.relay('one', endpoints=[world.chain.ws, liar.url],
                                      chain={'quorum': 2}))
        tx = world.enqueue('held')
        self.wait_blocked(world, 'unconfirmed', 'says that the events of the block are others')
        self.assertIsNone(world.row(tx)['outcome'])
        liar.tell(None)
        self.assertEqual(world.wait_end(tx), ('ok', None))
        self.assert_good(world, liar)

    def test_the_first_transaction_version(self):
        """The other endpoint has another one: no call is accepted before both have the same."""
        world = self.world(start=False)
        liar = Liar(world.chain.ws,
                    about('state_getRuntimeVersion', lambda v: {**v, 'transactionVersion': 77}))
        self.addCleanup(liar.close)
        world.wait_leader(world.relay('one', endpoints=[world.chain.ws, liar.url]))
        tx = world.enqueue('the first one')
        self.wait_blocked(world, 'unconfirmed',
                          'says that the runtime is .* with transaction_version 77')
        self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.outbox'), 1)
        liar.tell(None)
        self.assertEqual(world.wait_end(tx), ('ok', None))
        self.assert_good(world, liar)

    # ---- heights ----

    def test_a_best_block_far_above(self):
        """Told to one relay, which dies: the other one leads."""
        far = Once(about('chain_newHead', lambda head: {**head, 'number': hex(FAR)}), 3)
        world, liar = self.leading(lie=far)
        world.enqueue('before')
        self.wait_told(liar, 'chain_newHead', times=3)
        two = world.relay('two')
        proc.wait_for('the second relay', two.status)
        world.relays[0].kill()
        world.wait_leader(two, seconds=30)
        self.assert_good(world, liar)

    def test_final_blocks_far_above(self):
        far = about('chain_finalizedHead', lambda head: {**head, 'number': hex(2 ** 64 - 1)})
        world, liar = self.lying(lie=far)
        world.enqueue('at first')
        self.wait_told(liar, 'chain_finalizedHead', times=5)
        liar.tell(None)
        world.wait_leader(world.relays[0])
        self.assert_good(world, liar)

    # ---- what the handshake reads ----

    def test_metadata_with_one_wrong_byte(self):
        """The index of System.remark is another one: no call decodes."""
        def lie(said):
            metadata = (said.method == 'state_getMetadata' or said.method == 'state_call'
                        and 'Metadata_' in said.params[0])
            return [said.but(self.broken_remark(said.result))] if metadata and len(said.result
                                                                            or '') > 10000 else None
        world, liar = self.lying(lie=Once(lie))
        ids = world.enqueue_many([f'row {i}' for i in range(20)])
        self.wait_told(liar, 'state_getMetadata', 'state_call')
        for tx in ids:
            world.wait_end(tx)
        self.assert_good(world, liar)

    @staticmethod
    def broken_remark(text):
        """The variant `remark` with one field `remark` of type 8 without type name and docs; then
        its index, 0, becomes 77."""
        variant = f'{REMARK}0401{REMARK}200000'
        assert variant + '00' in text
        return text.replace(variant + '00', variant + '4d')

    def test_an_endpoint_of_another_chain(self):
        world, liar = self.lying(honest=True)
        world.wait_leader(world.relays[0])
        self.assert_good(world, liar)
        liar.reply = of_another_chain
        liar.cut()
        self.wait_told(liar, 'chain_getBlockHash')
        self.assert_good(world, liar)

    def test_a_redirect(self):
        for status in ('302 Found', '307 Temporary Redirect', '401 Unauthorized', '200 OK'):
            with self.subTest(status):
                world = self.world('--block-ms', '100', start=False)
                liar = Liar(world.chain.ws)
                self.addCleanup(liar.close)
                liar.greeting = (f'HTTP/1.1 {status}\r\nLocation: '
                                 f'{world.chain.http}/\r\nContent-Length: 0\r\n\r\n'.encode())
                relay = world.relay('one', endpoints=[liar.url, world.chain.ws])
                world.wait_leader(relay)
                self.assertGreater(liar.accepted, 0)
                world.enqueue('over the second')
                self.assert_once(world)
                self.assertEqual(relay.stop(), 0)

    # ---- statuses ----

    def statuses(self, *told, times=1):
        """A watch tells these in place of what is so."""
        def lie(said):
            if said.method != 'author_extrinsicUpdate':
                return None
            return [said.but(t) for t in told]
        world, liar = self.leading(lie=Once(lie, times))
        world.enqueue_many([f'status {i}' for i in range(3)])
        self.wait_told(liar, 'author_extrinsicUpdate', times=times)
        self.assert_good(world, liar)

    def test_statuses_whose_block_is_no_hash(self):
        self.statuses({'inBlock': 5}, {'finalized': 5}, {'retracted': None}, times=3)

    def test_finalized_in_a_block_that_is_none(self):
        self.statuses({'inBlock': '0x' + '77' * 32}, {'finalized': '0x' + '77' * 32}, times=3)

    def test_ends_in_the_pool_that_are_none(self):
        for status in ('invalid', 'dropped', {'usurped': '0x' + '77' * 32},
                       {'finalityTimeout': '0x' + '77' * 32}):
            with self.subTest(status):
                self.statuses(status, times=3)

    def test_no_status_at_all(self):
        world, liar = self.leading(lie=lambda said: SILENCE
                                   if said.method == 'author_extrinsicUpdate' else None)
        world.enqueue('silence')
        self.assert_once(world)
        self.wait_told(liar, 'author_extrinsicUpdate')

    def test_forged_extrinsics_in_the_pool(self):
        """A pool that is full of forged extrinsics of ours, seen by the relay that takes over."""
        world, liar = self.lying()
        world.wait_leader(world.relays[0])
        world.set(paused=True)
        tx = world.enqueue('pending')
        world.wait_pool(1)
        liar.tell(about('author_pendingExtrinsics',
                        lambda pool: pool + [self.forged(world, n) for n in (1, 2)]))
        world.relays[0].kill()
        world.wait_leader(world.relay('two', endpoints=[liar.url]))
        self.wait_told(liar, 'author_pendingExtrinsics')
        world.set(paused=False)
        self.assertEqual(world.wait_end(tx), ('ok', None))
        liar.tell(None)
        self.assert_good(world, liar)


if __name__ == '__main__':
    unittest.main()
