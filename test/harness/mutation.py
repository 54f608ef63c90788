"""Lies at random: answers and notifications of a node with numbers, hashes, texts, lists and types
changed, errors in their place, and some of them dropped, doubled or replaced by the one before
(liar.py tells them)."""
import random
import threading
from collections import Counter

from .liar import SILENCE

ERRORS = ((-32000, '504 Gateway Timeout'), (-32603, 'Internal error'), (-32601, 'Method not found'),
          (-32602, 'Invalid params'),
          (-32006, 'Too many subscriptions on the connection'), (-32007, 'Request is too big'),
          (1001, 'Extrinsic has invalid format'), (1002, 'Verification Error'),
          (1002, 'Verification Error: Runtime error: wasm trap: wasm `unreachable` instruction '
                 'executed'),
          (1010, 'Invalid Transaction'), (1010, 'Invalid Transaction: Custom error: 7'),
          (1010, 'Invalid Transaction: Transaction call is not expected'),
          (1010, 'Invalid Transaction: Transaction would exhaust the block limits'),
          (1011, 'Unknown Transaction Validity'), (1012, 'Transaction is temporarily banned'),
          (1013, 'Already Imported'),
          (1014, 'Priority is too low'), (1015, 'Cycle Detected'), (1016, 'Immediately Dropped'),
          (1018, 'Unactionable'),
          (1019, 'No tags provided'), (1021, 'The pool is not accepting future transactions'),
          (1040, 'Client error: Codec error: Not enough data to fill buffer'),
          (4003, 'State already discarded'))
NUMBERS = (0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 63 - 1, 2 ** 64 - 1, 2 ** 64, -1)
OTHERS = (None, True, 0, -1, 1.5, '', 'x', '0x', '0xzz', [], {}, [[]], {'a': None})


def error(said, code, text):
    return {'jsonrpc': '2.0', 'id': said.message['id'], 'error': {'code': code, 'message': text}}


class Mutation:
    """A lie for `chance` of what is said. The order of what is said differs between runs, so a
    seed gives the same kinds of lies in the same shares, and not the same run."""

    def __init__(self, seed, chance):
        self.dice, self.chance = random.Random(seed), chance
        self.methods, self.kinds = Counter(), Counter()
        self._last, self._lock = {}, threading.Lock()

    def __call__(self, said):
        with self._lock:
            before = self._last.get(said.method)
            self._last[said.method] = said.result
            if self.dice.random() >= self.chance:
                return None
            kind, messages = self._choose(said, before)
            self.methods[said.method] += 1
            self.kinds[kind] += 1
            return messages

    def _choose(self, said, before):
        errors = 0 if said.notified else 10 if said.method.startswith('author_submit') else 2
        kinds = ['part'] * 6 + ['other', 'silence', 'twice', 'before'] + ['error'] * errors
        kind = self.dice.choice(kinds)
        if kind == 'silence':
            return kind, SILENCE
        if kind == 'twice':
            return kind, [said.message, said.message]
        if kind == 'error':
            return kind, [error(said, *self.dice.choice(ERRORS))]
        if kind == 'other':
            return kind, [said.but(self.dice.choice(OTHERS))]
        if kind == 'before':
            return kind, [said.but(before)]
        return kind, [said.but(self.part(said.result))]

    def part(self, value):
        """The value with one thing in it changed."""
        if isinstance(value, dict) and value and self.dice.random() < 0.9:
            key = self.dice.choice(sorted(value))
            if self.dice.random() < 0.1:
                return {k: v for k, v in value.items() if k != key}
            return {**value, key: self.part(value[key])}
        if isinstance(value, list) and value and self.dice.random() < 0.9:
            return self._list(value)
        if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
            return self.dice.choice(OTHERS)
        if isinstance(value, int):
            return self.dice.choice((value + 1, value - 1, value + self.dice.randrange(1000),
                                     *NUMBERS))
        return self._text(value)

    def _list(self, value):
        at, kind = self.dice.randrange(len(value)), self.dice.randrange(8)
        if kind == 0:
            return []
        if kind == 1:
            return value[:at] + value[at + 1:]
        if kind == 2:
            return value + [value[at]]
        if kind == 3:
            return value[::-1]
        return value[:at] + [self.part(value[at])] + value[at + 1:]

    def _text(self, value):
        if not value.startswith('0x') or len(value) < 3:
            return self.dice.choice((value[:-1], value + 'x', value * 100, *OTHERS))
        if len(value) < 18:  # a number
            return hex(max(0, self.dice.choice((int(value, 16) + 1, int(value, 16) - 1, *NUMBERS))))
        at = self.dice.randrange(2, len(value))
        kind = self.dice.randrange(5)
        if kind == 0:
            return value[:at]
        if kind == 1:
            return value + '00'
        if kind == 2:
            return self.dice.choice(('0x', '0x' + 'ff' * 32, '0x' + '00' * 32, value[:-1]))
        return value[:at] + self.dice.choice([c for c in '0123456789abcdef'
                                              if c != value[at]]) + value[at + 1:]
