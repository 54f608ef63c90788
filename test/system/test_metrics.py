"""The metrics endpoint: its text, its probes, its bounds, and the queries and alerts that are
delivered with it."""
import json
import os
import re
import socket
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import proc
from harness.relay import cli
from harness.world import World

PACKAGING = os.path.join(proc.ROOT, 'packaging')
RULES = f'{PACKAGING}/prometheus/txrelay.rules.yml'
DASHBOARD = f'{PACKAGING}/grafana/txrelay.json'


def metrics_address(relay):
    return relay.wait_log(r'metrics.listening .*address=tcp:(\S+)').group(1)


def get(address, path, host=None, method='GET'):
    request = urllib.request.Request(f'http://{address}{path}', method=method,
                                     headers={'Host': host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(text):
    return {m.group(1): float(m.group(2)) for m in re.finditer(r'^([^# ]\S*) (\S+)$', text, re.M)}


def raw(address, data):
    """Reads the endpoint's answer until it closes the connection."""
    host, port = address.rsplit(':', 1)
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b''
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                return got
            if not more:
                return got
            got += more


class Prometheus:
    """A Prometheus that scrapes the relays every 200 ms."""

    def __init__(self, directory, targets):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.address = '127.0.0.1:%d' % s.getsockname()[1]
        config = os.path.join(directory, 'prometheus.yml')
        with open(config, 'w') as f:
            json.dump({'global': {'scrape_interval': '200ms', 'evaluation_interval': '200ms'},
                       'rule_files': [RULES],
                       'scrape_configs': [{'job_name': 'txrelay',
                                           'static_configs': [{'targets': targets}]}]}, f)
        self.process = proc.Process(
            ['prometheus', f'--config.file={config}', f'--storage.tsdb.path={directory}/prometheus',
             f'--web.listen-address={self.address}', '--log.level=warn'],
             os.path.join(directory, 'prometheus.log'))

    def query(self, expr):
        status, text = get(self.address, '/api/v1/query?' + urllib.parse.urlencode({'query': expr}))
        assert status == 200, (expr, text)
        return json.loads(text)['data']['result']

    def up(self):
        """The number of targets that answer; 0 until Prometheus is ready (503)."""
        try:
            ready, _ = get(self.address, '/-/ready')
            return len(self.query('up == 1')) if ready == 200 else 0
        except OSError:
            return 0


class TestMetrics(unittest.TestCase):
    def test_endpoint(self):
        with World() as world:
            relay = world.relay('one', extra='metrics: 127.0.0.1:0\n')
            address = metrics_address(relay)
            world.wait_leader(relay)
            for i in range(3):
                world.enqueue(f'metric {i}')
            world.settle()

            # The rows are there before the relay hears so, and counts.
            proc.wait_for('a sample, and the three ends', lambda: (
                lambda text: 'txrelay_waiting{' in text and samples(text).get(
                    'txrelay_finished_total{account="alice",outcome="ok"}') == 3)(
                        get(address, '/metrics')[1]))
            status, text = get(address, '/metrics')
            self.assertEqual(status, 200)
            checked = subprocess.run(['promtool', 'check', 'metrics'], input=text, text=True,
                                     capture_output=True)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ''))
            got = samples(text)
            for name, value in {'txrelay_running': 1, 'txrelay_database_up': 1,
                                'txrelay_chain_up': 1, 'txrelay_accounts': 1,
                                'txrelay_leader{account="alice"}': 1,
                                'txrelay_blocked{account="alice"}': 0,
                                'txrelay_admitted_total{account="alice"}': 3,
                                'txrelay_finished_total{account="alice",outcome="ok"}': 3,
                                'txrelay_finished_total{account="alice",outcome="failed"}': 0,
                                'txrelay_next_nonce{account="alice"}': 3,
                                'txrelay_in_flight{account="alice"}': 0,
                                'txrelay_resubmissions_total{account="alice"}': 0,
                                'txrelay_chain_endpoints{state="in_use"}': 1,
                                'txrelay_chain_endpoints{state="failed"}': 0,
                                'txrelay_nonce_gaps_total{account="alice"}': 0,
                             **{f'txrelay_stage_seconds_count{{account="alice",stage="{stage}"}}': 3
                                   for stage in ('nonce', 'block', 'finalized')}}.items():
                self.assertEqual(got.get(name), value, name)
            # A block may show it before the node has answered.
            self.assertIn(got['txrelay_stage_seconds_count{account="alice",stage="pool"}'],
                          (1, 2, 3))
            self.assertGreaterEqual(got['txrelay_submissions_total{account="alice"}'], 3)
            fees = world.pg.value('SELECT sum(fee) FROM txrelay.finished_transactions')
            self.assertEqual(got['txrelay_fees_planck_total{account="alice"}'], float(fees))
            self.assertGreater(got['txrelay_balance_planck{account="alice"}'], 0)
            self.assertGreater(got['txrelay_stage_seconds_sum{account="alice",stage="finalized"}'],
                               0)
            for part in ('database', 'chain'):
                self.assertGreater(got[f'txrelay_{part}_requests_total'], 10)
                self.assertGreater(got[f'txrelay_{part}_request_seconds_total'], 0)
            self.assertTrue(1e6 < got['process_resident_memory_bytes'] < 1e9)
            self.assertTrue(5 < got['process_open_fds'] < 1000)
            self.assertLess(
                abs(got['process_start_time_seconds'] - os.stat(
                    f'/proc/{relay.process.child.pid}').st_ctime), 60)

            self.assertEqual(get(address, '/healthz'), (200, 'ok\n'))
            self.assertEqual(get(address, '/readyz'), (200, 'ready\n'))
            self.assertEqual(cli('health', '--to', relay.address).stdout, 'ready\n')
            printed = samples(cli('metrics', '--to', relay.address).stdout)
            self.assertEqual(printed.keys(), got.keys())

            # The endpoint refuses other methods, paths and host names, and text that is not HTTP.
            self.assertEqual(get(address, '/')[0], 404)
            self.assertEqual(get(address, '/metrics', method='POST')[0], 405)
            self.assertEqual(get(address, '/metrics', method='HEAD'), (200, ''))
            self.assertEqual(get(address, '/metrics', host='evil.example')[0], 403)
            self.assertEqual(get(address, '/metrics', host='localhost:9')[0], 200)
            self.assertEqual(raw(address, b'nonsense\r\n\r\n'), b'')
            self.assertEqual(raw(address, b'GET /healthz HTTP/1.1\r\n' + b'a: b\r\n' * 100
                                 + b'\r\n'), b'')
            self.assertEqual(raw(address, b'GET /healthz HTTP/1.1\r\na: ' + b'b' * 10000
                                 + b'\r\n\r\n'), b'')
            twice = raw(address, b'GET /healthz HTTP/1.1\r\n\r\n' * 2)
            self.assertEqual(twice.count(b'HTTP/1.1 200 OK'), 2)

            # The age of the oldest waiting transaction rises while the account is paused.
            world.pg.query("SELECT txrelay.account_pause('alice', 'lunch')")
            world.enqueue('waits')
            proc.wait_for('the age of what waits', lambda: samples(get(address, '/metrics')[1])[
                'txrelay_waiting_oldest_seconds{account="alice"}'] > 0.5, 30)
            self.assertEqual(samples(get(address,
                                         '/metrics')[1])['txrelay_waiting{account="alice"}'], 1)

            # Its latencies begin at the enqueue, and so do they for the next leader.
            world.pg.query("SELECT txrelay.account_resume('alice')")
            world.settle()
            self.assertGreater(samples(get(address, '/metrics')[1])[
                'txrelay_stage_seconds_sum{account="alice",stage="nonce"}'],
                               0.5)

            world.chain.process.kill()
            text = 'no endpoint of the chain is usable'
            proc.wait_for('the relay to be unready, for this reason', lambda: (
                lambda status, said: status == 503 and text in said)(*get(address, '/readyz')))
            unready = cli('health', '--to', relay.address, check=False)
            self.assertEqual(unready.returncode, 1)
            self.assertRegex(unready.stdout, '^no endpoint of the chain is usable: ws://.*\n$')
            self.assertEqual(get(address, '/healthz')[0], 200)

    def test_address(self):
        """The endpoint listens on loopback only, because it asks for no password."""
        with World() as world:
            relay = world.relay('one', start=False, extra='metrics: 0.0.0.0:9464\n')
            done = subprocess.run([proc.TXRELAY, 'run', '--config', relay.config],
                                  capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 2)  # nothing but another configuration helps
            self.assertIn('0.0.0.0:9464', done.stderr)
            self.assertIn('127.0.0.1:PORT', done.stderr)

    def test_alerts(self):
        """Each alert fires on its own series and on no others."""
        done = subprocess.run(['promtool', 'check', 'rules', RULES], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tests = f'{PACKAGING}/prometheus/txrelay.test.yml'
        done = subprocess.run(['promtool', 'test', 'rules', tests], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(RULES) as f:
            alerts = re.findall(r'alert: (\w+)', f.read())
        with open(tests) as f:
            text = f.read()
        for alert in alerts:
            self.assertRegex(text, rf'alertname: {alert}\n +exp_alerts:\n +- ',
                             f'{alert} is not made to fire')

    def test_queries(self):
        """Each query of the dashboard and of the alerts finds series of a real relay."""
        with World() as world:
            relay = world.relay('one', extra='metrics: 127.0.0.1:0\n')
            prometheus = Prometheus(world.dir, [metrics_address(relay)])
            world.wait_leader(relay)
            proc.wait_for('a scrape', prometheus.up, 30)
            world.enqueue('seen')
            world.settle()
            with open(DASHBOARD) as f:
                exprs = [t['expr'] for p in json.load(f)['panels'] for t in p.get('targets', [])]
            self.assertGreater(len(exprs), 10)
            for expr in exprs:
                expr = expr.replace('$__rate_interval',
                                    '5s').replace('$account', '.*').replace('$instance', '.*')
                proc.wait_for(f'an answer to {expr}', lambda: prometheus.query(expr), 20)
            # Without its comparison the expression of an alert must find series, unless they exist
            # only in trouble.
            with open(RULES) as f:
                rules = re.findall(r'alert: (\w+)\n +expr: (.*)', f.read())
            self.assertGreater(len(rules), 8)
            for name, expr in rules:
                for metric in set(re.findall(r'\b(?:txrelay|process)_\w+|\bup\b',
                                             expr)) - {'txrelay_blocked_seconds'}:
                    self.assertTrue(prometheus.query(f'{{__name__="{metric}"}}'),
                                    f'{name}: {metric}')
            self.assertEqual(prometheus.query('ALERTS{alertstate="firing"}'), [])
