"""Chains: devchain, and what a test reads from any chain over HTTP JSON-RPC. The decoding here is
on purpose a second, independent reading of the formats (extrinsic v4), so that it can disagree
with the relay's own."""
import hashlib
import json
import os
import re
import socket
import threading
import urllib.request

from . import proc


# every devchain's behaviour of this run; or fork-aware
POOL = os.environ.get('TXRELAY_POOL', 'single-state')


class RpcError(Exception):
    pass


def compact(data, at):
    """(value, next position) of a SCALE compact integer."""
    mode = data[at] & 3
    if mode == 0:
        return data[at] >> 2, at + 1
    if mode == 1:
        return int.from_bytes(data[at:at + 2], 'little') >> 2, at + 2
    if mode == 2:
        return int.from_bytes(data[at:at + 4], 'little') >> 2, at + 4
    n = (data[at] >> 2) + 4
    return int.from_bytes(data[at + 1:at + 1 + n], 'little'), at + 1 + n


def put_compact(n):
    if n < 1 << 6:
        return bytes([n << 2])
    if n < 1 << 14:
        return (n << 2 | 1).to_bytes(2, 'little')
    if n < 1 << 30:
        return (n << 2 | 2).to_bytes(4, 'little')
    size = (n.bit_length() + 7) // 8
    return bytes([(size - 4) << 2 | 3]) + n.to_bytes(size, 'little')


def remark(content, index=b'\x00\x00'):
    if isinstance(content, str):
        content = content.encode()
    return index + put_compact(len(content)) + content


class Extrinsic:
    """A decoded v4 extrinsic. extra_after_tip: bytes of extensions between the tip and the call."""

    def __init__(self, raw, extra_after_tip=0):
        self.raw = raw
        self.hash = hashlib.blake2b(raw, digest_size=32).digest()
        _, at = compact(raw, 0)
        self.signed = raw[at] == 0x84
        if not self.signed:
            return
        at += 1
        assert raw[at] == 0, 'MultiAddress::Id expected'
        self.signer = raw[at + 1:at + 33]
        at += 33
        self.scheme = raw[at]
        at += 1 + (65 if self.scheme == 2 else 64)
        at += 1 if raw[at] == 0 else 2
        self.nonce, at = compact(raw, at)
        self.tip, at = compact(raw, at)
        self.call = raw[at + extra_after_tip:]


