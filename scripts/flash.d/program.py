"""A daemon's program: an ELF file, judged before it is put where its only sign of life would be "ELF: not found"."""
import os
import shutil
import struct

from ext4 import run
from speech import Refused, say

# e_machine and the class of each CPU that boards have.
CPUS = {"riscv64": (243, 2), "aarch64": (183, 2), "armv7": (40, 1), "x86_64": (62, 2)}
PATH = os.environ.get("PATH", "") + ":/usr/lib/llvm-19/bin"


class Elf:
    """Elf is what the headers of a program tell; a file whose headers lie beyond its end is refused."""

    def __init__(self, path):
        self.path, self.size = path, os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF":
                raise Refused(f"{path} is no program of Linux")
            if len(head) < 52 or head[4] not in (1, 2) or (head[4] == 2 and len(head) < 64):
                self.cut_short(64)
            if head[5] != 1:
                raise Refused(f"{path} is a program for a big-endian CPU; no board here has one")
            self.wide = head[4] == 2
            layout = "<HHIQQQIHHHHHH" if self.wide else "<HHIIIIIHHHHHH"
            (_, self.machine, _, _, segments, sections, _, _, segment_size, count, section_size, section_count,
             _) = struct.unpack(layout, head[16:16 + struct.calcsize(layout)])
            self.require(segments + segment_size * count)
            self.require(sections + section_size * section_count)
            self.interpreter = None
            for index in range(count):
                file.seek(segments + segment_size * index)
                part = file.read(segment_size)
                kind = struct.unpack("<I", part[:4])[0]
                start, length = struct.unpack("<QQ", part[8:16] + part[32:40]) if self.wide else struct.unpack("<II", part[4:8] + part[16:20])
                self.require(start + length)
                if kind == 3:
                    file.seek(start)
                    self.interpreter = file.read(length).rstrip(b"\0").decode(errors="replace")
            self.has_symbols = self.finds_symbols(file, sections, section_size, section_count)

    def finds_symbols(self, file, start, size, count):
        for index in range(count):
            file.seek(start + size * index)
            part = file.read(size)
            kind = struct.unpack("<I", part[4:8])[0]
            begin, length = struct.unpack("<QQ", part[24:40]) if self.wide else struct.unpack("<II", part[16:24])
            if kind not in (0, 8):
                self.require(begin + length)
            if kind == 2:
                return True
        return False

    def require(self, end):
        if end > self.size:
            self.cut_short(end)

    def cut_short(self, wanted):
        raise Refused(f"{self.path} is cut short: it has {self.size} bytes and its headers tell of {wanted}; build or copy it again")


def check(path, board, cure):
    """check refuses a program that the board cannot run, and returns what its headers tell."""
    elf = Elf(path)
    cpu = board.target.partition("-")[0]
    wanted = CPUS.get(cpu)
    if wanted and (elf.machine, 2 if elf.wide else 1) != wanted:
        name = next((each for each, facts in CPUS.items() if facts == (elf.machine, 2 if elf.wide else 1)), f"machine {elf.machine}")
        raise Refused(f"{path} is a program for {name}, and {board.name} has {cpu}; {cure}")
    if elf.interpreter:
        raise Refused(f"{path} is linked dynamically and wants {elf.interpreter}, which the board may not have; link it with -static, or {cure}")
    return elf


def stripped(elf, work):
    """stripped is the program without symbols and debug information, which no board reads: a copy in `work`, or itself."""
    if not elf.has_symbols:
        return elf.path
    tool = shutil.which("llvm-strip-19", path=PATH) or shutil.which("llvm-strip", path=PATH)
    if tool is None:
        say("      its symbols go along: there is no llvm-strip-19 (package llvm-19)")
        return elf.path
    target = os.path.join(work, "stripped")
    status, _, error = run([tool, "-o", target, elf.path])
    if status != 0:
        raise Refused(f"{elf.path} cannot be stripped: {error.strip()[-120:]}")
    return target
