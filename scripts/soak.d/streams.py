"""Clients that stay: event streams, WebSockets, a dashboard, an agent that listens, and connections at rest.

Each one counts: an event that is missing or comes twice, an echo that is not what was sent, and a connection that ends
although its client has not ended it, are broken promises.
"""

import asyncio
import base64
import json
import os
import random
import time
from urllib.parse import quote

from agent import message
from clients import AUTHORIZED, TOKEN, want
from upstream import accept_of, frame, frame_of
from wire import LOSSES, PATIENCE, Broken, Shed, Wire, check_served

DASHBOARD_TOKEN = "a-token-for-the-page-of-the-soak"


async def events(wire):
    """The id and data of each event that comes."""
    found = {}
    while True:
        line = await asyncio.wait_for(wire.reader.readuntil(b"\n"), PATIENCE)
        line = line.strip(b"\r\n").decode()
        if not line and "data" in found:
            yield int(found["id"]), found["data"]
            found = {}
        elif line:
            name, _, value = line.partition(":")
            found[name] = value.strip()


class Chunks:
    """The content of an answer in chunks as a stream of bytes, for `events`."""

    def __init__(self, wire):
        self.wire, self.left, self.reader = wire, b"", self

    async def readuntil(self, end):
        while end not in self.left:
            size = int(await self.wire.reader.readuntil(b"\r\n"), 16)
            if size == 0:
                raise EOFError("the stream has ended")
            self.left += await self.wire.reader.readexactly(size)
            await self.wire.reader.readexactly(2)
        taken, rest = self.left.split(end, 1)
        self.left = rest
        return taken + end


class Streams:
    def __init__(self, board, counts, pause):
        """`pause` divides the time between two messages of a socket, and two requests of one that rests."""
        self.board, self.counts, self.pause = board, counts, pause
        self.random = random.Random(5)
        self.open = 0

    async def stay(self, name, once):
        """Lets a client be there until it is cancelled. A loss is counted, and the client comes again."""
        kind = self.counts.kind(name)
        while True:
            kind.asked += 1
            self.open += 1
            try:
                await once()
                kind.kept += 1
            except asyncio.CancelledError:
                kind.kept += 1
                raise
            except Shed:
                kind.shed += 1
                await asyncio.sleep(1)
            except LOSSES as fault:
                self.counts.lost(name, fault, time.monotonic())
                await asyncio.sleep(1)
            finally:
                self.open -= 1

    async def opened(self, target, wanted=200, **fields):
        """A connection whose answer to a GET has begun."""
        wire = await Wire.open(self.board.address)
        try:
            await wire.send((f"GET {target} HTTP/1.1\r\nHost: localhost\r\n" +
                             "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items()) + "\r\n").encode())
            status, head = await wire.head()
            check_served(status)
            want(status == wanted, f"{target}: {status}")
        except BaseException:
            wire.close()
            raise
        return wire, head

    async def follower(self, lasting=None):
        """Follows the feed behind the gateway, each event once, also where it breaks off and resumes."""
        seen = None
        while True:
            resume = {} if seen is None else {"Last_Event_ID": seen}
            wire, head = await self.opened("/app/events", **resume, **AUTHORIZED)
            async with wire:
                until = None if lasting is None else asyncio.get_running_loop().time() + self.random.uniform(0.5, 1.5) * lasting
                async for number, data in events(Chunks(wire) if head.get("transfer-encoding") == "chunked" else wire):
                    want(seen is None or number == seen + 1, f"event {number} came after {seen}")
                    want(data == f"event {number}", f"event {number} says {data!r}")
                    seen = number
                    self.counts.kind("events").kept += 1
                    if until is not None and asyncio.get_running_loop().time() > until:
                        break

    async def talker(self):
        """A WebSocket whose every message comes back."""
        key = base64.b64encode(os.urandom(16)).decode()
        wire, head = await self.opened("/app/socket", 101, Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Version=13,
                                       Sec_WebSocket_Key=key, **AUTHORIZED)
        async with wire:
            want(head.get("sec-websocket-accept") == accept_of(key), "another's key was accepted")
            while True:
                content = os.urandom(self.random.randrange(1, 1500))
                await wire.send(frame(content, os.urandom(4)))
                opcode, back = await asyncio.wait_for(frame_of(wire.reader), PATIENCE)
                want(opcode == 2 and back == content, f"the echo is not what was sent: opcode {opcode}, {len(back)} of {len(content)} bytes")
                self.counts.kind("echoes").kept += 1
                await asyncio.sleep(self.random.uniform(0.5, 1.5) * self.pause)

    async def viewer(self, lasting):
        """Somebody at the dashboard, who signs in and looks for a while."""
        async with await Wire.open(self.board.address) as wire:
            body = b"token=" + quote(DASHBOARD_TOKEN).encode()
            got = await wire.ask("POST", "/dashboard", body, Content_Type="application/x-www-form-urlencoded")
            want(got.status == 303, f"signing in: {got.status}")
            cookie = got["set-cookie"].split(";")[0]
            page = await wire.ask("GET", "/dashboard", Cookie=cookie)
            want(page.status == 200 and b'id="uptime"' in page.body, f"the page: {page.status}")
        wire, head = await self.opened("/dashboard/events", Cookie=cookie)
        async with wire:
            seen, until = None, asyncio.get_running_loop().time() + self.random.uniform(0.5, 1.5) * lasting
            async for number, data in events(Chunks(wire) if head.get("transfer-encoding") == "chunked" else wire):
                want(seen is None or number == seen + 1, f"second {number} came after {seen}")
                json.loads(data)
                seen = number
                if asyncio.get_running_loop().time() > until:
                    return

    async def listener(self):
        """An agent that waits for changes of the tools, of which there is none."""
        async with await Wire.open(self.board.address) as wire:
            await wire.send(message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, token=TOKEN))
            status, _ = await wire.head()
            check_served(status)
            want(status == 200, f"listening: {status}")
            while await wire.reader.read(4096):
                pass
            raise Broken("the stream of an agent has ended")

    async def rester(self):
        """A connection that rests most of the time, and is answered whenever it asks."""
        async with await Wire.open(self.board.address) as wire:
            while True:
                got = await wire.ask("GET", "/100.txt", **AUTHORIZED)
                want(got.status == 200, f"one that rested: {got.status}")
                await asyncio.sleep(self.random.uniform(0.5, 1.5) * min(20 * self.pause, 25))
