"""The DELAY / FAIL matrix: the leader stands still at each gap of the path from the bid to the next
renewal, and there it is killed, or goes on after another took over, or loses its database
connections, or the database is restarted; with two expiries and with one, with one transaction in
flight and with eight. After each: every transaction took effect once (I1, I2, I3, I6, I7 against
the chain), nothing was written under an old epoch (I4), the takeover came inside the bound and not
before it was due, the thawed one sent nothing but what is on record.

    python3 -m system.test_delay_fail          one mode for each gap and fault (this is what CI
    runs) python3 -m system.test_delay_fail --all    all of it (or TXRELAY_MATRIX=all)"""
import os
import re
import sys
import threading
import time
import unittest
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

from harness import leadership, proc
from harness.leadership import LeadWorld, SLOW, Server, kill, log_times, stopped, thaw

WORKERS = int(os.environ.get('TXRELAY_MATRIX_WORKERS', '8'))

# Failpoint, the gap of the matrix that it lies in.
GAPS = (
    ('after_lock', 'ask claim - got claim'),        # has the lock, has not claimed
    ('after_claim', 'ask claim - got claim'),       # has claimed, does not know
    ('after_promote', 'got claim - got batch'),
    ('after_fetch', 'got batch - queued'),
    ('before_admit', 'queued - stored'),            # signed, not stored
    ('after_admit', 'stored - sent'),
    ('before_send', 'stored - sent'),               # the gate is about to be asked
    ('after_gate', 'stored - sent'),                # the gate was asked
    ('after_send', 'sent - response'),
    ('after_reply', 'response - stored'),
    ('after_state', 'stored - renewal'),
)
EARLY = ('after_lock', 'after_claim', 'after_promote')
MID_SUBMISSION = ('after_admit', 'before_send', 'after_gate', 'after_send', 'after_reply')
# What it does next is a statement under its epoch, so that the fence must refuse at least one.
WRITES_NEXT = ('after_promote', 'after_fetch', 'before_admit')
FAULTS = ('kill', 'stop', 'cut', 'restart')
# every session has to find the server again first
BOUND_S = {fault: 1.0 for fault in FAULTS} | {'restart': 2.0}
NTH = {'before_send': 3, 'after_gate': 3, 'after_send': 3, 'after_reply': 3}  # in a window of 8
IDLE_LOCK_S = 5  # leader_evict: a session that has the lock and never claimed

Combination = namedtuple('Combination', 'gap fault two_phase window')


class Missed(Exception):
    """The leader lost its role before it came to the gap: this run says nothing."""


def everything():
    return [Combination(gap, fault, two, window) for fault in FAULTS for two in (True, False)
            for window in (1, 8)
            for gap, _ in GAPS]


def for_ci():
    """Each gap with each fault once; the modes take turns so that each mode meets each gap and
    each fault."""
    found = []
    for i, (gap, _) in enumerate(GAPS):
        for j, fault in enumerate(FAULTS):
            mode = (i + j) % 4
            found.append(Combination(gap, fault, mode < 2, 1 if mode % 2 else 8))
    return found


def expiries(c):
    # all stand still until the last one does, and the restart is what frees the locks
    if c.fault == 'restart':
        first, second = 20000, 40000
    elif c.gap in EARLY:  # the successor is started when the leader stands still already
        first, second = 5000, 8000
    else:
        first, second = leadership.FAST['expiry_1_ms'], leadership.FAST['expiry_2_ms']
    return {**leadership.FAST, 'expiry_1_ms': first,
            'expiry_2_ms': second if c.two_phase else first}


