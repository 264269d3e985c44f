"""A card in a reader: shown, confirmed, written and read back."""
import os
import stat

from image import CHUNK
from speech import Refused, Steps, say


def text_of(*path):
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


class Card:
    """Card is a block device, known by /sys. A test names a root of its own by COIR_FLASH_SYS, and a file for the device."""

    def __init__(self, device, largest):
        stub = os.environ.get("COIR_FLASH_SYS")
        self.device, self.name = device, os.path.basename(os.path.realpath(device))
        self.folder = os.path.join(stub or "/sys", "class", "block", self.name)
        if not os.path.isdir(self.folder) or not (stub or (os.path.exists(device) and stat.S_ISBLK(os.stat(device).st_mode))):
            raise Refused(f"{device} is no disk; lsblk lists them")
        if os.path.exists(os.path.join(self.folder, "partition")):
            raise Refused(f"{device} is a partition; name the whole card")
        self.size = int(text_of(self.folder, "size") or 0) * 512
        self.model = " ".join(filter(None, [text_of(self.folder, "device", "vendor"), text_of(self.folder, "device", "model"),
                                            text_of(self.folder, "device", "name")])) or "no model"
        # A reader on the board's own bus calls its card fixed, but says that it is an SD card.
        if text_of(self.folder, "removable") != "1" and text_of(self.folder, "device", "type") != "SD":
            raise Refused(f"{device} ({self.model}) is not removable: flash writes to cards only")
        if text_of(self.folder, "ro") == "1":
            raise Refused(f"{device} is write-protected; look at the card's slider")
        if self.size > largest:
            raise Refused(f"{device} ({self.model}) has {self.size / 1e9:.1f} GB, more than a card is expected to have "
                          f"({largest / 1e9:.0f} GB); say --largest if it is one")
        self.require_unused()

    def require_unused(self):
        names = [self.name] + [n for n in os.listdir(self.folder) if os.path.exists(os.path.join(self.folder, n, "partition"))]
        numbers = {text_of(self.folder, *([n] if n != self.name else []), "dev") for n in names} - {""}
        mounts = os.environ.get("COIR_FLASH_PROC", "/proc")
        for line in text_of(mounts, "self", "mountinfo").splitlines():
            fields = line.split()
            source = fields[fields.index("-") + 2] if "-" in fields else ""
            if fields[2] in numbers or os.path.basename(source) in names:
                raise Refused(f"{self.device} is in use: {source} is mounted at {fields[4]}; run: umount {fields[4]}")
        for line in text_of(mounts, "swaps").splitlines()[1:]:
            if os.path.basename(line.split()[0]) in names:
                raise Refused(f"{self.device} is in use: {line.split()[0]} is swap; run: swapoff {line.split()[0]}")
        for name in names:
            holders = os.path.join(self.folder, *([name] if name != self.name else []), "holders")
            if os.path.isdir(holders) and os.listdir(holders):
                raise Refused(f"{self.device} is in use by {os.listdir(holders)[0]}")

    def confirm(self, read):
        say(f"{self.device}: {self.model}, {self.size / 1e9:.1f} GB. Everything on it will be lost.")
        say(f"Type {self.name} to write:")
        if read().strip() != self.name:
            raise Refused(f"{self.device} was not confirmed; nothing was written")

    def write(self, path):
        size = os.path.getsize(path)
        if size > self.size:
            raise Refused(f"{self.device} has {self.size} bytes, the image {size}; take a larger card")
        step = Steps(2)
        # O_EXCL on a block device fails if anybody has mounted it meanwhile.
        flags = os.O_RDWR | (os.O_EXCL if stat.S_ISBLK(os.stat(self.device).st_mode) else 0)
        try:
            out = os.open(self.device, flags)
        except OSError as error:
            raise Refused(f"{self.device}: {error.strerror}; umount it, and run as a user who may write to it") from error
        try:
            with open(path, "rb") as image:
                step(f"writing {size >> 20} MB to {self.device}")
                self.each(image, size, lambda block, at: self.put(out, block, at))
                os.fsync(out)
                os.posix_fadvise(out, 0, 0, os.POSIX_FADV_DONTNEED)
                step("reading it back")
                self.each(image, size, lambda block, at: self.compare(out, block, at))
        except OSError as error:
            raise Refused(f"{self.device}: {error.strerror}; the card holds a part of the image: try again or replace it") from error
        finally:
            os.close(out)

    @staticmethod
    def each(image, size, visit):
        image.seek(0)
        at = told = 0
        while block := image.read(CHUNK):
            visit(block, at)
            at += len(block)
            if at * 10 // size > told:
                told = at * 10 // size
                say(f"      {at >> 20} of {size >> 20} MB")

    @staticmethod
    def put(out, block, at):
        while block:
            done = os.pwrite(out, block, at)
            block, at = block[done:], at + done

    def compare(self, out, block, at):
        if os.pread(out, len(block), at) != block:
            raise Refused(f"{self.device} does not hold what was written to it, near byte {at}: replace the card")
