"""test/cases.md names the tests that there are: none that is gone, and each test of a report in
the rows of its name."""
import glob
import os
import re
import unittest

from readme.pages import anchors, links

HERE = os.path.dirname(os.path.abspath(__file__))
TEST = os.path.join(HERE, '..')
# hold tests of reports among others
OTHERS = ('test_controls', 'test_fees', 'test_policy', 'test_leadership', 'test_standby')


def name_of(path):
    return os.path.basename(path)[len('test_cases_'):-len('.py')]


def tests_of(path, prefix):
    """{(row, name as the table writes it)} of the tests whose names begin with the numbers of
    rows."""
    with open(path) as file:
        names = re.findall(r'^    def test_(\d\w+)\(self\)', file.read(), re.M)
    return {(int(row), prefix + name) for name in names
            for row in re.match(r'(?:\d+_)+', name)[0].strip('_').split('_')}


def text_of(place):
    """The tests of a place that the table names: a folder of test/, or a file of this folder
    without its ending."""
    paths = (glob.glob(os.path.join(HERE, '..', '..', place, '*')) if place.startswith('test/')
             else [os.path.join(
                 HERE, f'{place if place.startswith("test_") else f"test_cases_{place}"}.py')])
    return '\n'.join(open(path).read() for path in paths)


def missing(part):
    """Of `place` name, name: the names that no test there has."""
    place, names = re.fullmatch(r'`([^`]+)` (.*)', part).groups()
    if place.startswith('./dev'):
        return [] if os.path.exists(os.path.join(HERE,
                                                 f'test_{place[len("./dev "):]}.py')) else [place]
    tests = set(re.findall(r'\bdef test_(\w+)\(|^static void (?:test_)?(\w+)\(void \*\*state\)',
                           text_of(place), re.M))
    tests = {name for pair in tests for name in pair}
    return [name for name in names.split(', ') if name.replace(' ', '_') not in tests]


class Table(unittest.TestCase):
    def test_table_and_tests_agree(self):
        tests = set()
        families = sorted(set(glob.glob(os.path.join(HERE, 'test_cases_*.py'))) - {
            os.path.abspath(__file__)})
        self.assertGreaterEqual(len(families), 13)
        for path in families:
            tests |= tests_of(path, f'`{name_of(path)}` ')
        for name in OTHERS:
            tests |= tests_of(os.path.join(HERE, f'{name}.py'), f'`{name}` ')
        with open(os.path.join(TEST, 'cases.md')) as file:
            lines = re.findall(r'^\| (\d+) \| [^|]+ \| (.*) \| (.*) \|$', file.read(), re.M)
        ours = re.compile('|'.join(f'`{name}` ' for name in (*map(name_of, families), *OTHERS)))
        listed = {(int(row), name) for row, names, _ in lines for name in names.split('; ')
                  if ours.match(name)}
        self.assertEqual(tests - listed, set())
        self.assertEqual(listed - tests, set())
        self.assertEqual(len({row for row, _, _ in lines}), 128)
        for row, names, state in lines:
            self.assertRegex(state, '^(passes|partly|open)', row)
            self.assertEqual(names == '-', state.startswith('open'), row)
            for part in names.split('; ') if names != '-' else ():
                self.assertEqual(missing(part), [], row)

    def test_the_tried_reports_are_there(self):
        """Each by letter and number, once, with tests that there are."""
        with open(os.path.join(TEST, 'cases.md')) as file:
            lines = re.findall(r'^\| ([RFC]\d+) \| [^|]+ \| (.*) \|$', file.read(), re.M)
        self.assertEqual([row for row, _ in lines],
                         [f'{letter}{n + 1}' for letter, most in (('R', 15), ('F', 8), ('C', 7))
                                                     for n in range(most)])
        for row, names in lines:
            for part in names.split('; '):
                self.assertEqual(missing(part), [], row)

    def test_what_the_table_points_at_is_there(self):
        """Metrics that it names, and pages and headings that it links to."""
        with open(os.path.join(TEST, 'cases.md')) as file:
            text = file.read()
        with open(os.path.join(TEST, '..', 'docs', 'metrics.md')) as file:
            metrics = set(re.findall(r'^\| `(txrelay_\w+)` \|', file.read(), re.M))
        named = set(re.findall(r'`(txrelay_\w+)`', text))
        self.assertGreater(len(named), 2)
        self.assertEqual(named - metrics, set())
        found = list(links('test/cases.md'))
        self.assertGreater(len(found), 2)
        for file, anchor in found:
            self.assertTrue(os.path.exists(os.path.join(TEST, '..', file)), file)
            if anchor:
                self.assertIn(anchor, anchors(file), f'{file}#{anchor}')
        self.assertEqual(re.findall(r'README \([^)]*\)', text), [],
                         'a heading that no test can follow')


if __name__ == '__main__':
    unittest.main()
