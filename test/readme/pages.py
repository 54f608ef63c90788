"""README.md and the pages of docs/: their blocks, headings, links and tables."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness.proc import ROOT  # noqa: E402

# Languages that a reader runs. A block without a language is a picture or what a command prints.
RUNNABLE = {'sh', 'sql', 'python', 'js', 'c'}
# A comment before a block that nobody runs as it is printed, with its reason.
NOT_RUN = re.compile(r'not run: (.+)', re.S)


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def all_pages():
    """README.md first, then the other pages in the main folder and those of docs/."""
    top = sorted(f for f in os.listdir(ROOT) if f.endswith('.md') and f != 'README.md')
    docs = sorted('docs/' + f for f in os.listdir(os.path.join(ROOT, 'docs')) if f.endswith('.md'))
    return ['README.md', *top, *docs]


def blocks(path):
    """(language, text, why it is not run or None) of each fenced block."""
    found = []
    for m in re.finditer(r'^( *)(?:<!-- ([^>]*?) -->\n *)?```(\w*)\n(.*?)^ *```', read(path),
                         re.S | re.M):
        text = re.sub('^' + m.group(1), '', m.group(4), flags=re.M)
        not_run = NOT_RUN.fullmatch(m.group(2) or '')
        found.append((m.group(3), text, not_run and not_run.group(1)))
    return found


def to_run(path):
    return [(language, text) for language, text, not_run in blocks(path) if language in RUNNABLE
            and not not_run]


def prose(path):
    return re.sub(r'^ *```.*?^ *```', '', read(path), flags=re.S | re.M)


def anchors(path):
    """What GitHub makes of the headings."""
    made = set()
    for heading in re.findall(r'^#+ (.*)$', prose(path), re.M):
        plain = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading).replace('`', '').lower()
        made.add(re.sub(r'[^\w\- ]', '', plain).strip().replace(' ', '-'))
    return made


def links(path):
    """(file or folder from the main folder, anchor or '') of each link that stays in the
    repository."""
    for target in re.findall(r'\]\(([^)\s]+)\)', prose(path)):
        if not re.match(r'\w+:', target):
            file, _, anchor = target.partition('#')
            file = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            yield file, anchor


def table(path, heading):
    """The rows of the first table below a heading, as lists of cells."""
    text = read(path)
    after = text[text.index(f'\n{heading}\n'):]
    rows = re.search(r'^\|.*\n\|[-| ]+\n((?:\|.*\n)+)', after, re.M).group(1)
    return [[cell.strip() for cell in re.split(r'(?<!\\)\|', row)[1:-1]]
            for row in rows.splitlines()]
