"""Drives a real coird on loopback: starts it, waits for its addresses, speaks to it over plain sockets, ends it."""

import fcntl
import os
import platform
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
CPU = platform.machine()
GATE = os.environ.get("COIR_TEST_TIER") == "gate"  # of its trees only: scripts/test
FIBER_TREES = [f"{CPU}-linux-musl"] + ([] if GATE else [f"{CPU}-linux-musl-single"])
TREES = FIBER_TREES + [f"{CPU}-linux-musl-no-async"]
# Seconds that any one wait may take: a bound, not a measurement.
PATIENCE = 60 * int(os.environ.get("COIR_TEST_SCALE", "100")) // 100

_promises = []


def promise(text, needs_fibers=False, needs_serial=False):
    """Marks a function as a test; it is given the path of the program.

    A build without fibers serves one connection at a time: what shows only while two are served, or what its metrics
    lack, is not asked of it (needs_fibers); what is its own is asked of no other (needs_serial).
    """

    def mark(test):
        _promises.append((text, test, needs_fibers, needs_serial))
        return test

    return mark


def build(tree, target="coird", folder="apps/coird", options=(), shipped=False):
    """Builds coird, or a program made of it, in one tree (as tests/programs names it) and returns its path."""
    how = ["--shipped"] if shipped else []
    done = subprocess.run([os.path.join(ROOT, "tests", "programs"), *how, tree, target, "--", *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{target} does not build in {tree}:\n{done.stdout[-3000:]}")
    return os.path.join(ROOT, "build", *([] if shipped else ["test"]), tree.replace("+", "-"), folder, target)


def build_inside(preset, target="inside_program", folder="tests/system/inside"):
    """Builds a program with tracing and the watchdog in it."""
    return build(preset + "+inside", target, folder, ("-DCOIR_TRACE=ON", "-DCOIR_WATCHDOG=ON"))


def emulator_of(target):
    """The command that runs the programs of a target on this machine; empty where they run as they are."""
    script = f'root={ROOT!r}; . "$root/scripts/boards.sh"; target_emulator {target}'
    return subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True).stdout.split()


def sanitized(program):
    """Whether the program's memory and system calls are a sanitizer's rather than its own."""
    return "asan" in program or "tsan" in program


def fiberless(program):
    """Whether the program was built without fibers."""
    return "no-async" in program


def main(**made):
    """Runs every promise on every tree (those of the command line, or those of this machine's CPU).

    The arguments are those of build: what to make in a tree.
    """
    failed = 0
    for tree in sys.argv[1:] or TREES:
        program = tree if os.path.isfile(tree) else build(tree, **made)
        failed += broken(program, os.path.basename(tree))
    sys.exit(1 if failed else 0)


def broken(program, label, chosen=lambda test: True):
    """Runs the promises that are chosen, and returns how many are broken."""
    failed = 0
    for text, test, needs_fibers, needs_serial in _promises:
        if (needs_fibers if fiberless(program) else needs_serial) or not chosen(test):
            continue
        name = f"{label}: {text}"
        try:
            note = test(program)
            print(f"ok - {name}" + (f" ({note})" if note else ""), flush=True)
        except Exception as fault:  # a broken promise of any kind is reported, and the next one is tried
            failed += 1
            print(f"not ok - {name}", flush=True)
            trace = fault.__traceback__
            while trace.tb_next and trace.tb_frame.f_code.co_filename == __file__:
                trace = trace.tb_next
            print(f"#   line {trace.tb_lineno}: {type(fault).__name__}: {fault}", flush=True)
    return failed


def until(condition, what="the condition"):
    """Waits for a state that can only be asked for."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about in {PATIENCE} s"
        time.sleep(0.01)


def wait_until_delivered(plain):
    """Waits until the peer's kernel has everything that was sent."""
    until(lambda: struct.unpack("i", fcntl.ioctl(plain.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0] == 0, "delivery")


class Site:
    """A directory of files to serve, removed at the end."""

    def __init__(self, **files):
        self.path = tempfile.mkdtemp(prefix="coir-site.")
        for name, content in files.items():
            self.write(name.replace("__", "."), content)

    def write(self, name, content, age=60):
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        then = time.time() - age
        os.utime(path, (then, then))
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)


class Daemon:
    """A running coird. Its standard error is collected in .lines."""

    def __init__(self, program, *options, listen=("127.0.0.1:0",), tls_listen=(), files=None, nofile=None, wrapper=(), environment=None,
                 stderr=None, from_file=0, cwd=None):
        """`from_file` is how many addresses the file of --config lists, with listen=(). `cwd` is its working folder."""
        command = [*wrapper, program]
        for address in listen:
            command += ["--listen", address]
        for address in tls_listen:
            command += ["--tls-listen", address]
        if files is not None:
            command += ["--root", files]
        command += options

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        self.lines = []
        self._seen = 0
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=stderr[1] if stderr else subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(environment or {})},
            preexec_fn=limit if nofile else None,
            cwd=cwd,
        )
        if stderr:  # two ends of something else than a pipe: one to read from, and the daemon's
            self.process.stderr = stderr[0].makefile()
            stderr[1].close()
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()
        with self._changed:
            wanted = len(listen) + len(tls_listen) + from_file
            self._changed.wait_for(lambda: len(self.addresses()) == wanted or not self._reader.is_alive(), PATIENCE)
        if len(self.addresses()) != wanted:
            self.process.kill()
            raise AssertionError(f"coird did not start: {self.lines}")
        self.port = int(self.addresses()[0].rsplit(":", 1)[1]) if not self.addresses()[0].startswith("unix:") else 0

    def _collect(self):
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def addresses(self):
        marker = "coird: listening on "
        return [line[len(marker):].removesuffix(" with TLS") for line in self.lines if line.startswith(marker)]

    def line_with(self, text):
        """The next line on standard error, among those not yet asked for, that holds `text`."""
        found = lambda: next((i for i in range(self._seen, len(self.lines)) if text in self.lines[i]), None)
        with self._changed:
            if not self._changed.wait_for(lambda: found() is not None, PATIENCE):
                raise AssertionError(f"no line with {text!r}: {self.lines}")
            self._seen = found() + 1
        return self.lines[self._seen - 1]

    def connect(self, timeout=PATIENCE, receive_buffer=None):
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain.settimeout(timeout)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.connect(("127.0.0.1", self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Client(plain)

    def get(self, path, **headers):
        with self.connect() as client:
            client.send(request("GET", path, Connection="close", **headers))
            return client.response()

    def metric(self, sample):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(sample + " "):
                return int(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no sample {sample}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def free_descriptor(self):
        """The number of the next descriptor: it may lie below others, where one was closed."""
        taken = {int(each) for each in os.listdir(f"/proc/{self.process.pid}/fd")}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    @staticmethod
    def _read(path):
        with open(path) as file:
            return file.read()

    def resident_bytes(self):
        return int(self._read(f"/proc/{self.process.pid}/statm").split()[1]) * resource.getpagesize()

    def private_bytes(self):
        """The daemon's own memory: pages of files come and go with the code that runs, as the machine's load has it."""
        for line in self._read(f"/proc/{self.process.pid}/smaps_rollup").splitlines():
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("smaps_rollup has no line of anonymous memory")

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def traced(self):
        """The process of the daemon below strace, which passes no signal on."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
            return int(children.read().split()[0])

    def freeze(self):
        """Stops every thread; SIGCONT lets them go on."""
        self.signal(signal.SIGSTOP)
        tasks = f"/proc/{self.process.pid}/task"
        state = lambda task: self._read(f"{tasks}/{task}/stat").rsplit(") ", 1)[1][0]
        until(lambda: all(state(task) == "T" for task in os.listdir(tasks)), "the stop")

    def wait(self):
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def end(self):
        """Ends it as an operator does, and insists on a clean end."""
        self.signal()
        status = self.wait()
        assert status == 0, f"exit status {status}: {self.lines}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            if kind is None:
                self.end()
                return
            self.process.kill()
            self.process.wait()
        elif kind is None and self.process.returncode < 0:
            raise AssertionError(f"coird was ended by signal {-self.process.returncode}: {self.lines}")


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __getitem__(self, name):
        return self.headers.get(name.lower())


class Client:
    """One connection, read by hand so that nothing is hidden."""

    def __init__(self, plain):
        self.plain, self.buffer = plain, b""

    def send(self, data):
        self.plain.sendall(data)

    def _more(self):
        got = self.plain.recv(1 << 18)
        if not got:
            raise EOFError(f"the server closed; unread: {self.buffer[:200]!r}")
        self.buffer += got

    def begun(self):
        """Waits until some of an answer is there."""
        while not self.buffer:
            self._more()

    def take(self, size):
        while len(self.buffer) < size:
            self._more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def response(self, head=False):
        version, status, _ = self.line().split(b" ", 2)
        assert version == b"HTTP/1.1", version
        headers = {}
        while line := self.line():
            name, value = line.split(b":", 1)
            assert name.lower() not in headers, f"{name} twice"
            headers[name.decode().lower()] = value.strip().decode()
        status = int(status)
        body = b""
        if head or status in (204, 304) or status < 200:
            pass
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(self.line(), 16):
                body += self.take(size)
                assert self.take(2) == b"\r\n"
            assert self.line() == b""
        elif "content-length" in headers:
            body = self.take(int(headers["content-length"]))
        else:
            body = self.rest()
        return Response(status, headers, body)

    def rest(self):
        """Everything up to the end of the connection, which must come in good order."""
        while got := self.plain.recv(1 << 18):
            self.buffer += got
        taken, self.buffer = self.buffer, b""
        return taken

    def ended(self):
        return self.rest() == b""

    def hurry(self):
        """Ends the slowness that a small receive buffer brings."""
        self.plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def close(self):
        self.plain.close()

    def reset(self):
        self.plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.plain.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def request(method, target, body=None, version="HTTP/1.1", host="localhost", **headers):
    lines = [f"{method} {target} {version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")
