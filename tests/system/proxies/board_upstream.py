"""The upstream on this machine of a gateway on the emulated board. Prints its port, and serves until its input ends.

    /events   an event, then another for each that /go asks for
    /go       has the next event sent
    ...       what came, by the target that it came with
"""

import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from wire import *

goes_on = threading.Semaphore(0)


def script(connection):
    while True:
        got = connection.request()
        if got.target.endswith("/events"):
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n")
            for number in range(1, 4):
                goes_on.acquire()
                connection.send(b"data: %d\n\n" % number)
            return
        if got.target.endswith("/go"):
            goes_on.release()
        connection.send(answer(got.body or got.target.encode(), X_Target=got.target, X_For=got["X-Forwarded-For"] or "nobody"))


with Upstream(script) as upstream:
    print(upstream.port, flush=True)
    sys.stdin.read()
