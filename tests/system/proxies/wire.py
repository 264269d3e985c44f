"""HTTP/1.1 byte for byte: a reader of requests that forgives nothing, and upstreams of the test's own that record all they saw."""

import contextlib
import fcntl
import re
import socket
import struct
import termios
import threading
import time

PATIENCE = 60  # seconds that any one wait may take: a bound, not a measurement

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[!-~]*|\*) HTTP/1\.1")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,16}")
DANGEROUS = ("host", "content-length", "transfer-encoding", "connection", "x-forwarded-for", "x-forwarded-proto", "forwarded")


class Malformed(Exception):
    """The bytes are no request that every server reads alike."""


class Unfinished(Exception):
    """The bytes are the beginning of a request."""


class Request:
    def __init__(self, method, target, fields):
        self.method, self.target, self.fields = method, target, fields
        self.body, self.trailers = b"", []

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def __getitem__(self, name):
        found = self.all(name)
        return found[0] if found else None

    def __repr__(self):
        return f"{self.method} {self.target} {self.fields} {self.body[:60]!r} {self.trailers}"


def _lines(raw, at):
    """The lines up to the empty one, and where that ends."""
    end = raw.find(b"\r\n\r\n", at)
    if end < 0:
        raise Unfinished()
    return bytes(raw[at:end]).split(b"\r\n"), end + 4


def _field(line):
    found = _FIELD.fullmatch(line)
    if not found:
        raise Malformed(f"the field {line!r}")
    return found[1].decode(), found[2].decode("latin-1")


def read_head(raw, at=0):
    """The head that begins at `at`, and where it ends. Framing is as strict as a server can be."""
    if raw[at:at + 1] in (b"\r", b"\n"):
        raise Malformed("an empty line before the request")
    lines, at = _lines(raw, at)
    found = _LINE.fullmatch(lines[0])
    if not found:
        raise Malformed(f"the line {lines[0]!r}")
    request = Request(found[1].decode(), found[2].decode(), [_field(line) for line in lines[1:]])
    hosts, lengths, codings = (request.all(name) for name in ("Host", "Content-Length", "Transfer-Encoding"))
    if len(hosts) != 1:
        raise Malformed(f"{len(hosts)} Host fields")
    if len(lengths) + len(codings) > 1:
        raise Malformed(f"framed more than once: {lengths} {codings}")
    if codings and codings != ["chunked"]:
        raise Malformed(f"Transfer-Encoding: {codings[0]!r}")
    if lengths and not re.fullmatch("[0-9]{1,18}", lengths[0]):
        raise Malformed(f"Content-Length: {lengths[0]!r}")
    names = [key.lower() for key, _ in request.fields]
    for name in names:
        # A program behind the upstream may read both by one name.
        if "_" in name and (name.replace("_", "-") in names or name.replace("_", "-") in DANGEROUS):
            raise Malformed(f"a twin of another field: {name}")
    for key, _ in request.fields:
        if key.lower() in ("te", "keep-alive", "proxy-connection", "proxy-authorization") and request[key] != "trailers":
            raise Malformed(f"the hop's field {key}")
    if any(option.strip().lower() not in ("close", "keep-alive", "upgrade", "te", "") for value in request.all("Connection")
           for option in value.split(",")):
        raise Malformed(f"Connection: {request.all('Connection')}")
    return request, at


def read_request(raw, at=0):
    """The whole request that begins at `at`, and where it ends."""
    request, at = read_head(raw, at)
    if request["Transfer-Encoding"]:
        while True:
            end = raw.find(b"\r\n", at)
            if end < 0:
                if not re.fullmatch(rb"[0-9a-fA-F]{0,16}\r?", bytes(raw[at:])):
                    raise Malformed(f"the chunk's line {bytes(raw[at:at + 40])!r}")
                raise Unfinished()
            line = bytes(raw[at:end])
            if not _CHUNK.fullmatch(line):
                raise Malformed(f"the chunk's line {line!r}")
            size, at = int(line, 16), end + 2
            if size == 0:
                break
            if len(raw) < at + size + 2:
                raise Unfinished()
            if raw[at + size:at + size + 2] != b"\r\n":
                raise Malformed("a chunk without its end")
            request.body += bytes(raw[at:at + size])
            at += size + 2
        if raw[at:at + 2] == b"\r\n":
            return request, at + 2
        if len(raw) < at + 2:
            raise Unfinished()
        lines, at = _lines(raw, at)
        request.trailers = [_field(line) for line in lines]
        for key, _ in request.trailers:
            if key.lower() in ("content-length", "transfer-encoding", "host", "trailer", "te", "authorization", "connection"):
                raise Malformed(f"the trailer {key}")
        return request, at
    size = int(request["Content-Length"] or 0)
    if len(raw) < at + size:
        raise Unfinished()
    request.body = bytes(raw[at:at + size])
    return request, at + size


def unread_bytes(plain):
    """How many bytes the kernel holds for this end."""
    if plain.fileno() < 0:
        return 0
    return struct.unpack("i", fcntl.ioctl(plain.fileno(), termios.FIONREAD, b"\0\0\0\0"))[0]


