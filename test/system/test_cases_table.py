"""test/cases.md names the tests that there are: none that is gone, and each test of a report in the rows of its name."""
import glob
import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
OTHERS = ('test_controls', 'test_fees', 'test_policy', 'test_leadership', 'test_standby')  # hold tests of reports among others


def name_of(path):
    return os.path.basename(path)[len('test_cases_'):-len('.py')]


def tests_of(path, prefix):
    """{(row, name as the table writes it)} of the tests whose names begin with the numbers of rows."""
    with open(path) as file:
        names = re.findall(r'^    def test_(\d\w+)\(self\)', file.read(), re.M)
    return {(int(row), prefix + name) for name in names for row in re.match(r'(?:\d+_)+', name)[0].strip('_').split('_')}


class Table(unittest.TestCase):
    def test_table_and_tests_agree(self):
        tests = set()
        families = sorted(set(glob.glob(os.path.join(HERE, 'test_cases_*.py'))) - {os.path.abspath(__file__)})
        self.assertGreaterEqual(len(families), 13)
        for path in families:
            tests |= tests_of(path, f'`{name_of(path)}` ')
        for name in OTHERS:
            tests |= tests_of(os.path.join(HERE, f'{name}.py'), f'`{name}` ')
        with open(os.path.join(HERE, '..', 'cases.md')) as file:
            lines = re.findall(r'^\| (\d+) \| [^|]+ \| (.*) \| (.*) \|$', file.read(), re.M)
        ours = re.compile('|'.join(f'`{name}` ' for name in (*map(name_of, families), *OTHERS)))
        listed = {(int(row), name) for row, names, _ in lines for name in names.split('; ') if ours.match(name)}
        self.assertEqual(tests - listed, set())
        self.assertEqual(listed - tests, set())
        for row, names, state in lines:
            self.assertRegex(state, '^(passes|partly|open)', row)
            self.assertEqual(names == '-', state.startswith('open'), row)


if __name__ == '__main__':
    unittest.main()
