"""The reverse proxy under test, as the name of the program says: coird, apps/examples/proxy, or for comparison nginx or haproxy."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "coird"))
from daemon import Client, Daemon, PATIENCE, until

NGINX = """daemon off; master_process off; pid @DIR@/pid; error_log stderr crit;
worker_rlimit_nofile 20000;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path @DIR@/a; proxy_temp_path @DIR@/b; fastcgi_temp_path @DIR@/c;
  uwsgi_temp_path @DIR@/d; scgi_temp_path @DIR@/e;
  upstream group { server @UPSTREAM@ max_fails=0; keepalive 64; }
  map $http_upgrade $hop { default upgrade; '' ''; }
  server {
    listen 127.0.0.1:@PORT@ backlog=4096;
    client_max_body_size 0;
    location / {
      proxy_pass http://group; proxy_http_version 1.1; proxy_request_buffering off; proxy_buffering off;
      proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $hop;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_connect_timeout @CONNECT@ms; proxy_read_timeout @SILENCE@ms; proxy_send_timeout @SILENCE@ms;
    }
  }
}
"""

HAPROXY = """global
  maxconn 8192
defaults
  mode http
  timeout connect @CONNECT@ms
  timeout server @SILENCE@ms
  timeout client 60s
  timeout tunnel 600s
  retries 1
  option abortonclose
  retry-on conn-failure
frontend all
  bind 127.0.0.1:@PORT@
  option forwardfor
  default_backend group
backend group
  http-reuse safe
  server one @UPSTREAM@
"""


def free_port():
    """A port that nobody has at this moment, for servers that cannot be given port 0. A server that is too late tries again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Somebody else's server on a port of the kernel's choice: write(port, folder) returns its command."""

    def __init__(self, write, name):
        for _ in range(10):
            self.folder = tempfile.mkdtemp(prefix=f"coir-{name}.")
            os.chmod(self.folder, 0o755)
            self.port = free_port()
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *write(self.port, self.folder)], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=open(f"{self.folder}/log", "wb"))
            if self._accepts():
                return
            self.close()
        raise AssertionError(f"{name} does not start")

    def _accepts(self):
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.01)
        return False

    def connect(self, receive_buffer=None, timeout=PATIENCE):
        plain = socket.socket()
        plain.settimeout(timeout)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.connect(("127.0.0.1", self.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Client(plain)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def kind(program):
    name = os.path.basename(program)
    return name if name in ("nginx", "haproxy", "proxy") else "coird"


def proxy(program, *ports, options=(), connect_ms=5000, silence_ms=60000):
    """Starts the proxy before upstreams on these ports of loopback. A context manager with .port, .connect() and .process."""
    if kind(program) == "coird":
        group = ",".join(f"http://127.0.0.1:{port}" for port in ports)
        return Daemon(program, "--allow-host", "*", "--max-body", "2G", *options, "--proxy", f"/={group}")
    text = {"nginx": NGINX, "haproxy": HAPROXY, "proxy": ""}[kind(program)]

    def write(port, folder):
        if kind(program) == "proxy":
            return [program, f"127.0.0.1:{port}", f"http://127.0.0.1:{ports[0]}"]
        said = text.replace("@PORT@", str(port)).replace("@UPSTREAM@", f"127.0.0.1:{ports[0]}").replace("@DIR@", folder)
        said = said.replace("@CONNECT@", str(connect_ms)).replace("@SILENCE@", str(silence_ms))
        with open(f"{folder}/configuration", "w") as file:
            file.write(said)
        if kind(program) == "nginx":
            return [program, "-p", folder, "-e", "stderr", "-c", f"{folder}/configuration"]
        return [program, "-db", "-q", "-f", f"{folder}/configuration"]

    return Server(write, kind(program))
