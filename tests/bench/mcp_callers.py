"""Callers of scripts/bench mcp and of the board. mcp_callers.py PORT [ADDRESS]; commands on standard input, one a line, each answered by one line:

  one NAME ARGUMENTS N    N calls, one after the other on one connection  ->  MEDIAN P95 ANSWERED, the first two in milliseconds
  crowd NAME ARGUMENTS N  N calls at once, each on a connection of its own  ->  SECONDS ANSWERED REFUSED,
                          refused by an error of the protocol
"""
import json
import resource
import selectors
import socket
import sys
import time

server = (sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1]))
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def request(name, arguments):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": name, "arguments": json.loads(arguments), "_meta": META}}).encode()
    return (f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def whole(got):
    """Whether all of a response with a length has come."""
    head, end, body = got.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end) and len(body) >= (int(lengths[0].split(b":")[1]) if lengths else 0)


def is_good(got):
    return b'"content"' in got and b'"isError":true' not in got


def one(name, arguments, count):
    text, took, good = request(name, arguments), [], 0
    with socket.create_connection(server, timeout=60) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(int(count)):
            began, got = time.perf_counter(), b""
            plain.sendall(text)
            while not whole(got):
                more = plain.recv(65536)
                if not more:
                    return f"0 0 {good}"
                got += more
            took.append((time.perf_counter() - began) * 1000)
            good += is_good(got)
    took.sort()
    return f"{took[len(took) // 2]:.4f} {took[len(took) * 95 // 100]:.4f} {good}"


def crowd(name, arguments, count):
    text, poll, got, good, refused, last = request(name, arguments), selectors.DefaultSelector(), {}, 0, 0, ""
    plains = [socket.create_connection(server, timeout=60) for _ in range(int(count))]
    began = time.perf_counter()
    for plain in plains:
        plain.sendall(text)
        poll.register(plain, selectors.EVENT_READ)
        got[plain] = b""
    while got:
        for key, _ in poll.select():
            plain = key.fileobj
            more = plain.recv(65536)
            got[plain] += more
            if more and not whole(got[plain]):
                continue
            poll.unregister(plain)
            answer = got.pop(plain)
            good += is_good(answer)
            if not is_good(answer):
                refused, last = refused + (b'"error":{' in answer), answer[-200:]
    seconds = time.perf_counter() - began
    for plain in plains:
        plain.close()
    if last:
        print(f"mcp_callers: {good} answered, {refused} refused, the last by {last!r}", file=sys.stderr, flush=True)
    return f"{seconds:.2f} {good} {refused}"


for line in sys.stdin:
    what, *words = line.split()
    print({"one": one, "crowd": crowd}[what](*words), flush=True)
