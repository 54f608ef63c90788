"""A reader of a relay's events over HTTP (server-sent events)."""
import http.client
import json
import socket
import threading


class Events:
    """One stream, read in the background. `events`: what came, each with its id; `comments`;
    `over`: the stream has ended."""

    def __init__(self, address, token, query='', last=None, receive_buffer=None, read=True):
        host, port = address.rsplit(':', 1)
        self.conn = http.client.HTTPConnection(host, int(port), timeout=60)
        if receive_buffer:
            self.conn.sock = socket.socket()
            self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.conn.sock.settimeout(60)
            self.conn.sock.connect((host, int(port)))
        headers = {'Authorization': f'Bearer {token}'}
        if last:
            headers['Last-Event-ID'] = last
        self.conn.request('GET', '/v1/events' + query, headers=headers)
        self.answer = self.conn.getresponse()
        self.status = self.answer.status
        self.events, self.comments, self.last, self.over = [], [], last, False
        self.thread = threading.Thread(target=self._read, daemon=True)
        if read and self.status == 200:
            self.read()

    def read(self):
        self.thread.start()
        return self

    def _read(self):
        given = None
        try:
            for line in self.answer:
                line = line.decode().rstrip('\n')
                if line.startswith('id: '):
                    given = line[4:]
                elif line.startswith('data: '):
                    self.events.append({**json.loads(line[6:]), '_id': given})
                elif line.startswith(': '):
                    self.comments.append(line[2:])
                elif not line and given:
                    self.last, given = given, None
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self.over = True

    def of(self, kind):
        return [e for e in list(self.events) if e['event'] == kind]

    def is_live(self):
        return bool(self.of('live'))

    def ends(self):
        return [e['id'] for e in self.of('finished') if 'id' in e]

    def close(self):
        """As somebody whose cable is cut: the rest is not read."""
        if self.conn.sock:
            self.conn.sock.close()
        try:
            self.answer.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        if self.thread.is_alive():
            self.thread.join(10)
        self.conn.close()
