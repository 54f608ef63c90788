"""A node that lies: a WebSocket proxy of our own between a relay and its node. It passes on what
the relay asks, and changes what the node says: by a rule of the test.

    lie(said)              None: the relay is told what the node said; else the list of messages
    that it is told instead reply(method, params)  None: the node is asked; else a result that the
    node never gave, a Refusal or a Raw, and it is not asked tls                    (certificate,
    key): it speaks wss greeting               bytes that answer the upgrade to WebSocket; the
    connection ends behind them upgrade(head)          the bytes that answer it in place of the
    node's answer wire(payload)          the bytes that go to the relay in place of the frame with
    this text

Texts only: neither a relay nor a node sends binary messages. Two threads a connection."""
import copy
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from urllib.parse import urlparse

from . import proc

TEXT = 1
UNAVAILABLE = b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'
SILENCE = []


class Said:
    """What a node said. method: of the request that it answers, or of the notification; params: of
    that request."""

    def __init__(self, message, method, params):
        self.message, self.method, self.params = message, method, params
        self.notified = 'method' in message

    @property
    def result(self):
        return self.message['params']['result'] if self.notified else self.message.get('result')

    def but(self, result):
        """The message with another result."""
        other = copy.deepcopy(self.message)
        if self.notified:
            other['params']['result'] = result
        else:
            other.pop('error', None)
            other['result'] = result
        return other


class Refusal:
    """An error answer."""

    def __init__(self, code, message, data=None):
        self.error = {'code': code, 'message': message, **({} if data is None else {'data': data})}


class Raw:
    """What is sent in place of an answer: bytes of the connection, made of the request. b'':
    silence; None: it is cut."""

    def __init__(self, make):
        self.make = make


def answer(**members):
    """An answer with these members, whatever JSON-RPC says of them."""
    return Raw(lambda request: frame(json.dumps({'jsonrpc': '2.0', 'id': request['id'],
                                                 **members}).encode()))


# What is no answer, or none that a method may give.
NO_ANSWERS = {
    'cut': Raw(lambda request: None),
    'closed as too big': Raw(lambda request: frame(b'\x03\xf1too big', opcode=8)),
    'silence': Raw(lambda request: b''),
    'a page': Raw(lambda request: frame(b'<html><body><h1>403 Forbidden</h1></body></html>')),
    'half of it': Raw(lambda request: frame(b'{"jsonrpc":"2.0","id":%d,"result":"0x12'
                                            % request['id'])),
    'null': answer(result=None),
    'an empty object': answer(result={}),
    'a list of null': answer(result=[None]),
    'no bytes': answer(result='0x'),
    'neither': answer(),
    'an empty error': answer(error={}),
    'a text as code': answer(error={'code': '-32601', 'message': 'Method not found'}),
}


def of_another_chain(method, params):
    """A rule for `reply`."""
    return '0x' + '99' * 32 if method == 'chain_getBlockHash' and params == [0] else None


def closed(*methods, refusal=None):
    """A rule for `reply`: these methods are refused."""
    refusal = refusal or Refusal(-32601, 'RPC call is unsafe to be called externally')
    return lambda method, params: refusal if method in methods else None


def closed_families(*prefixes, but=()):
    """A rule for `reply`: methods that begin so are refused."""
    refusal = Refusal(-32601, 'Method not found')
    return lambda method, params: refusal if method.startswith(
        prefixes) and method not in but else None


class Pruned:
    """A rule for `reply`: blocks below a height have no body (null), or no state (4003)."""

    def __init__(self, chain, below, bodies=True):
        self.chain, self.below, self.bodies = chain, below, bodies
        self.heights = {}

    def _gone(self, block):
        if not isinstance(block, str) or len(block) != 66:
            return False
        if block not in self.heights:
            header = self.chain.rpc('chain_getHeader', block)
            self.heights[block] = int(header['number'], 16) if header else 0
        return self.heights[block] < self.below

    def __call__(self, method, params):
        if method == 'chain_getBlock' and params and self.bodies and self._gone(params[0]):
            return Null
        if method.startswith('state_') and params and self._gone(params[-1]):
            return Refusal(4003, 'Client error: UnknownBlock: State already discarded')
        return None


Null = object()  # a rule's null, which is an answer


class Limit:
    """A rule for `reply`: a token bucket that refuses what is over it."""

    def __init__(self, per_second, burst, refusal=None):
        self.per_second, self.burst = per_second, burst
        self.refusal = refusal or Refusal(-32005, 'Too many requests')
        self.tokens, self.at = burst, time.monotonic()
        self.asked = self.refused = 0
        self._lock = threading.Lock()

    def __call__(self, method, params):
        with self._lock:
            now = time.monotonic()
            self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_second)
            self.at = now
            self.asked += 1
            if self.tokens >= 1:
                self.tokens -= 1
                return None
            self.refused += 1
            return self.refusal


