"""The emulated board for tests in Python: boots it, runs commands in it, starts programs there as Daemon does here."""

import os
import shlex
import signal
import subprocess
import tempfile
import time

from daemon import PATIENCE, ROOT, until

# The default board, which the emulated one is like.
with open(os.path.join(ROOT, "port", "boards", "default")) as chosen:
    BOARD = chosen.read().strip()
BOARD_VM = os.path.join(ROOT, "qemu", "board-vm")


class Board:
    """A booted board whose init has started coird. `options` are those of qemu/board-vm run.

    `url` is where that coird's port 80 is reached, `forwarded` maps further ports of the guest to those of loopback. With
    --net tap the board is reached in the namespace `netns`, at its own ports.
    """

    def __init__(self, coird, *options, forward=()):
        self.folder = tempfile.mkdtemp(prefix="coir-vm.")
        ports = [word for port in forward for word in ("--forward", str(port))]
        self.process = subprocess.Popen([BOARD_VM, "run", self.folder, "--coird", coird, "--timeout", "600", *ports, *options],
                                        stdout=subprocess.PIPE, text=True)
        self.url, self.forwarded, self.netns = None, {}, None
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise

    def _wait_until_ready(self):
        for line in self.process.stdout:
            name, value = line.rstrip("\n").split(": ", 1)
            if name == "url":
                self.url = value
            elif name == "tls_url":
                self.forwarded[443] = int(value.rsplit(":", 1)[1])
            elif name == "forward":
                guest, host = value.split()
                self.forwarded[int(guest)] = int(host)
            elif name == "netns":
                self.netns = value
            elif name == "ready":
                return
        raise AssertionError(f"the board does not boot:\n{self.log()[-2000:]}")

    def log(self):
        """The lines on the serial console."""
        with open(os.path.join(self.folder, "serial.log"), errors="replace") as file:
            return file.read()

    def run(self, script, seconds=60):
        """Runs a script by the guest's shell; returns its status and output."""
        done = subprocess.run([BOARD_VM, "exec", self.folder, "--timeout", str(seconds)], input=script, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + PATIENCE)
        return done.returncode, done.stdout

    def said(self, script, seconds=60):
        status, output = self.run(script, seconds)
        assert status == 0, (script[:200], status, output)
        return output

    def copy(self, paths):
        """Copies text files of this machine into the guest, under the same paths and with their modes."""
        script = []
        for path in paths:
            with open(path) as file:
                script.append(f"mkdir -p {os.path.dirname(path)}\n(umask 077; cat >{path}) <<'.end'\n{file.read().rstrip()}\n.end\n"
                              f"chmod {os.stat(path).st_mode & 0o777:o} {path}\n")
        self.said("".join(script))

    def stop(self):
        """Ends the machine as a loss of power does."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            subprocess.run(["rm", "-rf", self.folder], check=True)


class BoardDaemon:
    """A program in the guest that listens on its port `port`, beside the coird of init; with Daemon's calls."""

    def __init__(self, board, command, port, files=()):
        self.board, self.files = board, files
        self.port = board.forwarded[port]
        self.seen = 0
        self.log = f"/run/daemon.{port}"
        board.copy(files)
        line = " ".join(map(shlex.quote, command))
        self.pid = int(board.said(f"{line} >{self.log} 2>&1 </dev/null & echo $!"))
        # Not before: QEMU takes connections whether anybody listens or not.
        self.line_with("listening on")

    def lines(self):
        return self.board.said(f"cat {self.log}").splitlines()

    def line_with(self, text):
        """The next line on standard error, among those not yet asked for, that holds `text`."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = self.lines()
            found = next((i for i in range(self.seen, len(lines)) if text in lines[i]), None)
            if found is not None:
                self.seen = found + 1
                return lines[found]
            assert time.monotonic() < deadline, f"no line with {text!r}: {lines}"
            time.sleep(0.1)

    def signal(self, number=signal.SIGTERM):
        """Sends a signal, after the files as they are now."""
        self.board.copy(self.files)
        self.board.said(f"kill -{int(number)} {self.pid}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.board.run(f"kill {self.pid}")
        until(lambda: self.board.run(f"kill -0 {self.pid} 2>/dev/null")[0] != 0, "the end")
