"""A callgrind profile of a running process, read into counts: instructions by function, by place,
and how often memory was asked for, by whom. Counting begins and ends on command
(callgrind_control), so that start and end of the process stay out."""
import os
import re

from harness import proc

ASKS = ('malloc', 'calloc', 'realloc', 'posix_memalign', 'aligned_alloc')
# base/check.h: who asks is who calls these
WRAPPERS = ('xmalloc', 'xcalloc', 'xrealloc', 'xstrdup')
LAYERS = ('base', 'loop', 'schema', 'store', 'listen', 'election', 'net', 'feed', 'chain', 'relay',
          'main')


def command(path):
    return ['valgrind', '--tool=callgrind', '--instr-atstart=no', '--compress-strings=no',
            '--compress-pos=no',
            f'--callgrind-out-file={path}', '--separate-threads=no', '--']


def control(pid, *what):
    out = proc.run(['callgrind_control', *what, str(pid)], check=False)
    if 'OK' not in out.stdout:
        raise RuntimeError(f'callgrind_control {" ".join(what)}: {out.stdout}{out.stderr}')


class Profile:
    """own: {function: instructions}; total: {function: with all that it calls}; place: {function:
    layer or library}; asked: {malloc or the like, or a wrapper of ours: {caller: calls}}."""

    def __init__(self, path):
        self.own, self.total, self.place, self.asked = {}, {}, {}, {}
        with open(path, errors='replace') as file:
            self._read(file)
        if not self.own:
            raise RuntimeError(f'{path} holds no profile')

    def _read(self, file):
        function, called, calls, inclusive, inside = '?', '?', 0, False, {}
        object_, called_object, source = '', '', ''
        for line in file:
            line = line.rstrip('\n')
            if line[:1].isdigit():
                fields = line.split()
                cost = int(fields[1]) if len(fields) > 1 else 0
                if inclusive:
                    if called != function:
                        inside[function] = inside.get(function, 0) + cost
                    inclusive = False
                else:
                    self.own[function] = self.own.get(function, 0) + cost
            elif line.startswith('fn='):
                function = plain(line[3:], object_)
                self.place.setdefault(function, place(object_, source))
            elif line.startswith('ob='):
                object_ = line[3:]
            elif line.startswith('fl='):
                source = line[3:]
            elif line.startswith('cob='):
                called_object = line[4:]
            elif line.startswith('cfn='):
                called, called_object = plain(line[4:], called_object or object_), ''
            elif line.startswith('calls='):
                calls, inclusive = int(line[6:].split()[0]), True
                if called in ASKS + WRAPPERS and function not in ASKS:
                    callers = self.asked.setdefault(called, {})
                    callers[function] = callers.get(function, 0) + calls
        self.total = {f: self.own.get(f, 0) + inside.get(f, 0) for f in set(self.own) | set(inside)}

    def instructions(self):
        return sum(self.own.values())

    def allocations(self):
        return sum(n for asked, callers in self.asked.items() if asked in ASKS
                   for n in callers.values())

    def most(self):
        return sorted(self.total.items(), key=lambda x: -x[1])

    def by_place(self):
        sums = {}
        for function, cost in self.own.items():
            sums[self.place.get(function, '?')] = sums.get(self.place.get(function, '?'), 0) + cost
        return dict(sorted(sums.items(), key=lambda x: -x[1]))

    def allocations_by_caller(self):
        sums = {}
        for callers in self.asked.values():
            for function, n in callers.items():
                if function not in WRAPPERS:
                    sums[function] = sums.get(function, 0) + n
        return dict(sorted(sums.items(), key=lambda x: -x[1]))


def plain(name, object_):
    """Without the number of a recursion, and what the compiler adds to a part of a function; one
    that has no name is told by its library."""
    name = re.sub(r"('\d+)$|\.(isra|part|constprop|cold)\.?\d*", '', name)
    return f'{library(object_)} {name.lstrip("0x")}' if name.startswith('0x') else name


def library(object_):
    return re.sub(r'(-[\d.]+)?\.so.*', '', os.path.basename(object_)) or '?'


def place(object_, source):
    if os.path.basename(object_) != 'txrelay':
        return library(object_)
    found = re.search(r'(?:^|/)(%s)/(?:[^/]+/)*[^/]+\.[ch]$' % '|'.join(LAYERS), source)
    return found.group(1) if found else 'txrelay'