class Lag:
    """An endpoint that is some blocks behind: a rule for `reply` and a lie. Blocks that are asked
    for by their hash are there."""

    AT = {'state_getStorage': 1, 'state_queryStorageAt': 1, 'state_call': 2, 'state_getMetadata': 0,
          'state_getRuntimeVersion': 0}
    HEADS = ('chain_newHead', 'chain_finalizedHead')

    def __init__(self, chain, blocks):
        self.chain, self.blocks = chain, blocks

    def _hash(self, number):
        return self.chain.rpc('chain_getBlockHash', max(number, 0))

    def _best(self):
        return max(int(self.chain.rpc('chain_getHeader')['number'], 16) - self.blocks, 0)

    def reply(self, method, params):
        if method == 'chain_getFinalizedHead':
            return self._hash(self.chain.finalized_number() - self.blocks)
        if method == 'chain_getBlockHash':
            return self._hash(self._best()) if not params else Null if params[
                0] > self._best() else None
        if method in ('chain_getHeader', 'chain_getBlock') and not params:
            return self.chain.rpc(method, self._hash(self._best()))
        if self.AT.get(method) == len(params):
            return self.chain.rpc(method, *params, self._hash(self._best()))
        return None

    def lie(self, said):
        if said.message.get('method') not in self.HEADS:
            return None
        return [said.but(self.chain.rpc('chain_getHeader',
                                        self._hash(int(said.result['number'], 16) - self.blocks)))]


class Frozen:
    """An endpoint that answers and whose head stands still, once `freeze` was called: a rule for
    `reply` and a lie."""

    def __init__(self, chain):
        self.chain, self.best, self.final = chain, None, None

    def freeze(self):
        self.best, self.final = self.chain.rpc('chain_getBlockHash'), self.chain.rpc(
            'chain_getFinalizedHead')

    def reply(self, method, params):
        if not self.best:
            return None
        if method == 'chain_getFinalizedHead':
            return self.final
        if method == 'chain_getBlockHash' and not params:
            return self.best
        if method in ('chain_getHeader',
                      'chain_getBlock') and not params or Lag.AT.get(method) == len(params):
            return self.chain.rpc(method, *params, self.best)
        return None

    def lie(self, said):
        return SILENCE if self.best and said.message.get('method') in Lag.HEADS else None


def certificate(directory):
    """(certificate, key) of 127.0.0.1, signed by itself."""
    paths = os.path.join(directory, 'node.crt'), os.path.join(directory, 'node.key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                    'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
                    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-out',
                    paths[0], '-keyout', paths[1]],
                   check=True, capture_output=True)
    return paths


