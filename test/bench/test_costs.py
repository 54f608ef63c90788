"""That the lane can fail: figures that moved, and a profile whose sums are known."""
import contextlib
import io
import json
import os
import unittest
from unittest import mock

from bench import callgrind, costs, suite_cost
from harness import proc

PROFILE = '''# callgrind format
events: Ir

ob=/build/main/txrelay
fl=/src/store/conn/conn.c
fn=send
10 5
cob=/usr/lib/libc.so.6
cfi=malloc.c
cfn=malloc
calls=3 0
11 90
cfn=grow
calls=2 0
12 40

fl=/src/base/buf.c
fn=grow.isra.0
1 4
cfn=xrealloc
calls=2 0
2 36

fn=xrealloc
1 6
cob=/usr/lib/libc.so.6
cfn=realloc
calls=2 0
2 30

ob=/usr/lib/libc.so.6
fl=malloc.c
fn=malloc
1 90

fn=realloc
1
2 30

ob=/usr/lib/libjansson.so.4.14.0
fl=???
fn=0x0000000000005f60
0 7
'''


class Costs(unittest.TestCase):
    def recorded(self):
        with open(costs.FILE) as file:
            return json.load(file)['per transaction']

    def lane(self, *factors):
        """What the lane says when the measurements are the recorded figures times these; and how
        many it took."""
        recorded = self.recorded()
        tries = iter(factors)

        def measure(*_):
            factor = next(tries)
            return {k: v * factor.get(k, 1) for k, v in recorded.items()}, None, None
        said = None
        with mock.patch.object(suite_cost, 'measure', measure), mock.patch.object(suite_cost,
                                                                               'DurablePostgres'), \
                contextlib.redirect_stdout(io.StringIO()):
            try:
                suite_cost.check_lane()
            except SystemExit as error:
                said = str(error)
        return said, len(factors) - len(list(tries))

    def test_what_did_not_move_passes_at_once(self):
        self.assertEqual(self.lane({}, {}, {}), (None, 1))
        self.assertEqual(self.lane({'instructions': 1.04, 'statements per 1000': 0.96}, {}, {}),
                         (None, 1))

    def test_one_bad_measurement_of_three_passes(self):
        self.assertEqual(self.lane({'allocations': 1.2}, {}, {})[0], None)

    def test_every_figure_that_moved_is_told_in_either_direction(self):
        for name in self.recorded():
            for factor in (0.94, 1.06):
                said, tries = self.lane(*[{name: factor}] * 3)
                self.assertIn(f'bench cost: {name} moved', said or '')
                self.assertEqual(tries, 3)
                self.assertIn('--record', said)


class Profile(unittest.TestCase):
    def test_sums(self):
        path = os.path.join(proc.make_dir('txbench-'), 'profile')
        with open(path, 'w') as file:
            file.write(PROFILE)
        profile = callgrind.Profile(path)
        self.assertEqual(profile.instructions(), 5 + 4 + 6 + 90 + 30 + 7)
        self.assertEqual(profile.total['send'], 135)
        self.assertEqual(profile.total['grow'], 40)
        self.assertEqual(profile.allocations(), 5)
        self.assertEqual(profile.allocations_by_caller(), {'send': 3, 'grow': 2})
        self.assertEqual(profile.by_place(), {'libc': 120, 'base': 10, 'libjansson': 7, 'store': 5})
        self.assertIn('libjansson 5f60', profile.own)


if __name__ == '__main__':
    unittest.main()
