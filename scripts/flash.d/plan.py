"""The plan of changes to a root file system, and the changes.

A record in the image, /etc/NAME.flash, lists what flash put there, so that --remove finds it:

    coir-flash 1
    dir PATH                a folder that was not there before
    file SHA256 PATH        a file that flash wrote
    link PATH
    line [bare]             the line of /etc/inittab; bare: the text ended without a newline before
"""
import os
import shutil
import stat

import inittab
from ext4 import quoted, sha256
from speech import Refused, say

HOOKS = ("/mnt/data/auto.sh", "/mnt/system/auto.sh")
INITTAB = "/etc/inittab"


class Item:
    """Item is one path of the image as it is to be: a file's bytes from source, a folder, or a link's target."""

    def __init__(self, kind, path, mode=0, source=None, target=None, owner=(0, 0)):
        self.kind, self.path, self.mode, self.source, self.target, self.owner = kind, path, mode, source, target, owner

    def full_mode(self):
        return {"file": 0o100000, "dir": 0o040000, "link": 0o120000}[self.kind] | self.mode

    def size(self):
        return os.path.getsize(self.source) if self.kind == "file" else 0


def overlay(folder):
    """overlay returns the items of a folder that is laid over the root."""
    if not os.path.isdir(folder):
        raise Refused(f"no such folder: {folder}")
    items = []
    for base, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(folders + files):
            source = os.path.join(base, name)
            path = "/" + os.path.relpath(source, folder)
            status = os.lstat(source)
            if path in HOOKS:
                raise Refused(f"{path} is the user's own hook, and one of the two switches the other off: "
                              "flash touches neither")
            if path == INITTAB:
                raise Refused(f"{path} is the image's own; flash adds the daemon's line itself")
            if path.startswith("/etc/init.d/S") and path.endswith((".bak", ".orig", ".old", "~", ".rej")):
                raise Refused(f"{source}: rcS runs every /etc/init.d/S??*, copies too; take it out of the folder")
            if stat.S_ISLNK(status.st_mode):
                items.append(Item("link", path, 0o777, target=os.readlink(source)))
            elif stat.S_ISDIR(status.st_mode):
                items.append(Item("dir", path, 0o755))
            elif stat.S_ISREG(status.st_mode):
                items.append(Item("file", path, 0o755 if status.st_mode & 0o111 else 0o644, source))
            else:
                raise Refused(f"{source} is neither file, folder nor link")
    return items