class Liar:
    def __init__(self, node_url, lie=None, tls=None, at=('127.0.0.1', 0)):
        node = urlparse(node_url)
        self.node = node.hostname, node.port
        self.lie, self.reply, self.greeting, self.upgrade, self.wire = lie, None, None, None, None
        # of each connection: its request, TLS name; control frames
        self.heads, self.names, self.control = [], [], Counter()
        self.lies, self.accepted, self.error = Counter(), 0, None
        # requests by method; payloads in both directions
        self.asked, self.bytes_up, self.bytes_down = Counter(), 0, 0
        self.tls = None
        if tls:  # (certificate, key)
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*tls)
            self.tls.sni_callback = lambda tls_socket, name, context: self.names.append(name)
        self._links, self._lock = set(), threading.Lock()
        self._listener = socket.socket(socket.AF_INET6 if ':' in at[0] else socket.AF_INET)
        self._listener.bind(at)
        self._listener.listen(16)
        self.port = self._listener.getsockname()[1]
        self.url = (
            f'{"wss" if tls else "ws"}://{f"[{at[0]}]" if ":" in at[0] else at[0]}:{self.port}')
        threading.Thread(target=self._accept, daemon=True).start()
        proc.on_exit(self.close)

    def tell(self, lie):
        self.lie = lie

    def told(self, method):
        return self.lies[method]

    def leave(self):
        """As a node that is stopped behind a gateway, until `come_back`."""
        self.greeting = UNAVAILABLE
        self.cut()

    def come_back(self):
        self.greeting = None

    def cut(self):
        """Ends every connection."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.close()

    def say_goodbye(self, data):
        """The last bytes of every connection."""
        with self._lock:
            links = list(self._links)
        for link in links:
            try:
                link.send(data)
            except OSError:  # it has left
                pass
        self.cut()

    def close(self):
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        if self.tls:
            try:
                client = self.tls.wrap_socket(client, server_side=True)
            except OSError:  # it does not trust the certificate, or left
                return
        link = Link(self, client)
        with self._lock:
            self._links.add(link)
        try:
            link.run()
        except (OSError, EOFError):  # one of the two left
            pass
        finally:
            link.close()
            with self._lock:
                self._links.discard(link)


class Link:
    """A connection of a relay and its connection to the node."""

    def __init__(self, liar, client):
        self.liar, self.client, self.server = liar, client, None
        self.asked = {}  # id of a request without an answer: (method, params)
        self.lock = threading.Lock()  # of what is sent to the relay

    def run(self):
        up = self.client.makefile('rb')
        head = read_head(up)
        self.liar.heads.append(head)
        if self.liar.greeting:
            self.client.sendall(self.liar.greeting)
            return
        self.server = socket.create_connection(self.liar.node, 10)
        self.server.settimeout(None)
        self.server.sendall(head)
        threading.Thread(target=self._down, daemon=True).start()
        while True:
            raw, opcode, payload = read_message(up)
            self.liar.bytes_up += len(payload)
            self.liar.control[opcode] += 1
            if opcode != TEXT or self._asked(json.loads(payload)):
                self.server.sendall(raw)

    def _asked(self, request):
        """Is the node asked this?"""
        method, params = request['method'], request['params']
        self.liar.asked[method] += 1
        result = self.liar.reply(method, params) if self.liar.reply else None
        if result is None:
            self.asked[request['id']] = method, params
            return True
        self.liar.lies[method] += 1
        if isinstance(result, Raw):
            self._raw(result.make(request))
            return False
        said = {'error': result.error} if isinstance(result, Refusal) else {'result': None
                                                                            if result is Null
                                                                            else result}
        self._send({'jsonrpc': '2.0', 'id': request['id'], **said})
        return False

    def _raw(self, data):
        if data is None:
            self.close()
        elif data:
            self.send(data)

    def _down(self):
        try:
            down = self.server.makefile('rb')
            head = read_head(down)
            self.send(self.liar.upgrade(head) if self.liar.upgrade else head)
            while True:
                raw, opcode, payload = read_message(down)
                self.liar.bytes_down += len(payload)
                if opcode == TEXT:
                    self._told(payload, json.loads(payload))
                else:
                    self.send(raw)
        except (OSError, EOFError):
            pass
        except Exception as error:  # a fault of a test's rule: Liar.error is for the test
            self.liar.error = error
            raise
        finally:
            self.close()

    def _told(self, payload, message):
        if 'method' in message:
            said = Said(message, message['method'], None)
        else:
            said = Said(message, *self.asked.pop(message['id']))
        messages = self.liar.lie(said) if self.liar.lie else None
        if messages is None:
            self._say(payload)
            return
        self.liar.lies[said.method] += 1
        for one in messages:
            self._send(one)

    def _send(self, message):
        self._say(json.dumps(message).encode())

    def _say(self, payload):
        self.send(self.liar.wire(payload) if self.liar.wire else frame(payload))

    def send(self, data):
        with self.lock:
            self.client.sendall(data)

    def close(self):
        for one in (self.client, self.server):
            if one:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:  # it is not connected any more
                    pass
                one.close()


# ---- RFC 6455 ----

def read_head(stream):
    lines = []
    while not lines or lines[-1] != b'\r\n':
        lines.append(stream.readline())
        if not lines[-1]:
            raise EOFError
    return b''.join(lines)


def take(stream, count):
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def read_message(stream):
    """(its bytes as they came, opcode, payload). A control frame between fragments comes at its
    turn, as its own message, only if it is between messages: neither side sends one inside of a
    message."""
    raw, payload, opcode = b'', b'', None
    while True:
        head = take(stream, 2)
        size, wide = head[1] & 127, b''
        if size >= 126:
            wide = take(stream, 2 if size == 126 else 8)
            size = int.from_bytes(wide, 'big')
        mask = take(stream, 4) if head[1] & 128 else b''
        data = take(stream, size)
        raw += head + wide + mask + data
        payload += unmasked(mask, data) if mask else data
        opcode = head[0] & 15 if opcode is None else opcode
        if head[0] & 128:
            return raw, opcode, payload


def unmasked(mask, data):
    key = (mask * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, 'big') ^ int.from_bytes(key, 'big')).to_bytes(len(data), 'big')


def frame(payload, opcode=TEXT, last=True):
    size = len(payload)
    if size < 126:
        head = bytes([size])
    elif size < 1 << 16:
        head = bytes([126]) + size.to_bytes(2, 'big')
    else:
        head = bytes([127]) + size.to_bytes(8, 'big')
    return bytes([0x80 * last | opcode]) + head + payload