class Play:
    """One combination. `restart` is called when the leader stands still; it returns when the
    server is there again, and gives when its restart began."""

    def __init__(self, c, restart=None, postgres=None):
        self.c, self.restart, self.postgres = c, restart, postgres

    def run(self):
        c = self.c
        with LeadWorld(leadership=expiries(c), manager={'window': c.window},
                       postgres=self.postgres) as self.world:
            try:
                self.stand_still()
            finally:
                if self.restart and not self.reached:
                    self.restart()
            self.strike()
            self.take_over()
            self.wake()
            return self.judge()

    reached = False

    def stand_still(self):
        c, world = self.c, self.world
        nth = NTH.get(c.gap, 1) if c.window == 8 else 1
        self.victim, self.links = world.linked('v',
                                               env={'TXRELAY_FAILPOINT': f'{c.gap}:{nth}:stop'})
        if c.gap in EARLY:
            self.wait_stopped()
        else:
            world.ready(self.victim)
        self.heir = world.relay('h')
        self.heir.wait_log('relay.running')
        world.enqueue_together([f'{c.gap} {i}' for i in range(4 if c.window == 1 else 10)])
        self.wait_stopped()
        self.since = time.time()
        world.quiet(self.victim)
        self.epoch, self.holder, first, second, mid = world.claim()
        if self.holder and f'-{self.victim.process.pid}-' not in self.holder:
            raise Missed(f'{self.holder} holds the claim')
        self.due = second if mid else first
        if c.gap == 'after_lock':
            self.due = IDLE_LOCK_S + world.sessions(self.victim,
                                                    'extract(epoch FROM state_change)::float8',
                                                    'control')[0][0]
        elif c.window == 1 and c.two_phase:
            assert mid == (c.gap in MID_SUBMISSION), f'mid-submission is {mid} at {c.gap}'
        self.reached = True

    def wait_stopped(self):
        try:
            proc.wait_for('the leader to stand still', lambda: stopped(self.victim), 10, 0.005)
        except TimeoutError:
            raise Missed(f'it never came to {self.c.gap}') from None

    def strike(self):
        fault = self.c.fault
        if fault == 'stop':
            self.began = self.since
            return
        self.began = self.due = time.time()
        if fault == 'kill':
            kill(self.victim)
        elif fault == 'cut':
            self.links.database.set('refuse')
            self.links.database.cut()
            thaw(self.victim)
        else:
            self.began, self.due = self.restart()
            thaw(self.victim)

    def take_over(self):
        relays = [self.heir] + ([self.victim] if self.c.fault == 'restart' else [])
        early = self.due - time.time()

        def ready():
            return [t for r in relays for t in log_times(r.text(), 'account.ready')
                    if t >= self.began - 0.001]
        times = proc.wait_for('a takeover', ready, max(0, early) + 20, 0.01)
        self.taken = min(times)
        if self.c.fault == 'stop':  # never before it is due
            acquired = log_times(self.heir.text(), 'leader.acquired')[-1]
            assert acquired >= self.due - 0.002, f'taken over {self.due - acquired:.3f} s early'
        late = self.taken - self.due
        assert late <= BOUND_S[self.c.fault] * SLOW, f'taken over {late:.3f} s after it was due'

    def wake(self):
        """The old leader goes on and steps down."""
        world, c = self.world, self.c
        if c.fault == 'kill':
            return
        if c.fault == 'stop':
            self.moment = time.monotonic()
            thaw(self.victim)
            world.steps_down(self.victim)
            believed = re.search(rf'leader\.acquired .*epoch={self.epoch}\b', self.victim.text())
            assert c.gap != 'after_claim' or not believed, 'an old claim was believed'
        elif c.fault == 'cut':
            self.links.database.set('pass')
            world.steps_down(self.victim)

    def judge(self):
        world, c = self.world, self.c
        figures = world.settle()
        sent = world.sent_as_it_was(self.victim, self.links,
                                    self.moment) if c.fault == 'stop' else []
        assert len(sent) <= (
            c.gap == 'after_gate'), f'the thawed one sent {len(sent)}: the gate did not hold'
        assert all(world.stored(raw)
                   for raw in sent), 'I3: the thawed one sent what is not on record'
        refused = world.refused(self.victim)
        if c.fault == 'stop' and c.gap in WRITES_NEXT:
            assert refused, 'I4: its next statement was under an old epoch, and none was refused'
        if c.fault == 'stop' and c.gap == 'before_send':
            assert self.victim.status()['accounts'][0][
                'blocked_not_leader_total'], 'the gate stopped one, and counts none'
        return {'takeover': round((self.taken - self.began) * 1000),
                'due': round((self.due - self.began) * 1000),
                'duplicates': figures['duplicates'], 'lost': figures['missing'], 'refused': refused,
                'sent': len(sent)}


