#!/usr/bin/python3
"""Runs docker-compose.yml without a container engine: each service with its own command,
environment, user and mounts, in a root folder of its own (an overlay of this machine's) and the
network that the file gives them, in the order of depends_on. Then a transaction is followed to its
end, a relay is killed, and all but the chain is restarted on the same volumes. Grafana is in no
Debian, so its files are only read. Needs root. compose.py [BUILD]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else f'{ROOT}/build/dev')
POSTGRES_BIN = '/usr/lib/postgresql/15/bin'
IMAGE_ENV = {'txrelay': {'TXRELAY_CONFIG': '/etc/txrelay/txrelay.yaml',
                         'TXRELAY_CONTROL': 'unix:/run/txrelay/control.sock'}}
IMAGE_HEALTH = {'txrelay': ['CMD', 'txrelay', 'health']}
IMAGE_ENTRY = {'txrelay': ['txrelay'], 'txrelay-devchain': ['devchain'],
               'prom/prometheus': ['prometheus'],
               'postgres': ['/bin/bash', '/entry.sh']}
IMAGE_USER = {'prom/prometheus': '65534:65534'}
# What the entry point of the image postgres does with these variables (docker-library/postgres).
POSTGRES_ENTRY = r'''
set -e
export PGDATA=/var/lib/postgresql/data PATH=%s:$PATH
as() { setpriv --reuid 999 --regid 999 --clear-groups "$@"; }
mkdir -p /var/run/postgresql; chown 999:999 $PGDATA /var/run/postgresql
if [ ! -s $PGDATA/PG_VERSION ]; then
  cat "$POSTGRES_PASSWORD_FILE" >/password; chown 999 /password
  as initdb --username="$POSTGRES_USER" --pwfile=/password >/dev/null
  echo 'host all all all scram-sha-256' >>$PGDATA/pg_hba.conf
  as pg_ctl -w -s start -o "-c listen_addresses='' -p 5432" -l /tmp/log
  as psql -q --username "$POSTGRES_USER" -d postgres -c "CREATE DATABASE \"$POSTGRES_DB\""
  for f in /docker-entrypoint-initdb.d/*; do as "$f"; done
  as pg_ctl -w -s -m fast stop
fi
exec setpriv --reuid 999 --regid 999 --clear-groups postgres -c listen_addresses='*'
''' % POSTGRES_BIN


def image_of(service):
    return service['image'].split(':')[0]


def sh(*argv):
    subprocess.run(argv, check=True)


class Service:
    def __init__(self, name, service, work):
        self.name, self.service, self.work = name, service, work
        self.image = image_of(service)
        self.root = f'{work}/{name}/root'
        self.process = None

    def get(self, key, default=None):
        return self.service.get(key, default)

    def make_root(self):
        for part in ('root', 'upper', 'work'):
            os.makedirs(f'{self.work}/{self.name}/{part}', exist_ok=True)
        sh('mount', '-t', 'overlay', 'overlay', '-o',
           f'lowerdir=/,upperdir={self.work}/{self.name}/upper,'
           f'workdir={self.work}/{self.name}/work', self.root)
        for folder in ('proc', 'dev'):
            sh('mount', '--rbind', f'/{folder}', f'{self.root}/{folder}')
        sh('mount', '-t', 'tmpfs', 'tmpfs', f'{self.root}/run')
        sh('mount', '-t', 'tmpfs', 'tmpfs', f'{self.root}/tmp')
        shutil.copy(f'{BUILD}/main/txrelay', f'{self.root}/usr/bin/txrelay')
        shutil.copy(f'{BUILD}/test/devchain/devchain', f'{self.root}/usr/bin/devchain')
        with open(f'{self.root}/etc/passwd', 'a') as f:
            f.write('postgres999:x:999:999::/:/bin/sh\n'
                    'txrelay:x:10001:10001::/nonexistent:/usr/sbin/nologin\n')
        with open(f'{self.root}/entry.sh', 'w') as f:
            f.write(POSTGRES_ENTRY)
        for mount in self.service.get('volumes', []):
            source, target, *mode = mount.split(':')
            if source.startswith('./'):
                source = os.path.join(ROOT, source)
                os.makedirs(os.path.dirname(self.root + target), exist_ok=True)
                open(self.root + target, 'a').close()
            else:
                source = f'{self.work}/volume-{source}'
                if not os.path.isdir(source):
                    os.makedirs(source)
                    # an empty volume takes the owner of the image's folder
                    if self.image in IMAGE_USER:
                        os.chown(source, *map(int, IMAGE_USER[self.image].split(':')))
                os.makedirs(self.root + target, exist_ok=True)
            sh('mount', '--bind', source, self.root + target)
            if mode == ['ro']:
                sh('mount', '-o', 'remount,bind,ro', self.root + target)
        for mount in self.service.get('tmpfs', []):
            target, options = mount.split(':')
            os.makedirs(self.root + target, exist_ok=True)
            sh('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', self.root + target)
        if self.service.get('read_only'):
            sh('mount', '-o', 'remount,ro', self.root)

    def argv(self, command):
        user, group = (self.service.get('user') or IMAGE_USER.get(self.image, '0:0')).split(':')
        drop = ['--no-new-privs', '--inh-caps=-all',
                '--bounding-set=-all'] if self.service.get('cap_drop') else []
        env = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
               **IMAGE_ENV.get(self.image, {}),
               **self.service.get('environment', {})}
        return ['chroot', self.root, 'setpriv', '--reuid', user, '--regid', group, '--clear-groups',
                *drop,
                'env', '-i', *(f'{k}={v}' for k, v in env.items()), *command]

    def start(self):
        entry = self.service.get('entrypoint') or IMAGE_ENTRY[self.image]
        self.log = f'{self.work}/{self.name}.log'
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(self.argv([*entry, *self.service.get('command', [])]),
                                            stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, start_new_session=True)

    def text(self):
        with open(self.log, errors='replace') as f:
            return f.read()

    def completed(self):
        assert self.process.wait(
            60) == 0, f'{self.name} ended with {self.process.returncode}:\n{self.text()}'

    def healthy(self):
        check = self.service.get('healthcheck') or {'test': IMAGE_HEALTH.get(self.image)}
        return not check.get('test') or subprocess.run(self.argv(check['test'][1:]),
                                                       stdout=subprocess.DEVNULL,
                                                       stderr=subprocess.DEVNULL).returncode == 0

    def await_healthy(self):
        until(f'{self.name} to be healthy', lambda: self.running() and self.healthy())

    def running(self):
        assert self.process.poll() is None, (
            f'{self.name} ended with {self.process.returncode}:\n{self.text()}')
        return True

    def stop(self, signum=None):
        """As the image says: postgres waits for its clients at SIGTERM, so its image names
        SIGINT."""
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid,
                      signum or (signal.SIGINT if self.image == 'postgres' else signal.SIGTERM))
            self.process.wait(30)


def until(what, condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f'{what}: not within {seconds} s'
        time.sleep(0.1)


def order(services):
    done = []

    def visit(name):
        for other in services[name].get('depends_on', {}):
            visit(other)
        if name not in done:
            done.append(name)
    for name in services:
        visit(name)
    return done


def up(services):
    for name in order(services):
        service = services[name]
        for other, how in service.get('depends_on', {}).items():
            if how['condition'] == 'service_completed_successfully':
                services[other].completed()
            elif how['condition'] == 'service_healthy':
                services[other].await_healthy()
        if service.image not in IMAGE_ENTRY:
            print(f'   {name}: no {service.image} here, not run')
            continue
        service.start()
        print(f'   {name}: started')
    for service in services.values():
        if service.process and service.get('restart') == 'unless-stopped':
            service.await_healthy()


def psql(services, sql):
    return subprocess.run(services['postgres'].argv([f'{POSTGRES_BIN}/psql', '-U', 'postgres', '-d',
                                                     'txrelay', '-Atc', sql]),
                          check=True, capture_output=True, text=True).stdout.strip()


def query(expr):
    with urllib.request.urlopen('http://127.0.0.1:9090/api/v1/query?'
                                + urllib.parse.urlencode({'query': expr})) as answer:
        return [float(r['value'][1]) for r in json.load(answer)['data']['result']]


def send(services, text):
    tx = psql(services, "SELECT txrelay.enqueue('alice', "
                        f"'\\x0000{len(text) * 4:02x}{text.encode().hex()}')")
    until(f'the follower to print the end of {tx}', lambda: any(
        f'"id":{tx},' in line and '"outcome":"ok"' in line
        for line in services['follower'].text().splitlines()))
    return tx


def leader(services):
    return psql(services, "SELECT holder FROM txrelay.leaders WHERE alias = 'alice'")


def check(services):
    send(services, 'compose')
    assert psql(services, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'relay'") != '0'
    until('two relays to be scraped', lambda: query('up{job="txrelay"}') == [1, 1])
    until('the sum of leaders', lambda: query('sum(txrelay_leader)') == [1])
    first = leader(services)
    name = next(n for n in ('relay-1', 'relay-2') if f'txrelay-{n}-' in first)
    services[name].stop(signal.SIGKILL)
    send(services, 'taken over')
    assert leader(services) != first
    services[name].start()
    services[name].await_healthy()


def inside():
    work = os.environ['TXRELAY_COMPOSE']
    with open(f'{ROOT}/docker-compose.yml') as f:
        file = yaml.safe_load(f)['services']
    services = {}
    try:
        for name, service in file.items():
            services[name] = Service(name, service, work)
        for name in services:
            services[name].make_root()
        begun = time.monotonic()
        up(services)
        print(f'   up after {time.monotonic() - begun:.1f} s')
        check(services)
        # docker compose restart, but for the chain: the volumes hold what is needed, and nothing is
        # made twice.
        password = psql(services, 'SELECT rolpassword FROM pg_authid WHERE rolname = $$relay$$')
        for name in [n for n in order(services) if n not in ('devchain', 'grafana')]:
            services[name].stop()
            services[name].start()
            if name in ('secrets', 'migrate'):
                services[name].completed()
            else:
                services[name].await_healthy()
        send(services, 'restarted')
        assert psql(services,
                    'SELECT rolpassword FROM pg_authid WHERE rolname = $$relay$$') == password
        for name in reversed(order(services)):
            services[name].stop()
        print('== docker-compose.yml: up, a transaction, a takeover, a restart, down')
    finally:
        for service in services.values():
            service.stop(signal.SIGKILL)


if __name__ == '__main__':
    if os.environ.get('TXRELAY_COMPOSE'):
        sh('ip', 'link', 'set', 'lo', 'up')
        inside()
    else:
        folder = tempfile.mkdtemp(prefix='txcompose-')
        os.chmod(folder, 0o755)
        rc = subprocess.run(['unshare', '--net', '--mount', '--propagation', 'private',
                             sys.executable,
                             os.path.abspath(__file__), BUILD],
                             env={**os.environ, 'TXRELAY_COMPOSE': folder}).returncode
        # Here, where the mounts do not exist: in there this would remove what is mounted.
        if os.environ.get('TXRELAY_KEEP'):
            print('kept', folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        sys.exit(rc)
