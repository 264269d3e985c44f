"""Counts for each kind of client: asked, kept, shed, excused by a link that was down, and broken."""

import asyncio
import sys
import time

from wire import LOSSES, PATIENCE, Broken, Cut, Gateway, Shed

STALL = 3.0  # seconds that a quarter of one, or a command on the board, takes longer than usual: this machine stands still
SLOW = 30    # seconds that an answer may take which otherwise comes at once: a link that was down delays it
SHOWN = 12   # broken promises that are shown word for word


class Kind:
    def __init__(self, name):
        self.name = name
        self.asked = self.kept = self.shed = self.excused = self.broken = self.held_back = 0
        self.took = []

    def figures(self):
        return (("asked", self.asked), ("kept", self.kept), ("shed", self.shed), ("excused", self.excused), ("broken", self.broken),
                ("held_back", self.held_back))


class Counts:
    """All kinds, and the times of those answers that come at once."""

    def __init__(self):
        self.kinds, self.faults, self.took, self.began = {}, [], [], time.monotonic()
        # [since, until] of each time without a link, and without progress of this machine, by the monotonic clock.
        self.link_downs, self.stalls = [], []
        self.cuts = []  # (kind, Cut) of each request on a connection that had rested and was gone
        # [before, after, total] of each time that the board was asked how many connections it has evicted in all.
        self.evicted = []

    def kind(self, name):
        return self.kinds.setdefault(name, Kind(name))

    def total(self, what):
        return sum(getattr(kind, what) for kind in self.kinds.values())

    def broke(self, name, fault, at=None):
        """Counts and shows a broken promise, of now unless a time is given."""
        kind = self.kind(name)
        kind.broken += 1
        if len(self.faults) < SHOWN:
            self.faults.append(f"{name}, at {(at or time.monotonic()) - self.began:.0f} s: {type(fault).__name__}: {str(fault)[:300]}")
            print(f"soak: {self.faults[-1]}", file=sys.stderr, flush=True)

    def excuses(self, fault, since):
        """Tells whether a fault of a client that began then is no fault of the board.

        A link that is down, or was so shortly before that a pooled connection still hangs, explains that the board cannot
        reach the server behind it. A machine that stands still for seconds explains everything: time limits expire. It is
        this script or a command on the board that tells; a coird that takes long to answer is no such sign.
        """
        causes = self.stalls + (self.link_downs if isinstance(fault, Gateway) else [])
        return any(until is None or until > since - 10 for _, until in causes)

    def lost(self, name, fault, since):
        """Counts a piece of work that began then, and that has failed."""
        if self.excuses(fault, since):
            self.kind(name).excused += 1
        elif isinstance(fault, Cut):
            self.cuts.append((name, fault))
        else:
            self.broke(name, fault)

    def settle_cuts(self):
        """Counts as shed each cut that an eviction explains, and the others as broken.

        An eviction explains one cut, if the board may have counted it while that connection rested.
        """
        spans = [[before[0], after[1], after[2] - before[2]] for before, after in zip(self.evicted, self.evicted[1:])]
        for name, cut in sorted(self.cuts, key=lambda each: each[1].noticed):
            span = next((each for each in spans if each[2] > 0 and each[0] <= cut.noticed and cut.since <= each[1]), None)
            if span is None:
                self.broke(name, cut, cut.noticed)
            else:
                span[2] -= 1
                self.kind(name).shed += 1
        self.cuts = []

    async def watch(self, over):
        """Notes when this machine stands still, until the event."""
        while not over.is_set():
            began = time.monotonic()
            await asyncio.sleep(0.25)
            self.note_stall(began, 0.25)

    def note_stall(self, began, expected):
        """Notes a stall if a thing that began then, and ends now, took longer than expected."""
        if time.monotonic() - began > expected + STALL:
            self.stalls.append([began, time.monotonic()])

    def stalled(self):
        """The seconds without progress, each counted once."""
        total, end = 0.0, 0.0
        for since, until in sorted(self.stalls):
            total += max(0.0, until - max(since, end))
            end = max(end, until)
        return total

    async def once(self, name, work, timed=False):
        """Does one piece of work and counts how it ended."""
        kind, began = self.kind(name), time.monotonic()
        kind.asked += 1
        try:
            async with asyncio.timeout(PATIENCE):
                await work()
        except asyncio.CancelledError:
            kind.asked -= 1
            raise
        except Shed:
            kind.shed += 1
        except LOSSES as fault:
            self.lost(name, fault, began)
        else:
            if timed:
                self.took.append(time.monotonic() - began)
                kind.took.append(self.took[-1])
                self.answered(name, began)
            else:
                kind.kept += 1

    def answered(self, name, began):
        """Counts an answer that comes at once, asked for then."""
        took = time.monotonic() - began
        if took > SLOW:
            self.lost(name, Broken(f"the answer took {took:.0f} s"), began)
        else:
            self.kind(name).kept += 1


def percentile(values, share):
    """The value below which that share of the values is, or None."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else None
