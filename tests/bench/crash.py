# usage: tests/bench/crash.py COIRD ROUND...
#
# For scripts/bench device: three samples a round of a crash until its record is on disk, and of the start behind it until
# coird has answered.
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


def start(coird, folder, *options):
    """Starts coird and returns it with its first address, once it listens."""
    daemon = subprocess.Popen([coird, "--listen", "127.0.0.1:0", "--root", folder, "--state", folder, *options], stderr=subprocess.PIPE, text=True)
    said = []
    for line in daemon.stderr:
        said.append(line)
        if "listening on " in line:
            host, port = line.split()[-1].rsplit(":", 1)
            return daemon, (host, int(port)), said
    sys.exit(f"coird does not start: {said}")


def ask(address):
    with socket.create_connection(address, 30) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        if not client.recv(64).startswith(b"HTTP/1.1 200 "):
            sys.exit("coird does not answer")


def main():
    coird, *rounds = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix="coir-crash.", dir=os.path.dirname(coird))
    daemon = None
    try:
        daemon, address, _ = start(coird, folder)
        ask(address)
        for _ in range(3 * len(rounds)):
            began = time.monotonic_ns()
            daemon.send_signal(signal.SIGSEGV)
            daemon.wait()
            print(f"crash_to_record_ms: {(time.monotonic_ns() - began) / 1e6:.2f} ms")
            os.remove(os.path.join(folder, "starts"))  # each is the first crash of its kind: behind three coird waits
            began = time.monotonic_ns()
            daemon, address, said = start(coird, folder)
            ask(address)
            print(f"restart_to_serving_ms: {(time.monotonic_ns() - began) / 1e6:.2f} ms")
            if not any("the last run crashed" in line for line in said):
                sys.exit(f"the crash left no record: {said}")
    finally:
        if daemon is not None:
            daemon.kill()
            daemon.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
