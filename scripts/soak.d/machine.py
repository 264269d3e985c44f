"""The emulated board under load: its files, what it says of itself, and what happens to it."""

import asyncio
import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from urllib.parse import urlsplit

import agent
from board import Board
from clients import AUTHORIZED, FILES, TOKEN, contents
from streams import DASHBOARD_TOKEN
from wire import PATIENCE, Gateway, Shed, Wire

OPTIONS = ("--tls-listen 0.0.0.0:443 --auth /mnt/data/auth --allow-put /uploads --routes /mnt/data/routes --mcp /mcp --sysfs /mnt/data/board "
           "--mcp-tool system --mcp-tool memory --mcp-tool temperature --mcp-tool read_pin --mcp-tool led "
           "--dashboard /dashboard --dashboard-token-file /mnt/data/token")
# One command tells all about the program. The file names the process that init's line started.
LOOK = r"""p=$(cat /run/coird.pid); echo "pid $p"
sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/rss \1/p; s/^RssAnon:[^0-9]*\([0-9]*\).*/anon \1/p' /proc/$p/status
sed -n 's/^MemAvailable:[^0-9]*\([0-9]*\).*/available \1/p; s/^Slab:[^0-9]*\([0-9]*\).*/slab \1/p' /proc/meminfo
set -- /proc/$p/fd/*; echo "fds $#"
sed -n 's/^oom_kill /oom_kills /p' /proc/vmstat"""


# The server that the board forwards to: at this machine's end of the board's cable (qemu/board-vm), where no other has the port.
UPSTREAM = ("192.168.42.2", 8000)


