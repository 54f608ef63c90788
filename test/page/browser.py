"""A headless Chromium, driven over pipes (driver.mjs)."""
import json
import os
import shutil
import subprocess

from harness import proc

HERE = os.path.dirname(os.path.abspath(__file__))
DESKTOP, PHONE = {'width': 1280, 'height': 860}, {'width': 390, 'height': 844}


class Browser:
    def __init__(self):
        program = os.environ.get('CHROMIUM') or shutil.which('chromium') or shutil.which(
            'chromium-browser')
        if not program:
            raise FileNotFoundError('no chromium: ./dev setup test')
        self.folder = proc.run([os.path.join(HERE, 'setup.sh')], seconds=300).stdout.strip()
        self.process = subprocess.Popen(['node', os.path.join(self.folder, 'driver.mjs'), program],
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        proc.on_exit(self.close)

    def do(self, what, **arguments):
        self.process.stdin.write(json.dumps({'do': what, **arguments}) + '\n')
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if 'error' in answer:
            raise AssertionError(f'{what} {arguments}: {answer["error"]}')
        return answer['value']

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    # Words for what tests do all the time.
    def go(self, where):
        self.do('go', hash=where)

    def js(self, text):
        return self.do('eval', js=text)

    def wait(self, text, ms=60000):
        return self.do('wait', js=text, ms=ms)

    def wait_text(self, words, at='main', ms=60000):
        self.wait(f'document.querySelector({json.dumps(at)})?.innerText'
                  f'.includes({json.dumps(words)})', ms)

    def text(self, at='main'):
        return self.do('text', at=at)

    def click(self, at):
        self.do('click', at=at)

    def fill(self, at, text):
        self.do('fill', at=at, text=text)

    def choose(self, at, value):
        self.do('choose', at=at, value=value)

    def press(self, key):
        self.do('press', key=key)

    def sign_in(self, url, token, dark=False, **size):
        self.do('open', url=url, dark=dark, **(size or DESKTOP))
        self.fill('#token', token)
        self.press('Enter')
        self.wait('document.getElementById("live").innerText === "live"')

    def shot(self, name, full=False):
        return self.do('shot', path=os.path.join(self.folder, f'{name}.png'), full=full)
