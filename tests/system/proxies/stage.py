"""A proxy between clients and an upstream of the test's own, and what a client makes of a response."""

from under_test import proxy
from wire import Upstream, answer, echoes

from daemon import request


class Received:
    """A client's answer: the 1xx before, then one response, and whether that came whole."""

    def __init__(self, client, head=False):
        self.interim, self.status, self.fields, self.body, self.whole = [], 0, [], b"", False
        try:
            self._read(client, head)
        except (EOFError, ConnectionError, IndexError, ValueError):
            pass

    def _read(self, client, head):
        while True:
            status = int(client.line().split(b" ", 2)[1])
            fields = []
            while line := client.line():
                name, value = line.split(b":", 1)
                fields.append((name.decode().lower(), value.strip().decode("latin-1")))
            if status >= 200 or status == 101:
                break
            self.interim.append(status)
        self.status, self.fields = status, fields
        if head or status in (101, 204, 304):
            self.whole = True
        elif self["transfer-encoding"] == "chunked":
            while size := int(client.line(), 16):
                self.body += client.take(size)
                assert client.take(2) == b"\r\n"
            assert client.line() == b""
            self.whole = True
        elif self["content-length"] is not None:
            size = int(self["content-length"])
            try:
                self.body = client.take(size)
                self.whole = True
            finally:
                self.body = self.body or client.buffer
        else:
            self.body = client.rest()
            self.whole = True

    def all(self, name):
        return [value for key, value in self.fields if key == name]

    def __getitem__(self, name):
        found = self.all(name)
        return found[0] if found else None

    def __repr__(self):
        return f"{self.interim} {self.status} {self.fields} {self.body[:60]!r} {'whole' if self.whole else 'cut'}"


def closes(connection):
    connection.request()
    connection.send(answer(Connection="close"))


class Stage:
    def __init__(self, program, script=echoes, **given):
        self.upstream = Upstream(script)
        self.proxy = proxy(program, self.upstream.port, **given)

    def connect(self, **given):
        return self.proxy.connect(**given)

    def ask(self, raw=None, script=None, head=False):
        """One request on a connection of its own."""
        if script:
            self.upstream.script = script
        with self.connect() as client:
            client.send(raw or request("GET", "/x"))
            return Received(client, head)

    def fresh(self):
        """Has the pool's connections end, so that the next request gets a new one."""
        connections, self.upstream.connections = self.upstream.connections, []
        for connection in connections:
            connection.end()
        self.upstream.wait(lambda: all(each.ended for each in connections), "the end of the connections")

    def forgiven(self):
        """One good response, after which failures count from none again; its connection ends."""
        return self.ask(script=closes).status == 200

    def is_well(self):
        """A plain request is answered by what belongs to it."""
        got = self.ask(request("GET", "/well"), echoes)
        return (got.status, got["x-target"]) == (200, "/well")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.proxy.__exit__(kind)
        self.upstream.close()
