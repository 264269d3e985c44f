"""Reads what coird keeps in the folder of --state, as a power cut or a kill may have left it."""

import os
import re

from ends import SLOT, State, sum_line

TEMPORARY = re.compile(r"\.coir-[0-9a-f]{16}")
SUMMED = ("seed", "starts", "self-signed.pem", "good.conf")
OTHERS = ("crashes", "safe", "self-signed.crt")


class Kept:
    """The content of each file without its sum, None where there is none; the records of runs by their numbers."""

    def __init__(self, folder):
        self.files = {}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            if TEMPORARY.fullmatch(name):
                continue
            assert name in SUMMED + OTHERS, f"a file of no name: {name}"
            if name in SUMMED:
                content, line = data[:-16], data[-16:]
                assert line == sum_line(content), f"{name} is damaged: {data!r}"
                data = content
            self.files[name] = data
        self.leftovers = [name for name in os.listdir(folder) if TEMPORARY.fullmatch(name)]
        self.runs = {}
        data = self.files.get("crashes", b"")
        for at in range(0, len(data), SLOT):
            self.read_slot(data[at:at + SLOT])

    def read_slot(self, slot):
        if not slot.strip(b"\n"):
            return
        head = re.match(rb"(coir run 1\n(?:(?!# sum)[^\n]*\n)*)(# sum: [0-9a-f]{8}\n)", slot)
        # A slot that is being written is damaged: it is never the last run's.
        if head and head[2] == sum_line(head[1]):
            self.runs[State.number_of(head[1])] = head[1]

    def __getitem__(self, name):
        return self.files.get(name)

    @property
    def last_run(self):
        return max(self.runs, default=0)

    @property
    def count(self):
        """The starts that have been counted; 0: none."""
        if self["starts"] is None:
            return 0
        found = re.fullmatch(rb"coird starts 1\ncount: (\d+)\nbegan_ms: \d+\nboot: \d+\nof: \d+\n", self["starts"])
        assert found, self["starts"]
        return int(found[1])

    def check(self, configurations):
        """Asserts that each file is one that was written, whole."""
        assert self["seed"] is None or len(self["seed"]) == 64
        assert self["good.conf"] is None or self["good.conf"] in configurations, self["good.conf"]
        assert self["safe"] in (None, b"")
        pem = self["self-signed.pem"]
        if pem is not None:
            assert re.fullmatch(rb"-----BEGIN CERTIFICATE-----\n[^-]*-----END CERTIFICATE-----\n"
                                rb"-----BEGIN EC PRIVATE KEY-----\n[^-]*-----END EC PRIVATE KEY-----\n", pem), pem
        if self["self-signed.crt"] is not None:
            assert pem is not None and pem.startswith(self["self-signed.crt"])
        assert self.count >= 0