class Plan:
    def __init__(self, fs, name):
        self.fs, self.name = fs, name
        self.before = fs.listing()
        self.record_path = f"/etc/{name}.flash"
        self.put, self.drop = [], []
        entry = self.before.get(INITTAB)
        if entry is None:
            other = next((n for n in ("systemd", "procd") if any(p.endswith("/" + n) for p in self.before)), None)
            raise Refused(f"the image has no {INITTAB}" + (f" but {other}; install the package for it instead" if other else
                          "; flash knows the init of busybox and sysvinit"))
        self.inittab = fs.read(INITTAB).decode(errors="surrogateescape")
        self.dialect = inittab.dialect(self.inittab)
        self.record = self.read_record()

    def read_record(self):
        if self.record_path not in self.before:
            return None
        lines = self.fs.read(self.record_path).decode(errors="surrogateescape").splitlines()
        if lines[:1] != ["coir-flash 1"]:
            raise Refused(f"{self.record_path} of the image is no record of flash's; delete it first")
        return lines[1:]

    def staged(self, name, text):
        path = os.path.join(self.fs.work, name)
        with open(path, "wb") as file:
            file.write(text.encode(errors="surrogateescape"))
        return path

    def entry_item(self, path, source):
        """entry_item is a file with new content that keeps its mode and owner."""
        was = self.before[path]
        return Item("file", path, was.mode & 0o7777, source, owner=(was.uid, was.gid))

    def same(self, item):
        was = self.before.get(item.path)
        if was is None or (was.mode, was.uid, was.gid) != (item.full_mode(), *item.owner):
            return False
        if item.kind == "file":
            return was.size == str(item.size()) and self.fs.digest(item.path) == sha256(item.source)
        return item.kind == "dir" or self.fs.link_target(item.path) == item.target

    def add(self, items):
        """add plans what differs from the image."""
        record, wanted = list(self.record or []), []
        recorded = {line.split(" ", 2)[-1]: line for line in record if line.startswith("file ")}
        # A later layer wins; folders come before what lies in them.
        last = {}
        for item in items:
            item.path = self.fs.real(item.path, self.before)
            last[item.path] = item
        for path in sorted(last):
            parts = path.split("/")[1:-1]
            for depth in range(1, len(parts) + 1):
                last.setdefault("/" + "/".join(parts[:depth]), Item("dir", "/" + "/".join(parts[:depth]), 0o755))
        for path in sorted(last):
            item, was = last[path], self.before.get(path)
            if item.kind == "dir":
                if was is None:
                    wanted.append(item)
                    record.append(f"dir {path}")
                elif not stat.S_ISDIR(was.mode):
                    raise Refused(f"{path} is no folder in the image; take it away first")
                continue
            if was is not None and stat.S_ISDIR(was.mode):
                raise Refused(f"{path} is a folder in the image; take it away first")
            if path.startswith("/etc/default/") and was is not None and not self.same(item):
                if recorded.get(path, "").split(" ")[1:2] != [self.fs.digest(path)]:
                    say(f"      {path} has been edited: it stays as it is")
                    continue
            line = f"link {path}" if item.kind == "link" else f"file {sha256(item.source)} {path}"
            record = [old for old in record if old.split(" ", 2 if old.startswith("file ") else 1)[-1] != path] + [line]
            if not self.same(item):
                wanted.append(item)
        text, bare = inittab.with_line(self.inittab, self.name, self.dialect)
        if text != self.inittab:
            wanted.append(self.entry_item(INITTAB, self.staged("inittab", text)))
            record.append("line bare" if bare else "line")
        item = Item("file", self.record_path, 0o644, self.staged("record", "\n".join(["coir-flash 1", *sorted(set(record))]) + "\n"))
        if not self.same(item):
            wanted.append(item)
        self.put = wanted

    def remove(self):
        """remove plans the way back: what flash wrote and nobody has edited since."""
        if self.record is None:
            raise Refused(f"the image has no {self.record_path}: {self.name} was not put there by flash")
        folders, gone = [], {self.record_path}
        for line in self.record:
            kind, _, rest = line.partition(" ")
            digest, _, path = rest.partition(" ") if kind == "file" else ("", "", rest)
            if kind == "dir":
                folders.append(path)
            elif kind == "line":
                text = inittab.without_line(self.inittab, self.name, rest == "bare")
                if text != self.inittab:
                    self.put.append(self.entry_item(INITTAB, self.staged("inittab", text)))
            elif path not in self.before:
                continue
            elif kind == "file" and self.fs.digest(path) != digest:
                say(f"      {path} has been edited: it stays")
            else:
                gone.add(path)
        for path in sorted(folders, key=lambda p: p.count("/"), reverse=True):
            inside = [p for p in self.before if p.startswith(path + "/") and p not in gone]
            if path in self.before and not inside:
                gone.add(path)
        self.drop = sorted(gone, key=lambda p: (-p.count("/"), p))

    def require_room(self):
        """require_room counts blocks and inodes before anything is written."""
        block = self.fs.number("Block size")

        def blocks(size):
            count = (size + block - 1) // block
            return count + count // (block // 4) + 2

        wanted = sum(blocks(item.size()) + 1 for item in self.put) + (8 if self.put else 0)
        freed = sum(int(self.before[p].size or 0) // block for p in [i.path for i in self.put if i.kind == "file"] + self.drop
                    if p in self.before and stat.S_ISREG(self.before[p].mode))
        inodes = sum(1 for item in self.put if item.path not in self.before)
        free = self.fs.number("Free blocks")
        if wanted > free + freed:
            raise Refused(f"the root file system is full: {wanted * block >> 10} KB are wanted, {(free + freed) * block >> 10} "
                          "are free; delete something on the board or take a larger image")
        if inodes > self.fs.number("Free inodes"):
            raise Refused(f"the root file system has {self.fs.number('Free inodes')} inodes left, {inodes} are wanted; "
                          "delete files on the board")

    def lines(self):
        """lines tells the plan."""
        yield f"init: {self.dialect}"
        for path in self.drop:
            yield f"remove {path}"
        for item in self.put:
            yield f"{'replace' if item.path in self.before else 'put'} {item.path} {item.mode:04o} {item.size()} bytes"
        if not self.drop and not self.put:
            yield "nothing to change"

    def carry_out(self):
        """carry_out writes, and reads all of it back."""
        commands = []
        for path in self.drop:
            commands.append(("rmdir " if stat.S_ISDIR(self.before[path].mode) else "rm ") + quoted(path))
        for number, item in enumerate(self.put):
            folder, _, leaf = item.path.rpartition("/")
            if item.path in self.before:
                commands.append(f"rm {quoted(item.path)}")
            commands.append(f"cd {quoted(folder or '/')}")
            if item.kind == "file":
                shutil.copyfile(item.source, os.path.join(self.fs.work, f"item{number}"))
                commands.append(f"write item{number} {quoted(leaf)}")
            elif item.kind == "dir":
                commands.append(f"mkdir {quoted(leaf)}")
            else:
                commands.append(f"symlink {quoted(leaf)} {quoted(item.target)}")
            path = quoted(item.path)
            fields = {"mode": f"0{item.full_mode():o}", "uid": item.owner[0], "gid": item.owner[1]}
            commands += [f"sif {path} {field} {value}" for field, value in fields.items()]
        if commands:
            self.fs.commands(commands, write=True)
        self.fs.check("after writing")
        self.read_back()

    def read_back(self):
        after, asked = self.fs.listing(), {item.path for item in self.put} | set(self.drop)
        for path in self.drop:
            if path in after:
                raise Refused(f"{path} is still there: debugfs could not remove it")
        before, self.before = self.before, after
        for item in self.put:
            if not self.same(item):
                raise Refused(f"{item.path} reads back wrong: debugfs could not write it; the output is not left behind")
        for path in set(before) ^ set(after) | {p for p in before if p in after and before[p].key() != after[p].key()}:
            if path not in asked:
                raise Refused(f"{path} changed although nobody asked for it; the output is not left behind")
