"""A disk whose writes QEMU has recorded (its driver blklogwrites), as losses of power at any time would have left it."""

import random
import struct

SECTOR = 512
BLOCK = 2  # sectors that ext4 wants to be written whole or not at all: those of its superblock
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


def cuts(disk, entries, wanted, seed):
    """Yields after each of the entries the number of those that were written, and disks that had lost their power then:
    they lack any of the writes since the last flush, or any blocks of these; all, and none, too. So many that some
    `wanted` are different, if there are as many."""
    chance = random.Random(seed)
    durable, pending = bytearray(disk), []
    tries = tries_for(entries, wanted)
    for number, entry in enumerate(entries, 1):
        if entry is None:
            put(durable, pending)
            pending = []
        else:
            pending.append(entry)
        blocks = [block for write in pending for block in blocks_of(*write)]
        choices = [[], pending]
        for attempt in range(tries if pending else 0):
            parts = blocks if attempt % 2 else pending
            choices.append([part for part in parts if chance.random() < 0.5])
        for kept in choices if pending else [[]]:
            cut = bytearray(durable)
            put(cut, kept)
            yield number, cut


def put(disk, writes):
    for sector, data in writes:
        disk[sector * SECTOR:sector * SECTOR + len(data)] = data


def blocks_of(sector, data):
    return [(sector + at, data[at * SECTOR:(at + BLOCK) * SECTOR]) for at in range(0, len(data) // SECTOR, BLOCK)]


def tries_for(entries, wanted):
    """How many subsets of the writes since a flush must be tried after each entry."""
    # Most writes are a few blocks, of which there are few subsets: many come twice.
    return -(-wanted * 5 // max(1, sum(entry is not None for entry in entries)))
