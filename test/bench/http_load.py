#!/usr/bin/env python3
"""Readers of events and requests, for the suite http. http_load.py events ADDRESS TOKEN COUNT
QUERY, or asks ADDRESS TOKEN RATE TARGET, or pages ADDRESS TOKEN COUNT. It says "ready", and at the
end of its input one line of JSON: for events, which reads on until each reader has as many ends as
its input says, the delays from the end's own time to here (s); for asks how many were answered,
and how late (s)."""
import json
import re
import selectors
import socket
import sys
import time
from datetime import datetime

FINISHED = re.compile(rb'data: \{"event":"finished"[^\n]*?"updated_at":"([^"]+)"')


def connect(address):
    host, port = address.rsplit(':', 1)
    return socket.create_connection((host, int(port)), 30)


def request(token, target):
    return (f'GET {target} HTTP/1.1\r\nHost: localhost\r\n'
            f'Authorization: Bearer {token}\r\n\r\n').encode()


def events(address, token, count, query):
    select, late, ends, live, total = selectors.DefaultSelector(), [], [0] * int(count), 0, None
    for i in range(int(count)):
        s = connect(address)
        s.sendall(request(token, '/v1/events' + query))
        s.setblocking(False)
        select.register(s, selectors.EVENT_READ, [i, b''])
    select.register(sys.stdin, selectors.EVENT_READ, None)
    while total is None or min(ends) < total:
        for key, _ in select.select():
            if key.data is None:
                total = int(sys.stdin.readline())
                select.unregister(sys.stdin)
                continue
            data = key.fileobj.recv(1 << 20)
            now = time.time()
            if not data:
                raise EOFError(f'the stream of reader {key.data[0]} ended: {key.data[1][-300:]}')
            text = key.data[1] + data
            cut = text.rfind(b'\n\n') + 2
            text, key.data[1] = (text[:cut], text[cut:]) if cut > 1 else (b'', text)
            if b'"event":"live"' in text:
                live += 1
                if live == int(count):
                    print('ready', flush=True)
            for at in FINISHED.findall(text):
                ends[key.data[0]] += 1
                late.append(now - datetime.fromisoformat(at.decode()).timestamp())
    return {'late': late}


def pages(address, token, count):
    """Pages that are open somewhere: each reads all events, and looks at none here. A page that
    was too slow comes again, as pages do."""
    select, live, got, closed = selectors.DefaultSelector(), 0, 0, 0

    def start():
        s = connect(address)
        s.sendall(request(token, '/v1/events'))
        s.setblocking(False)
        select.register(s, selectors.EVENT_READ, [b''])

    for _ in range(int(count)):
        start()
    select.register(sys.stdin, selectors.EVENT_READ, None)
    while True:
        for key, _ in select.select():
            if key.data is None:
                return {'bytes': got, 'closed': closed}
            data = key.fileobj.recv(1 << 20)
            got += len(data)
            if not data:
                closed += 1
                select.unregister(key.fileobj)
                key.fileobj.close()
                start()
            elif live < int(count):
                key.data[0] += data
                if b'"event":"live"' in key.data[0]:
                    key.data[0] = b''
                    live += 1
                    if live == int(count):
                        print('ready', flush=True)


def asks(address, token, rate, target):
    """Each on one of eight connections, at its time; late counts from that time, so a server that
    is slow is seen."""
    select, idle, waits, late, sent = selectors.DefaultSelector(), [], {}, [], 0
    for _ in range(8):
        s = connect(address)
        s.setblocking(False)
        select.register(s, selectors.EVENT_READ, [b''])
        idle.append(s)
    select.register(sys.stdin, selectors.EVENT_READ, None)
    print('ready', flush=True)
    begun = time.monotonic()
    while True:
        while idle and time.monotonic() >= begun + sent / float(rate):
            s = idle.pop()
            s.sendall(request(token, target))
            waits[s] = begun + sent / float(rate)
            sent += 1
        for key, _ in select.select(0.001 if idle else 1):
            if key.data is None:
                return {'late': late, 'answered': len(late), 'seconds': time.monotonic() - begun}
            key.data[0] += key.fileobj.recv(1 << 20)
            head, _, body = key.data[0].partition(b'\r\n\r\n')
            length = re.search(rb'Content-Length: (\d+)', head)
            if length and len(body) >= int(length.group(1)):
                assert head.startswith(b'HTTP/1.1 200'), key.data[0][:500]
                late.append(time.monotonic() - waits.pop(key.fileobj))
                idle.append(key.fileobj)
                key.data[0] = b''


print(json.dumps({'events': events, 'pages': pages, 'asks': asks}[sys.argv[1]](*sys.argv[2:])))
