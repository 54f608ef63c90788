"""What a reader decides, without a connection: which page to read next, what to deliver, when to
look again."""
from __future__ import annotations

import json
import time
from typing import Iterator, Optional, Union

from . import statements
from .statements import End, Gap, Statement

LOOK_S = 30
OVERLAP_US = 60_000_000


class Follower:
    """Each round: place(), then page() and rows() until page() is None, then wait for a
    notification, LOOK_S at most."""

    def __init__(self, position: Optional[int], account: Optional[str]):
        self.reached, self.account = position, account
        self.floor = 0  # what ended before it was not asked for
        self.whole: Optional[float] = None  # when a scan began before the last position
        self.delivered: dict[int, int] = {}
        self.next: Optional[tuple[int, int]] = None

    def place(self, now: str, kept: Optional[str]) -> Iterator[Gap]:
        self.up_to, first = int(now), self.whole is None
        if self.reached is None:
            self.reached = self.floor = self.up_to
        elif first and kept and int(kept) > self.reached:
            yield Gap(self.reached, statements.micros(int(kept)))
        # Once a minute from before the last position: an owner without pg_read_all_stats does not
        # see all open transactions.
        again = first or time.monotonic() - self.whole >= OVERLAP_US / 1e6
        if again:
            self.whole = time.monotonic()
        self.next = max(self.floor, self.reached - OVERLAP_US if again else self.reached), -1

    def page(self) -> Optional[Statement]:
        if self.next is None:
            self.reached = max(self.reached, self.up_to)
            self.delivered = {i: at for i, at in self.delivered.items()
                              if at >= self.reached - 2 * OVERLAP_US}
            return None
        at, id = self.next
        return statements.ENDS, [str(at), str(id), str(at)]

    def rows(self, texts: list[str]) -> Iterator[Union[End, Gap]]:
        found = [json.loads(t) for t in texts]
        self.next = (found[-1]['at'], found[-1]['id']) if len(found) == statements.ROWS else None
        for row in found:
            if row['id'] in self.delivered:
                continue
            at = self.delivered[row['id']] = row.pop('at')
            self.reached = max(self.reached, min(at, self.up_to))
            if self.account in (None, row['account']):
                yield End(position=self.reached, ended_at=statements.micros(at), **row)
