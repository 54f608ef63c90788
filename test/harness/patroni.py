"""A Patroni cluster of our own: three members of Debian's patroni and one etcd, on loopback, on
ports and in a directory of their own, as an unprivileged user. synchronous_mode is on: a commit is
told to the client only when a standby has it, and only a standby that has all of them is promoted.

Patroni talks to etcd by its v2 protocol. By v3 this patroni (3.0.2, dcs/etcd3.py, _update_leader)
writes the leader's key without a condition when its lease has run out: a member that was stopped
in the middle of a round may take the cluster back when it runs on, and all that was committed
meanwhile is gone (seen in one run of eight).

Postgres outlives its patroni (it is no child of it), so stop() ends both by their process ids."""
import json
import os
import shutil
import signal
import socket
import tempfile
import time
import urllib.error
import urllib.request

from . import proc
from .postgres import Postgres

BIN = os.environ.get('PG_BIN', '/usr/lib/postgresql/15/bin')
PATRONI, ETCD = '/usr/bin/patroni', '/usr/bin/etcd'
REINIT_S = 30
# Of the leader's key in etcd: a dead primary is replaced after that. At least
# loop_wait + 2 * retry_timeout.
TTL_S = 10

CONFIG = '''
scope: txrelay
name: {name}
restapi: {{listen: '127.0.0.1:{rest}', connect_address: '127.0.0.1:{rest}'}}
etcd: {{host: '127.0.0.1:{etcd}'}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 1
    retry_timeout: 3
    maximum_lag_on_failover: 1073741824
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters: {{max_connections: 100, shared_buffers: 32MB, fsync: 'off', wal_keep_size: 256MB}}
  initdb: [no-sync, {{encoding: UTF8}}, {{locale: C}}, {{auth: trust}}]
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {dir}/data
  bin_dir: {bin}
  pgpass: {dir}/pgpass
  basebackup: [no-sync, {{checkpoint: fast}}]
  authentication:
    superuser: {{username: postgres, password: trusted}}
    replication: {{username: replicator, password: trusted}}
    rewind: {{username: postgres, password: trusted}}
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 trust
    - host replication all 127.0.0.1/32 trust
  parameters:
    unix_socket_directories: '{dir}'
    wal_retrieve_retry_interval: 100ms
    log_line_prefix: '%m %p %a '
'''


def installed():
    return os.path.exists(PATRONI) and os.path.exists(ETCD)


def free_ports(count):
    """All open at once, so that they differ."""
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def owner():
    """What root must not run as: (uid, gid) of postgres or nobody, and how to become it."""
    if os.getuid():
        return os.getuid(), os.getgid(), []
    import pwd
    names = {u.pw_name: u for u in pwd.getpwall()}
    user = names.get('postgres') or names['nobody']
    return user.pw_uid, user.pw_gid, ['setpriv', '--reuid', str(user.pw_uid), '--regid',
                                      str(user.pw_gid), '--clear-groups',
                                      '--pdeathsig', 'KILL']


