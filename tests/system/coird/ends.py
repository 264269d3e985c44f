"""The record of coird's ends: the file "crashes" in the folder of --state."""

import contextlib
import os
import re
import subprocess
import tempfile

from daemon import Daemon, until

SLOT = 8192


def sum_line(data):
    """The line of the sum of what is before it."""
    total = 2166136261
    for byte in data:
        total = (total ^ byte) * 16777619 % (1 << 32)
    return b"# sum: %08x\n" % total


def build_id(program):
    """The build id that the linker has written into a program, as hexadecimal digits."""
    with open(program, "rb") as file:
        data = file.read()
    note = re.search(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", data)
    return data[note.end():note.end() + 20].hex()


class State(tempfile.TemporaryDirectory):
    """A folder for --state."""

    def __enter__(self):
        super().__enter__()  # which returns the name alone
        return self

    @property
    def file(self):
        return os.path.join(self.name, "crashes")

    def start(self, program, files, *options):
        """A coird of one worker: a signal that is sent to it comes to that one."""
        return Daemon(program, "--state", self.name, *options, files=files, environment={"COIR_WORKERS": "1"})

    @contextlib.contextmanager
    def small_disk(self):
        """Makes the folder a disk of 128 KB. Yields what fills it; None: this machine mounts nothing."""
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", self.name], capture_output=True)
        try:
            yield self.fill if made.returncode == 0 else None
        finally:
            if made.returncode == 0:
                until(lambda: subprocess.run(["umount", self.name], capture_output=True).returncode == 0, "the unmount")

    def fill(self):
        try:
            with open(os.path.join(self.name, "filler"), "wb", buffering=0) as file:
                while file.write(bytes(4096)) != 0:
                    pass
        except OSError as error:
            assert error.errno == 28, error

    def slots(self):
        with open(self.file, "rb") as file:
            data = file.read()
        return [data[at:at + SLOT] for at in range(0, len(data), SLOT)]

    @staticmethod
    def number_of(slot):
        found = re.search(rb"^number: (\d+)$", slot, re.M)
        return int(found[1]) if found else 0

    def newest(self):
        """The latest record as its lines, a list for each key."""
        lines = {}
        for line in max(self.slots(), key=self.number_of).decode().splitlines():
            key, _, value = line.partition(": ")
            lines.setdefault(key, []).append(value)
        return lines

    def in_another_boot(self, uptime_ms=None):
        """Makes the latest record one of another boot, whose end, if it has one, came after that time."""
        slots = self.slots()
        at = max(range(len(slots)), key=lambda i: self.number_of(slots[i]))
        parts = [part + b"\n" for part in re.split(rb"\n# sum: \w{8}\n", slots[at])[:-1]]
        parts[0] = re.sub(rb"\nboot: .*\n", b"\nboot: another\n", parts[0])
        if uptime_ms is not None:
            parts[1] = re.sub(rb"\nuptime_ms: .*\n", b"\nuptime_ms: %d\n" % uptime_ms, parts[1])
        slots[at] = b"".join(part + sum_line(part) for part in parts).ljust(SLOT, b"\n")
        with open(self.file, "r+b") as file:
            file.write(b"".join(slots))


def crash(daemon, number):
    daemon.signal(number)
    assert daemon.wait() == -number, daemon.lines
    daemon.process.returncode = 0  # as the end of its block wants it
