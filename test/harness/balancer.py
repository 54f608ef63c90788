"""A load balancer before nodes of different heights: each question goes to another node, and so
does each notification. A node knows no block above its own head, and its pool has only what was
announced to it."""
import random

from .liar import Lag, Null, Refusal


class Node(Lag):
    """A node that is some blocks behind and has not heard of the newer ones."""

    def __init__(self, chain, blocks):
        super().__init__(chain, blocks)
        self.heights = {}

    def _height(self, block):
        if block not in self.heights:
            header = self.chain.rpc('chain_getHeader', block)
            self.heights[block] = int(header['number'], 16) if header else None
        return self.heights[block]

    def _unheard(self, params):
        block = params[-1] if params else None
        if not isinstance(block, str) or len(block) != 66:
            return False
        height = self._height(block)
        return height is not None and height > self._best()

    def reply(self, method, params):
        if not self.blocks:
            return None
        if method in ('chain_getHeader', 'chain_getBlock') and self._unheard(params):
            return Null
        if method.startswith('state_') and self._unheard(params):
            return Refusal(4003, 'Client error: UnknownBlock: Header was not found in the '
                                 f'database: {params[-1]}')
        if method == 'author_pendingExtrinsics':
            return []
        return super().reply(method, params)

    def lie(self, said):
        return super().lie(said) if self.blocks else None


class Balancer:
    """A rule for `reply` and a lie, of nodes that are so many blocks behind."""

    def __init__(self, chain, behind, seed):
        self.nodes = [Node(chain, blocks) for blocks in behind]
        self.random = random.Random(seed)

    def reply(self, method, params):
        return self.random.choice(self.nodes).reply(method, params)

    def lie(self, said):
        return self.random.choice(self.nodes).lie(said)
