"""start: a relay that finds many pending rows in Postgres: from its exec to the first extrinsic
that the node is sent, and the memory of a row. The rows are stored and not sent yet, so that the
first send is that of the lowest nonce. Their bytes are well formed and carry no real signature:
the chain of this suite trusts all."""
import hashlib
import io
import re
import time

from harness import proc
from harness.chain import put_compact, remark
from harness.relay import Relay

from .stand import chain, children_cpu_s, cpu_s, log_time, many_accounts, table

CALL = remark(b'Z' * 96)
CHUNK = 50000
ERA, ERA_DEATH = b'\x05\x00', 64  # 64 blocks from block 0 on


def extrinsic(signer, nonce):
    body = b'\x84\x00' + signer + b'\x01' + bytes(64) + ERA + put_compact(nonce) + b'\x00' + CALL
    return put_compact(len(body)) + body


def copy(cur, account, signer, epoch, nonces):
    pending, attempts = io.StringIO(), io.StringIO()
    for nonce in nonces:
        raw = extrinsic(signer, nonce)
        hash_ = hashlib.blake2b(raw, digest_size=32).hexdigest()
        head = f'{account}\t{nonce}\t{nonce + 1}\t\\\\x{hash_}\t{epoch}\t'
        pending.write(f'{head}\\\\x{signer.hex()}\t\\\\x{CALL.hex()}\t1\t1\tsigned\t2026-01-01\n')
        attempts.write(f'{head}1\t\\\\x{raw.hex()}\t0\t0\t{ERA_DEATH}\t100\t1\t0\n')
    for name, columns, data in (
            ('pending_transactions', 'account_id, call, attempt, attempts, state, created_at',
             pending),
            ('attempts', 'number, extrinsic, tip, era_birth, era_death, spec_version, '
                         'transaction_version, block', attempts)):
        data.seek(0)
        cur.copy_expert(f'COPY txrelay.{name} (account, nonce, id, hash, epoch, {columns}) '
                        'FROM STDIN', data)


def fill(pg, count):
    """`count` nonces in use, as a leader leaves them that has stored its admissions and was
    killed."""
    account, signer, epoch = pg.query('''SELECT a.account, a.account_id, l.epoch
                                         FROM txrelay.accounts a
                                         JOIN txrelay.leadership l ON l.subject = a.account''')[0]
    with pg.connect(autocommit=False) as db, db.cursor() as cur:
        # nobody listens: no notification for each row
        cur.execute('SET session_replication_role = replica')
        for first in range(0, count, CHUNK):
            copy(cur, account, bytes(signer), epoch, range(first, min(first + CHUNK, count)))
        cur.execute('UPDATE txrelay.accounts SET next_nonce = %s', (count,))
    db.close()
    pg.query('VACUUM ANALYZE txrelay.pending_transactions, txrelay.attempts')
    pg.query('CHECKPOINT')


def memory(pid, field):
    with open(f'/proc/{pid}/status') as file:
        return int(re.search(rf'{field}:\s+(\d+)', file.read()).group(1)) * 1024


def start(server, count):
    pg = server.fresh()
    directory = proc.make_dir('txbench-')
    accounts = many_accounts(1)
    node = chain(directory, '--block-ms', '0', '--trust-signatures', accounts=accounts)
    node.rpc('dev_newBlock', {'count': 4})
    relay = Relay(directory, 'start', pg.dsn, [node.ws], accounts,
                  manager={'window': max(count, 256)})
    relay.start()
    relay.wait_log('account.ready')
    empty = memory(relay.process.pid, 'VmRSS')
    relay.stop()
    if count:
        fill(pg, count)
    seen = relay.text().count('account.ready')
    begin, wall, postgres = time.monotonic(), time.time(), children_cpu_s(pg.postmaster)
    relay.start()
    if count:
        proc.wait_for('the first send', lambda: node.rpc('dev_stats', {})['submit_count'], 300,
                      0.005)
    first = time.monotonic() - begin
    pid = relay.process.pid
    relay_cpu, postgres = cpu_s(pid), children_cpu_s(pg.postmaster) - postgres
    rss = memory(pid, 'VmRSS')
    proc.wait_for('account.ready', lambda: relay.text().count('account.ready') > seen, 60)
    peak = memory(pid, 'VmHWM')
    result = {'rows': count, 'first_send_s': first,
              'ready_s': log_time(relay.text(), 'account.ready') - wall,
              'relay_cpu_s': relay_cpu, 'postgres_cpu_s': postgres,
              'rss': rss, 'peak': peak, 'bytes_per_row': (rss - empty) / count,
              'peak_bytes_per_row': (peak - empty) / count,
              'row_bytes': len(extrinsic(bytes(32), max(0, count - 1)))}
    relay.kill()
    node.process.kill()
    return result


def run(server, args):
    results = [start(server, int(n)) for n in args.rows.split(',')]
    table('start: a relay that finds so many pending rows (its memory above that of one that '
          'finds none)',
          ['rows', 'first send s', 'relay CPU s', 'Postgres CPU s', 'RSS MB', 'bytes a row',
           'at the peak', 'extrinsic bytes'],
          [[r['rows'], f"{r['first_send_s']:.2f}", f"{r['relay_cpu_s']:.2f}",
            f"{r['postgres_cpu_s']:.2f}",
            f"{r['rss'] / 2 ** 20:.0f}", f"{r['bytes_per_row']:.0f}",
            f"{r['peak_bytes_per_row']:.0f}", r['row_bytes']] for r in results])
    return results
