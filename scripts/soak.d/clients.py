"""Clients that behave, and ask for one thing at a time: files, uploads, what is forwarded, tools, and newcomers."""

import asyncio
import hashlib
import os
import random
import time

from agent import message, messages_in
from wire import Broken, Wire, check_served

TOKEN = "a-token-of-the-soak-that-nobody-guesses"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}
LONGEST_REST_S = 30  # of a connection that is used again
FILES = {"/100.txt": 100, "/page.html": 6_000, "/picture.bin": 60_000}


def contents(name):
    """The content of a file of the site: the same in each run."""
    return random.Random(name).randbytes(FILES[name])


def want(condition, text):
    if not condition:
        raise Broken(text)


class Clients:
    """All of them; `board` has .address, .tls_address and .tls (a context)."""

    def __init__(self, board):
        self.board, self.random = board, random.Random(34)
        self.idle = []  # (since when, connection) of those that wait for a request
        self.names = asyncio.Queue()
        for number in range(8):
            self.names.put_nowait(f"/uploads/{number}.bin")
        self.site = {name: contents(name) for name in FILES}

    async def kept(self, work):
        """Does work(wire) on a connection that is kept for the next one, if all goes well.

        The one that has rested for longest is next, and one that the board may have ended meanwhile (--idle-timeout is 60 s) is not used.
        """
        now = time.monotonic()
        while self.idle and now - self.idle[0][0] > LONGEST_REST_S:
            self.idle.pop(0)[1].close()
        wire = self.idle.pop(0)[1] if self.idle else await Wire.open(self.board.address)
        try:
            await work(wire)
        except BaseException:
            wire.close()
            raise
        self.idle.append((time.monotonic(), wire))

    async def file(self):
        name = self.random.choice(list(self.site))
        whole = self.site[name]
        way = self.random.randrange(8)

        async def work(wire):
            if way == 0:
                at = self.random.randrange(len(whole) - 50)
                got = await wire.ask("GET", name, Range=f"bytes={at}-{at + 49}", **AUTHORIZED)
                want(got.status == 206 and got.body == whole[at:at + 50], f"{name}: {got.status}, a wrong part")
                return
            got = await wire.ask("GET", name, **AUTHORIZED)
            want(got.status == 200 and got.body == whole, f"{name}: {got.status}, {len(got.body)} bytes")
            if way == 1:
                again = await wire.ask("GET", name, If_None_Match=got["etag"], **AUTHORIZED)
                want(again.status == 304, f"{name}: {again.status} for its own tag")
        await self.kept(work)

    async def newcomer(self):
        """A connection for one request, as most clients of the world."""
        async with await Wire.open(self.board.address) as wire:
            got = await wire.ask("GET", "/100.txt", Connection="close", **AUTHORIZED)
            want(got.status == 200 and got.body == self.site["/100.txt"], f"{got.status}")

    async def secure(self):
        async with await Wire.open(self.board.tls_address, self.board.tls) as wire:
            for name in ("/100.txt", "/page.html"):
                got = await wire.ask("GET", name, **AUTHORIZED)
                want(got.status == 200 and got.body == self.site[name], f"{name} over TLS: {got.status}")

    async def upload(self, piece=1 << 20, pause=0.0):
        """Reads back each upload that was acknowledged, and compares its sum."""
        name, body = await self.names.get(), os.urandom(self.random.randrange(1, 40_000))
        try:
            async with await Wire.open(self.board.address) as wire:
                await wire.send(f"PUT {name} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
                                f"Content-Length: {len(body)}\r\n\r\n".encode())
                for at in range(0, len(body), piece):
                    await wire.send(body[at:at + piece])
                    await asyncio.sleep(pause)
                got = await wire.answer()
                want(got.status in (201, 204), f"PUT {name}: {got.status}")
                back = await wire.ask("GET", name, **AUTHORIZED)
                want(back.status == 200 and hashlib.sha256(back.body).digest() == hashlib.sha256(body).digest(),
                     f"{name}, acknowledged, is not what was sent: {back.status}, {len(back.body)} of {len(body)} bytes")
        finally:
            self.names.put_nowait(name)

    async def slow_upload(self):
        await self.upload(4_000, 0.4)

    async def slow_reader(self):
        async with await Wire.open(self.board.address) as wire:
            await wire.send(f"GET /picture.bin HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            status, _ = await wire.head()
            check_served(status)
            want(status == 200, f"a slow reader: {status}")
            got = b""
            while len(got) < FILES["/picture.bin"]:
                got += await wire.reader.readexactly(min(4_000, FILES["/picture.bin"] - len(got)))
                await asyncio.sleep(0.2)
            want(got == self.site["/picture.bin"], "a slow reader got other bytes")

    async def forwarded(self):
        body = os.urandom(self.random.randrange(1, 20_000))

        async def work(wire):
            got = await wire.ask("POST", "/app/echo", body, **AUTHORIZED)
            want(got.status == 200 and got.body == body, f"forwarded: {got.status}, {len(got.body)} of {len(body)} bytes")
        await self.kept(work)

    async def tool(self):
        tool = self.random.choice(["system", "memory", "temperature", "read_pin", "led"])
        arguments = {"read_pin": {"pin": "7"}, "led": {"name": "user", "brightness": self.random.randrange(200)}}.get(tool, {})
        async with await Wire.open(self.board.address) as wire:
            await wire.send(message("tools/call", {"name": tool, "arguments": arguments}, token=TOKEN))
            got = await wire.answer()
            last = (messages_in(got) or [{}])[-1]
            want(got.status == 200 and "result" in last and not last["result"].get("isError"), f"{tool}: {got.status} {got.body[:200]}")

    async def agent(self):
        """Asks for the list of tools, as an agent does first."""
        async with await Wire.open(self.board.address) as wire:
            await wire.send(message("tools/list", token=TOKEN))
            got = await wire.answer()
            want(got.status == 200 and b'"read_pin"' in got.body, f"tools/list: {got.status}")
