"""What the pages say against the files that decide it. Starts nothing, so it runs with the unit
tests too."""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness.proc import ROOT  # noqa: E402
from readme.pages import RUNNABLE, all_pages, anchors, blocks, links, read, table  # noqa: E402

PRODUCT = 'base loop net feed http hook chain store listen election relay main schema'.split()
# Blocks that nobody runs as they are printed, each with its reason in a comment before it.
NOT_RUN = {'README.md': 1, 'CONTRIBUTING.md': 1, 'docs/clients.md': 3, 'docs/config.md': 1,
           'docs/drill.md': 1, 'docs/install.md': 3,
           'docs/metrics.md': 1, 'docs/publishers.md': 1, 'docs/sites.md': 1, 'docs/tutorial.md': 2,
           'docs/webhooks.md': 2}


def sources(*suffixes):
    """(path, text) of the product's files."""
    for folder in PRODUCT:
        for up, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(suffixes):
                    path = os.path.join(up, name)
                    with open(path) as file:
                        yield path, file.read()


def plain(cell):
    return cell.strip('`')


class Pages(unittest.TestCase):
    def test_the_readme_is_short(self):
        self.assertLessEqual(len(read('README.md').splitlines()), 150)

    def test_the_readme_says_what_is_trusted(self):
        text = read('README.md')
        section = re.search(r'^## What is trusted\n(.*?)^## ', text, re.S | re.M)[1]
        for link in ('docs/security.md', 'docs/applications.md#what-an-application-may-do',
                     'docs/config.md#several-endpoints'):
            self.assertIn(f']({link})', section)
        for word in ('`txrelay_app`', 'owner of the schema'):
            self.assertIn(word, section)

    def test_links_lead_somewhere(self):
        seen = 0
        for page in all_pages():
            for file, anchor in links(page):
                self.assertTrue(os.path.exists(os.path.join(ROOT, file)), f'{page} links to {file}')
                if anchor and file.endswith('.md'):
                    self.assertIn(anchor, anchors(file), f'{page} links to {file}#{anchor}')
                seen += 1
        self.assertGreater(seen, 50)

    def test_the_index_has_every_page(self):
        listed = {file for file, _ in links('docs/README.md')}
        there = {page for page in all_pages() if page.startswith('docs/')} - {'docs/README.md'}
        self.assertEqual(there - listed, set())

    def test_blocks_that_are_not_run(self):
        counts = {}
        for page in all_pages():
            for language, text, not_run in blocks(page):
                if not_run:
                    counts[page] = counts.get(page, 0) + 1
                else:
                    self.assertIn(language, RUNNABLE | {'', 'mermaid'},
                                  f'{page}: nothing runs this block: {text}')
        self.assertEqual(counts, NOT_RUN)

    def test_no_commit_and_no_image_has_a_secret(self):
        """Of any folder: a pattern of .gitignore without a slash goes for all of them, one of
        .dockerignore with ** does."""
        for file, every in (('.gitignore', ''), ('.dockerignore', '**/')):
            patterns = read(file).split()
            for name in ('*.key', '*.password'):
                self.assertIn(every + name, patterns, file)
            self.assertTrue({'/relay.yaml', '*.yaml'} & set(patterns), file)

    def test_the_notice_names_the_code_of_others(self):
        """And is installed with the program."""
        notice = read('NOTICE')
        folders = re.search(r"grep -vE '\^\(([^)]*)\)/'", read('test/lint/lint.sh'))[1].split('|')
        self.assertGreater(len(folders), 1)
        for folder in folders:
            self.assertIn(f'({folder})', notice)
        self.assertIn('bip39_english.txt', notice)
        self.assertRegex(read('main/CMakeLists.txt'), r'install\(FILES [^)]*/NOTICE ')

    def test_every_config_key_is_documented(self):
        keys = set(re.findall(r'(?:STR_\w+|UINT_OPT|BOOL_OPT|CYAML_FIELD_\w+)\(\s*"(\w+)"',
                              read('main/config_file.c')))
        text = read('docs/config.md')
        self.assertGreater(len(keys), 15)
        for key in keys - {'accounts'}:
            self.assertRegex(text, rf'`[\w.\[\]]*\b{key}`', key)

    def test_every_error_code(self):
        code = {name: kind for name, kind in re.findall(r'X\((\w+), -?\d+, (\w+), "',
                                                        read('base/include/base/error.h'))}
        self.assertGreater(len(code), 20)
        page = {plain(row[0]): row[2] for row in table('docs/errors.md', '## Error codes')}
        self.assertEqual(page,
                         {name: kind.lower().replace('_', ' ') for name, kind in code.items()})

    def test_every_sqlstate(self):
        raised = set()
        for _, text in sources('.sql'):
            raised |= set(re.findall(r"ERRCODE\s*=\s*'(TR\d{3})'", text))
        mapped = dict(re.findall(r'\{"(\w+)", ERR_(\w+)\}', read('store/conn/sqlstate.c')))
        self.assertGreater(len(raised), 8)
        page = {plain(row[0]): plain(row[1]) for row in table('docs/errors.md', '## SQLSTATEs')}
        self.assertEqual(page, mapped)
        self.assertEqual({state for state in page if state.startswith('TR')}, raised)

    def test_every_exit_code(self):
        code = re.findall(r'\bEXIT_\w+ = (\d)', read('main/cli.h'))
        self.assertEqual([row[0] for row in table('docs/errors.md', '## Exit codes')], code)

    def test_every_step_of_a_transaction(self):
        """Lines whose level log_transactions names, and the end, which has a row among the
        others."""
        code = set(re.findall(r'"(transaction\.\w+)"', read('relay/account/tally.c')))
        page = {plain(row[0]) for row in table('docs/events.md', '## Steps of a transaction')}
        self.assertGreater(len(code), 5)
        self.assertEqual(page, code - {'transaction.ended'})

    def test_every_log_event(self):
        """Those of every level but debug, with their level."""
        code = {}
        for path, text in sources('.c'):
            for level, first in re.findall(r'\blog_(error|warn|info)\(([^,;]*),', text):
                for event in re.findall(r'"(\w+\.\w+)"', first):
                    code.setdefault(event, set()).add(level)
            for event in re.findall(r'\btell\(n, "(\w+\.\w+)"', text):  # of chain/node
                code.setdefault(event, set()).add('warn')
        self.assertGreater(len(code), 40)
        page = {plain(row[0]): row[1] for row in table('docs/events.md', '## Events')}
        missing = {event: levels for event, levels in code.items() if page.get(event) not in levels}
        self.assertEqual(missing, {}, 'not in docs/events.md with this level')
        # Events that a call does not name by a literal: the text has them all the same.
        text = ' '.join(text for _, text in sources('.c'))
        for event in page.keys() - code.keys():
            first, _, second = event.partition('.')
            self.assertTrue(f'"{event}"' in text
                            or (first in ('tail', 'wait') and f'"{second}"' in text), event)

    def test_every_command(self):
        """docs/commands.md lists the commands that the program has."""
        made = subprocess.run(
            [os.path.join(os.environ.get('TXRELAY_BUILD', os.path.join(ROOT, 'build', 'dev')),
                          'main', 'txrelay'),
                               '--help'], stdout=subprocess.PIPE, text=True, check=True).stdout
        commands = set(re.findall(r'^  ([a-z]+) +\S', made, re.M))
        self.assertGreater(len(commands), 15)
        self.assertEqual({plain(row[0]) for row in table('docs/commands.md', '## Commands')},
                         commands)


if __name__ == '__main__':
    unittest.main()