class Connection:
    """An upstream's end of one connection. All that ever came is in .raw."""

    def __init__(self, plain):
        self.plain, self.raw, self.at, self.ended = plain, bytearray(), 0, False
        self.reading = threading.Lock()  # held from before bytes leave the socket until they are in .raw
        plain.settimeout(PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def more(self):
        try:
            self.plain.recv(1, socket.MSG_PEEK)
        except ConnectionError:
            pass
        with self.reading:
            try:
                got = self.plain.recv(1 << 16)
            except ConnectionError:
                got = b""
            if not got:
                self.ended = True
                raise EOFError()
            self.raw += got

    def is_read(self):
        """Whether all that has come to its socket is in .raw."""
        with self.reading:
            return self.ended or unread_bytes(self.plain) == 0

    def _read(self, how):
        while True:
            try:
                request, self.at = how(self.raw, self.at)
                return request
            except Unfinished:
                self.more()

    def head(self):
        """Waits for a head; what is behind it stays."""
        return self._read(read_head)

    def request(self):
        return self._read(read_request)

    def behind(self):
        """The bytes behind those that were read, until now."""
        return bytes(self.raw[self.at:])

    def take(self, size):
        while len(self.raw) < self.at + size:
            self.more()
        self.at += size
        return bytes(self.raw[self.at - size:self.at])

    def send(self, data):
        self.plain.sendall(data)

    def drain(self):
        """Reads until the peer ends its side."""
        try:
            while True:
                self.more()
        except EOFError:
            pass

    def end(self):
        """Ends both sides, from any thread: one that reads is woken."""
        try:
            self.plain.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def answer(body=b"hello", status="200 OK", **fields):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def echoes(connection):
    """The upstream that most tests want: answers each request with its content, and names its target."""
    while True:
        request = connection.request()
        head = request.method == "HEAD"
        connection.send(answer(b"" if head else request.body, X_Target=request.target, X_Method=request.method))


class Upstream:
    """Runs script(connection) on a thread for each connection. .script may be changed at any time."""

    def __init__(self, script=echoes):
        self.script, self.connections = script, []
        self._silent = {}  # those accepted of which nothing has been looked at, and their peers' names
        self._changed = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                plain, name = self.listener.accept()
            except OSError:
                return
            with self._changed:
                self._silent[plain] = name
                self._changed.notify_all()
            threading.Thread(target=self._run, args=(plain,), daemon=True).start()

    def _run(self, plain):
        # A connection that says nothing was a look whether somebody is there.
        try:
            if not plain.recv(1, socket.MSG_PEEK):
                return self._looked_at(plain)
        except OSError:
            return self._looked_at(plain)
        connection = Connection(plain)
        with self._changed:
            self._silent.pop(plain)
            self.connections.append(connection)
            self._changed.notify_all()
        try:
            self.script(connection)
        except (EOFError, OSError, Malformed):
            pass
        finally:
            connection.plain.close()
            with self._changed:
                connection.ended = True
                self._changed.notify_all()

    def _looked_at(self, plain):
        with self._changed:
            self._silent.pop(plain)
            plain.close()

    def wait(self, condition, what="the condition"):
        """Waits until the condition, of what has come here, holds."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not condition():
                assert time.monotonic() < deadline, f"{what} did not come about in {PATIENCE} s"
                self._changed.wait(0.01)

    def forget(self):
        """Forgets what has come; open connections stay, and their next bytes count anew."""
        with self._changed:
            self.connections = [each for each in self.connections if not each.ended]
            for each in self.connections:
                del each.raw[:each.at]
                each.at = 0

    def settle(self):
        """Waits until all that has been sent here, over connections that wait to be accepted too, has been read."""
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            name = last.getsockname()
            self.wait(lambda: name in self._silent.values(), "the connection behind all others")
            self.wait(lambda: all(unread_bytes(each) == 0 for each in self._silent) and all(each.is_read() for each in list(self.connections)),
                      "all that has been sent")

    def requests(self):
        """Every whole request since the last forget(), and how many more have begun. Malformed, if any is."""
        whole, begun = [], 0
        for connection in list(self.connections):
            requests, unfinished = self._requests_on(connection)
            whole += requests
            begun += unfinished
        return whole, begun

    def _requests_on(self, connection):
        whole, raw, at = [], bytes(connection.raw), 0
        while at < len(raw):
            try:
                request, at = read_request(raw, at)
                whole.append(request)
            except Unfinished:
                return whole, True
        return whole, False

    def wait_for_ends(self):
        """Waits until each connection on which a request has begun, and has not come whole, has ended: what is left of
        it would count as the next one's."""
        self.wait(lambda: all(each.ended or not self._requests_on(each)[1] for each in list(self.connections)),
                  "the end of what has begun")

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def full_listener():
    """An address where a connection is neither made nor refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        for _ in range(4):
            plain = stack.enter_context(socket.socket())
            plain.setblocking(False)
            plain.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
