#!/usr/bin/env python3
"""Functions that a header of the product declares and no file of the product calls.

unused.py FILE...: the C files and headers of the tree. Prints one line per finding. A function that
only tests call is dead in the product; the list below has those that stay, with the reason. What
no test calls either does not stay.
"""
import re
import sys
from collections import Counter

KEPT = {  # regular expressions of whole names
    'txrelay_[a-z_]+': 'the public library, whose callers are other programs',
    'mem_[a-z_]+': 'the simulator and the differential test read and steer the memory database',
    '(elector|poll|manager|feed|site|hook)_[a-z_]*(dump|missing|moved)':
        'tests compare each table of moves with the pages and require every move to be taken',
    '(manager|poll|elector|feed_core|site_core|hook)_check':
        'simulator and models check the invariants of a core after every step',
    '(feed|site)_metric': 'tests compare docs/feeds.md and docs/sites.md with the metrics',
    'poll_(covered|outbox_state)': 'the models compare what the core believes with the truth',
    'answer(_at|s_dump)': 'the simulated node answers with every row, and docs/answers.md has each',
    'config_keys|config__range': 'a test compares docs/config.md with the table of keys',
    'loop_open_handles': 'tests wait until everything is closed',
    'feed_door_(address|sessions)|grpc_server_connections':
        'tests ask for the port that was free, and wait until every publisher is gone',
    'scale_put_u(64|128)': 'devchain writes what the codec reads',
    'metadata_(version|extrinsic_version|event_name|extension_(count|at)|'
    'type_(address|event_record))':
        'tests read what was parsed, and which form of it was asked for',
}


def code_of(path):
    """The file without comments and strings."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\\n])*"', ' ', text, flags=re.S)


def main(paths):
    everything = {p: code_of(p) for p in paths}
    code = {p: c for p, c in everything.items() if not re.match(r'test/|.*/example/', p)}
    others = {w for p, c in everything.items() if p not in code
              for w in re.findall(r'\b[a-z]\w*', c)}
    words = Counter(w for text in code.values() for w in re.findall(r'\b[a-z]\w*', text))
    # A declaration or a definition begins a line and has no body of its own on it; a macro has `#`.
    declared = re.compile(r'^(?!#|return\b|else\b)(?:[\w*]+[\s*]+)*?([a-z]\w*)\(', re.M)
    begun = Counter(n for text in code.values() for n in declared.findall(text))
    home = {}
    for path, text in code.items():
        if path.endswith('.h'):
            for name in declared.findall(text):
                home.setdefault(name, path)
    kept = {pattern: 0 for pattern in KEPT}
    for name, path in sorted(home.items()):
        if words[name] > begun[name]:
            continue
        pattern = next((p for p in KEPT if re.fullmatch(p, name)), None)
        if pattern and name in others:
            kept[pattern] += 1
        else:
            print(f'{path} declares {name}, which no file of the product calls')
    if 'base/include/base/check.h' in code:  # the whole tree, not one of the self-test
        for pattern in (p for p, n in kept.items() if not n):
            print(f'test/lint/unused.py keeps {pattern}, which names no unused function')


main(sys.argv[1:])
