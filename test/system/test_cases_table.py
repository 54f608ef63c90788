"""test/cases.md names the tests that there are: none that is gone, and each test of a report in the rows of its name."""
import glob
import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
OTHERS = ('test_controls', 'test_fees', 'test_policy', 'test_leadership', 'test_standby')  # hold tests of reports among others


def tests_of(path, prefix):
    """{(row, name as the table writes it)} of the tests whose names begin with the numbers of rows."""
    with open(path) as file:
        names = re.findall(r'^    def test_(\d\w+)\(self\)', file.read(), re.M)
    return {(int(row), prefix + name) for name in names for row in re.match(r'(?:\d+_)+', name)[0].strip('_').split('_')}


class Table(unittest.TestCase):
    def test_table_and_tests_agree(self):
        tests = set()
        for path in glob.glob(os.path.join(HERE, 'test_cases_?.py')):
            tests |= tests_of(path, f'{path[-4]}: ')
        for name in OTHERS:
            tests |= tests_of(os.path.join(HERE, f'{name}.py'), f'`{name}` ')
        with open(os.path.join(HERE, '..', 'cases.md')) as file:
            lines = re.findall(r'^\| (\d+) \| (.*) \| (.*) \|$', file.read(), re.M)
        ours = re.compile(r'\w: |' + '|'.join(f'`{name}` ' for name in OTHERS))
        listed = {(int(row), name) for row, names, _ in lines for name in names.split('; ') if ours.match(name)}
        self.assertEqual(tests - listed, set())
        self.assertEqual(listed - tests, set())
        for row, names, state in lines:
            self.assertRegex(state, '^(passes|partly|open)', row)
            self.assertEqual(names == '-', state.startswith('open'), row)


if __name__ == '__main__':
    unittest.main()
