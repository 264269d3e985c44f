"""An ext4 file system in a file, read and written by e2fsprogs: debugfs, dumpe2fs and e2fsck.

debugfs ends with status 0 whatever happens, so nothing here trusts it: what was written is read back.
"""
import hashlib
import os
import subprocess
import tempfile

from speech import Refused

# The features that e2fsprogs 1.47 writes correctly. Every other one is refused by its name.
WRITABLE = frozenset(
    "has_journal ext_attr resize_inode dir_index filetype needs_recovery extent flex_bg sparse_super large_file huge_file "
    "uninit_bg dir_nlink extra_isize 64bit metadata_csum metadata_csum_seed orphan_file sparse_super2 meta_bg large_dir".split()
)


def run(arguments, env=None, cwd=None):
    """run returns status and output of a tool, which is found although /sbin is not in a user's PATH."""
    env = dict(env or os.environ, LC_ALL="C", PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    done = subprocess.run(arguments, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def quoted(path):
    """quoted is a path as debugfs reads it."""
    if any(c in path for c in '"\n\r') or path != path.strip():
        raise Refused(f"{path!r}: debugfs cannot take this name; rename it")
    return f'"{path}"'


def sha256(path):
    """sha256 reads a file piece by piece."""
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


class Entry:
    """Entry is one name of a directory: what must not change unless it is asked for."""

    def __init__(self, fields):
        self.mode, self.uid, self.gid, self.size = int(fields[2], 8), int(fields[3]), int(fields[4]), fields[6]
        self.inode = int(fields[1])

    def key(self):
        # A directory may grow by a block when it gains a name.
        size = "" if self.mode & 0o170000 == 0o040000 else self.size
        return self.mode, self.uid, self.gid, size, self.inode


class Ext4:
    def __init__(self, path, work):
        self.path, self.work = path, work
        self.facts = self.head()

    def head(self):
        status, out, error = run(["dumpe2fs", "-h", self.path])
        if status != 0:
            raise Refused(f"dumpe2fs cannot read the root file system: {error.strip().splitlines()[-1:]}")
        return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in out.decode(errors="replace").splitlines())}

    def number(self, name):
        return int(self.facts[name].split()[0])

    def environment(self):
        """environment fixes the time to that of the file system's making: the same input gives the same bytes."""
        with open(self.path, "rb") as file:
            file.seek(1024)
            head = file.read(1024)
        # The times of making, of the last check and of the last mount; genext2fs knows none.
        made, checked, mounted = (int.from_bytes(head[at:at + 4], "little") for at in (0x108, 0x40, 0x2c))
        # e2fsck takes the time of a deletion for the number of an inode, in the list of those that were open at a loss of power,
        # if it is as small as one; but not where the last mount or write was in those first hours of 1970, too, as on a board
        # without a clock.
        inodes = int.from_bytes(head[:4], "little")
        when = "1" if 0 < mounted < inodes else str(made or checked or 1_600_000_000)
        return dict(os.environ, E2FSPROGS_FAKE_TIME=when, E2FSCK_TIME=when, DEBUGFS_PAGER="cat", PAGER="cat")

    def require_writable(self):
        unknown = [name for name in self.facts["Filesystem features"].split() if name not in WRITABLE]
        if unknown:
            raise Refused(f"the root file system has the feature {unknown[0]}, which flash cannot write safely; "
                          f"turn it off on a copy: tune2fs -O ^{unknown[0]}")

    def replay(self):
        """replay brings a journal that was left dirty into the file system. Returns whether there was one."""
        if "needs_recovery" not in self.facts["Filesystem features"].split():
            return False
        # With a time that hides no board without a clock: its last mount is in the journal.
        first = dict(self.environment(), E2FSPROGS_FAKE_TIME="1", E2FSCK_TIME="1")
        status, out, error = run(["e2fsck", "-y", "-E", "journal_only", self.path], first)
        self.facts = self.head()
        if status > 1 or "needs_recovery" in self.facts["Filesystem features"].split():
            raise Refused(f"the journal cannot be replayed: {(error or out.decode(errors='replace')).strip()[-200:]}; "
                          "boot the card once and shut it down, then copy the image again")
        # On a board without a clock, a file that was deleted within the first second of 1970 counts as one whose deletion was never
        # noted. That, and what else a start mends unasked, is mended here too; `check` refuses the rest.
        run(["e2fsck", "-fp", self.path], first)
        self.facts = self.head()
        return True

    def check(self, when):
        status, out, _ = run(["e2fsck", "-fn", self.path], self.environment())
        if status != 0:
            told = [line for line in out.decode(errors="replace").splitlines() if line and not line.startswith("Pass")]
            raise Refused(f"the root file system has errors {when} ({told[0] if told else 'e2fsck says no more'}); "
                          "repair a copy of it with e2fsck -fy, or take a fresh image")

    def commands(self, lines, write=False):
        """commands runs debugfs commands, in a folder where the sources of its writes lie."""
        with tempfile.NamedTemporaryFile("w", dir=self.work, suffix=".cmd", delete=False) as file:
            file.write("".join(line + "\n" for line in lines))
        arguments = ["debugfs"] + (["-w"] if write else []) + ["-f", file.name, self.path]
        _, out, error = run(arguments, self.environment(), self.work)
        os.unlink(file.name)
        return out, error

    def listing(self):
        """listing returns {path: Entry} of the whole file system."""
        # Folders are asked for by inode: a user's may have names that debugfs cannot take.
        found, wave = {}, [("/", 2)]
        while wave:
            out, _ = self.commands([f"ls -p <{inode}>" for _, inode in wave])
            at, following = -1, []
            for line in out.decode(errors="surrogateescape").splitlines():
                if line.startswith("debugfs: ls -p "):
                    at += 1
                    continue
                fields = line.split("/")
                if len(fields) != 8 or not fields[1].isdigit() or fields[5] in (".", "..") or fields[1] == "0":
                    continue
                path = wave[at][0].rstrip("/") + "/" + fields[5]
                found[path] = Entry(fields)
                if found[path].mode & 0o170000 == 0o040000:
                    following.append((path, found[path].inode))
            wave = following
        return found

    def dumped(self, path):
        """dumped copies a file out of the image and returns where it lies."""
        target = os.path.join(self.work, "read")
        if os.path.exists(target):
            os.unlink(target)
        self.commands([f"dump {quoted(path)} read"])
        if not os.path.exists(target):
            raise Refused(f"{path} cannot be read from the image")
        return target

    def read(self, path):
        """read returns a small file's bytes."""
        with open(self.dumped(path), "rb") as file:
            return file.read()

    def digest(self, path):
        return sha256(self.dumped(path))

    def link_target(self, path):
        out, _ = self.commands([f"stat {quoted(path)}"])
        for line in out.decode(errors="replace").splitlines():
            if line.startswith("Fast link dest:"):
                return line.split('"')[1]
        return self.read(path).decode(errors="replace")

    def real(self, path, listing, depth=0):
        """real follows the links in a path's folders, for debugfs to write where the board will look."""
        done = ""
        for name in [part for part in path.split("/")[1:-1] if part]:
            done += "/" + name
            entry = listing.get(done)
            if entry and entry.mode & 0o170000 == 0o120000:
                if depth > 8:
                    raise Refused(f"{path}: too many links")
                target = os.path.normpath(os.path.join(os.path.dirname(done), self.link_target(done)))
                return self.real(target + path[len(done):], listing, depth + 1)
            if entry and entry.mode & 0o170000 != 0o040000:
                raise Refused(f"{done} of the image is no folder; {path} cannot be put there")
        return path
