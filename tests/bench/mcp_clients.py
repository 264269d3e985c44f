"""Clients of scripts/bench mcp and capacity --mcp. mcp_clients.py PORT [ADDRESS]; commands on standard input, one a line:

  listen N           N more streams of subscriptions/listen, each acknowledged; fewer when the server declines  ->  listening TOTAL
  legacy N           N more sessions of 2025-11-25, whose connections are closed                                ->  sessions TOTAL
  calls NAME SECONDS calls of a tool without arguments, eight at a time                                         ->  calls PER_S
  still              looks which of the streams the server has ended                                            ->  still TOTAL
"""
import json
import resource
import select
import socket
import sys
import threading
import time

server = (sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1]))
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
streams, sessions = [], 0


def post(body, **fields):
    text = json.dumps(body).encode()
    heads = {"Host": "127.0.0.1", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
             "Content-Length": str(len(text)), **{name.replace("_", "-"): value for name, value in fields.items()}}
    return ("POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in heads.items()) + "\r\n").encode() + text


def until(plain, wanted):
    """The bytes up to that text; nothing if the server declines."""
    got = b""
    while wanted not in got:
        more = plain.recv(4096)
        got += more
        if not more or b" 200 " not in got[:32]:
            print(f"mcp_clients: declined: {got[:300]!r}", file=sys.stderr, flush=True)
            return b""
    return got


def listen(count):
    request = post({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
                    "params": {"notifications": {"toolsListChanged": True}, "_meta": META}},
                   MCP_Protocol_Version="2026-07-28", Mcp_Method="subscriptions/listen")
    for _ in range(count):
        plain = socket.create_connection(server, timeout=60)
        plain.sendall(request)
        if not until(plain, b"notifications/subscriptions/acknowledged"):
            break
        streams.append(plain)
    return f"listening {len(streams)}"


def legacy(count):
    global sessions
    request = post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}, Connection="close")
    for _ in range(count):
        with socket.create_connection(server, timeout=60) as plain:
            plain.sendall(request)
            if not until(plain, b'"protocolVersion"'):
                break
        sessions += 1
    return f"sessions {sessions}"


def calls(name, seconds):
    request = post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}, "_meta": META}},
                   MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name=name)
    end, done = time.monotonic() + seconds, []

    def work():
        mine = 0
        with socket.create_connection(server, timeout=60) as plain:
            while time.monotonic() < end:
                plain.sendall(request)
                got = until(plain, b"\r\n\r\n")
                head, _, body = got.partition(b"\r\n\r\n")
                length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1])
                while len(body) < length:
                    body += plain.recv(4096)
                mine += b'"content"' in body
        done.append(mine)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return f"calls {round(sum(done) / seconds)}"


def still():
    poller = select.poll()
    for plain in streams:
        poller.register(plain, select.POLLRDHUP)
    return f"still {len(streams) - len(poller.poll(0))}"


for line in sys.stdin:
    what, *words = line.split()
    if what == "calls":
        print(calls(words[0], int(words[1])), flush=True)
    elif what == "still":
        print(still(), flush=True)
    else:
        print({"listen": listen, "legacy": legacy}[what](int(words[0])), flush=True)
