"""Bytes that are no HTTP, or half of it, or more than one request, and what comes back."""
import json
import re
import socket

HEAD = b'Host: 127.0.0.1\r\nAuthorization: Bearer TOKEN\r\n'
GET = b'GET /v1/cluster HTTP/1.1\r\n' + HEAD
POST = b'POST /v1/accounts/bob/pause HTTP/1.1\r\nContent-Type: application/json\r\n' + HEAD
CLOSE = b'Connection: close\r\n\r\n'


def chunked(body, more=b''):
    return POST + b'Transfer-Encoding: chunked\r\n' + more + CLOSE + body


# Bytes, and the statuses of the answers; None: anything that is no fault of the server, or only the
# end of the connection.
CASES = {
    'two at once': (GET + b'\r\n' + GET + CLOSE, [200, 200]),
    'fifty at once': ((GET + b'\r\n') * 49 + GET + CLOSE, [200] * 50),
    'one behind a refusal': (b'GET /v1/cluster HTTP/1.1\r\n\r\n' + GET + CLOSE, [400]),
    'one behind its own end': (GET + CLOSE + GET + CLOSE, [200]),
    'chunks': (chunked(b'1\r\n{\r\n1\r\n}\r\n0\r\n\r\n'), [200]),
    'an extension of a chunk': (chunked(b'2;a="b"\r\n{}\r\n0\r\n\r\n'), [200]),
    'trailers': (chunked(b'2\r\n{}\r\n0\r\nX: y\r\n\r\n'), [200]),
    'a trailer that is a token': (chunked(b'2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n'),
                                  [200]),
    'a chunk without size': (chunked(b'\r\n{}\r\n0\r\n\r\n'), [400]),
    'a chunk of no number': (chunked(b'g\r\n{}\r\n0\r\n\r\n'), [400]),
    'a negative chunk': (chunked(b'-2\r\n{}\r\n0\r\n\r\n'), [400]),
    'a chunk of 2^64': (chunked(b'ffffffffffffffffff\r\n{}\r\n0\r\n\r\n'), [400]),
    'a chunk of 2^63': (chunked(b'7fffffffffffffff\r\n' + b'x' * (1 << 20) + b'y'), [413]),
    'a chunk that is longer than its size': (chunked(b'2\r\n{}}\r\n0\r\n\r\n'), [400]),
    'much in chunks': (chunked(b'10000\r\n' + b'x' * 65536 + b'\r\n'), None),
    'a length and chunks': (POST + b'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n' + CLOSE
                            + b'0\r\n\r\n', [400]),
    'another coding': (POST + b'Transfer-Encoding: gzip\r\n' + CLOSE + b'{}', [400]),
    'a coding behind chunked': (POST + b'Transfer-Encoding: chunked, gzip\r\n' + CLOSE
                                + b'0\r\n\r\n', [400]),
    'a coding that is hidden': (POST + b'Transfer-Encoding : chunked\r\n' + CLOSE + b'0\r\n\r\n',
                                [400]),
    'two lengths': (POST + b'Content-Length: 2\r\nContent-Length: 3\r\n' + CLOSE + b'{}', [400]),
    'a list of lengths': (POST + b'Content-Length: 2, 2\r\n' + CLOSE + b'{}', [400]),
    'a negative length': (POST + b'Content-Length: -1\r\n' + CLOSE, [400]),
    'a length with a sign': (POST + b'Content-Length: +2\r\n' + CLOSE + b'{}', [400]),
    'a length of 2^64': (POST + b'Content-Length: 18446744073709551616\r\n' + CLOSE, [400]),
    'a length of 2^63': (POST + b'Content-Length: 9223372036854775808\r\n' + CLOSE, [413]),
    'a length of no number': (POST + b'Content-Length: x\r\n' + CLOSE, [400]),
    'less than its length': (POST + b'Content-Length: 10\r\n' + CLOSE + b'{}', None),
    'more than its length': (POST + b'Content-Length: 2\r\n' + CLOSE + b'{}}}}}', [200]),
    'no body, and a length': (GET + b'Content-Length: 0\r\n' + CLOSE, [200]),
    'a GET with a body': (GET + b'Content-Length: 2\r\n' + CLOSE + b'{}', None),
    'no host': (b'GET /v1/cluster HTTP/1.1\r\n' + CLOSE, [400]),
    'two hosts': (GET + b'Host: 127.0.0.1\r\n' + CLOSE, [400]),
    'another host': (b'GET /v1/cluster HTTP/1.1\r\nHost: evil.example\r\n' + CLOSE, [403]),
    'a host with a user': (b'GET /v1/cluster HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\n' + CLOSE,
                           [403]),
    'an empty host': (b'GET /v1/cluster HTTP/1.1\r\nHost: \r\n' + CLOSE, [403]),
    'a host and a space': (b'GET /v1/cluster HTTP/1.1\r\nHost : 127.0.0.1\r\n' + CLOSE, [400]),
    'a whole URL as target': (b'GET http://evil.example/v1/cluster HTTP/1.1\r\n' + HEAD + CLOSE,
                              [400]),
    'a star as target': (b'OPTIONS * HTTP/1.1\r\n' + HEAD + CLOSE, [400]),
    'CONNECT': (b'CONNECT evil.example:443 HTTP/1.1\r\n' + HEAD + CLOSE, [400]),
    'a fragment': (b'GET /v1/cluster#x HTTP/1.1\r\n' + HEAD + CLOSE, None),
    'a folded header': (GET + b'X: a\r\n b\r\n' + CLOSE, None),
    'a zero byte in a header': (GET + b'X: a\0b\r\n' + CLOSE, [400]),
    'a bare line feed': (GET.replace(b'\r\n', b'\n') + b'\n', None),
    'a bare carriage return': (GET + b'X: a\rb\r\n' + CLOSE, [400]),
    'a header without a name': (GET + b': x\r\n' + CLOSE, [400]),
    'a header without a colon': (GET + b'nonsense\r\n' + CLOSE, [400]),
    'bytes above 127': (GET + b'X: \xff\xfe\r\n' + CLOSE, [200]),
    'headers without end': (GET + b'X: ' + b'a' * 17000, [431]),
    'many headers': (GET + b''.join(b'X-%d: 1\r\n' % i for i in range(70)) + CLOSE, [431]),
    'a long target': (b'GET /' + b'a' * 17000, [431]),
    'a long method': (b'A' * 1000 + b' / HTTP/1.1\r\n' + CLOSE, [400]),
    'a small method': (b'get / HTTP/1.1\r\n' + HEAD + CLOSE, [400]),
    'no version': (b'GET /v1/cluster\r\n\r\n', None),
    'version 0.9': (b'GET /v1/cluster HTTP/0.9\r\n' + HEAD + CLOSE, None),
    'version 1.0': (b'GET /v1/cluster HTTP/1.0\r\n' + HEAD + b'\r\n', [200]),
    'version 1.2': (b'GET /v1/cluster HTTP/1.2\r\n' + HEAD + CLOSE, [400]),
    'HTTP/2 as if it were known': (b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0\0\0\4\0\0\0\0\0',
                                   [400]),
    'an upgrade': (GET + b'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings, '
                         b'close\r\nHTTP2-Settings: x\r\n\r\n', [200]),
    'a WebSocket': (GET + b'Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n' + CLOSE, [200]),
    'an expectation': (POST + b'Expect: 100-continue\r\nContent-Length: 2\r\n' + CLOSE + b'{}',
                       [100, 200]),
    'another expectation': (POST + b'Expect: wonders\r\nContent-Length: 2\r\n' + CLOSE + b'{}',
                            [417]),
    'TLS': (b'\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03' + bytes(range(200)), [400]),
    'empty lines first': (b'\r\n\r\n' + GET + CLOSE, [200]),
    'only empty lines': (b'\r\n' * 1000, None),
    'nothing': (b'', None),
    'HEAD': (b'HEAD /v1/cluster HTTP/1.1\r\n' + HEAD + CLOSE, None),
}


