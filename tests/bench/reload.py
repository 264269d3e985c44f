# usage: tests/bench/reload.py COIRD ROUND...
#
# For scripts/bench device: a coird with 1,000 connections, half of them event streams from a server behind it, reads its
# configuration again, three times a round. A client beside them asks without a pause: its longest wait over a reload is how
# long nobody is served. Then every connection must still be there, and answer or bring the next event.
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from crash import start

RESTING, FOLLOWING = 500, 500
FIRST = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: begun\n\n"


class Feed:
    """A server whose every answer is a stream of events."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port, self.streams = self.listener.getsockname()[1], []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            plain, _ = self.listener.accept()
            # A connection that says nothing is a look whether the server is there.
            if plain.recv(65536):
                plain.sendall(FIRST)
                self.streams.append(plain)

    def publish(self, text):
        for each in self.streams:
            each.sendall(b"data: %s\n\n" % text)


def ask(client, target=b"/healthz"):
    client.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
    return client.recv(65536)


def until(client, text):
    """Reads until the text; False if the connection ends before."""
    got = b""
    try:
        while text not in got:
            more = client.recv(65536)
            if not more:
                return False
            got += more
    except OSError:
        return False
    return True


def connect(address):
    client = socket.create_connection(address, 60)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def longest_wait(client, daemon, reloaded):
    """Reloads, and returns the longest time of an answer until the reload was told, and for 50 ms behind it."""
    for _ in range(200):
        ask(client)
    daemon.send_signal(signal.SIGHUP)
    longest, end = 0, None
    while end is None or time.monotonic() < end:
        began = time.monotonic_ns()
        ask(client)
        longest = max(longest, time.monotonic_ns() - began)
        if end is None and reloaded.is_set():
            end = time.monotonic() + 0.05
    return longest


def main():
    coird, *rounds = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="coir-reload.", dir=os.path.dirname(coird))
    daemon = None
    try:
        feed = Feed()
        routes = os.path.join(folder, "routes")

        def write(turn):
            with open(routes, "w") as file:
                file.write(f"/feed http://127.0.0.1:{feed.port}\n" + (f"/other http://127.0.0.1:{feed.port}\n" if turn % 2 else ""))

        write(0)
        daemon, address, _ = start(coird, folder, "--routes", routes, "--tls-listen", "127.0.0.1:0")
        reloaded = threading.Event()
        threading.Thread(target=lambda: [reloaded.set() for line in daemon.stderr if "certificates read again" in line], daemon=True).start()
        resting = [connect(address) for _ in range(RESTING)]
        following = [connect(address) for _ in range(FOLLOWING)]
        for each in resting:
            ask(each)
        for each in following:
            each.sendall(b"GET /feed HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if not all(until(each, b": begun") for each in following):
            sys.exit("a stream does not begin")
        prober, lost, pauses = connect(address), 0, []
        for turn in range(1, 3 * len(rounds) + 1):
            write(turn)
            reloaded.clear()
            pauses.append(longest_wait(prober, daemon, reloaded) / 1e6)
            print(f"reload_pause_ms: {pauses[-1]:.2f} ms", flush=True)
        print(f"reload_pause_longest_ms: {max(pauses):.2f} ms")
        feed.publish(b"after")
        lost += sum(not until(each, b"data: after") for each in following)
        for each in resting:
            try:
                lost += not ask(each).startswith(b"HTTP/1.1 200 ")
            except OSError:
                lost += 1
        print(f"reload_lost: {lost} connections")
    finally:
        if daemon is not None:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
