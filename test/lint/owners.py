#!/usr/bin/env python3
"""Members of the manager that a file writes which does not own them.

owners.py STATE_H FILE...: state.h names the files that alone write a struct in the comment at its
head, `struct load { /* load.c alone */`; struct manager says which member is which struct. Prints
one line for each assignment to `m->MEMBER.` in another file. Reading is free.
"""
import re
import sys


def code_of(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    return re.sub(r'/\*.*?\*/|"(\\.|[^"\\\n])*"', lambda m: re.sub(r'[^\n]', ' ', m.group()), text,
                  flags=re.S)


def owners_of(path):
    """Member -> the files that own it."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    heads = re.findall(r'^struct (\w+) \{ */\*(.*?)\balone\b[^\n]*', text, re.M)
    owned = {struct: set(re.findall(r'\w+\.c\b', files)) for struct, files in heads}
    body = re.search(r'^struct manager \{.*?^\};', text, re.M | re.S).group()
    return {member: owned[struct] for struct, member in re.findall(r'struct (\w+) (\w+);', body)
            if owned.get(struct)}


def main(state, paths):
    owners = owners_of(state)
    if not owners:
        sys.exit(f'{state} names no owner of anything')
    members = '|'.join(owners)
    # m->life.nonce = m->final.nonce = x: both are written, so the second `=` counts as well.
    write = re.compile(
        rf'(?:(?:\+\+|--)\s*m->({members})\b[\w.\[\]>-]*|'
        rf'm->({members})((?:\.\w+|\[[^\]]*\])*)\s*(?:[-+|&]?=(?!=)|\+\+|--))')
    for path in paths:
        name = path.rsplit('/', 1)[-1]
        text = code_of(path)
        for m in write.finditer(text):
            member = m.group(1) or m.group(2)
            if name not in owners[member]:
                line = text.count('\n', 0, m.start()) + 1
                print(f'{path}:{line} writes m->{member}, which is of '
                      f'{", ".join(sorted(owners[member]))}')


main(sys.argv[1], sys.argv[2:])
