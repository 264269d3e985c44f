"""The load of client_load_main.cpp over TLS: the same commands, the same counts, TLS 1.3 and a full handshake for each client.

usage: tls_client_load.py ADDRESS PORT TARGET MOST

OpenSSL's public-key arithmetic on this machine is a twentieth of what the emulated board takes for its side, so that one
process of Python is no bound. The server's certificate is not judged, its signature is. An end without close_notify is not
clean: such a client counts as lost, or as reset before its answer.
"""

import errno
import resource
import select
import socket
import ssl
import sys
import time

HOLD_SILENCE = 15.0  # seconds: a hundred handshakes under emulation
AGAIN_SILENCE = 15.0
WINDOW = 100

COUNTS = ("open", "again", "refused", "closed", "lost", "declined", "reset", "unanswered", "unconnected")
WAITING = ("connecting", "shaking", "first", "again")


class Client:
    __slots__ = ("tls", "state", "said")

    def __init__(self, tls):
        self.tls, self.state, self.said = tls, "connecting", b""


class ClientLoad:
    def __init__(self, address, port, target, most):
        self.server, self.most = (address, port), most
        self.request = f"GET {target} HTTP/1.1\r\nHost: board\r\n\r\n".encode()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.poller = select.epoll()
        self.forget()

    def forget(self):
        self.clients, self.outstanding = {}, 0
        self.count = dict.fromkeys(COUNTS, 0)

    def hold(self, wanted):
        def trouble():
            return any(self.count[name] for name in ("refused", "closed", "lost", "reset", "unconnected"))

        while not trouble():
            while self.outstanding < WINDOW and self.count["open"] + self.outstanding < wanted and self.connect():
                pass
            if self.outstanding == 0:
                return
            if not self.poll(HOLD_SILENCE):
                break
        # A request that has been sent may still be answered.
        while self.outstanding and self.poll(HOLD_SILENCE):
            pass
        self.give_up()

    def flood(self, wanted, seconds):
        end = time.monotonic() + seconds
        for started in range(wanted):
            if not self.connect():
                break
            if started % 64 == 0:
                self.poll(0)
        while self.outstanding and (left := end - time.monotonic()) > 0:
            self.poll(left)
        self.give_up()

    def again(self):
        self.look()
        self.count["again"] = 0
        idle = [client for client in self.clients.values() if client.state == "idle"]
        while idle or self.outstanding:
            while idle and self.outstanding < WINDOW:
                client = idle.pop()
                if client.state == "idle":
                    self.ask(client)
            if self.outstanding and not self.poll(AGAIN_SILENCE):
                self.give_up()

    def look(self):
        while self.poll(0):
            pass

    def close(self):
        for client in self.clients.values():
            client.tls.close()
        self.forget()

    def connect(self):
        if len(self.clients) + sum(self.count[name] for name in COUNTS[2:]) >= self.most:
            return False
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain.setblocking(False)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if plain.connect_ex(self.server) not in (0, errno.EINPROGRESS):
            sys.exit("tls_client_load: no port is left, or there is no route")
        client = Client(plain)
        self.clients[plain.fileno()] = client
        self.poller.register(plain.fileno(), select.EPOLLOUT)
        self.outstanding += 1
        return True

    def ask(self, client):
        if client.state == "idle":
            client.state = "again"
            self.outstanding += 1
            self.count["open"] -= 1
        else:
            client.state = "first"
        client.said = b""
        try:
            client.tls.send(self.request)
        except OSError:
            self.ended(client, False)

    def poll(self, seconds):
        """Handles what happens within that time; false: nothing has."""
        events = self.poller.poll(seconds, 256)
        for descriptor, _ in events:
            if client := self.clients.get(descriptor):
                self.handle(client)
        return bool(events)

    def handle(self, client):
        try:
            if client.state == "connecting":
                self.connected(client)
            if client.state == "shaking":
                client.tls.do_handshake()
                self.ask(client)
            # OpenSSL holds back what has come in one record with another.
            while client.state in ("first", "idle", "again"):
                self.receive(client)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            pass
        except ssl.SSLError as error:
            # An alert instead of a handshake is how the server refuses; a missing close_notify is no end.
            self.ended(client, client.state == "shaking" and not isinstance(error, ssl.SSLEOFError))
        except OSError as error:
            if client.state == "connecting" and error.errno in (errno.ETIMEDOUT, errno.EHOSTUNREACH):
                return self.release(client, "unconnected")
            self.ended(client, False)

    def connected(self, client):
        if error := client.tls.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, "connect")
        descriptor = client.tls.fileno()
        client.tls = self.context.wrap_socket(client.tls, do_handshake_on_connect=False, suppress_ragged_eofs=False)
        client.state = "shaking"
        self.poller.modify(descriptor, select.EPOLLIN | select.EPOLLRDHUP)

    def receive(self, client):
        got = client.tls.recv(16384)
        # An answer that nobody asked for breaks the connection.
        if not got or client.state == "idle":
            return self.ended(client, not got)
        client.said += got
        head, found, body = client.said.partition(b"\r\n\r\n")
        if not found:
            return
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        if len(body) >= int(length.partition(b":")[2]):
            self.answered(client, int(head[9:12]))

    def answered(self, client, status):
        first = client.state == "first"
        if status != 200:
            return self.release(client, "refused" if first else "declined")
        client.state = "idle"
        self.outstanding -= 1
        self.count["open"] += 1
        if not first:
            self.count["again"] += 1

    def ended(self, client, cleanly):
        if client.state == "idle":
            self.count["open"] -= 1
            self.outstanding += 1
            return self.release(client, "closed" if cleanly else "lost")
        if client.state == "again":
            return self.release(client, "lost")
        self.release(client, "refused" if cleanly else "reset")

    def release(self, client, count):
        """Ends an outstanding connection and counts it."""
        del self.clients[client.tls.fileno()]
        client.tls.close()
        client.state = "over"
        self.outstanding -= 1
        self.count[count] += 1

    def give_up(self):
        for client in [client for client in self.clients.values() if client.state in WAITING]:
            fate = {"connecting": "unconnected", "again": "lost"}.get(client.state, "unanswered")
            self.release(client, fate)


def main(address, port, target, most):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and int(most) + 64 > hard:
        sys.exit("tls_client_load: not that many clients; raise the limit of open files")
    load = ClientLoad(address, int(port), target, int(most))
    for line in sys.stdin:
        verb, *numbers = line.split()
        if verb != "close":
            getattr(load, verb)(*map(int, numbers))
        print(*(load.count[name] for name in COUNTS), flush=True)
        if verb == "close":
            load.close()


main(*sys.argv[1:])