def talk(address, data, pieces=1, count=0, seconds=20):
    """What comes back until the end of the connection. The data goes in so many pieces; no more is
    sent once so many whole answers have come (the server ends with a client that sends no more)."""
    host, port = address.rsplit(':', 1)
    with socket.create_connection((host, int(port)), seconds) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        got = b''
        size = -(-len(data) // pieces) or 1
        try:
            for at in range(0, len(data), size):
                s.sendall(data[at:at + size])
            while len(answers(got)) < count and (more := s.recv(65536)):
                got += more
            s.shutdown(socket.SHUT_WR)
            while more := s.recv(65536):
                got += more
        except (ConnectionResetError, BrokenPipeError):  # it has refused already, and closed
            pass
    return got


def answers(got):
    """(status, headers, body) of each whole answer."""
    found = []
    while b'\r\n\r\n' in got:
        whole, _, rest = got.partition(b'\r\n\r\n')
        status, headers = re.match(rb'HTTP/1\.1 (\d{3}) [^\r\n]+\r\n?', whole + b'\r\n'), {}
        assert status, got[:200]
        for line in whole.split(b'\r\n')[1:]:
            name, _, value = line.partition(b': ')
            headers[name.lower().decode()] = value.decode()
        # that of HEAD has no body
        size = 0 if rest.startswith(b'HTTP/1.1 ') else int(headers.get('content-length', 0))
        if len(rest) < size:
            break
        found.append((int(status.group(1)), headers, rest[:size]))
        got = rest[size:]
    return found


def check(found):
    """No fault of the server, and every refusal a problem."""
    for status, headers, body in found:
        assert status < 500, (status, body)
        if status >= 400 and body:
            assert headers['content-type'] == 'application/problem+json', headers
            problem = json.loads(body)
            assert problem['status'] == status and problem['title'] and problem[
                'detail'] and problem['type'], problem
