"""What a node holds for a relay, and gets back: by the node's own count of every kind."""
from harness import proc
from harness.cases import CaseTest, load_tests  # noqa: F401
from harness.chain import remark
from harness.liar import Liar, closed_families

OLDER = ('chain_', 'state_', 'author_', 'system_', 'rpc_')
PINS = 128 + 16  # final ones that are kept, and what is not final
HEADS = {'new_heads': 1, 'finalized_heads': 1, 'runtime': 1}
# What is closed: by which kind the relay submits then, and all that an idle relay holds.
WAYS = {
    'nothing': ((), 'extrinsic', HEADS),
    'author_submit': (('author_submit',), 'transaction', HEADS),
    'all but broadcasts': (('author_submit', 'transactionWatch_'), 'broadcast', HEADS),
    'the older methods': (OLDER, 'transaction', {'follow': 1}),
    'the older methods and the archive': ((*OLDER, 'archive_'), 'transaction', {'follow': 1}),
}


class HeldTest(CaseTest):
    def given_back(self, prefixes, kind, idle):
        """Transactions end in each way: included, replaced by a filler, signed again and again
        because their eras end."""
        world = self.world('--block-ms', '50', '--newer-rpc', start=False,
                           manager={'era_period': 4})
        liar = Liar(world.chain.ws)
        self.addCleanup(liar.close)
        if prefixes:
            liar.reply = closed_families(*prefixes)
        relay = world.relay('one', endpoints=[liar.url])
        world.wait_leader(relay)
        used = set()

        def held():
            now = world.chain.rpc('dev_held')
            self.assertLessEqual(now.pop('pins'), PINS)
            used.update(now)
            return now
        rule, = world.script({'match': {'include': True, 'times': 0}, 'action': 'skip'})
        first = world.enqueue('no block takes it')
        attempts = 'SELECT count(*) FROM txrelay.attempts WHERE id = %s'
        proc.wait_for('more signatures than a node takes broadcasts',
                      lambda: held()
                      and world.pg.value(attempts, (first,)) > (20 if kind == 'broadcast' else 3),
                      120)
        world.chain.rpc('dev_setBlockMs', 400)  # an era is long enough from here on
        stopped = world.pg.value("SELECT txrelay.enqueue('alice', %s)", (remark('stopped'),))
        proc.wait_for('it to be sent', lambda: world.pg.value(attempts, (stopped,)))
        world.pg.value('SELECT txrelay.cancel(%s)', (stopped,))
        world.chain.rpc('dev_clearScript', {'id': rule})
        for i in range(5):
            world.enqueue(f'number {i}')
        proc.wait_for('their ends', lambda: held() is not None and not world.unfinished())
        world.enqueue('the last one')  # by its block every other one is final
        proc.wait_for('its end', lambda: held() is not None and not world.unfinished())
        proc.wait_for('nothing to be held', lambda: held() == idle)
        self.assertIn(kind, used)
        liar.cut()
        proc.wait_for('the next connection to hold the same',
                      lambda: liar.accepted > 1 and held() == idle)
        relay.kill()
        proc.wait_for('nothing to be left', lambda: held() == {})


def one(way):
    return lambda self: self.given_back(*way)


for closed, way in WAYS.items():
    setattr(HeldTest, f'test_{closed.replace(" ", "_")}_closed', one(way))
