"""Somebody else who uses a key of ours: extrinsics for devchain, put together here and signed by
the program test/vectors/sign_tool."""
import hashlib
import os

from . import proc
from .chain import Extrinsic, put_compact

SIGN_TOOL = os.path.join(proc.BUILD, 'test', 'vectors', 'sign_tool')
SCHEMES = {'ed25519': 0, 'sr25519': 1, 'ecdsa': 2}


BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'


def ss58_head(prefix):
    if prefix < 64:
        return bytes([prefix])
    return bytes([(prefix & 0xfc) >> 2 | 0x40, prefix >> 8 | (prefix & 3) << 6])


def ss58(account_id, prefix=42):
    data = ss58_head(prefix) + account_id
    data += hashlib.blake2b(b'SS58PRE' + data).digest()[:2]
    number, text = int.from_bytes(data, 'big'), ''
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return '1' * (len(data) - len(data.lstrip(b'\0'))) + text


class Stranger:
    def __init__(self, chain, scheme='sr25519', uri='//Alice'):
        self.chain, self.scheme, self.uri = chain, scheme, uri
        self.public, _ = self._sign(b'')

    def _sign(self, message):
        line = f'{self.scheme} {self.uri} 0x{message.hex()}\n'
        public, signature = proc.run([SIGN_TOOL], input=line).stdout.split()
        return bytes.fromhex(public[2:]), bytes.fromhex(signature[2:])

    def extrinsic(self, nonce, call, tip=0, period=0, anchor=None, genesis=None, spec=None):
        """Under the chain's present runtime. period 0: immortal; else mortal, from block `anchor`
        on (the final one)."""
        version = self.chain.rpc('state_getRuntimeVersion')
        spec = version['specVersion'] if spec is None else spec
        genesis = genesis or bytes.fromhex(self.chain.rpc('chain_getBlockHash', 0)[2:])
        era, birth = b'\x00', genesis
        if period:
            anchor = self.chain.finalized_number() if anchor is None else anchor
            era = (period.bit_length() - 2 | anchor % period << 4).to_bytes(2, 'little')
            birth = bytes.fromhex(self.chain.rpc('chain_getBlockHash', anchor)[2:])
        extra = era + put_compact(nonce) + put_compact(tip)
        signed = spec.to_bytes(4, 'little') + version['transactionVersion'].to_bytes(
            4, 'little') + genesis + birth
        payload = call + extra + signed
        _, signature = self._sign(hashlib.blake2b(payload, digest_size=32).digest()
                                  if len(payload) > 256 else payload)
        body = b'\x84\x00' + self.public + bytes([SCHEMES[self.scheme]]) + signature + extra + call
        return Extrinsic(put_compact(len(body)) + body)

    def send(self, nonce, call, tip=0):
        """Signed and submitted; its hash."""
        extrinsic = self.extrinsic(nonce, call, tip)
        assert self.chain.rpc('author_submitExtrinsic',
                              '0x' + extrinsic.raw.hex()) == '0x' + extrinsic.hash.hex()
        return extrinsic.hash

    def next_nonce(self):
        return self.chain.rpc('system_accountNextIndex', ss58(self.public))
