"""The recorded cost of a transaction, costs.json: what is held to it, how closely, and how it is
written."""
import json
import os
import statistics

from harness import proc

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'costs.json')
BOUND = 0.05


def counts_of(plain, profile, count):
    """The figures that a change is held to, per 1000 transactions where one has less than one of
    it."""
    written = plain['tables']
    return {
        'statements per 1000': plain['relay_statements_per_tx'] * 1000,
        'WAL bytes': plain['relay_wal_bytes_per_tx'],
        'WAL bytes of the enqueue': plain['enqueue_wal_bytes_per_tx'],
        'WAL records': plain['wal_records_per_tx'],
        'rows inserted': sum(t['inserted'] for t in written.values()),
        'rows updated': sum(t['updated'] for t in written.values()),
        'rows updated, not HOT': sum(t['updated_not_hot'] for t in written.values()),
        'rows deleted': sum(t['deleted'] for t in written.values()),
        'allocations': profile.allocations() / count,
        'instructions': profile.instructions() / count,
    }


def off_by(now, recorded):
    return now / recorded - 1 if recorded else float(now > 0.001)


def differences(now, recorded):
    off = {k: off_by(v, recorded.get(k, 0)) for k, v in now.items()}
    return {k: v for k, v in off.items() if abs(v) > BOUND}


def median_of(tries):
    return {k: statistics.median(t[k] for t in tries) for k in tries[0]}


def versions():
    packages = ['libc6', 'libsodium23', 'libjansson4', 'libwebsockets17', 'libpq5', 'libuv1',
                'libnettle8', 'postgresql-15',
                'gcc-12']
    out = proc.run(['dpkg-query', '-W', '-f', '${Package} ${Version}\n', *packages],
                   check=False).stdout
    return dict(line.split(' ', 1) for line in out.splitlines())


def record(tries, about):
    now = median_of(tries)
    seen = {k: [round(f(t[k] for t in tries), 3) for f in (min, max)] for k in now}
    with open(FILE, 'w') as file:
        json.dump({'made by': './dev bench cost --record', **about, 'versions': versions(),
                   'per transaction': {k: round(v, 3) for k, v in now.items()},
                   'smallest and largest': seen}, file, indent=1)
        file.write('\n')
    print(f'\nrecorded in {os.path.relpath(FILE, proc.ROOT)}: commit it with the change that '
          'moved it')


def other_versions():
    with open(FILE) as file:
        recorded = json.load(file)['versions']
    moved = [f'{k} {recorded.get(k)} -> {v}' for k, v in versions().items() if recorded.get(k) != v]
    return f' (and so did {", ".join(moved)})' if moved else ''
