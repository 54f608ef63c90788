"""Relays and the command line."""
import json
import os
import re
import socket
import subprocess

from . import proc


class Relay:
    """One `txrelay run`. accounts: [(alias, scheme, secret uri)]."""

    def __init__(self, directory, name, dsn, endpoints, accounts, leadership=None, manager=None,
                 env=None, extra=None,
                 listen=None, chain=None):
        self.dir, self.name, self.dsn = directory, name, dsn
        self.log = os.path.join(directory, f'{name}.log')
        self.socket = os.path.join(directory, f'{name}.sock')
        self.address = listen or f'unix:{self.socket}'
        self.config = os.path.join(directory, f'{name}.yaml')
        self.env = env or {}
        self.program, self.process = proc.TXRELAY, None
        with open(self.config, 'w') as file:
            file.write(render(name, self.address, dsn, endpoints, key_files(directory, accounts),
                              leadership, manager,
                              extra, chain))

    def configure(self, section, **values):
        """More keys for a section that the configuration has."""
        with open(self.config) as file:
            text = file.read()
        more = ''.join(f'  {k}: {v}\n' for k, v in values.items())
        with open(self.config, 'w') as file:
            file.write(text.replace(f'\n{section}:\n', f'\n{section}:\n{more}', 1))
        return self

    def start(self, env=None):
        self.process = proc.Process([self.program, 'run', '--config', self.config], self.log,
                                    env={**self.env, **(env or {})})
        return self

    def alive(self):
        return self.process is not None and self.process.alive()

    def kill(self):
        self.process.kill()

    def stop(self):
        return self.process.stop()

    def text(self):
        with open(self.log, errors='replace') as file:
            return file.read()

    def unparsed(self):
        """Lines of the log that are no logfmt: none."""
        field = r'[a-z0-9_]+=(?:"(?:[^"\\]|\\.)*"|[^\s"=\\]+)'
        return [line for line in self.text().split('\n')[:-1]
                if line.startswith('time=')
                and not re.fullmatch(rf'time=\S+Z level=\w+ event=[a-z0-9_.]+(?: {field})*', line)]

    def wait_log(self, pattern, seconds=30):
        try:
            return proc.wait_for(f'{self.name}: log line /{pattern}/',
                                 lambda: re.search(pattern, self.text()), seconds)
        except TimeoutError as error:  # what it did instead
            raise TimeoutError(f'{error}; it logged\n'
                               + '\n'.join(self.text().splitlines()[-25:])) from None

    def control(self, request, seconds=10):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(seconds)
            s.connect(self.socket)
            s.sendall(json.dumps(request).encode() + b'\n')
            data = b''
            while not data.endswith(b'\n'):
                more = s.recv(65536)
                if not more:
                    raise ConnectionError('control endpoint closed')
                data += more
        return json.loads(data)

    def status(self):
        try:
            return self.control({'cmd': 'status'})
        except OSError:
            return None

    def leads(self, alias):
        status = self.status() if self.alive() else None
        return bool(status) and any(a['alias'] == alias and a['role'] == 'leader'
                                    for a in status['accounts'])


def key_files(directory, accounts):
    rows = []
    for alias, scheme, uri in accounts:
        path = os.path.join(directory, f'{alias}.key')
        if not os.path.exists(path):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, 'w') as file:
                file.write(uri + '\n')
        rows.append((alias, scheme, path))
    return rows


def render(name, address, dsn, endpoints, keys, leadership=None, manager=None, extra=None,
           chain=None):
    if 'expiry_2_ms' in (leadership or {}):  # a submission has to fit into it, or the relay refuses
        most = leadership['expiry_2_ms'] - leadership.get('margin_ms', 1000)
        chain = {'call_timeout_ms': min(10000, most), **(chain or {})}
    lines = [f'name: {name}', f'control: "{address}"']
    if dsn:
        lines += ['database:', f'  url: "{dsn}"']
    lines += ['chain:', '  endpoints:'] + [f'    - {e}' for e in endpoints]
    lines += [f'  {k}: {v}' for k, v in (chain or {}).items()]
    for section, values in (('leadership', leadership), ('manager', manager)):
        if values:
            lines += [f'{section}:'] + [f'  {k}: {v}' for k, v in values.items()]
    lines += ['accounts:']
    for alias, scheme, path in keys:
        lines += [f'  - alias: {alias}', f'    scheme: {scheme}', f'    key_file: {path}']
    return '\n'.join(lines) + '\n' + (extra or '')


def cli(*args, env=None, check=True, seconds=60, stdin=None):
    return proc.run([proc.TXRELAY, *args], env=env, check=check, seconds=seconds,
                    **({'input': stdin} if stdin is not None else {'stdin': subprocess.DEVNULL}))
