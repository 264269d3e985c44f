"""The server on this machine that the board forwards to: echoes, a feed of numbered events, and WebSockets."""

import asyncio
import base64
import hashlib
import struct

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
HISTORY = 4000  # events that a follower may be behind


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


async def frame_of(reader):
    """The opcode and content of the next frame."""
    first, second = await reader.readexactly(2)
    size = second & 127
    if size == 126:
        size, = struct.unpack(">H", await reader.readexactly(2))
    mask = await reader.readexactly(4) if second & 128 else bytes(4)
    content = await reader.readexactly(size)
    return first & 15, bytes(byte ^ mask[at & 3] for at, byte in enumerate(content))


def frame(content, mask=None, opcode=2):
    size = len(content)
    head = bytes([128 | opcode, (128 if mask else 0) | min(size, 126)]) + (struct.pack(">H", size) if size >= 126 else b"")
    if mask:
        content = bytes(byte ^ mask[at & 3] for at, byte in enumerate(content))
    return head + (mask or b"") + content


class Upstream:
    """A server at an address. The feed's last event is `last`."""

    def __init__(self, events_per_s):
        self.last, self.pause, self.told = 0, 1 / events_per_s, asyncio.Condition()
        self.followers = self.sockets = 0

    async def start(self, address):
        self.server = await asyncio.start_server(self.serve, *address)
        self.clock = asyncio.create_task(self.tick())

    async def stop(self):
        self.clock.cancel()
        self.server.close()

    async def tick(self):
        while True:
            await asyncio.sleep(self.pause)
            async with self.told:
                self.last += 1
                self.told.notify_all()

    async def serve(self, reader, writer):
        try:
            while await self.exchange(reader, writer):
                pass
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def exchange(self, reader, writer):
        """Answers one request; False if the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        target = head[0].split(" ")[1]
        fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("transfer-encoding") == "chunked":
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readuntil(b"\r\n")
        if "upgrade" in fields:
            return await self.talk(reader, writer, fields)
        if target.endswith("/events"):
            return await self.feed(writer, int(fields.get("last-event-id", self.last)))
        body = body or target.encode()
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return True

    async def feed(self, writer, seen):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: ready\n\n")
        self.followers += 1
        try:
            while seen >= self.last - HISTORY:
                async with self.told:
                    await self.told.wait_for(lambda: self.last > seen or writer.is_closing())
                if writer.is_closing():
                    break
                for number in range(seen + 1, self.last + 1):
                    writer.write(f"id: {number}\ndata: event {number}\n\n".encode())
                seen = self.last
                await writer.drain()
        finally:
            self.followers -= 1
        return False

    async def talk(self, reader, writer, fields):
        writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Accept: {accept_of(fields['sec-websocket-key'])}\r\n\r\n").encode())
        self.sockets += 1
        try:
            while True:
                opcode, content = await frame_of(reader)
                writer.write(frame(content, opcode=opcode))
                await writer.drain()
                if opcode == 8:
                    return False
        finally:
            self.sockets -= 1