class Chain:
    batch = 1  # so many questions in one request, where a test asks many

    def __init__(self, url, extra_after_tip=0):
        self.ws = url
        self.http = re.sub('^ws', 'http', url)
        self.extra_after_tip = extra_after_tip
        self._signed = {}  # by block hash: what signed_in() has read

    def _post(self, content, seconds=30):
        request = urllib.request.Request(self.http, json.dumps(content).encode(),
                                         {'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, timeout=seconds) as reply:
            return json.load(reply)

    def rpc(self, method, *params, seconds=30):
        answer = self._post({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': list(params)},
                            seconds)
        if answer.get('error'):
            raise RpcError(f"{method}: {answer['error']}")
        return answer.get('result')

    def rpc_many(self, method, params):
        """The answers to one question about each of params."""
        if self.batch == 1:
            return [self.rpc(method, param) for param in params]
        found = []
        for first in range(0, len(params), self.batch):
            part = params[first:first + self.batch]
            answers = self._post([{'jsonrpc': '2.0', 'id': i, 'method': method, 'params': [param]}
                                  for i, param in enumerate(part)])
            by_id = {answer['id']: answer for answer in answers}
            for i, param in enumerate(part):
                if 'result' not in by_id[i]:
                    raise RpcError(f"{method} {param}: {by_id[i].get('error')}")
                found.append(by_id[i]['result'])
        return found

    def finalized_number(self):
        return int(self.rpc('chain_getHeader', self.rpc('chain_getFinalizedHead'))['number'], 16)

    def signed_in(self, hashes):
        """Of each block the (index, Extrinsic) of those that are signed. What a hash stands for
        does not change: it is read once."""
        new = [h for h in hashes if h not in self._signed]
        for block_hash, answer in zip(new, self.rpc_many('chain_getBlock', new)):
            decoded = enumerate(Extrinsic(bytes.fromhex(raw[2:]), self.extra_after_tip)
                                for raw in answer['block']['extrinsics'])
            self._signed[block_hash] = [(index, x) for index, x in decoded if x.signed]
        return [self._signed[h] for h in hashes]

    def walk(self, first=1, last=None):
        """(number, block hash, index, Extrinsic) of every signed extrinsic of the finalized
        chain."""
        numbers = range(first, (self.finalized_number() if last is None else last) + 1)
        hashes = self.rpc_many('chain_getBlockHash', numbers)
        for number, block_hash, found in zip(numbers, hashes, self.signed_in(hashes)):
            for index, x in found:
                yield number, block_hash, index, x


class Devchain(Chain):
    batch = 50

    def __init__(self, directory, *options):
        self.log = os.path.join(directory, 'devchain.log')
        self.process = proc.Process([proc.DEVCHAIN, '--port', '0', '--pool-type', POOL, *options],
                                    self.log)
        found = proc.wait_for('devchain to listen', self._listening)
        super().__init__(found)

    def submits(self):
        """Every submission that the node was sent, in order: {hash, at_ms, code, signer, nonce}."""
        rows = []
        while True:
            page = self.rpc('dev_stats', {'from': len(rows), 'limit': 5000})
            rows += page['submits']
            if len(rows) >= page['submit_count']:
                return rows

    def sent(self, pg):
        """Hashes of the submissions that an account of this database has signed."""
        ours = {row[0] for row in pg.query('SELECT address FROM txrelay.accounts')}
        return {s['hash'] for s in self.submits() if s.get('signer') in ours}

    def _listening(self):
        assert self.process.alive(), self.process.text()
        match = re.search(r'listening (ws://\S+)', self.process.text())
        return match and match.group(1)


class NodeTools:
    """The npm folder of test/runtime/chain: installed once, shared by all who need Node."""
    _found = None

    @classmethod
    def get(cls):
        if cls._found is None:
            cls._found = cls()
        return cls._found

    def __init__(self):
        setup = os.path.join(proc.ROOT, 'test', 'runtime', 'chain', 'setup.sh')
        self.dir, self.binary = proc.run([setup], seconds=900).stdout.split('\n')[:2]

    def run(self, script, *args, stdin='', seconds=300):
        """What one of our scripts prints, as JSON."""
        done = proc.run([self.binary, os.path.join(self.dir, script), *args], input=stdin,
                        seconds=seconds)
        return json.loads(done.stdout)


class Chopsticks(Chain):
    """The real runtime of Asset Hub (statemine 900) under chopsticks, which executes it in place
    of a node. mine() starts a thread that makes the blocks: one every `block_s` seconds while its
    pool holds something, else one every `idle_s`. faults: with the methods of
    test/runtime/chain/faults.cjs."""

    def __init__(self, directory, block_s=0.7, idle_s=2.0, faults=False):
        self.tools = NodeTools.get()
        self.log = os.path.join(directory, 'chopsticks.log')
        self.block_s, self.idle_s = block_s, idle_s
        port = _free_port()
        script = 'faults.cjs' if faults else 'node_modules/@acala-network/chopsticks/chopsticks.cjs'
        self.process = proc.Process(
            [self.tools.binary, os.path.join(self.tools.dir, script), '--genesis',
             os.path.join(self.tools.dir, 'spec.json'),
             '--host', '127.0.0.1', '--port', str(port), '--build-block-mode', 'Manual'], self.log,
             cwd=directory)
        # The extension ChargeAssetTxPayment puts an Option<asset id> after the tip.
        super().__init__(proc.wait_for('chopsticks to listen', self._listening, 120),
                         extra_after_tip=1)
        assert self.ws.endswith(f':{port}'), f'chopsticks moved from port {port} to {self.ws}'
        self.error = None  # why no more blocks are made
        self._stop = threading.Event()
        self._miner = threading.Thread(target=self._mine, daemon=True)
        proc.on_exit(self.stop)

    def _listening(self):
        assert self.process.alive(), self.process.text()
        match = re.search(r'listening on \S+ and (ws://\S+)', self.process.text())
        return match and match.group(1)

    def mine(self):
        self._miner.start()

    def _mine(self):
        idle = 0.0
        while not self._stop.wait(self.block_s):
            idle += self.block_s
            try:
                if idle >= self.idle_s or self.rpc('author_pendingExtrinsics'):
                    self.rpc('dev_newBlock', {'count': 1}, seconds=300)
                    idle = 0.0
            except (OSError, RpcError) as error:
                if not self._stop.is_set():
                    self.error = error
                return

    def judge(self, directory, accounts, committed, rolled_back=(), seconds=300):
        """What verify.mjs says: its report of the finalized chain, with all that is wrong with
        it."""
        path = os.path.join(directory, 'expected.json')
        with open(path, 'w') as file:
            json.dump({'committed': ['0x' + c.hex() for c in committed], 'accounts': accounts,
                       'rolled_back': ['0x' + c.hex() for c in rolled_back]}, file)
        return self.tools.run('verify.mjs', self.ws, path, seconds=seconds)

    def stop(self):
        self._stop.set()
        if self._miner.is_alive():
            self._miner.join(300)
        self.process.kill()


def _free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]