def processes_under(pid):
    """pid and all that descend from it."""
    children = {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{entry}/stat') as file:
                parent = int(file.read().rsplit(')', 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def signal_all(pids, signum):
    for pid in pids:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            pass


class Member:
    def __init__(self, cluster, name, port, rest):
        self.cluster, self.name, self.port, self.rest = cluster, name, port, rest
        self.dir = os.path.join(cluster.dir, name)
        os.mkdir(self.dir, 0o755)
        self.config = os.path.join(self.dir, 'patroni.yaml')
        with open(self.config, 'w') as file:
            file.write(CONFIG.format(name=name, port=port, rest=rest, etcd=cluster.etcd_port,
                                     ttl=TTL_S, dir=self.dir, bin=BIN))
        for path in (self.dir, self.config):
            os.chown(path, cluster.uid, cluster.gid)
        self.process, self.frozen = None, []

    def start(self):
        self.process = proc.Process([*self.cluster.become, PATRONI, self.config],
                                    os.path.join(self.dir, 'patroni.log'),
                                    cwd=self.dir, env={'HOME': self.dir})
        return self

    def postmaster(self):
        try:
            with open(os.path.join(self.dir, 'data', 'postmaster.pid')) as file:
                pid = int(file.readline())
            # Is it still this one, or is the number another's by now?
            ours = os.readlink(f'/proc/{pid}/cwd') == os.path.join(self.dir, 'data')
            return pid if ours else None
        except (OSError, ValueError):
            return None

    def pids(self):
        """Its postgres first: the patroni would start it again."""
        pid = self.postmaster()
        return (processes_under(pid) if pid else []) + (processes_under(self.process.pid)
                                                        if self.process.alive() else [])

    def kill(self):
        """Both, at once, by SIGKILL."""
        pids = self.pids()
        signal_all([self.process.pid, *pids], signal.SIGKILL)
        self.process.child.wait()
        proc.wait_for(f'{self.name} to be gone',
                      lambda: not any(os.path.exists(f'/proc/{p}') for p in pids), 20)

    def freeze(self):
        """The parents first, until no child is left that was born meanwhile."""
        while new := [pid for pid in self.pids() if pid not in self.frozen]:
            signal_all(new, signal.SIGSTOP)
            self.frozen += new

    def thaw(self):
        signal_all(self.frozen, signal.SIGCONT)
        self.frozen = []

    def text(self):
        return self.process.text()


class Patroni(Postgres):
    """What a test does with a Postgres, by the connection string that names all members."""

    def __init__(self, count=3):
        self.uid, self.gid, self.become = owner()
        room = '/dev/shm' if os.path.isdir('/dev/shm') and shutil.disk_usage(
            '/dev/shm').free > 4 << 30 else '/tmp'
        self.dir = tempfile.mkdtemp(prefix='txpat-', dir=room)
        os.chmod(self.dir, 0o755)
        os.chown(self.dir, self.uid, self.gid)
        if not os.environ.get('TXRELAY_KEEP'):
            proc.on_exit(lambda: shutil.rmtree(self.dir, ignore_errors=True))
        self.etcd_port, peer, *ports = free_ports(2 + 2 * count)
        self.members = [Member(self, f'm{i}', ports[2 * i], ports[2 * i + 1]) for i in range(count)]
        proc.on_exit(self.stop)
        self.etcd = self._start_etcd(peer)
        for member in self.members:
            member.start()
        hosts = ','.join(['127.0.0.1'] * count)
        self.admin_dsn = (f"host={hosts} port={','.join(str(m.port) for m in self.members)} "
                          "user=postgres dbname=postgres "
                          'target_session_attrs=read-write connect_timeout=2')
        self.whole(120)
        self.database = 'postgres'
        self.dsn = self.admin_dsn

    def _start_etcd(self, peer):
        url, data = f'http://127.0.0.1:{self.etcd_port}', os.path.join(self.dir, 'etcd')
        etcd = proc.Process([*self.become, ETCD, '--enable-v2', '--name', 'e', '--data-dir', data,
                             '--listen-client-urls', url,
                             '--advertise-client-urls', url, '--listen-peer-urls',
                             f'http://127.0.0.1:{peer}',
                             '--initial-advertise-peer-urls', f'http://127.0.0.1:{peer}',
                             '--initial-cluster', f'e=http://127.0.0.1:{peer}'],
                             os.path.join(self.dir, 'etcd.log'), cwd=self.dir)
        proc.wait_for('etcd', lambda: _get(f'{url}/health'), 30)
        return etcd

    def view(self):
        """name -> (role, state) as a patroni that answers tells it; {} when none does."""
        for member in self.members:
            if member.process and member.process.alive() and not member.frozen:
                told = _get(f'http://127.0.0.1:{member.rest}/cluster')
                if told:
                    return {m['name']: (m['role'], m.get('state')) for m in told['members']}
        return {}

    def leader(self):
        name = next((n for n, (role, state) in self.view().items() if role == 'leader'
                     and state == 'running'), None)
        return next((m for m in self.members if m.name == name), None)

    def whole(self, seconds=120):
        """One leader, the others follow it, one of them synchronously. A member that does not get
        up by itself (pg_rewind may have given it too little) is copied anew, as an operator
        would."""
        anew = time.monotonic() + REINIT_S

        def good():
            nonlocal anew
            view = self.view()
            if time.monotonic() > anew:
                anew += REINIT_S
                for member in self.members:
                    if view.get(member.name, ('', ''))[1] == 'starting':
                        print(f'\n  {member.name} does not get up: copied anew')
                        _post(f'http://127.0.0.1:{member.rest}/reinitialize', {'force': True})
            roles = sorted(role for role, state in view.values()
                           if state in ('running', 'streaming'))
            return len(view) == len(self.members) and roles == ['leader'] + ['replica'] * (
                len(self.members) - 2) + ['sync_standby']
        try:
            proc.wait_for('the cluster to be whole', good, seconds, 0.2)
        except TimeoutError as error:
            logs = '\n'.join(f'--- {m.name}\n' + '\n'.join(m.text().splitlines()[-12:])
                             for m in self.members if m.process)
            raise TimeoutError(f'{error}: {self.view()}\n{logs}') from None

    def switchover(self):
        """A planned one, to the synchronous standby; (old, new)."""
        view, old = self.view(), self.leader()
        to = next(name for name, (role, _) in view.items() if role == 'sync_standby')
        _post(f'http://127.0.0.1:{old.rest}/switchover', {'leader': old.name, 'candidate': to})
        return old, next(m for m in self.members if m.name == to)

    def stop(self):
        for member in self.members:
            if member.process:
                member.thaw()
                member.kill()


def _post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {'Content-Type': 'application/json'})
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert reply.status == 200, reply.read()


def _get(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        return json.load(error) if error.code == 503 else None
    except (OSError, ValueError):
        return None
