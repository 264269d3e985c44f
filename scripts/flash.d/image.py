"""An SD card's image: unpacked as it comes, its root file system found by type and magic, copied with its holes."""
import bz2
import gzip
import json
import lzma
import os
import zipfile
import zlib

from ext4 import run
from speech import Refused, say

CHUNK = 1 << 20
HOLE = 4096
SECTOR = 512


def pour(source, target, size=None):
    """pour copies a stream to the end of a file, leaving out whole blocks of zeros, and tells each fifth of a known size."""
    zeros, done, told = bytes(CHUNK), 0, 0
    while block := source.read(CHUNK):
        if block == zeros[:len(block)]:
            target.seek(len(block), os.SEEK_CUR)
        else:
            put(target, block)
        done += len(block)
        if size and size > 256 * CHUNK and done * 5 // size > told:
            told = done * 5 // size
            say(f"      {done >> 20} of {size >> 20} MB")
    target.truncate(target.tell())
    return done


def put(target, block):
    """put writes a chunk, leaving out its blocks of zeros: the place is a hole already."""
    zeros, start = bytes(HOLE), 0
    pieces = [block[at:at + HOLE] for at in range(0, len(block), HOLE)]
    empty = [piece == zeros[:len(piece)] for piece in pieces]
    while start < len(pieces):
        end = start
        while end < len(pieces) and empty[end] == empty[start]:
            end += 1
        if empty[start]:
            target.seek(sum(map(len, pieces[start:end])), os.SEEK_CUR)
        else:
            target.write(block[start * HOLE:end * HOLE])
        start = end


class Range:
    """Range reads a part of a file as a stream; holes cost no reading."""

    def __init__(self, file, start, size):
        self.file, self.at, self.end = file, start, start + size

    def read(self, most):
        want = min(most, self.end - self.at)
        if want <= 0:
            return b""
        try:
            data = os.lseek(self.file.fileno(), self.at, os.SEEK_DATA)
        except OSError:
            data = self.end
        if data >= self.at + want:
            self.at += want
            return bytes(want)
        block = os.pread(self.file.fileno(), want, self.at)
        self.at += len(block)
        return block


def opened(path):
    """opened returns a stream of the image inside a file, which may be an archive, and its size where it is known."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic[:4] == b"PK\x03\x04":
        archive = zipfile.ZipFile(path)
        images = [m for m in archive.infolist() if not m.is_dir() and m.filename.endswith((".img", ".ext4"))]
        if len(images) != 1:
            raise Refused(f"{path} holds {len(images)} images; unpack it and name one by --image")
        return archive.open(images[0]), images[0].file_size
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(path), None
    if magic == b"\xfd7zXZ\x00":
        return lzma.open(path), None
    if magic[:3] == b"BZh":
        return bz2.open(path), None
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        raise Refused(f"{path} is packed by zstd; unpack it first: zstd -d {path}")
    file = open(path, "rb")
    size = os.fstat(file.fileno()).st_size
    return Range(file, 0, size), size


def unpack(path, target):
    """unpack leaves the image in target."""
    try:
        stream, size = opened(path)
        with open(target, "wb") as out:
            if pour(stream, out, size) == 0:
                raise Refused(f"{path} is empty")
    except (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise Refused(f"{path} is damaged or cut short ({error}); fetch it again") from error


def has_magic(file, offset):
    return os.pread(file.fileno(), 2, offset + 1024 + 0x38) == b"\x53\xef"


def require_no_squashfs(file, offset):
    """require_no_squashfs refuses the root of a file system that nobody can write to."""
    if os.pread(file.fileno(), 4, offset) not in (b"hsqs", b"sqsh"):
        return
    raise Refused("the root is a squashfs, which cannot be written: install the board's package instead (scripts/package), or unpack it, "
                  "put the daemon in and pack it again: unsquashfs, mksquashfs")


def ext4_size(file, offset):
    head = os.pread(file.fileno(), 1024, offset + 1024)
    blocks = int.from_bytes(head[4:8], "little") | (int.from_bytes(head[0x150:0x154], "little") << 32 if head[0x60] & 0x80 else 0)
    return blocks << (10 + int.from_bytes(head[0x18:0x1c], "little"))


def partitions(path):
    """partitions returns [(offset, size, type)] of the MBR, in bytes; None without a table."""
    with open(path, "rb") as file:
        if os.pread(file.fileno(), 2, 510) != b"\x55\xaa":
            return None
    status, out, error = run(["sfdisk", "-J", path])
    if status != 0:
        told = error.strip().rpartition(": ")[2]
        raise Refused(f"sfdisk cannot read the partition table ({told}); fetch the image again")
    table = json.loads(out)["partitiontable"]
    if table.get("label") != "dos":
        raise Refused(f"the image has a {table.get('label')} table; flash knows MBR, and --rootfs for a file system alone")
    end = os.path.getsize(path)
    found = []
    for part in table.get("partitions", []):
        start, size = part["start"] * SECTOR, part["size"] * SECTOR
        # A space that is left for swap (type 0) may lie behind the image's end: nothing of it is there yet.
        if start + size > end and int(part["type"], 16) != 0:
            raise Refused(f"the partition at sector {part['start']} ends {start + size - end} bytes behind the image, "
                          "which was cut short; fetch it again")
        found.append((start, size, int(part["type"], 16)))
    return found


def find_root(path, whole, root_offset):
    """find_root returns (offset, size) of the root file system in bytes."""
    with open(path, "rb") as file:
        size = os.path.getsize(path)
        if whole:
            if not has_magic(file, 0):
                require_no_squashfs(file, 0)
                raise Refused("this is no ext4 file system; an SD card's image goes without --rootfs")
            return 0, size
        table = partitions(path)
        if not table:
            if root_offset and has_magic(file, root_offset):
                return root_offset, min(ext4_size(file, root_offset), size - root_offset)
            require_no_squashfs(file, 0)
            cure = "name its board by --board, or flash its root file system alone with --rootfs"
            if has_magic(file, 0):
                cure = "add --rootfs: it is a file system alone"
            raise Refused(f"the image has no partition table; {cure}")
        roots = [(start, length) for start, length, kind in table if kind == 0x83 and has_magic(file, start)]
        if len(roots) != 1:
            for start, _, kind in table if not roots else []:
                if kind == 0x83:
                    require_no_squashfs(file, start)
            raise Refused(f"{len(roots)} partitions are of type 83 and hold ext4, one is wanted; copy the right one out with "
                          "dd and flash it with --rootfs")
        return roots[0]


def find_fat(path):
    """find_fat returns the offset of the boot partition."""
    fats = [start for start, _, kind in partitions(path) or [] if kind in (0x06, 0x0b, 0x0c, 0x0e)]
    if len(fats) != 1:
        raise Refused(f"{len(fats)} partitions are FAT, one is wanted for --boot-file")
    return fats[0]


def take_out(image, offset, size, target):
    with open(image, "rb") as file, open(target, "wb") as out:
        pour(Range(file, offset, size), out, size)


def put_back(source, image, offset):
    """put_back writes what differs, so that holes of the image stay holes."""
    with open(source, "rb") as file, open(image, "r+b") as out:
        size = os.fstat(file.fileno()).st_size
        new, old = Range(file, 0, size), Range(out, offset, size)
        at = offset
        while block := new.read(CHUNK):
            if block != old.read(len(block)):
                os.pwrite(out.fileno(), block, at)
            at += len(block)
        out.flush()
        os.fsync(out.fileno())
