#!/usr/bin/env python3
# usage: load.py PROGRAM [ROUNDS [WRAPPER ...]]
#
# Drives a painted coird through what it can do, so that each of its fibers goes as deep as it ever does: files, ranges,
# conditions, pipelines, errors of every status, content in chunks, metrics, idle ends, room made for others, what it
# passes on, checks, offers to agents, reports to a broker and is found by, shows to people, a clean end. Root, for the network.
import base64
import hashlib
import os
import signal
import socket
import ssl
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "coird"))
import agent
from daemon import *
from starved import Starved

CHUNKED = b"POST /post HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nabcd\r\n0\r\nX-T: y\r\n\r\n"
BROKEN = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET / HTTP/2.0\r\nHost: t\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT t:80 HTTP/1.1\r\nHost: t:80\r\n\r\n",
    b"GET /%00 HTTP/1.1\r\nHost: t\r\n\r\n",
    b"GET /../../etc HTTP/1.1\r\nHost: t\r\n\r\n",
    b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: t\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: t\r\n" + b"X-A: b\r\n" * 300 + b"\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: t\r\nExpect: tea\r\n\r\n",
    b"GET https://t/ HTTP/1.1\r\nHost: t\r\n\r\n",
]


def ask(client, *parts, **headers):
    client.send(request(*parts, **headers))
    return client.response(head=parts[0] == "HEAD")


def refuses(port):
    with socket.socket() as plain:
        return plain.connect_ex(("127.0.0.1", port)) != 0


