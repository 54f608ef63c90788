"""Prints the commands of docs/tutorial.md as one script for bash: a reader has one shell for the
page."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from readme.pages import to_run  # noqa: E402

print('set -euo pipefail')
for language, text in to_run('docs/tutorial.md'):
    if language == 'sql':
        text = f"psql -X -v ON_ERROR_STOP=1 \"$DB\" <<'END'\n{text}END\n"
    print(text)
