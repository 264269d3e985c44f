"""Holds idle TLS sessions, each of which has made a request, and prints what one costs the server.

usage: tls_sessions.py PORT PID COUNT VERSION PREFIX [PATH FIGURE]

PATH as upgrade:/PATH opens a WebSocket there.
"""

import socket
import ssl
import sys
import time

port, pid, count, version, prefix = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5]
path, figure = (sys.argv + ["/small.txt", f"{prefix}idle_session_bytes_{version}"][len(sys.argv) - 6 :])[6:8]
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.minimum_version = context.maximum_version = {"1.3": ssl.TLSVersion.TLSv1_3, "1.2": ssl.TLSVersion.TLSv1_2}[version]


def resident():
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Rss:"))


def ask(session, path=path):
    fields = ""
    if path.startswith("upgrade:"):
        path = path.removeprefix("upgrade:")
        fields = (
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        )
    session.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())
    said = session.recv(65536)
    if fields and not said.startswith(b"HTTP/1.1 101 "):
        sys.exit(f"{path}: {said[:40]}")
    while path == "/metrics" and not said.endswith(b"0\r\n\r\n"):
        said += session.recv(65536)
    return said.decode(errors="replace")


def one():
    session = context.wrap_socket(socket.create_connection(("127.0.0.1", port)))
    ask(session)
    return session


held = [one() for _ in range(30)]
before = resident()
held += [one() for _ in range(count)]
time.sleep(0.3)
print(f"{figure}: {(resident() - before) / count:.0f} bytes")
if not prefix.startswith("plain") and path == "/small.txt":
    for line in ask(held[0], "/metrics").splitlines():
        if line.startswith('coir_memory_high_water_bytes{account="handshakes"}'):
            print(f"{prefix}handshake_peak_bytes_{version}: {int(line.split()[-1]) + 24 * 1024} bytes")
