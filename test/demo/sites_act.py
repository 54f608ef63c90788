"""The third act: three sites, each a database of its own with a relay, send through one account.
The site that gives the nonces is lost as a whole, relay and database, while it has transactions of
its own and of the others; another one takes over; the lost one comes back, and what waited in its
database is sent as well."""
import threading
import time
from collections import Counter

from harness import invariants, proc, sites_invariants
from harness.sites import Sites

NAMES, ACCOUNT = ('dublin', 'lisbon', 'oslo'), ('treasury', 'sr25519', '//Charlie')
EACH, PACE_S = 60, 0.2
# transactions of a site before the loss, and of another one before the return
BEFORE, AFTER = 12, 8


class SitesAct:
    def __init__(self, demo, paint):
        self.demo, self.paint = demo, paint
        self.sites, self.error = None, None
        self.setting_up = threading.Thread(target=self._set_up, daemon=True)

    def set_up(self):
        """While the first act is played. The relays come later: a child dies with the thread that
        started it."""
        self.setting_up.start()

    def _set_up(self):
        try:
            self.sites = Sites(len(NAMES), names=NAMES, account=ACCOUNT, chain=self.demo.chain,
                               start=False)
        except Exception as error:  # told when it is its turn
            self.error = error

    def run(self):
        say = self.demo.say
        self.setting_up.join()
        if self.error:
            raise self.error
        self.sites.start()
        self.sites.wait_leaders()
        say('')
        say(f'three sites, {", ".join(NAMES)}, with a database each, send through the account '
            f'{ACCOUNT[0]}')
        for site in self.sites.all:
            site.enqueue(1)
        self.first = self.coordinator(self.sites.all)
        say(f'{self.first.name} gives the nonces now; each site enqueues {EACH} transactions')
        self.others = [site for site in self.sites.all if site is not self.first]
        self.gone, self.heard, self.over = threading.Event(), threading.Event(), threading.Event()
        writers = [threading.Thread(target=self.write, args=(site,), daemon=True)
                   for site in self.sites.all]
        for thread in writers:
            thread.start()
        proc.wait_for('some transactions to be final',
                      lambda: all(s.ended() >= BEFORE for s in self.sites.all), 60)
        self.lose()
        for thread in writers:
            thread.join(60)
        if self.error:
            raise self.error
        self.figures = self.sites.settle(120)

    def coordinator(self, sites):
        def one():
            seen = {site.sees()[1] for site in sites}
            return seen.pop() if len(seen) == 1 and None not in seen else None
        name = proc.wait_for('one site to coordinate', one, 60)
        return next(site for site in self.sites.all if site.name == name)

    def write(self, site):
        """An application of a site. Its database is away with the site: then it waits, as the
        site's users do."""
        try:
            for _ in range(EACH - 1):
                if site is self.first and self.gone.is_set():
                    self.heard.set()
                    self.over.wait()
                site.enqueue(1)
                time.sleep(PACE_S)  # the pace of the application
        except Exception as error:
            self.error = error
        finally:
            if site is self.first:
                self.heard.set()

    def lose(self):
        say = self.demo.say
        self.gone.set()
        self.heard.wait()
        self.waiting = len(self.first.unfinished())
        at = {site: site.ended() for site in self.others}
        self.first.away()
        self.lost_at = time.monotonic()
        say(self.paint('31', f'{self.first.name} is lost: kill -9 of its relay, its database '
                             'stopped'))
        proc.wait_for('the other sites to go on',
                      lambda: all(s.ended() >= at[s] + AFTER or not s.unfinished()
                                  for s in self.others), 60)
        self.went_on_s = time.monotonic() - self.lost_at
        self.second = self.coordinator(self.others)
        say(f'{self.second.name} gives the nonces now; '
            f'{" and ".join(s.name for s in self.others)} go on')
        self.first.back()
        self.over.set()
        self.back_s = time.monotonic() - self.lost_at
        say(f'{self.first.name} is back')

    def gather(self):
        """What is wrong with it, or ''."""
        try:
            sites_invariants.check(self.sites, ACCOUNT[0])
        except invariants.Violation as error:
            return str(error)
        return ''

    def report(self):
        """Lines for people."""
        by = Counter()
        for site in self.sites.all:
            by.update(site.coordinators())
        went = self.first.pg.value('''SELECT count(*) FROM txrelay.finished_transactions WHERE id
                                      IS NOT NULL AND coordinator <> %s''',
                                   (self.first.name,))
        rows = [(site.name, site.ended(),
                 f'transactions of its own, and nonces for {by[site.name]} of all')
                 for site in self.sites.all]
        rows += [
            ('lost', f'{self.back_s:.0f} s',
             f'{self.first.name}, with {self.waiting} of its transactions on their way'),
            ('others', f'{self.went_on_s:.0f} s',
             f'until {AFTER} transactions of each were final under {self.second.name}'),
            ('returned', went, f"of {self.first.name}'s transactions got their nonces elsewhere"),
            ('given up', self.figures['given up'],
             'signatures lost their nonce to another one, and were made anew'),
            ('twice', self.figures['duplicates'],
             f"of {self.figures['transactions']} transactions, asked of the chain"),
        ]
        return [f'{what:<10} {n:>6}  {why}' for what, n, why in rows]
