"""test/sites.md names the tests whose names begin with the rows of sites (P01 to P103): all of
them, and none that is gone."""
import glob
import os
import re
import unittest

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')


def tests():
    """{(row, test)}: a name begins with the numbers of its rows."""
    found = set()
    for path in glob.glob(os.path.join(TEST, 'unit', 'site', '*.c')) + [os.path.join(TEST, 'schema',
                                                                                  'test_sites.py')]:
        with open(path) as file:
            text = file.read()
        place = os.path.basename(path).split('.')[0]
        for name in re.findall(r'^(?:static void |    def test_)(p\d\w*)\(', text, re.M):
            rows = re.match(r'(?:p\d+_)+', name)[0].strip('_').split('_')
            found |= {(row.upper(), f'`{place}` {name}') for row in rows}
    return found


class Table(unittest.TestCase):
    def test_table_and_tests_agree(self):
        with open(os.path.join(TEST, 'sites.md')) as file:
            lines = re.findall(r'^\| (P\d+) \| (.*) \|$', file.read(), re.M)
        self.assertEqual((len({row for row, _ in lines}), len(lines)), (82, 82))
        listed = {(row, name) for row, names in lines for name in names.split('; ') if names != '-'}
        self.assertEqual(listed, tests())


if __name__ == '__main__':
    unittest.main()
