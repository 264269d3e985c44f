"""Runs inside gdb, which is attached to a riscv64 program that stands still: writes a core file of it to $core.

QEMU's user mode writes none for riscv64, and gdb's own gcore does not learn from QEMU what memory there is. So the
registers and the memory that a debugger of fibers may ask for are written here, in the kernel's format: the program's
segments, the stack, and what the runtime has reserved.
"""

import struct

import gdb

PAGE = 4096
inferior = gdb.selected_inferior()


def number(expression):
    return int(gdb.parse_and_eval("(unsigned long)(%s)" % expression))


def u64(address):
    return struct.unpack("<Q", bytes(inferior.read_memory(address, 8)))[0]


def segments(path):
    """Where the program's own segments lie."""
    with open(path, "rb") as file:
        header = file.read(64)
        offset, (size, count) = struct.unpack_from("<Q", header, 32)[0], struct.unpack_from("<HH", header, 54)
        for index in range(count):
            file.seek(offset + index * size)
            entry = struct.unpack("<IIQQQQQQ", file.read(56))
            if entry[0] == 1 and entry[6]:
                yield entry[3], entry[3] + entry[6]


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
fields = {name: u64(view + 8 * index) for index, name in enumerate(names)}
wanted = list(segments(gdb.current_progspace().filename))
sp = number("$sp")
wanted.append((sp - PAGE, sp + 16 * PAGE))
scheduler = u64(fields["scheduler"])
wanted.append((scheduler, scheduler + 4 * PAGE))
for index in range(fields["count"]):
    arena = fields["arenas"] + index * fields["bytes"]
    base, stride, cold = (u64(arena + fields[name]) for name in ("base", "stride", "cold"))
    used = u64(arena + fields["used"]) & 0xffffffff
    if base:
        wanted += [(base, base + used * stride), (cold, cold + PAGE)]
        worker = u64(base + stride - u64(view + 8 * 10) + u64(view + 8 * 12))
        wanted.append((worker, worker + 4 * PAGE))
pages = dict(page for start, end in wanted for page in readable(start, end))

registers = "pc ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split()
status = bytearray(376)  # struct elf_prstatus
struct.pack_into("<I", status, 32, 1)
for index, name in enumerate(registers):
    struct.pack_into("<Q", status, 112 + 8 * index, number("$" + name))
note = struct.pack("<III8s", 5, len(status), 1, b"CORE") + bytes(status)

ordered = sorted(pages.items())
header_bytes = 64 + 56 * (len(ordered) + 1)
data = (header_bytes + len(note) + PAGE - 1) // PAGE * PAGE
with open(str(gdb.parse_and_eval("$core")).strip('"'), "wb") as core:
    core.write(b"\x7fELF\2\1\1" + bytes(9))
    core.write(struct.pack("<HHIQQQIHHHHHH", 4, 243, 1, 0, 64, 0, 5, 64, 56, len(ordered) + 1, 0, 0, 0))
    core.write(struct.pack("<IIQQQQQQ", 4, 0, header_bytes, 0, 0, len(note), 0, 1))
    for index, (address, _) in enumerate(ordered):
        core.write(struct.pack("<IIQQQQQQ", 1, 6, data + index * PAGE, address, 0, PAGE, PAGE, PAGE))
    core.write(note.ljust(data - header_bytes, b"\0"))
    for _, content in ordered:
        core.write(content)
