"""A day of load: which clients come how often, what happens to the board meanwhile, and its samples."""

import asyncio
import random
import time

from clients import Clients
from counts import Counts, percentile
from hostile import Hostile
from streams import Streams
from wire import Shed

# Clients that come, ask and go: their rate a second of traffic, and how many may be at it at once. Rates are for a CPU that
# QEMU emulates: at --speed 6 they keep it busy for a good part of the time.
COMING = (("file", 4.0, 4, True), ("newcomer", 2.0, 8, True), ("forwarded", 1.5, 4, True), ("tool", 0.4, 3, True),
          ("agent", 0.02, 1, False), ("secure", 0.15, 3, False), ("upload", 0.2, 3, False), ("slow_upload", 0.03, 2, False),
          ("slow_reader", 0.02, 2, False), ("hostile", 0.3, 8, False))
# Clients that stay, and how many.
STAYING = ("follower", "talker", "rester", "viewer", "listener")
FOLLOWERS, TALKERS, RESTERS, VIEWERS, LISTENERS = 4, 4, 20, 1, 1
BURST = 60           # newcomers at once
LINK_DOWN_S = 2
# The minutes of traffic from one such event to the next.
EVENTS = (("reload", 10), ("link flap", 20), ("burst", 5), ("coirctl", 3))


class Day:
    """Lasts `seconds` of the clock, with `speed` times the traffic."""

    def __init__(self, machine, upstream, seconds, speed, tell):
        self.machine, self.upstream, self.seconds, self.speed, self.tell = machine, upstream, seconds, speed, tell
        self.counts = Counts()
        self.clients, self.hostile = Clients(machine), Hostile(machine)
        self.streams = Streams(machine, self.counts, 6 / speed)
        self.random = random.Random(1970)
        self.samples, self.marks, self.losses = [], [], []
        self.reload_s, self.lasted = [], 0.0
        self.over, self.asked_to_end = asyncio.Event(), False

    def now(self):
        return time.monotonic() - self.began

    async def lasts(self):
        """Runs the day. It ends early if .over is set."""
        self.began = time.monotonic()
        staying = self.start_those_who_stay()
        coming = [asyncio.create_task(self.come(*each)) for each in COMING]
        happening = [asyncio.create_task(self.happen(*each)) for each in EVENTS]
        sampling, watching = asyncio.create_task(self.sample()), asyncio.create_task(self.counts.watch(self.over))
        everyone = [*staying, *coming, *happening, sampling, watching]
        end = asyncio.create_task(self.over.wait())
        await asyncio.wait([end, *everyone], timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
        self.over.set()
        self.lasted = self.now()
        await end
        # Those who come finish what they have begun; those who stay are asked to leave.
        await asyncio.gather(*coming, *happening, sampling, watching, return_exceptions=False)
        for task in staying:
            task.cancel()
        for left in await asyncio.gather(*staying, return_exceptions=True):
            if not isinstance(left, asyncio.CancelledError):
                raise left if isinstance(left, Exception) else RuntimeError(f"a client has left: {left}")
        for _, wire in self.clients.idle:
            wire.close()

    def start_those_who_stay(self):
        stay, each = self.streams.stay, self.streams
        works = [("follower", each.follower)] + [("follower", lambda: each.follower(180 / self.speed))] * (FOLLOWERS - 1)
        works += [("talker", each.talker)] * TALKERS + [("rester", each.rester)] * RESTERS
        works += [("viewer", lambda: each.viewer(240 / self.speed))] * VIEWERS + [("listener", each.listener)] * LISTENERS
        return [asyncio.create_task(stay(name, work)) for name, work in works]

    async def pause(self, seconds):
        """Waits, but not beyond the end. True while the day lasts."""
        try:
            await asyncio.wait_for(self.over.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        return not self.over.is_set()

    async def come(self, name, rate, most, timed):
        """Clients of one kind arrive at random, as independent ones do. While too many are at it, the next is held back."""
        work = self.hostile.next if name == "hostile" else getattr(self.clients, name)
        at_it = set()
        while await self.pause(self.random.expovariate(rate * self.speed)):
            if len(at_it) >= most:
                self.counts.kind(name).held_back += 1
                continue
            task = asyncio.create_task(self.counts.once(name, work, timed))
            at_it.add(task)
            task.add_done_callback(at_it.discard)
        if at_it:
            await asyncio.wait(at_it)

    async def happen(self, name, minutes):
        every = min(60 * minutes / self.speed, self.seconds / 3)
        turn = 0
        while await self.pause(every * self.random.uniform(0.8, 1.2)):
            turn += 1
            if name != "coirctl":
                self.marks.append((self.now(), name))
            began = time.monotonic()
            try:
                await {"reload": self.reload, "link flap": self.flap, "burst": self.burst, "coirctl": self.steer}[name](turn)
            except Shed:
                self.counts.kind(name).shed += 1
            except Exception as fault:  # a command that failed, or an answer that did not come
                self.counts.lost(name, fault, began)

    async def reload(self, turn):
        self.counts.kind("reload").asked += 1
        counts, seconds = await self.machine.reload(turn % 2 == 1)
        self.reload_s.append(seconds)
        if counts:
            self.counts.kind("reload").kept += 1
        else:
            self.counts.broke("reload", "the other routes do not count")

    async def flap(self, _):
        down = [time.monotonic(), None]
        self.counts.link_downs.append(down)
        try:
            await self.machine.flap(LINK_DOWN_S)
        finally:
            down[1] = time.monotonic()

    async def burst(self, _):
        await asyncio.gather(*(self.counts.once("burst", self.clients.newcomer) for _ in range(BURST)))

    async def steer(self, _):
        await self.counts.once("coirctl", self.machine.steer)

    async def look(self):
        """A sample. A coird that takes long to say its part breaks a promise, and is no stall of this machine."""
        kernel, began = await self.machine.kernel_says()
        self.counts.note_stall(began, 1.0)
        self.counts.kind("metrics").asked += 1
        asked = time.monotonic()
        program = await self.machine.program_says()
        self.counts.evicted.append([asked, time.monotonic(), program["evicted"]])
        self.counts.answered("metrics", asked)
        return {**kernel, **program}

    async def sample(self):
        every = max(1.0, min(5.0, self.seconds / 120))
        last_kept = last_told = 0
        last_s = 0.0
        pid = None
        while True:
            begun, sample = self.now(), None
            try:
                sample = await self.look()
            except Shed:
                self.counts.kind("metrics").shed += 1
            except Exception as fault:
                self.losses.append(f"no sample at {begun:.0f} s: {type(fault).__name__}: {str(fault)[:200]}")
                if len(self.losses) > 3:
                    self.over.set()
            if sample is not None:
                if pid is not None and sample["pid"] != pid:
                    self.losses.append(f"at {begun:.0f} s coird has become process {sample['pid']}, it was {pid}")
                pid = sample["pid"]
                kept = self.counts.total("kept")
                took, self.counts.took = self.counts.took, []
                ms = lambda share: None if not took else round(1000 * percentile(took, share), 1)
                self.samples.append({"s": round(begun, 1), **sample, "p50_ms": ms(0.5), "p99_ms": ms(0.99),
                                     "ops": round((kept - last_kept) / max(0.1, begun - last_s), 1),
                                     "shed": self.counts.total("shed"), "broken": self.counts.total("broken")})
                last_kept, last_s = kept, begun
                if begun >= last_told:
                    self.tell(self.samples[-1])
                    last_told = begun + self.seconds / 20
            if not await self.pause(max(0.1, every - (self.now() - begun))):
                return