def enter_network(name):
    """Moves this thread into a network namespace: what it binds and connects from now on is there."""
    with open(f"/run/netns/{name}", "rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "setns")


class Machine:
    """The board, reached at .address and .tls_address, with the context .tls.

    It has a cable to a network of its own, and this thread is in that network after boot(). The ports that QEMU forwards without
    root do not do: of sixty connections at once some never arrive.
    """

    def __init__(self, coird, coirctl, seconds, board):
        self.folder = tempfile.mkdtemp(prefix="coir-soak.", dir=os.path.dirname(coird))
        self.coird, self.coirctl, self.seconds, self.name = coird, coirctl, seconds, board
        self.vm, self.shell = None, asyncio.Lock()

    def prepare(self):
        data = os.path.join(self.folder, "data")
        os.makedirs(os.path.join(data, "www", "uploads"))
        for name in FILES:
            with open(os.path.join(data, "www", name[1:]), "wb") as file:
                file.write(contents(name))
        agent.Board.place(os.path.join(data, "board"))
        for name, text in (("auth", f"bearer soak sha256 {hashlib.sha256(TOKEN.encode()).hexdigest()}\n"), ("token", DASHBOARD_TOKEN + "\n"),
                           ("routes", self.routes(False))):
            with open(os.path.join(data, name), "w") as file:
                file.write(text)
            os.chmod(os.path.join(data, name), 0o600)
        for program, stripped in ((self.coirctl, os.path.join(data, "coirctl")), (self.coird, os.path.join(self.folder, "coird"))):
            subprocess.run(["llvm-strip-19", program, "-o", stripped], check=True)
        return data

    def routes(self, extra):
        """The file of routes; each reload adds or removes the second one."""
        url = f"http://{UPSTREAM[0]}:{UPSTREAM[1]}"
        return f"/app/ {url}\n" + (f"/extra/ {url}\n" if extra else "")

    def boot(self):
        began = time.monotonic()
        # Ctrl-C is for this script, which then asks the board for its end; the machine's own shell ignores it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            data = self.prepare()
            self.vm = Board(os.path.join(self.folder, "coird"), "--net", "tap", "--board", self.name, "--data", data,
                            "--timeout", str(self.seconds), "--args", OPTIONS)
        finally:
            signal.signal(signal.SIGINT, before)
        self.booted_s = time.monotonic() - began
        host = urlsplit(self.vm.url).hostname
        self.address, self.tls_address = (host, 80), (host, 443)
        enter_network(self.vm.netns)
        # A board without random numbers yet serves before it has a certificate.
        at = "/var/lib/coird/self-signed.crt"
        text = self.vm.said(f"for i in $(seq 600); do [ -s {at} ] && break; sleep 0.1; done; cat {at}")
        self.tls = ssl.create_default_context(cadata=text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.vm is not None:
                self.vm.__exit__()
        finally:
            shutil.rmtree(self.folder)

    async def said(self, script):
        """Runs a command in the guest and returns its output."""
        return (await self.said_since(script))[0]

    async def said_since(self, script):
        """As said, and since when the command had the guest's one shell: another may wait there for coird before."""
        async with self.shell:
            began = time.monotonic()
            return await asyncio.to_thread(self.vm.said, script, 120), began

    async def metrics(self):
        """The samples of /metrics, by a connection of their own: one that rests may be evicted."""
        async with await Wire.open(self.address) as wire:
            got = await wire.ask("GET", "/metrics", Connection="close", **AUTHORIZED)
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in got.body.decode().splitlines() if line[0] != "#")}

    async def kernel_says(self):
        """The part of a sample that the kernel tells, and since when it was asked."""
        text, began = await self.said_since(LOOK)
        return {name: int(value) for name, value in map(str.split, text.splitlines())}, began

    async def program_says(self):
        """The part of a sample that the program tells of itself."""
        sample, metrics = {}, await self.metrics()
        for name, value in metrics.items():
            if found := re.fullmatch(r'coir_memory_bytes\{account="(\w+)"\}', name):
                sample["account_" + found[1]] = round(value / 1024, 1)
        sample["connections"] = int(metrics["coir_http_connections_open"])
        sample["accepted"] = int(metrics["coir_http_connections_accepted_total"])
        sample["evicted"] = int(sum(metrics[f'coir_http_connections_closed_total{{reason="{why}"}}'] for why in ("evicted", "evicted_slow")))
        sample["expired"] = int(metrics['coir_http_connections_closed_total{reason="expired"}'])
        sample["fibers"] = int(metrics["coir_fibers"])
        sample["cpu_s"] = metrics["process_cpu_seconds_total"]
        return sample

    async def reach_upstream(self):
        """Waits until the board has noticed that the server behind it is there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            async with await Wire.open(self.address) as wire:
                try:
                    await wire.ask("POST", "/app/echo", b"x", **AUTHORIZED)
                    return
                except (Gateway, Shed):
                    if time.monotonic() > deadline:
                        raise
            await asyncio.sleep(0.2)

    async def reload(self, extra):
        """SIGHUP with another file of routes. Returns whether it counts, and the seconds until it did."""
        began = time.monotonic()
        await self.said(f"cat >/mnt/data/routes <<'end'\n{self.routes(extra)}end\n/mnt/data/coirctl reload --socket /run/coird.sock")
        async with await Wire.open(self.address) as wire:
            got = await wire.ask("POST", "/extra/echo", b"x", **AUTHORIZED)
        return (got.status == 200) == extra, time.monotonic() - began

    async def steer(self):
        """Asks by coirctl, as a person does."""
        for verb in ("status", "memory", "connections"):
            json.loads(await self.said(f"/mnt/data/coirctl {verb} --json --socket /run/coird.sock"))

    async def flap(self, seconds):
        """Takes the link down for that long."""
        await self.said(f"ifconfig eth0 down; sleep {seconds}; ifconfig eth0 up")

    def starts(self):
        return self.vm.log().count("coird: listening on 0.0.0.0:80\n")

    async def end_and_explain(self):
        """Stops coird as an operator does, starts it again and returns how it says that it has ended."""
        starts = self.starts()
        await self.said("/etc/init.d/S90coird stop; /etc/init.d/S90coird start")
        deadline = time.monotonic() + 90
        while self.starts() == starts and time.monotonic() < deadline:
            await asyncio.sleep(0.2)
        ends = {name: int(value) for name, value in (await self.metrics()).items() if name.startswith("coir_ends_total") and value}
        last = re.findall(r"coird: the last run (.*)", self.vm.log())
        return last[-1] if last else "nothing", {re.search('"(.*)"', name)[1]: value for name, value in ends.items()}
