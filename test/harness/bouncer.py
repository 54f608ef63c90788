"""pgbouncer in transaction mode before a world's server."""
import os
import socket

from . import proc

PGBOUNCER = '/usr/sbin/pgbouncer'


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def start(world):
    """Returns its process, and a connection string through it."""
    directory, port = proc.make_dir('txpgb-'), free_port()
    with open(f'{directory}/ini', 'w') as file:
        file.write(f'[databases]\n* = host={world.pg.dir} port=5432 '
                   'user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n'
                   f'listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = '
                   'transaction\n')
    owner = os.stat(f'{world.pg.dir}/data')
    os.chown(directory, owner.st_uid, owner.st_gid)
    user = ['setpriv', '--reuid', str(owner.st_uid), '--regid', str(owner.st_gid),
            '--clear-groups'] if os.getuid() == 0 else []
    process = proc.Process([*user, PGBOUNCER, f'{directory}/ini'], f'{directory}/log')
    proc.wait_for('pgbouncer to listen', lambda: 'process up' in process.text())
    return process, f'host=127.0.0.1 port={port} user=postgres dbname={world.pg.database}'
