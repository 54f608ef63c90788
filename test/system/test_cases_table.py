"""test/cases.md names the tests that there are: none that is gone, and each test of a report in the rows of its name."""
import glob
import os
import re
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Table(unittest.TestCase):
    def test_table_and_tests_agree(self):
        tests = set()
        for path in glob.glob(os.path.join(HERE, 'test_cases_?.py')):
            family = path[-4]
            with open(path) as file:
                for name in re.findall(r'^    def test_(\d\w+)\(self\)', file.read(), re.M):
                    rows = re.match(r'(?:\d+_)+', name)[0].strip('_').split('_')
                    tests |= {(int(row), f'{family}: {name}') for row in rows}
        with open(os.path.join(HERE, '..', 'cases.md')) as file:
            lines = re.findall(r'^\| (\d+) \| (.*) \| (.*) \|$', file.read(), re.M)
        listed = {(int(row), name) for row, names, _ in lines for name in names.split('; ') if re.match(r'\w: ', name)}
        self.assertEqual(tests - listed, set())
        self.assertEqual(listed - tests, set())
        for row, names, state in lines:
            self.assertRegex(state, '^(passes|partly|open)', row)
            self.assertEqual(names == '-', state.startswith('open'), row)


if __name__ == '__main__':
    unittest.main()