class Restarts:
    """One server under several combinations: restarted once, when all of them stand still."""

    def __init__(self, count):
        self.postgres = Server()
        self.barrier = threading.Barrier(count, action=self.act, timeout=120)

    def act(self):
        self.began = time.time()
        self.postgres.restart()
        self.back = time.time()

    def __call__(self):
        self.barrier.wait()
        return self.began, self.back


def attempt(make, c):
    """(combination, result or None, text of what went wrong, tries)"""
    for tries in (1, 2, 3):
        try:
            return c, make(tries).run(), None, tries
        except Missed as error:
            wrong = f'{type(error).__name__}: {error}'
        except Exception as error:
            return c, None, f'{type(error).__name__}: {error}', tries
    return c, None, wrong, tries


def play_alone(c):
    return attempt(lambda _: Play(c), c)


def play_restarts(group):
    """A combination that missed its gap is played again with a server to itself."""
    shared = Restarts(len(group))

    def make(c, tries):
        restarts = shared if tries == 1 else Restarts(1)
        return Play(c, restarts, restarts.postgres)
    with ThreadPoolExecutor(len(group)) as pool:
        return list(pool.map(lambda c: attempt(lambda tries: make(c, tries), c), group))


def play_all(combinations):
    """Several at a time: they wait for expiries and blocks most of the time."""
    alone = [c for c in combinations if c.fault != 'restart']
    together = [c for c in combinations if c.fault == 'restart']
    groups = [together[i:i + len(GAPS)] for i in range(0, len(together), len(GAPS))]
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(play_alone, alone))
    for group in groups:
        results += play_restarts(group)
    return results


def lateness(results):
    """{fault: [ms between the time when the takeover was due and when another led]}"""
    late = {fault: [r['takeover'] - r['due'] for c, r, _, _ in results if c.fault == fault and r]
            for fault in FAULTS}
    return {fault: times for fault, times in late.items() if times}


def table(results):
    lines = [f'{"gap":<22} {"at":<13} {"fault":<8} {"expiries":<8} {"window":>6} '
             f'{"takeover ms":>11} {"due ms":>6} '
             f'{"duplicates":>10} {"lost":>4} {"old epoch refused":>17} {"sent after":>10}']
    gaps = dict(GAPS)
    for c, r, wrong, tries in results:
        head = (f'{gaps[c.gap]:<22} {c.gap:<13} {c.fault:<8} {"two" if c.two_phase else "one":<8} '
                f'{c.window:>6} ')
        if r is None:
            lines.append(head + wrong.splitlines()[0])
            continue
        lines.append(head + f'{r["takeover"]:>11} {r["due"]:>6} {r["duplicates"]:>10} '
                            f'{r["lost"]:>4} {r["refused"]:>17} '
                     f'{r["sent"]:>10}' + (f'  (try {tries})' if tries > 1 else ''))
    for fault, late in lateness(results).items():
        lines.append(f'{fault}: {len(late)} combinations; ready after it was due: p50 '
                     f'{leadership.quantile(late, 0.5)} ms, max {max(late)} ms')
    return '\n'.join(lines)


class DelayFail(unittest.TestCase):
    def test_matrix(self):
        combinations = everything() if os.environ.get('TXRELAY_MATRIX') == 'all' else for_ci()
        # words of a line of the table: after_gate,stop
        wanted = os.environ.get('TXRELAY_MATRIX_ONLY')
        if wanted:
            combinations = [c for c in combinations if set(wanted.split(',')) <= {c.gap, c.fault}]
        begin = time.monotonic()
        results = play_all(combinations)
        print('\n' + table(results) + f'\n{len(results)} combinations in '
                                      f'{time.monotonic() - begin:.0f} s')
        wrong = [f'{c}: {text}' for c, r, text, _ in results if r is None]
        self.assertFalse(wrong, '\n'.join(wrong))
        for fault, late in lateness(results).items():
            # Those of a group share one restart: their median is one event, and as late as the
            # machine is busy.
            bound = BOUND_S[fault] * (SLOW if fault == 'restart' else 1)
            self.assertLessEqual(leadership.quantile(late, 0.5), bound * 1000, fault)


if __name__ == '__main__':
    if '--all' in sys.argv:
        sys.argv.remove('--all')
        os.environ['TXRELAY_MATRIX'] = 'all'
    unittest.main()