def round_of(daemon, seen):
    with daemon.connect() as client:
        tag = None
        for path in ("/", "/small.txt", "/deep/er", "/deep/er/", "/deep/er/file.css", "/missing", "/a%20b?q=%zz", "/metrics", "/healthz"):
            for method in ("GET", "HEAD"):
                answer = ask(client, method, path)
                seen.add(answer.status)
        answer = ask(client, "GET", "/small.txt")
        tag, changed = answer["etag"], answer["last-modified"]
        for headers in (
            {"If_None_Match": tag},
            {"If_None_Match": ", ".join(f'"{i}"' for i in range(50))},
            {"If_Modified_Since": changed},
            {"If_Match": '"other"'},
            {"If_Unmodified_Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
            {"Range": "bytes=1-2"},
            {"Range": "bytes=-3"},
            {"Range": "bytes=900-"},
            {"Range": "bytes=1-2", "If_Range": tag},
            {"Range": "bytes=0-1,2-3"},
        ):
            seen.add(ask(client, "GET", "/small.txt", **headers).status)
        seen.add(ask(client, "OPTIONS", "*").status)
        client.send(request("GET", "/small.txt") * 50)
        for _ in range(50):
            assert client.response().status == 200
    for text in BROKEN + [CHUNKED, request("POST", "/", body=b"x" * 5000), request("PUT", "/small.txt", body=b"x", Expect="100-continue")]:
        with daemon.connect() as client:
            client.send(text)
            try:
                seen.add(client.response().status)
            except (EOFError, ConnectionError):
                pass  # it closed with content of ours unread
    with daemon.connect(receive_buffer=4096) as slow:
        slow.send(request("GET", "/big"))
        slow.take(100)
        slow.reset()
    assert len(daemon.get("/big").body) == 3_000_000


def answers_503(daemon, clients):
    clients.append(daemon.connect())
    return ask(clients[-1], "GET", "/small.txt").status == 503


def over_tls(site, seen):
    """Handshakes of both versions, whole, resumed, refused and left halfway, requests behind them, and a reload."""
    with tempfile.TemporaryDirectory() as state:
        options = ["--state", state, "--handshake-timeout", "2s"]
        with Daemon(program, *options, files=site.path, tls_listen=("127.0.0.1:0",), wrapper=wrapper) as daemon:
            port = int(daemon.addresses()[1].rsplit(":", 1)[1])
            connect = lambda: socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            left = connect()
            left.sendall(b"\x16\x03\x01\x01\x00\x01")
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = ssl.create_default_context(cafile=os.path.join(state, "self-signed.pem"))
                context.minimum_version = context.maximum_version = version
                session = None
                for _ in range(2):
                    with context.wrap_socket(connect(), server_hostname="localhost", session=session) as plain:
                        client = Client(plain)
                        for path in ("/", "/small.txt", "/big", "/missing", "/metrics", "/%00"):
                            seen.add(ask(client, "GET", path).status)
                        session = plain.session
                try:
                    ssl.create_default_context().wrap_socket(connect(), server_hostname="localhost")
                except ssl.SSLError:
                    pass
                daemon.signal(signal.SIGHUP)
                daemon.line_with("certificates read again")
            assert left.recv(100) == b""


def changes(seen):
    """Credentials, files sent and removed, other forms, lists, error pages."""
    who = "Basic " + base64.b64encode(b"anne:secret").decode()
    made = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt" * 4, 1000).hex()
    below = "/".join(["folder"] * 30)
    files = {"a__css": b"x" * 3000, "a__css__gz": b"gz", "b__js": b"y" * 200_000, "b__js__br": b"br", "up/f": b"f", "404__html": b"no"}
    with Site(**files) as site, Site(auth=f"basic anne pbkdf2-sha256 1000 {(b'salt' * 4).hex()} {made}\n".encode()) as lines:
        auth = os.path.join(lines.path, "auth")
        os.chmod(auth, 0o600)
        site.write(below + "/file", b"deep")
        options = ["--auth", auth, "--allow-put", "/up", "--index", "--cache", "*.css=max-age=9", "--error-page", "404=/404.html",
                   "--access-log"]
        with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon, daemon.connect() as client:
            for parts, headers in [
                (("GET", "/a.css"), {"Authorization": who[:-4]}),
                *((("GET", path), {"Accept_Encoding": "gzip, br"}) for path in ("/a.css", "/b.js", "/none", "/up/", f"/{below}/", f"/{below}/file")),
                *((("PUT", path, b"x" * 20_000), {}) for path in ("/up/new", "/up/new", "/up/none/new", "/none")),
                (("PUT", "/up/new", b"x"), {"If_None_Match": "*"}),
                (("PUT", "/up/new", b"x"), {"If_Match": "*"}),
                (("DELETE", "/up/new"), {}),
            ]:
                seen.add(ask(client, *parts, **{"Authorization": who, **headers}).status)
            daemon.signal(signal.SIGHUP)
            daemon.line_with("credentials read again")


def passes_on(site, seen):
    """Requests go on to another coird, in the clear and by TLS, to one that is found by name, and to nobody. A watchdog is fed."""
    with tempfile.TemporaryDirectory() as state:
        upstream = Daemon(program, "--state", state, files=site.path, tls_listen=("127.0.0.1:0",), wrapper=wrapper)
        with upstream, socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            secure = upstream.addresses()[1].rsplit(":", 1)[1]
            options = []
            for way in (f"/plain=http://localhost:{upstream.port}/", f"/tls=https://localhost:{secure}/",
                        f"/nobody=http://127.0.0.1:{nobody.getsockname()[1]}"):
                options += ["--proxy", way]
            options += ["--proxy-ca", os.path.join(state, "self-signed.pem"), "--watchdog", "/dev/null"]
            with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon, daemon.connect() as client:
                for prefix in ("/plain", "/tls", "/nobody"):
                    for path in ("/", "/small.txt", "/missing"):
                        seen.add(ask(client, "GET", prefix + path).status)
                    seen.add(ask(client, "POST", prefix + "/small.txt", b"x" * 5000).status)
                assert len(daemon.get("/plain/big").body) == len(daemon.get("/tls/big").body) == 3_000_000


def checks(site):
    """The servers of one route are asked for their health, by name, in the clear and by TLS; one of them is nobody."""
    with tempfile.TemporaryDirectory() as state:
        upstream = Daemon(program, "--state", state, files=site.path, tls_listen=("127.0.0.1:0",), wrapper=wrapper)
        with upstream, socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            secure = upstream.addresses()[1].rsplit(":", 1)[1]
            gone = nobody.getsockname()[1]
            routes = os.path.join(state, "routes")
            with open(routes, "w") as file:
                for prefix, ways in (("/plain", f"http://localhost:{upstream.port}/,http://127.0.0.1:{gone}/"),
                                     ("/secure", f"https://localhost:{secure}/,https://127.0.0.1:{gone}/")):
                    file.write(f"{prefix} {ways} health=/healthz health-interval=1s\n")
            options = ["--routes", routes, "--proxy-ca", os.path.join(state, "self-signed.pem")]
            with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon, daemon.connect() as client:
                for _ in range(2):
                    daemon.line_with(f"127.0.0.1:{gone} is down")
                for prefix in ("/plain", "/secure"):
                    until(lambda: ask(client, "GET", prefix + "/healthz").status == 200, f"a healthy server of {prefix}")


NOTES = """
import json, sys
results = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}},
    "tools/list": {"tools": [{"name": "note", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "noted"}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = results.get(asked["method"])
        answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def agents():
    """Agents call its tools and those of servers that are mounted, and one listens for changes of their lists."""
    tools = ["system", "memory", "fibers", "log", "time"]
    switched_on = ["--mcp", "/mcp"] + [word for tool in tools for word in ("--mcp-tool", tool)]
    with agent.Board() as folder, Daemon(program, *switched_on, wrapper=wrapper) as behind, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        mounts = ["--mcp-mount", f"home=http://localhost:{behind.port}/mcp",
                  "--mcp-mount", f"gone=http://127.0.0.1:{nobody.getsockname()[1]}/mcp"]
        wanted = tools + ["home_" + tool for tool in tools]
        if not wrapper:  # qemu's user mode is not to start programs: its fork of many threads hangs now and then
            mounts += ["--mcp-mount", "notes=" + sys.executable + " " + folder.write("notes.py", NOTES)]
            wanted.append("notes_note")
        with Daemon(program, *switched_on, *mounts, wrapper=wrapper) as daemon, daemon.connect() as listener:
            listener.send(agent.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
            listed = lambda: [each["name"] for each in agent.ask(daemon, "tools/list").answer["result"]["tools"]]
            until(lambda: sorted(listed()) == sorted(wanted), "the tools of the mounted servers")
            for tool in wanted:
                agent.good(daemon, tool)
            assert agent.ask(daemon, "tools/call", {"name": "none", "arguments": {}}).answer["error"]
            behind.end()
            assert agent.ask(daemon, "tools/call", {"name": "home_time", "arguments": {}}).status == 200
            while b"list_changed" not in listener.buffer:
                listener._more()


class Broker(threading.Thread):
    """Grants whatever a client of MQTT asks for, and tells the first that subscribes to reload."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.published = 0
        self.start()

    def run(self):
        with self.listener, self.listener.accept()[0] as client:
            stream = client.makefile("rb")
            while first := stream.read(1):
                size = shift = 0
                while True:
                    (digit,) = stream.read(1)
                    size |= (digit & 127) << shift
                    shift += 7
                    if digit < 128:
                        break
                body = stream.read(size)
                kind, flags = first[0] >> 4, first[0] & 15
                if kind == 1:
                    client.sendall(b"\x20\x02\x00\x00")
                elif kind == 3:
                    self.published += 1
                    at = 2 + int.from_bytes(body[:2], "big")
                    if flags & 6:
                        client.sendall(b"\x40\x02" + body[at : at + 2])
                elif kind == 8:
                    topic = body[2 : 4 + int.from_bytes(body[2:4], "big")]
                    client.sendall(b"\x90\x03" + body[:2] + b"\x00" + bytes([0x30, len(topic) + 6]) + topic + b"reload")
                elif kind == 12:
                    client.sendall(b"\xd0\x00")


def reports(site):
    """The daemon reports to a broker, and obeys a command from there."""
    broker = Broker()
    options = ["--mqtt", f"mqtt://127.0.0.1:{broker.port}/board", "--mqtt-commands", "--mqtt-interval", "1s",
               "--mqtt-discovery", "homeassistant"]
    with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon:
        daemon.line_with("SIGHUP: there is nothing to read again")
        until(lambda: broker.published > 12, "messages of metrics")


def is_found(site):
    """The daemon takes a name on a network of its own, where others ask for it."""
    network = ["unshare", "--net", "sh", "-c", 'ip link set lo up; ip link add eth0 type veth peer name eth1; '
               'ip address add 10.9.0.1/24 dev eth0; ip link set eth1 up; ip link set eth0 up; exec "$@"', "sh"]
    with Daemon(program, "--mdns", "board", files=site.path, wrapper=network + wrapper) as daemon:
        daemon.line_with("found as board.local")


def starts_early(site):
    """At the first boot the kernel has no random numbers at first: the certificate is made in the run. The log goes to a file."""
    with tempfile.TemporaryDirectory() as state:
        options = ["--state", state, "--log-file", os.path.join(state, "log"), "--log-size", "16K", "--access-log"]
        if wrapper:  # strace sees the emulator's own calls
            daemon = Daemon(program, *options, files=site.path, wrapper=wrapper)
        else:
            daemon = Starved(program, 6, *options, files=site.path, tls_listen=("127.0.0.1:0",))
        with daemon:
            for _ in range(300):
                daemon.get("/small.txt")
            if not wrapper:
                daemon.line_with("TLS is served")


def is_seen(site):
    """People look at it and steer it: by the socket of --control, and on the dashboard."""
    with agent.Board() as board, Site(token=b"a-token-that-nobody-can-guess\n") as state:
        token, path = os.path.join(state.path, "token"), os.path.join(state.path, "control")
        os.chmod(token, 0o600)
        options = ["--control", path, "--pin", "8", "--sysfs", board.path, "--state", state.path, "--dashboard", "/board",
                   "--dashboard-token-file", token]
        with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon, daemon.connect() as client:
            for verb in ["status", "top", "connections", "memory", "fibers", "stacks", "routes", "log", "pins", "trace", "reload", "nonsense"]:
                for form in ["text", "json", "follow 0", "text 8 read", "text 8 on", "json 7 off"]:
                    with socket.socket(socket.AF_UNIX) as asks:
                        asks.settimeout(PATIENCE)
                        asks.connect(path)
                        asks.sendall(f"1 {verb} {form}\n".encode())
                        while asks.recv(65536):
                            pass
            form = {"Content_Type": "application/x-www-form-urlencoded"}
            assert ask(client, "POST", "/board", b"token=wrong", **form).status == 403
            cookie = ask(client, "POST", "/board", b"token=a-token-that-nobody-can-guess", **form)["set-cookie"].split(";")[0]
            assert ask(client, "GET", "/board", Cookie=cookie).status == 200
            client.send(request("GET", "/board/events", Cookie=cookie))
            while client.buffer.count(b"\ndata:") < 3:
                client._more()


program, rounds, wrapper = sys.argv[1], int((sys.argv[2:] or ["5"])[0]), sys.argv[3:]
files = {"index__html": b"<p>", "small__txt": b"x" * 100, "big": b"x" * 3_000_000, "deep/er/file__css": b"p{}", "a b": b"y"}
seen = set()
with Site(**files) as site:
    options = ["--access-log", "--max-connections", "40", "--evict-after", "0"]
    with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon:
        for _ in range(rounds):
            round_of(daemon, seen)
        # More clients than there is room for: idle ones are closed for them.
        clients = []
        for _ in range(120):
            clients.append(daemon.connect())
            assert ask(clients[-1], "GET", "/small.txt").status == 200
    # Memory is short: newcomers are refused, or idle connections are closed.
    options = ["--memory", "connections=100K", "--evict-after", "60s"]
    with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon:
        clients = []
        until(lambda: answers_503(daemon, clients), "a refusal for want of memory")
    options = ["--memory", "connections=100K", "--evict-after", "0"]
    with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon:
        clients = []
        for _ in range(60):
            assert not answers_503(daemon, clients)
        assert clients[0].ended()
    # Idle and slow clients meet the reaper. The times leave a client room to send on a busy machine.
    options = ["--idle-timeout", "2s", "--header-timeout", "1s"]
    with Daemon(program, *options, files=site.path, wrapper=wrapper) as daemon:
        with daemon.connect() as slow, daemon.connect() as idle:
            slow.send(b"GET / HT")
            ask(idle, "GET", "/small.txt")
            seen.add(slow.response().status)
            assert idle.ended()
    # Two that do not read leave no room for a third.
    with Daemon(program, "--max-connections", "2", files=site.path, wrapper=wrapper) as daemon:
        busy = [daemon.connect(receive_buffer=4096) for _ in range(2)]
        for client in busy:
            client.send(request("GET", "/big"))
            client.take(10)
        with daemon.connect() as third:
            seen.add(ask(third, "GET", "/small.txt").status)
        for client in busy:
            client.close()
    over_tls(site, seen)
    changes(seen)
    passes_on(site, seen)
    checks(site)
    agents()
    reports(site)
    is_found(site)
    starts_early(site)
    is_seen(site)
    # A second signal ends the requests under way.
    with Daemon(program, files=site.path, wrapper=wrapper) as daemon, daemon.connect(receive_buffer=4096) as client:
        client.send(request("GET", "/big"))
        client.take(10)
        daemon.signal()
        until(lambda: refuses(daemon.port), "the end of listening")
        daemon.signal()
        assert daemon.wait() == 1, daemon.lines
missed = {200, 201, 204, 206, 301, 304, 400, 401, 404, 405, 408, 409, 412, 413, 414, 416, 417, 421, 431, 501, 502, 503, 505} - seen
assert not missed, f"the load met no {sorted(missed)}, but {sorted(seen)}"
