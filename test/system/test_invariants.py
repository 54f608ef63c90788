"""The check of I5 finds what it is for: rows of txrelay.attempts as they must never be."""
import unittest
from types import SimpleNamespace

from harness import invariants

ALICE = b'a' * 32


def attempt(nonce, hash_, era_death, block, tx=1):
    return tx, ALICE, nonce, hash_, era_death, block


class Content(unittest.TestCase):
    def check(self, attempts, used=(), submitted=(b'1' * 32, b'2' * 32)):
        ours = [(number, 0, 0, SimpleNamespace(signer=ALICE, nonce=nonce))
                for nonce, number in used]
        return invariants.check_content(SimpleNamespace(query=lambda _: attempts), ours,
                                        ['0x' + h.hex() for h in submitted])

    def test_another_nonce_while_the_first_bytes_live(self):
        first, second = b'1' * 32, b'2' * 32
        signed = [attempt(5, first, 64, 10), attempt(6, second, 128, 63)]
        self.assertEqual(len(self.check(signed)), 1)
        self.assertEqual(len(self.check(signed, used=[(5, 64)])), 1, 'used later')
        self.assertEqual(len(self.check([attempt(5, first, None, 10),
                                         attempt(6, second, 128, 1000)])), 1, 'immortal')
        self.assertEqual(self.check(signed, used=[(5, 63)]), [])
        self.assertEqual(self.check([signed[0], attempt(6, second, 128, 64)]), [])
        self.assertEqual(self.check([signed[0], attempt(5, second, 128, 11)]), [], 'the same nonce')
        self.assertEqual(self.check([signed[0], attempt(6, second, 128, 11, tx=2)]), [],
                         'another transaction')
        self.assertEqual(self.check(signed, submitted=(second,)), [], 'no node had the first bytes')


if __name__ == '__main__':
    unittest.main()
