"""The door of feeds, as the two gRPC clients that publishers use most see it: @grpc/grpc-js
(feed_client.mjs) and Debian's python3-grpcio. The room behind the door plays a part
(test/unit/feed/fake_room.h), so that every message of the protocol is seen from both, in
cleartext, with a token and over mutual TLS."""
import contextlib
import hashlib
import json
import os
import queue
import subprocess
import tempfile
import unittest

import grpc
from harness import proc
from harness.chain import NodeTools
from harness.publishers import PROTO, messages

SERVER = os.path.join(proc.BUILD, 'test/unit/feed/door_server')
PATIENCE = 60


class Door:
    """A door_server. `report` is what its room saw, once it has ended."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([SERVER, 'tcp:127.0.0.1:0', *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.target = self.process.stdout.readline().strip()[len('tcp:'):]

    def tell(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def end(self):
        self.report = dict(p.split('=')
                           for p in self.process.communicate(timeout=PATIENCE)[0].split())
        self.report = {k: int(v) for k, v in self.report.items()}
        return self.process.returncode


class Publishers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.Request, cls.Response = messages(cls.folder, 'PublishRequest', 'PublishResponse')
        cls.node = NodeTools.get()

    @contextlib.contextmanager
    def door(self, *arguments):
        door = Door(*arguments)
        try:
            yield door
        finally:
            code = door.end()
        self.assertEqual(code, 0)
        self.assertEqual(door.report['opened'], door.report['gone'])

    # ---- the two clients: the same job, the same answer ----

    def grpc_js(self, door, job):
        return self.node.run('feed_client.mjs', PROTO, door.target, stdin=json.dumps(job))

    def items(self, job, number):
        calls = [bytes([i % 256]) * job.get('bytes', 10) for i in range(job.get('calls', 3))]
        digest = hashlib.sha256(b''.join(len(c).to_bytes(4, 'big') + c for c in calls)).digest()
        items = [{'header': {'feed': job['feed'], 'number': number, 'publisher': bytes(32)}}]
        items += [{'call': c} for c in calls]
        return items + [{'trailer': {'count': len(calls), 'digest': digest,
                                     'signature': bytes(64)}}]

    def grpcio(self, door, job):
        out = queue.Queue()

        def offer(number):
            items = self.items(job, number)
            for i in range(0, len(items), 100):
                out.put(self.Request(block_items={'items': items[i:i + 100]}))

        pending = list(job.get('numbers', []))

        def go_on():
            if pending:
                job['offered'] = pending.pop(0)
                offer(job['offered'])
            elif job.get('end', True):
                out.put(self.Request(end_stream={'code': 1}))

        def read(path):
            with open(path, 'rb') as f:
                return f.read()

        options = [('grpc.ssl_target_name_override', job['name'])] if job.get('name') else []
        compression = grpc.Compression.Gzip if job.get('compress') else None
        if job.get('ca'):
            own = (read(job['key']), read(job['cert'])) if job.get('cert') else (None, None)
            channel = grpc.secure_channel(door.target,
                                          grpc.ssl_channel_credentials(read(job['ca']), *own),
                                          options)
        else:
            channel = grpc.insecure_channel(door.target, options, compression)
        answers = []
        with channel:
            publish = channel.stream_stream('/txrelay.feed.v1.Feed/Publish',
                                            self.Request.SerializeToString,
                                            self.Response.FromString)
            metadata = [('authorization', f'Bearer {job["token"]}')] if job.get('token') else None
            call = publish(iter(out.get, None), timeout=30, metadata=metadata)
            go_on()
            try:
                for answer in call:
                    kind = answer.WhichOneof('response')
                    value = getattr(answer, kind)
                    answers.append({kind: {
                        f.name: f.enum_type.values_by_number[getattr(value, f.name)].name
                        if f.enum_type
                        else getattr(value, f.name) for f in value.DESCRIPTOR.fields}})
                    if kind == 'acknowledgement':
                        go_on()
                    elif kind == 'resend_block':
                        offer(job['offered'])
                    elif kind == 'node_behind':
                        offer(value.last + 1)
            except grpc.RpcError:
                pass
            out.put(None)
            return {'answers': answers, 'code': call.code().value[0], 'details': call.details()}

    def both(self, *arguments, job, want, code=0, details=''):
        """Both clients do the job, each at a door of its own, and see this."""
        for client in (self.grpc_js, self.grpcio):
            with self.subTest(client.__name__), self.door(*arguments) as door:
                got = client(door, dict(job))
                self.assertEqual(got['answers'], want)
                self.assertEqual(got['code'], code)
                self.assertIn(details, got['details'] or '')
            self.report = door.report

    def end(self, status, last, leader='', detail=''):
        return {'end_of_stream': {'status': status, 'last': last, 'leader': leader,
                                  'detail': detail}}

    def ack(self, number):
        return {'acknowledgement': {'number': number}}

    # ---- messages ----

    def test_acknowledgements_and_a_graceful_end(self):
        self.both(job={'feed': 'take', 'numbers': [0, 1, 2]},
                  want=[self.ack(0), self.ack(1), self.ack(2), self.end('SUCCESS', 2)])
        self.assertEqual((self.report['trailers'], self.report['calls'], self.report['ends']),
                         (3, 9, 1))

    def test_a_batch_in_many_requests(self):
        self.both(job={'feed': 'take', 'numbers': [7], 'calls': 5000, 'bytes': 400},
                  want=[self.ack(7), self.end('SUCCESS', 7)])
        self.assertEqual((self.report['calls'], self.report['bytes']), (5000, 5000 * 400))

    def test_skip_then_acknowledgement(self):
        self.both(job={'feed': 'skip', 'numbers': [4]},
                  want=[{'skip_block': {'number': 4}}, self.ack(4), self.end('SUCCESS', 4)])

    def test_skip_then_resend(self):
        self.both(job={'feed': 'resend', 'numbers': [4]},
                  want=[{'skip_block': {'number': 4}}, {'resend_block': {'number': 4}}, self.ack(4),
                        self.end('SUCCESS', 4)])

    def test_behind_and_the_stream_stays(self):
        self.both(job={'feed': 'behind', 'numbers': [9]},
                  want=[{'node_behind': {'last': 4}}, self.ack(5), self.end('SUCCESS', 5)])

    def test_every_end(self):
        for status, name in enumerate(['SUCCESS', 'INVALID_REQUEST', 'ERROR', 'TIMEOUT',
                                       'DUPLICATE_BLOCK', 'BAD_BLOCK_PROOF',
                                       'PERSISTENCE_FAILED', 'BEHIND', 'NOT_LEADER'], 1):
            self.both(job={'feed': f'end-{status}', 'numbers': [9]},
                      want=[self.end(name, 4, detail='as its name says')])

    def test_the_leader_s_address(self):
        self.both(job={'feed': 'leader:relay-2.example:9944', 'numbers': [9]},
                  want=[self.end('NOT_LEADER', 4, 'relay-2.example:9944')])

    # ---- what is refused ----

    def test_a_token(self):
        path = os.path.join(self.folder, 'token')
        with open(path, 'w') as f:
            f.write('open sesame\n')
        job = {'feed': 'take', 'numbers': [0]}
        self.both('-', '-', '-', path, job=job, want=[], code=16, details='token')
        self.both('-', '-', '-', path, job={**job, 'token': 'open'}, want=[], code=16,
                  details='token')
        self.both('-', '-', '-', path, job={**job, 'token': 'open sesame'},
                  want=[self.ack(0), self.end('SUCCESS', 0)])

    def test_compression(self):
        self.both(job={'feed': 'take', 'numbers': [0], 'compress': True}, want=[], code=12,
                  details='compression')

    def test_a_request_that_is_too_long(self):
        self.both(job={'feed': 'take', 'numbers': [0], 'calls': 1, 'bytes': 2 << 20}, want=[],
                  code=8, details='too long')

    # ---- TLS ----

    def certificates(self):
        def run(*words):
            subprocess.run(['openssl', *words], cwd=self.folder, check=True, capture_output=True)

        new = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days',
               '1']
        run(*new, '-x509', '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test', '-addext',
            'basicConstraints=critical,CA:TRUE')
        run(*new, '-x509', '-keyout', 'other.key', '-out', 'other.pem', '-subj', '/CN=other')
        for name in ('relay.test', 'alice.test'):
            run(*new[:1], *new[1:6], '-keyout', f'{name}.key', '-out', f'{name}.csr', '-subj',
                f'/CN={name}')
            with open(os.path.join(self.folder, 'ext'), 'w') as f:
                f.write(f'subjectAltName=DNS:{name}\n')
            run('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key',
                '-CAcreateserial', '-days', '1', '-out',
                f'{name}.pem', '-extfile', 'ext')

    def test_mutual_tls(self):
        self.certificates()
        path = lambda name: os.path.join(self.folder, name)  # noqa: E731
        door = (path('relay.test.pem'), path('relay.test.key'), path('ca.pem'))
        job = {'feed': 'take', 'numbers': [0, 1], 'ca': path('ca.pem'), 'name': 'relay.test'}
        own = {'cert': path('alice.test.pem'), 'key': path('alice.test.key')}
        self.both(*door, job={**job, **own},
                  want=[self.ack(0), self.ack(1), self.end('SUCCESS', 1)])
        # without a certificate: the reason is in the relay's log
        self.both(*door, job=job, want=[], code=14)
        stranger = {'cert': path('other.pem'), 'key': path('other.key')}
        self.both(*door, job={**job, **stranger}, want=[], code=14)
        self.assertEqual(self.report['opened'], 0)
