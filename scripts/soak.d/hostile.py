"""Clients that attack, break off, or say nothing. None of them may get what it has no right to, nor stay for long."""

import asyncio
import random

from clients import AUTHORIZED, TOKEN, want
from wire import Wire, check_served, request

REFUSED = (400, 401, 403, 404, 405, 408, 411, 413, 414, 417, 421, 431, 501, 505)


async def refused(wire, statuses=REFUSED):
    """The answer is one of these errors, or the end of the connection."""
    got = await wire.ended()
    if got:
        status = int(got.split(b" ", 2)[1])
        check_served(status)
        want(status in statuses, f"answered {status}: {got[:120]!r}")


class Hostile:
    def __init__(self, board):
        self.board, self.random = board, random.Random(43)
        self.ways = [self.noise, self.long_head, self.two_lengths, self.climber, self.guesser, self.slow_head, self.broken_upload,
                     self.half_handshake, self.plain_to_tls, self.silent, self.broken_tunnel, self.endless_chunk]
        self.turn = 0

    async def next(self):
        """The next way, in turn: after a round each has been taken."""
        self.turn += 1
        await self.ways[self.turn % len(self.ways)]()

    async def say(self, data, statuses=REFUSED):
        async with await Wire.open(self.board.address) as wire:
            await wire.send(data)
            await refused(wire, statuses)

    async def noise(self):
        await self.say(self.random.randbytes(300) + b"\r\n\r\n")

    async def long_head(self):
        await self.say(request("GET", "/100.txt", Connection="close", X_Long="x" * 40_000, **AUTHORIZED))

    async def two_lengths(self):
        await self.say(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd")

    async def climber(self):
        await self.say(request("GET", self.random.choice(["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/.hidden"]), Connection="close",
                               **AUTHORIZED))

    async def guesser(self):
        await self.say(request("GET", "/100.txt", Connection="close", Authorization="Bearer wrong" + str(self.turn)), (401,))

    async def slow_head(self):
        """A byte of the head at a time, until the board has had enough."""
        async with await Wire.open(self.board.address) as wire:
            end = asyncio.create_task(wire.ended())
            for byte in request("GET", "/100.txt", X_Long="x" * 400):
                if end.done():
                    break
                try:
                    await wire.send(bytes([byte]))
                except OSError:
                    break
                await asyncio.sleep(0.5)
            await end
            want(b" 200 " not in (await end)[:20], "a head that took minutes was answered")

    async def broken_upload(self):
        wire = await Wire.open(self.board.address)
        await wire.send(f"PUT /uploads/never HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9000\r\n\r\n".encode())
        await wire.send(bytes(3000))
        wire.reset()
        async with await Wire.open(self.board.address) as other:
            got = await other.ask("GET", "/uploads/never", **AUTHORIZED)
            want(got.status == 404, f"a part of an upload is there: {got.status}")

    async def half_handshake(self):
        """The beginning of a ClientHello, and then the end."""
        async with await Wire.open(self.board.tls_address) as wire:
            await wire.send(bytes.fromhex("1603010200010001fc0303") + self.random.randbytes(40))
            await asyncio.sleep(0.5)

    async def plain_to_tls(self):
        async with await Wire.open(self.board.tls_address) as wire:
            await wire.send(request("GET", "/100.txt", **AUTHORIZED))
            want(b"200 OK" not in await wire.ended(), "plain text is served on the port of TLS")

    async def silent(self):
        async with await Wire.open(self.board.address):
            await asyncio.sleep(3)

    async def broken_tunnel(self):
        wire = await Wire.open(self.board.address)
        await wire.send(request("GET", "/app/socket", Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Version=13,
                                Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==", **AUTHORIZED))
        await wire.head()
        await wire.send(b"\x82\xfe\xff\xff")
        wire.reset()

    async def endless_chunk(self):
        await self.say(request("POST", "/app/echo", Connection="close", Transfer_Encoding="chunked", **AUTHORIZED) + b"f" * 40 + b"\r\n")
