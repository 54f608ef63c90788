"""test/sites.md and test/feeds.md name the tests of the rows of the requirements: each test exists,
and each row is there once. A test that is renamed or removed is mended there too."""
import glob
import os
import re
import unittest

TEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')


def tests():
    """{place: {test}}: a place is a file of tests, without its folder and ending."""
    found = {}
    for path in glob.glob(os.path.join(TEST, '**', '*.*'), recursive=True):
        place, ending = os.path.splitext(os.path.basename(path))
        pattern = {'.c': r'^static void (\w+)\(void \*\*\w+\)', '.py': r'^    def test_(\w+)\(self'}
        if ending in pattern:
            with open(path) as file:
                found.setdefault(place, set()).update(
                    re.findall(pattern[ending], file.read(), re.M))
    return found


def table(page, letters):
    """[(row, [(place, test)])] of a page; a row without a test has `-`."""
    with open(os.path.join(TEST, page)) as file:
        lines = re.findall(r'^\| ((?:%s)\d+) \| (.*) \|$' % letters, file.read(), re.M)
    return [(row, [re.fullmatch(r'`(\w+)` (\w+)', name).groups() for name in names.split('; ')
                   if name != '-']) for row, names in lines]


class Table(unittest.TestCase):
    def agrees(self, page, letters, rows, named):
        there, lines = tests(), table(page, letters)
        gone = [(row, place, test) for row, names in lines for place, test in names
                if test not in there.get(place, ())]
        self.assertEqual(gone, [])
        self.assertEqual((len({row for row, _ in lines}), len(lines)), (rows, rows))
        self.assertEqual(len([row for row, names in lines if names]), named)
        for row, names in lines:
            self.assertEqual(len(set(names)), len(names), row)

    def test_the_rows_of_sites(self):
        self.agrees('sites.md', 'P', 82, 82)

    def test_the_rows_of_feeds(self):
        self.agrees('feeds.md', 'BP?', 56, 56)


if __name__ == '__main__':
    unittest.main()
