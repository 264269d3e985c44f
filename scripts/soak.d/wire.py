"""HTTP/1.1 over one connection, for asyncio. Nothing is tried twice, so that each loss is seen."""

import asyncio
import time

PATIENCE = 90  # seconds that any one wait may take: a bound, not a measurement


class Shed(Exception):
    """The board refused politely: 503, or 429."""


class Gateway(Exception):
    """The board says that it cannot reach the server behind it: 502 or 504."""


class Broken(Exception):
    """A promise is broken."""


class Cut(ConnectionError):
    """The board has ended a connection that had rested since then, before a byte of the next answer came."""

    def __init__(self, since, fault):
        super().__init__(f"ended while it rested: {type(fault).__name__}")
        self.since, self.noticed = since, time.monotonic()


def check_served(status):
    """Raises Shed or Gateway if the status says so."""
    if status in (429, 503):
        raise Shed(status)
    if status in (502, 504):
        raise Gateway(f"{status}")


# A client meets these when the board, or the network, fails it.
LOSSES = (Broken, Gateway, OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError, ValueError)


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def __getitem__(self, name):
        return self.fields.get(name.lower())


class Reader(asyncio.StreamReader):
    """Counts the bytes that have come, read or not."""

    came = 0

    def feed_data(self, data):
        self.came += len(data)
        super().feed_data(data)


class Wire:
    """One connection to the board. Each of open, ask, head and answer raises TimeoutError after PATIENCE."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.rest = None  # since when it rests, and how many bytes had come by then

    @classmethod
    async def open(cls, address, tls=None):
        named = {"ssl": tls, "server_hostname": "localhost"} if tls else {}
        reader = Reader()
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE):
            transport, _ = await loop.create_connection(lambda: protocol, *address, **named)
        return cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, method, target, body=None, **fields):
        """Sends a request and returns its whole answer. Raises Shed, Gateway, Cut, or what the connection raises."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self.send(request(method, target, body, **fields))
                return await self.answer()
        except (ConnectionError, EOFError) as fault:
            if self.rest is None or self.reader.came > self.rest[1]:
                raise
            raise Cut(self.rest[0], fault) from fault

    async def head(self):
        """The status and the fields of the next answer."""
        async with asyncio.timeout(PATIENCE):
            line = (await self.reader.readuntil(b"\r\n")).split(b" ", 2)
            if line[0] != b"HTTP/1.1":
                raise Broken(f"no answer of HTTP: {line[0][:40]!r}")
            fields = {}
            while (line_of := await self.reader.readuntil(b"\r\n")) != b"\r\n":
                name, value = line_of.decode("latin-1").split(":", 1)
                fields[name.lower()] = value.strip()
        return int(line[1]), fields

    async def answer(self):
        """The whole next answer. Raises Shed and Gateway, too."""
        async with asyncio.timeout(PATIENCE):
            status, fields = await self.head()
            body = await self.body(status, fields)
        self.rest = time.monotonic(), self.reader.came
        check_served(status)
        return Answer(status, fields, body)

    async def body(self, status, fields):
        body = b""
        if status not in (204, 304) and status >= 200:
            if fields.get("transfer-encoding") == "chunked":
                while size := int(await self.reader.readuntil(b"\r\n"), 16):
                    body += await self.reader.readexactly(size)
                    await self.reader.readexactly(2)
                await self.reader.readuntil(b"\r\n")
            elif "content-length" in fields:
                body = await self.reader.readexactly(int(fields["content-length"]))
            else:
                body = await self.reader.read()
        return body

    async def ended(self):
        """Reads until the board ends the connection, in whatever way."""
        got = b""
        try:
            while piece := await self.reader.read(1 << 16):
                got += piece
        except OSError:
            pass
        return got

    def close(self):
        self.writer.close()

    def reset(self):
        """Ends the connection as a client that vanishes."""
        self.writer.transport.abort()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()


def request(method, target, body=None, **fields):
    lines = [f"{method} {target} HTTP/1.1"]
    fields.setdefault("Host", "localhost")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")
