"""A disk whose writes QEMU has recorded (its driver blklogwrites), as losses of power at any time would have left it."""

import random
import struct

SECTOR = 512
FLUSH, FUA, DISCARD = 1, 2, 4


def read_log(path):
    """The disk's writes and flushes in order: (sector, data) or None."""
    with open(path, "rb") as file:
        log = file.read()
    magic, version, count, size = struct.unpack_from("<QQQI", log)
    assert magic == 0x6A736677736872 and version == 1 and size == SECTOR, (hex(magic), version, size)
    at, entries = SECTOR, []
    for _ in range(count):
        sector, length, flags, more = struct.unpack_from("<QQQQ", log, at)
        at += SECTOR
        if flags & FLUSH:
            entries.append(None)
        if length and not flags & DISCARD:
            entries.append((sector, log[at:at + length * SECTOR]))
            at += length * SECTOR
            if flags & FUA:
                entries.append(None)
    return entries


def cuts(disk, entries, tries, seed, begin=0):
    """Yields after each of the entries, those before `begin` left out, the number of those that were written, and a disk
    that had lost its power then: it lacks any of the writes since the last flush. `tries` is how many of these."""
    chance = random.Random(seed)
    durable, pending = bytearray(disk), []

    def write(into, entry):
        sector, data = entry
        into[sector * SECTOR:sector * SECTOR + len(data)] = data

    for number, entry in enumerate(entries, 1):
        if entry is None:
            for each in pending:
                write(durable, each)
            pending = []
        else:
            pending.append(entry)
        if number < begin:
            continue
        seen = set()
        for attempt in range(tries if pending else 1):
            # All of them, none, and then any.
            kept = (1 << len(pending)) - 1 if attempt == 0 else 0 if attempt == 1 else chance.getrandbits(len(pending))
            if kept in seen:
                continue
            seen.add(kept)
            cut = bytearray(durable)
            for bit, each in enumerate(pending):
                if kept >> bit & 1:
                    write(cut, each)
            yield number, cut
