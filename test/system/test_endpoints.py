"""Endpoints that are no good for everything: of another chain, with limits, with closed methods,
with pruned blocks. The next one is asked, the service goes on, and nothing waits without a word."""
import json
import re

from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.liar import (NO_ANSWERS, UNAVAILABLE, Frozen, Lag, Liar, Limit, Pruned, Refusal,
                          certificate, closed, closed_families,
                          of_another_chain)
from harness.relay import cli
from harness.soak import size
from harness.world import ALICE, BOB


class EndpointsTest(CaseTest):
    def liar(self, world, reply=None):
        liar = Liar(world.chain.ws)
        liar.reply = reply
        self.addCleanup(liar.close)
        return liar

    # ---- R5: one endpoint of another chain ----

    def test_the_other_chain_while_the_right_endpoint_is_away(self):
        world = self.world('--block-ms', '100', start=False)
        right, wrong = self.liar(world), self.liar(world, of_another_chain)
        relays = [world.relay(name, endpoints=[right.url, wrong.url]) for name in ('one', 'two')]
        proc.wait_for('a leader', lambda: any(r.leads('alice') for r in relays))
        right.greeting = UNAVAILABLE
        right.cut()
        for relay in relays:
            relay.wait_log('chain.down.*another chain')
        right.greeting = None
        world.enqueue('it is back')
        self.assert_once(world)
        self.assertTrue(all(r.alive() for r in relays))

    def test_the_other_chain_first(self):
        world = self.world('--block-ms', '100', start=False)
        wrong = self.liar(world, of_another_chain)
        genesis = {'genesis': f'"{world.chain.rpc("chain_getBlockHash", 0)}"'}
        relay = world.relay('one', endpoints=[wrong.url, world.chain.ws], chain=genesis)
        world.wait_leader(relay)
        world.enqueue('over the second')
        self.assert_once(world)

    def test_the_other_chain_first_without_a_genesis(self):
        """The chain is the registered accounts': the first endpoint is passed over, and the relay
        says so."""
        world = self.world('--block-ms', '100', start=False)
        first = world.relay('one')
        world.wait_leader(first)
        first.kill()
        wrong = self.liar(world, of_another_chain)
        relay = world.relay('two', endpoints=[wrong.url, world.chain.ws])
        relay.wait_log('chain.other.*account alice is registered for the chain with genesis')
        world.wait_leader(relay)
        world.enqueue('over the second')
        self.assert_once(world)

    def test_only_the_other_chain(self):
        """It says so and keeps trying."""
        world = self.world('--block-ms', '100', start=False)
        wrong = self.liar(world, of_another_chain)
        genesis = {'genesis': f'"{world.chain.rpc("chain_getBlockHash", 0)}"'}
        relay = world.relay('one', endpoints=[wrong.url], chain=genesis)
        relay.wait_log('chain.none.*every endpoint is of another chain')
        done = cli('check', '--config', relay.config, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('another chain', done.stdout)
        done = cli('health', '--to', relay.address, check=False)
        self.assertIn(f'the node is {wrong.url}', done.stdout,
                      'two hashes leave room for the address')
        tries = wrong.accepted
        proc.wait_for('another try', lambda: wrong.accepted > tries)
        wrong.reply = None
        world.wait_leader(relay)
        world.enqueue('it is the right one now')
        self.assert_once(world)
        self.assertTrue(relay.alive())

    def test_a_single_endpoint_is_of_another_chain(self):
        """Nothing but the accounts that are registered names the chain. The relay says so, and
        goes on when it is mended."""
        world = self.world('--block-ms', '100', start=False)
        first = world.relay('one')
        world.wait_leader(first)
        first.kill()
        wrong = self.liar(world, of_another_chain)
        relay = world.relay('two', endpoints=[wrong.url])
        relay.wait_log('chain.other.*account alice is registered for the chain with genesis')
        relay.wait_log('chain.none.*every endpoint is of another chain')
        done = cli('health', '--to', relay.address, check=False)
        self.assertRegex(done.stdout, 'no endpoint of the chain is usable: (another chain|account '
                                      'alice is registered)')
        self.assertEqual(done.returncode, 1)
        done = cli('register', '--config', relay.config, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('another chain', done.stderr)
        wrong.reply = None
        world.wait_leader(relay)
        world.enqueue('it is mended')
        self.assert_once(world)
        wrong.reply = of_another_chain
        wrong.cut()
        world.enqueue('while it is of another chain again')
        world.wait_reason('another chain')
        wrong.reply = None
        self.assert_once(world)
        self.assertTrue(relay.alive())

    def test_a_new_account_beside_a_registered_one(self):
        """It is not registered for the other chain."""
        world = self.world('--block-ms', '100', start=False)
        first = world.relay('one')
        world.wait_leader(first)
        first.kill()
        wrong = self.liar(world, of_another_chain)
        world.accounts = (BOB, ALICE)
        relay = world.relay('two', endpoints=[wrong.url])
        relay.wait_log('chain.none')
        self.assertEqual(world.pg.query('SELECT alias FROM txrelay.accounts'), [('alice',)])
        wrong.reply = None
        world.wait_leader(relay)
        self.assertEqual(world.pg.value('SELECT count(DISTINCT genesis) FROM txrelay.accounts'), 1)
        self.assertEqual(world.pg.value('SELECT count(*) FROM txrelay.accounts'), 2)

    # ---- R6: limits ----

    def limited(self, per_second, burst, count):
        """This many transactions through a limit, to their ends, over one connection."""
        world = self.world('--block-ms', '1000', start=False)
        limit = Limit(per_second, burst)
        liar = self.liar(world, limit)
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        world.enqueue_many([f'limited {i}' for i in range(count)])
        self.assert_once(world)
        self.assertEqual(liar.accepted, 1)
        self.assertNotIn('chain.down', relay.text())
        self.assertLess(limit.refused, limit.asked / 2)
        relay.wait_log('node.limit.*method=.*Too many requests')

    def test_ten_a_second(self):
        self.limited(10, 10, 30)

    def test_five_a_second(self):
        """Not even a handshake fits into the burst."""
        self.limited(5, 5, 5)

    # ---- R4: closed methods ----

    ANOTHER_WAY = ('author_pendingExtrinsics', 'author_submitAndWatchExtrinsic', 'state_getStorage',
                   'state_queryStorageAt',
                   'chain_getHeader', 'chain_getBlockHash', 'chain_getFinalizedHead',
                   'chain_subscribeNewHeads',
                   'chain_subscribeFinalizedHeads', 'state_subscribeRuntimeVersion',
                   'author_unwatchExtrinsic', 'state_call',
                   'state_getRuntimeVersion', 'state_getMetadata')

    IN_THE_NEWER_RPC = ('chain_getBlock', 'chain_getHeader', 'chain_getBlockHash',
                        'chain_getFinalizedHead', 'state_getStorage',
                        'state_call')

    def test_each_method_closed_alone(self):
        """Without the method there is another way: at a start, and at the failover from the relay
        before."""
        self.each_closed(self.ANOTHER_WAY)

    def test_each_method_closed_alone_at_a_node_with_the_newer_rpc(self):
        """chain_getBlock has its other way there; every outcome is known."""
        for method, log in self.each_closed(self.IN_THE_NEWER_RPC, '--newer-rpc').items():
            self.assertRegex(log, f'node.newer_methods.*instead_of={method}')

    OLDER = ('chain_', 'state_', 'author_', 'system_', 'rpc_')
    NEWER = ('archive_v1_', 'chainHead_v1_', 'chainSpec_v1_', 'transactionWatch_v1_',
             'transaction_v1_')
    FAMILIES = {
        'only the older': closed_families(*NEWER),
        'only the newer': closed_families(*OLDER),
        'only chainHead, no archive': closed_families(*OLDER, 'archive_v1_'),
        'only broadcasts': closed_families(*OLDER, 'archive_v1_', 'transactionWatch_v1_'),
        'no archive, author_ is there': closed_families('chain_', 'state_', 'archive_v1_'),
        'chain_getBlock and the archive': closed_families('chain_getBlock', 'archive_v1_',
                                                          but=('chain_getBlockHash',)),
    }
    ALONE_IN_CHAIN_HEAD = ('chainHead_v1_follow', 'chainHead_v1_header', 'chainHead_v1_body',
                           'chainHead_v1_call',
                           'chainHead_v1_storage', 'transactionWatch_v1_submitAndWatch',
                           'transaction_v1_broadcast')

    def test_each_family_closed(self):
        """At a start, and at the failover from the relay before."""
        logs = self.each_closed(self.FAMILIES, '--newer-rpc')
        self.assertRegex(logs['chain_getBlock and the archive'],
                         'node.newer_methods.*instead_of=chain_getBlock\\b')
        for name in ('only chainHead, no archive', 'only broadcasts'):
            for older in ('chain_getBlock', 'chain_getHeader', 'state_call', 'state_getStorage',
                          'chain_subscribeNewHeads',
                          'chain_subscribeFinalizedHeads', 'state_subscribeRuntimeVersion',
                          'chain_getFinalizedHead'):
                self.assertRegex(logs[name], f'node.newer_methods.*instead_of={older}')
        self.assertNotIn('node.newer_methods', logs['only the older'])

    def test_each_family_closed_while_it_leads(self):
        """A gateway closes them on an open connection; later the connection ends."""
        world = self.world('--block-ms', '100', '--newer-rpc', start=False)
        liar = self.liar(world)
        relay = world.relay('one', endpoints=[liar.url])
        for number, (name, rule) in enumerate(self.FAMILIES.items()):
            with self.subTest(name):
                proc.wait_for('the node', lambda: relay.text().count('chain.up') > number)
                world.wait_leader(relay)
                liar.reply = rule
                self.sent(world, f'{name} on the connection')
                liar.reply = None
                liar.cut()
        self.assertNotIn('ERR_PROTOCOL', relay.text())
        self.assert_once(world)

    def test_the_server_ends_its_follow_subscriptions(self):
        """As a node that is short of pins does. The runtime is upgraded, and blocks are taken
        back, meanwhile."""
        world = self.world('--block-ms', '100', '--newer-rpc', '--follow-pins', '40',
                           '--finality-lag', '5', start=False)
        liar = self.liar(world, self.FAMILIES['only chainHead, no archive'])
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        self.sent(world, 'before')
        world.chain.rpc('dev_upgrade', {'spec': 101})
        self.sent(world, 'the next runtime')
        world.chain.rpc('dev_reorg', {'depth': 2})
        self.sent(world, 'a reorganization')
        proc.wait_for('another subscription', lambda: liar.asked['chainHead_v1_follow'] > 2)
        self.sent(world, 'after')
        self.assertRegex(relay.text(), 'node.follow_again.*the server ended it')
        self.assert_once(world)

    def test_pins_are_given_back(self):
        """More blocks than the node pins: it has no reason to end the subscription."""
        world = self.world('--block-ms', '25', '--newer-rpc', '--follow-pins', '160', start=False)
        liar = self.liar(world, self.FAMILIES['only chainHead, no archive'])
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        best = world.best()
        proc.wait_for('blocks', lambda: world.best() > best + 400)
        self.sent(world, 'after them')
        self.assertEqual(liar.asked['chainHead_v1_follow'], 1)
        self.assert_once(world)

    def each_closed(self, methods, *options):
        world = self.world('--block-ms', '100', *options, start=False)
        before, logs = None, {}
        rules = methods if isinstance(methods,
                                      dict) else {method: closed(method) for method in methods}
        for number, (method, rule) in enumerate(rules.items()):
            with self.subTest(method):
                liar = self.liar(world, rule)
                relay = world.relay(f'number-{number}', endpoints=[liar.url])
                relay.wait_log('relay.running')
                if before:
                    before.kill()
                world.wait_leader(relay)
                self.sent(world, f'without {method}')
                before, logs[method] = relay, relay.text()
        self.assert_once(world)
        return logs

    def test_methods_closed_by_errors_of_gateways(self):
        """By codes and texts of their own, some of which mean nothing: then a method that is
        always refused counts as closed."""
        world = self.world('--block-ms', '100', start=False)
        before = None
        for number, (method, refusal) in enumerate((
                ('author_pendingExtrinsics', Refusal(-32004, 'Method not supported')),
                ('state_getStorage', Refusal(403, 'Forbidden')),
                ('state_queryStorageAt', Refusal(-32003, 'access denied')),
                ('chain_getHeader', Refusal(-32000, 'nope')),
                ('author_submitAndWatchExtrinsic', Refusal(-32603, 'Internal error')),
                ('state_subscribeRuntimeVersion',
                 Refusal(-32600, 'the method does not exist/is not available')))):
            with self.subTest(method, refusal=refusal.error):
                liar = self.liar(world, closed(method, refusal=refusal))
                relay = world.relay(f'number-{number}', endpoints=[liar.url])
                relay.wait_log('relay.running')
                if before:
                    before.kill()
                world.wait_leader(relay)
                self.sent(world, f'without {method}', 60)
                before = relay
        self.assert_once(world)

    def test_each_method_closed_alone_while_it_leads(self):
        world = self.world('--block-ms', '100', start=False)
        liar = self.liar(world)
        relay = world.relay('one', endpoints=[liar.url])
        for number, method in enumerate(self.ANOTHER_WAY):
            with self.subTest(method):
                proc.wait_for('the node', lambda: relay.text().count('chain.up') > number)
                world.wait_leader(relay)
                liar.reply = closed(method)
                self.sent(world, f'without {method}')
                liar.reply = None
                liar.cut()  # what it has learnt of this endpoint goes with the connection
        self.assertNotIn('ERR_PROTOCOL', relay.text())
        self.assert_once(world)

    def sent(self, world, text, seconds=20):
        tx = world.enqueue(text)
        proc.wait_for(text, lambda: tx not in world.unfinished(), seconds)

    def test_each_method_closed_with_a_good_second(self):
        """While it leads, and at the start of its successor."""
        self.each_with_a_good_second({method: closed(method)
                                      for method in (*self.ANOTHER_WAY, 'chain_getBlock')})

    def test_each_newer_method_closed_with_a_good_second(self):
        """The first one has nothing but chainHead_v1, and not all of that."""
        family = self.FAMILIES['only chainHead, no archive']
        refusal = family('chain_getBlock', [])
        self.each_with_a_good_second({
            alone: lambda method, params,
            alone=alone: refusal if method == alone else family(method, params)
            for alone in self.ALONE_IN_CHAIN_HEAD}, '--newer-rpc')

    def each_with_a_good_second(self, rules, *options):
        world = self.world('--block-ms', '100', *options, start=False)
        for number, (method, rule) in enumerate(rules.items()):
            with self.subTest(method):
                liar = self.liar(world)
                relay = world.relay(f'one-{number}', endpoints=[liar.url, world.chain.ws])
                world.wait_leader(relay)
                liar.reply = rule
                self.sent(world, f'{method} while it leads')
                relay.kill()
                relay = world.relay(f'two-{number}', endpoints=[liar.url, world.chain.ws])
                world.wait_leader(relay)
                self.sent(world, f'{method} at a start')
                relay.kill()
        self.assert_once(world)

    MAIN = ('state_getStorage', 'author_pendingExtrinsics', 'author_submitAndWatchExtrinsic',
            'chain_getBlock',
            'state_queryStorageAt', 'chain_getHeader', 'state_getRuntimeVersion')
    # asked for by state_getStorage
    EVENTS = '0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7'

    @classmethod
    def no_answer(cls, method, kind):
        def rule(asked, params):
            is_it = asked == method or (method == 'events' and asked == 'state_getStorage'
                                        and params[0] == cls.EVENTS)
            return NO_ANSWERS[kind] if is_it else None
        return rule

    def test_what_is_no_answer(self):
        """To a question of the main job: by its kind, from the start and while it leads. A good
        second endpoint is asked. With TXRELAY_SOAK=full each kind for each method."""
        cases = size([(m, k) for k in NO_ANSWERS for m in self.MAIN], self.MENDED)
        world = self.world('--block-ms', '100', start=False, call_timeout_ms=1000)
        for number, (method, kind) in enumerate(cases):
            with self.subTest(method, kind=kind):
                liar = self.liar(world, self.no_answer(method, kind))
                relay = world.relay(f'start-{number}', endpoints=[liar.url, world.chain.ws])
                world.wait_leader(relay)
                self.sent(world, f'{number} at a start', 30)
                relay.kill()
                rule, liar.reply = liar.reply, None
                relay = world.relay(f'leads-{number}', endpoints=[liar.url, world.chain.ws])
                world.wait_leader(relay)
                liar.reply = rule
                self.sent(world, f'{number} while it leads', 30)
                self.assertGreater(liar.lies.total(), 0)
                relay.kill()
        self.assert_once(world)
        self.assertEqual(world.pg.query("SELECT id, outcome::text FROM "
                                        "txrelay.finished_transactions WHERE outcome <> 'ok'"), [])

    # Each found the relay at its first endpoint for ever, or a result unknown, though the second
    # one had it.
    MENDED = [('chain_getHeader', 'cut'), ('events', 'null'), ('state_getStorage', 'silence'),
              ('state_getStorage', 'null'), ('author_pendingExtrinsics', 'an empty object'),
              ('author_submitAndWatchExtrinsic', 'null'),
              ('author_submitAndWatchExtrinsic', 'silence'),
              ('chain_getBlock', 'closed as too big'),
              ('state_queryStorageAt', 'a page')]

    def test_no_way_to_submit(self):
        """Reading goes well at the first endpoint; each way to submit is refused there."""
        world = self.world('--block-ms', '100', '--newer-rpc', start=False)
        for number, refusal in enumerate((Refusal(-32601, 'Method not found'),
                                          Refusal(403, 'Forbidden'))):
            with self.subTest(refusal.error):
                liar = self.liar(world,
                                 closed('author_submitAndWatchExtrinsic', 'author_submitExtrinsic',
                                               'transactionWatch_v1_submitAndWatch',
                                               'transaction_v1_broadcast', refusal=refusal))
                relay = world.relay(f'reads-{number}', endpoints=[liar.url, world.chain.ws])
                world.wait_leader(relay)
                self.sent(world, f'over the second {number}', 60)
                self.assertGreater(liar.lies['author_submitExtrinsic'], 0)
                relay.kill()
        self.assert_once(world)

    def test_no_bodies_of_blocks(self):
        """At a node without archive_v1: by the account's nonce it took effect, and nobody can tell
        how."""
        world = self.world('--block-ms', '100', start=False)
        relay = world.relay('one', endpoints=[self.liar(world, closed('chain_getBlock')).url])
        world.wait_leader(relay)
        tx = world.enqueue('in a block without a body')
        self.assertEqual(world.wait_end(tx)[0], 'unknown')
        relay.wait_log('node.block_unread.*chain_getBlock of block .*not this method')

    def test_a_pool_that_is_too_large_to_be_told(self):
        world = self.world('--block-ms', '100', start=False)
        liar = self.liar(world, closed('author_pendingExtrinsics',
                                       refusal=Refusal(-32008, 'Response is too big')))
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        world.set(paused=True)
        tx = world.enqueue('in the pool')
        world.wait_pool(1)
        relay.kill()
        heir = world.relay('heir', endpoints=[liar.url])
        world.wait_leader(heir)
        heir.wait_log('account.alert.*no endpoint tells its pool')
        world.set(paused=False)
        world.wait_end(tx)
        self.assert_once(world)

    # ---- blocks that cannot be read ----

    def away(self, pruned, endpoints=lambda world, liar: [liar.url], **options):
        """(world, relay): a transaction of alice is in a block that the endpoint lost while the
        relay was away."""
        world = self.world('--block-ms', '100', start=False, accounts=(ALICE, BOB), **options)
        liar = self.liar(world)
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        world.set(paused=True)
        tx = world.enqueue('in a lost block')
        world.wait_pool(1)
        relay.kill()
        world.set(paused=False)
        proc.wait_for('its block to be final', lambda: world.stranger.next_nonce() == 1)
        best = world.best()
        proc.wait_for('more blocks', lambda: world.best() > best + 12)
        liar.reply = pruned(world.chain, best + 3)
        heir = world.relay('heir', endpoints=endpoints(world, liar))
        return world, heir, tx

    def test_the_others_go_on(self):
        world, heir, tx = self.away(Pruned, manager={'era_period': 256})
        world.wait_leader(heir)
        bob = world.enqueue('of bob', alias='bob')
        world.wait_end(bob)
        later = world.enqueue('of alice, later')
        world.wait_end(later)
        heir.wait_log('node.block_unread.*chain_getBlock of block')
        self.assertEqual(heir.text().count('chain.down'), 0)
        world.wait_reason('cannot be read from any endpoint')

    def test_whose_result_nobody_has(self):
        """Not dispatch_error: nobody can tell. With an archive as the second endpoint it is ok."""
        def no_state(chain, below):
            return Pruned(chain, below, bodies=False)
        world, heir, tx = self.away(no_state)
        self.assertEqual(world.wait_end(tx)[0], 'unknown')
        done = cli('wait', str(tx), '--database', world.pg.dsn, check=False)
        self.assertEqual(done.returncode, 5)
        self.assertIn('ended as unknown', done.stderr)
        world.settle()
        world, heir, tx = self.away(no_state, lambda world, liar: [liar.url, world.chain.ws])
        self.assertEqual(world.wait_end(tx)[0], 'ok')

    def test_the_archive_is_asked(self):
        world, heir, tx = self.away(Pruned, lambda world, liar: [liar.url, world.chain.ws])
        world.wait_end(tx)
        self.assert_once(world)

    def test_the_archive_is_briefly_away(self):
        """Nothing ends as unknown while it may come back."""
        archives = []

        def endpoints(world, liar):
            archive = self.liar(world)
            archive.greeting = UNAVAILABLE
            archives.append(archive)
            return [liar.url, archive.url]
        world, heir, tx = self.away(lambda chain, below: Pruned(chain, below, bodies=False),
                                    endpoints)
        heir.wait_log('node.lacks_and_waits')
        world.wait_reason('waits for an endpoint that is away')
        archives[0].greeting = None
        self.assertEqual(world.wait_end(tx)[0], 'ok')

    def test_one_that_is_always_some_blocks_behind(self):
        """Fewer than those for which it is left at once: the leader would wait for ever."""
        world = self.world('--block-ms', '250', start=False)
        lag = Lag(world.chain, 14)
        lagging = Liar(world.chain.ws, lag.lie)
        lagging.reply = lag.reply
        self.addCleanup(lagging.close)
        relay = world.relay('one', endpoints=[lagging.url, world.chain.ws])
        world.wait_leader(relay)
        other = world.relay('other')  # it tells how far the chain is
        other.wait_log('relay.running')
        world.enqueue('while it leads')
        world.settle()
        lagging.cut()
        world.enqueue('after a reconnection')
        relay.wait_log('chain.down.*it is behind [0-9]+, for which an account waits')
        self.assert_once(world)
        self.assertTrue(relay.leads('alice'))

    # ---- a leader whose endpoints are gone ----

    def test_a_leader_without_an_endpoint_gives_up(self):
        world = self.world('--block-ms', '100', start=False)
        liar = self.liar(world)
        first = world.relay('first', endpoints=[liar.url])
        world.wait_leader(first)
        second = world.relay('second')
        second.wait_log('relay.running')
        liar.greeting = UNAVAILABLE
        liar.cut()
        tx = world.enqueue('the other one can')
        world.wait_leader(second, seconds=30)
        first.wait_log('leader.unable.*account=alice.*lacks=no_endpoint')
        world.wait_end(tx)
        self.assert_once(world)

    SUBMISSIONS = ('author_submitAndWatchExtrinsic', 'author_submitExtrinsic',
                   'transactionWatch_v1_submitAndWatch',
                   'transaction_v1_broadcast')

    def stuck(self, world, liar):
        frozen = Frozen(world.chain)
        frozen.freeze()
        liar.reply, liar.lie = frozen.reply, frozen.lie

    def lagging(self, world, liar):
        """As a balancer that passes a new connection to another node: the leader asks that one
        nothing."""
        proc.wait_for('as many blocks', lambda: world.best() > 50)
        # more than a relay hears of from another one within two heartbeats
        lag = Lag(world.chain, 40)
        liar.reply, liar.lie = lag.reply, lag.lie
        liar.cut()

    def submissions(answer):
        def change(self, world, liar):
            liar.reply = closed(*self.SUBMISSIONS, refusal=answer)
        return change

    # What a leader's only endpoint becomes while it stays usable, and what the leader lacks then.
    UNABLE = {
        'its head stands still': (stuck, 'stuck'),
        'some blocks behind': (lagging, 'behind'),
        'submissions are closed': (submissions(None), 'refused'),
        'too many, for ever': (submissions(Refusal(429, 'Too Many Requests')), 'refused'),
        'submissions are not answered': (submissions(NO_ANSWERS['silence']), 'refused'),
    }

    def test_a_leader_that_cannot_act_gives_up(self):
        """Each in a world of its own, all at once; and two relays with the same bad endpoint."""
        worlds = {}
        alike = self.world('--block-ms', '100', start=False)
        both = self.liar(alike, closed(*self.SUBMISSIONS))
        for name in ('one', 'two'):
            alike.relay(name, endpoints=[both.url]).wait_log('relay.running')
        alike.enqueue('it waits')
        for name in self.UNABLE:
            world = self.world('--block-ms', '100', start=False)
            liar = self.liar(world)
            first = world.relay('first', endpoints=[liar.url], chain={'call_timeout_ms': 1000})
            world.wait_leader(first)
            second = world.relay('second')
            second.wait_log('relay.running')
            worlds[name] = world, liar, first, second
        for name, (change, _) in self.UNABLE.items():
            change(self, *worlds[name][:2])
            worlds[name][0].enqueue('the other one can')
        for name, (_, lacks) in self.UNABLE.items():
            world, _, first, second = worlds[name]
            with self.subTest(name):
                world.wait_leader(second, seconds=60)
                first.wait_log(f'leader.unable.*account=alice.*lacks={lacks}')
                self.assert_once(world)
        with self.subTest('two alike'):
            for relay in alike.relays:
                relay.wait_log('leader.unable.*lacks=refused', seconds=60)
            both.reply = None
            self.assert_once(alike)

    def test_over_tls(self):
        """With the certificate it is trusted; without it is not."""
        world = self.world('--block-ms', '100', start=False)
        files = certificate(world.dir)
        liar = Liar(world.chain.ws, tls=files)
        self.addCleanup(liar.close)
        stranger = world.relay('stranger', endpoints=[liar.url])
        stranger.wait_log('chain.down.*certificate')
        stranger.kill()
        relay = world.relay('one', endpoints=[liar.url], chain={'ca_file': files[0]})
        world.wait_leader(relay)
        world.enqueue('over TLS')
        self.assert_once(world)
        self.assertGreater(liar.asked['chain_getBlock'], 0)

    def test_check_measures_each_endpoint(self):
        world = self.world('--block-ms', '100', '--newer-rpc')
        proc.wait_for('blocks', lambda: world.best() > 10)
        poor = self.liar(world, closed('author_pendingExtrinsics'))
        lost = self.liar(world, Pruned(world.chain, 8))
        wrong = self.liar(world, of_another_chain)
        hashless = self.liar(world, closed('chain_getBlockHash', 'archive_v1_hashByHeight'))
        bodiless = self.liar(world, closed('chain_getBlock'))
        newer = self.liar(world, self.FAMILIES['only chainHead, no archive'])
        endpoints = [world.chain.ws, poor.url, lost.url, wrong.url, hashless.url, bodiless.url,
                     newer.url]
        relay = world.relay('checked', endpoints=endpoints, start=False)
        done = cli('check', '--config', relay.config)
        for text in (f'endpoint +{world.chain.ws}', 'it lists its pool',
                     'it answers each one that this check needed',
                     'System.BlockHash in place of chain_getBlockHash',
                     'archive_v1_body in place of chain_getBlock',
                     'chainHead_v1_header in place of chain_getHeader',
                     'chainHead_v1_follow in place of chain_subscribeNewHeads',
                     'chainHead_v1_storage in place of state_getStorage',
                     f'author_pendingExtrinsics.*not this method',
                     'its body is there, its state is there', 'its body is gone, its state is gone',
                     'another chain',
                     'not every endpoint is usable',
                     # what was measured
                     'rpc_methods +it lists [0-9]+ methods',
                     'submit +author_submitAndWatchExtrinsic [0-9]+ ms, author_submit',
                     'pool +none; closed: author_pendingExtrinsics .RPC call is unsafe',
                     'heads +none; closed: chain_getHeader',
                     'reach +headers of [0-9]+ blocks .all., bodies of [0-9]+ blocks .all.',
                     'reach .*bodies of [0-9]+ blocks, states of [0-9]+ blocks before',
                     'answers +[0-9]+, half of them within [0-9]+ ms',
                     'not this method: [0-9]', 'lag +ws://.*block [0-9]+, [0-9]+ behind'):
            self.assertRegex(done.stdout, text)

    def test_check_measures_for_programs(self):
        """One endpoint closes each way to submit: no relay could send. And one asks for a slower
        pace, and is behind."""
        world = self.world('--block-ms', '100')
        proc.wait_for('blocks', lambda: world.best() > 50)
        mute = self.liar(world, closed(*self.SUBMISSIONS, 'rpc_methods'))
        lag, limit = Lag(world.chain, 40), Limit(20, 10)
        slow = Liar(world.chain.ws, lag.lie)
        slow.reply = lambda method, params: limit(method, params) or lag.reply(method, params)
        self.addCleanup(slow.close)
        relay = world.relay('checked', endpoints=[mute.url, slow.url], start=False)
        lines = [json.loads(line) for line in cli('check', '--config', relay.config,
                                                  '--json').stdout.splitlines()]
        first, second = [line for line in lines if 'methods' in line]
        is_of = {m['method']: (m['is'], m['listed']) for m in first['methods']}
        self.assertEqual({is_of[method] for method in self.SUBMISSIONS}, {('closed', None)})
        self.assertEqual({i for method, (i, _) in is_of.items() if method not in self.SUBMISSIONS
                          and '_v1_' not in method}, {'open'})
        self.assertEqual({m['is'] for m in second['methods'] if m['method'].startswith('author_')},
                         {'open'})
        self.assertIn('too many', second['refused'])
        self.assertTrue(second['reach']['states']['all'])
        behind = [int(re.search('([0-9]+) behind', line['text'])[1]) for line in lines
                  if line.get('what') == 'lag']
        self.assertEqual(behind[0], 0)
        self.assertIn(behind[1], range(30, 51))
        self.assertEqual(lines[-1], {'ready': True})

    def test_check_where_nothing_can_be_sent(self):
        world = self.world('--block-ms', '100')
        relay = world.relay('checked', endpoints=[self.liar(world, closed(*self.SUBMISSIONS)).url],
                            start=False)
        done = cli('check', '--config', relay.config, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, 'BAD +chain +no endpoint takes submissions')
