"""Runs inside gdb, which is attached to a foreign program that stands still: writes a core file of it to $core.

QEMU's user mode writes none, and gdb's own gcore does not learn from QEMU what memory there is. So the
registers and the memory that a debugger of fibers may ask for are written here, in the kernel's format: the program's
segments, the stack, and what the runtime has reserved.
"""

import struct

import gdb

PAGE = 4096
CPUS = {  # machine and flags of its ELF files; bytes of struct elf_prstatus, where its process and its registers begin; these
    "riscv": (243, 5, 376, 32, 112, "pc ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 "
                                    "t3 t4 t5 t6"),
    "aarch64": (183, 0, 392, 32, 112, " ".join("x%d" % each for each in range(31)) + " sp pc cpsr"),
    "arm": (40, 0x5000000, 148, 24, 72, "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 r11 r12 sp lr pc cpsr"),
}
inferior = gdb.selected_inferior()
MACHINE, FLAGS, STATUS_BYTES, PROCESS_AT, REGISTERS_AT, REGISTERS = next(
    facts for name, facts in CPUS.items() if inferior.architecture().name().startswith(name))
WORD = gdb.lookup_type("long").sizeof
ELF64 = WORD == 8


def number(expression):
    return int(gdb.parse_and_eval("(unsigned long)(%s)" % expression))


def word(address):
    return int.from_bytes(bytes(inferior.read_memory(address, WORD)), "little")


def segment(kind, flags, offset, address, stored, size, align):
    """An entry of the program header."""
    if ELF64:
        return struct.pack("<IIQQQQQQ", kind, flags, offset, address, 0, stored, size, align)
    return struct.pack("<IIIIIIII", kind, offset, address, 0, stored, size, flags, align)


def segments(path):
    """The places of the program's own segments."""
    with open(path, "rb") as file:
        header = file.read(64)
        offset = struct.unpack_from("<Q", header, 32)[0] if ELF64 else struct.unpack_from("<I", header, 28)[0]
        size, count = struct.unpack_from("<HH", header, 54 if ELF64 else 42)
        for index in range(count):
            file.seek(offset + index * size)
            entry = file.read(size)
            kind = struct.unpack_from("<I", entry)[0]
            address, _, _, length = struct.unpack_from("<QQQQ", entry, 16) if ELF64 else struct.unpack_from("<IIII", entry, 8)
            if kind == 1 and length:
                yield address, address + length


def readable(start, end):
    """The pages from start to end, which do not all have to be there."""
    found = []
    for page in range(start // PAGE * PAGE, end, PAGE):
        try:
            found.append((page, bytes(inferior.read_memory(page, PAGE))))
        except gdb.MemoryError:
            pass
    return found


view = number("&coir_debugger_view")
names = "version arenas scheduler words count bytes base stride used cold".split()
fields = {name: word(view + WORD * index) for index, name in enumerate(names)}
wanted = list(segments(gdb.current_progspace().filename))
sp = number("$sp")
wanted.append((sp - PAGE, sp + 16 * PAGE))
scheduler = word(fields["scheduler"])
wanted.append((scheduler, scheduler + 4 * PAGE))
for index in range(fields["count"]):
    arena = fields["arenas"] + index * fields["bytes"]
    base, stride, cold = (word(arena + fields[name]) for name in ("base", "stride", "cold"))
    used = word(arena + fields["used"]) & 0xffffffff
    if base:
        wanted += [(base, base + used * stride), (cold, cold + PAGE)]
        worker = word(base + stride - word(view + WORD * 10) + word(view + WORD * 12))
        wanted.append((worker, worker + 4 * PAGE))
pages = dict(page for start, end in wanted for page in readable(start, end))

status = bytearray(STATUS_BYTES)
struct.pack_into("<I", status, PROCESS_AT, 1)
for index, name in enumerate(REGISTERS.split()):
    at = REGISTERS_AT + WORD * index
    status[at:at + WORD] = (number("$" + name) & (256 ** WORD - 1)).to_bytes(WORD, "little")
note = struct.pack("<III8s", 5, len(status), 1, b"CORE") + bytes(status)

ordered = sorted(pages.items())
head, entry = (64, 56) if ELF64 else (52, 32)
header_bytes = head + entry * (len(ordered) + 1)
data = (header_bytes + len(note) + PAGE - 1) // PAGE * PAGE
with open(str(gdb.parse_and_eval("$core")).strip('"'), "wb") as core:
    core.write(b"\x7fELF" + bytes([2 if ELF64 else 1, 1, 1]) + bytes(9))
    core.write(struct.pack("<HHIQQQIHHHHHH" if ELF64 else "<HHIIIIIHHHHHH",
                           4, MACHINE, 1, 0, head, 0, FLAGS, head, entry, len(ordered) + 1, 0, 0, 0))
    core.write(segment(4, 0, header_bytes, 0, len(note), 0, 1))
    for index, (address, _) in enumerate(ordered):
        core.write(segment(1, 6, data + index * PAGE, address, PAGE, PAGE, PAGE))
    core.write(note.ljust(data - header_bytes, b"\0"))
    for _, content in ordered:
        core.write(content)
