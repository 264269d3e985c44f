"""More refusals for tests/system/flash: archives, dirty journals, full disks, broken images, features, other inits, cards."""
import bz2
import gzip
import lzma
import os
import shutil
import stat
import zipfile


def copy(t, card, name):
    target = os.path.join(t.WORK, name + ".img")
    shutil.copyfile(card, target)
    return target


def poke(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def archives(t, card):
    done = t.flash(card)
    want = t.digest(card.replace(".img", ".out"))
    with open(card, "rb") as file:
        data = file.read()
    base = os.path.join(t.WORK, "vendor")
    for ending, compress in {"gz": gzip.compress, "xz": lambda d: lzma.compress(d, preset=0), "bz2": bz2.compress}.items():
        with open(f"{base}.img.{ending}", "wb") as file:
            file.write(compress(data))
    with zipfile.ZipFile(base + ".img.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(card, "vendor.img")
        archive.writestr("README", "read me")
    for ending in ("gz", "xz", "bz2", "zip"):
        packed, out = f"{base}.img.{ending}", f"{base}.{ending}.img"
        done = t.flash(packed, out=out)
        t.promise(f"a vendor's .{ending} is taken as it comes", done.returncode == 0 and t.digest(out) == want, done.stderr)
        with open(packed, "rb") as file:
            part = file.read(os.path.getsize(packed) * 2 // 3)
        with open(base + ".cut.img", "wb") as file:
            file.write(part)
        t.refused(f"a .{ending} that was cut short is refused", "damaged or cut short", t.flash(base + ".cut.img"), base + ".cut.img")
    return want


def broken_images(t, card):
    broken = copy(t, card, "truncated")
    os.truncate(broken, 10 << 20)
    t.refused("an image that was cut short is refused", "cut short", t.flash(broken), broken)
    t.refused("an empty image is refused", "is empty", t.flash(os.path.join(t.WORK, "empty.img")) if open(
        os.path.join(t.WORK, "empty.img"), "w").close() is None else None)
    broken = copy(t, card, "no-magic")
    poke(broken, 4097 * 512 + 1080, b"\0\0")
    t.refused("type 83 without ext4's magic is no root", "0 partitions are of type 83 and hold ext4", t.flash(broken), broken)
    broken = copy(t, card, "no-type")
    poke(broken, 446 + 16 + 4, b"\0")
    t.refused("ext4 in a partition of another type is no root", "0 partitions are of type 83 and hold ext4", t.flash(broken), broken)
    broken = copy(t, card, "no-table")
    poke(broken, 510, b"\0\0")
    t.refused("an image without a table is refused with the cure", "--board", t.flash(broken), broken)
    broken = copy(t, card, "gpt")
    t.run("sfdisk", "-q", "--wipe", "always", broken, input="label: gpt\nstart=2048, size=4096\n")
    t.refused("a GPT is refused by name", "gpt table", t.flash(broken), broken)
    broken = copy(t, card, "errors")
    image, start, _ = t.root_of(broken, "a")
    t.debugfs(image, "clri /bin/busybox", write=True)
    with open(image, "rb") as file:
        poke(broken, start, file.read())
    t.refused("a file system with errors is refused", "has errors already", t.flash(broken), broken)
    broken = copy(t, card, "garbage")
    poke(broken, 4097 * 512 + 1024 + 0x18, b"\xff" * 4)
    t.refused("a superblock of nonsense is refused", "dumpe2fs cannot read", t.flash(broken), broken)


def programs(t, card):
    """programs that the board could not run, and one that is larger than it has to be."""
    out = os.path.join(t.WORK, "programs.out")
    refused = os.path.join(t.WORK, "programs.img")
    path = os.path.join(t.WORK, "program")
    with open(os.path.join(t.ROOT, "port/boards/default"), encoding="utf-8") as file:
        board = file.read().strip()
    for text, words, make in (
            ("a program of another CPU", f"is a program for x86_64, and {board} has riscv64; scripts/build --board {board}", {"machine": 62}),
            ("a program of a CPU that no board has", "is a program for machine 8", {"machine": 8}),
            ("a program that is linked dynamically", "is linked dynamically and wants /lib/ld-musl-riscv64.so.1", {"interpreter": True})):
        t.refused(f"{text} is refused with the cure", words, t.flash(card, out=out, program=("--coird", t.make_program(path, **make))), refused)
    t.make_program(path)
    for size in (100_000, 100, 40):
        os.truncate(path, size)
        t.refused(f"a program cut to {size} bytes is refused", "is cut short", t.flash(card, out=out, program=("--coird", path)), refused)
    with open(path, "wb") as file:
        file.write(b"#!/bin/sh\n")
    t.refused("a script is refused", "is no program of Linux", t.flash(card, out=out, program=("--coird", path)), refused)

    source, compiler = os.path.join(t.WORK, "small.c"), shutil.which("clang-19")
    with open(source, "w", encoding="utf-8") as file:
        file.write("void _start(void) { for (;;) {} }\n")
    built = compiler and t.run(compiler, "--target=riscv64-linux-musl", "-fuse-ld=lld", "-nostdlib", "-static", "-g", "-o", path, source)
    if not built or built.returncode != 0 or not shutil.which("llvm-strip-19"):
        print("ok - a program is stripped # SKIP no clang-19, lld or llvm-strip-19")
        return
    done = t.flash(card, out=out, program=("--coird", path))
    image, _, _ = t.root_of(out, "a") if done.returncode == 0 else ("", 0, 0)
    put = b""
    if image:
        t.debugfs(image, f'dump /usr/sbin/coird "{path}.put"')
        with open(path + ".put", "rb") as file:
            put = file.read()
    t.promise("a program is stripped", b".text" in put and b".symtab" not in put and b".debug_info" not in put, done.stderr)


def squashfs(t, card):
    packed = copy(t, card, "squashfs")
    poke(packed, 4097 * 512, b"hsqs")
    poke(packed, 4097 * 512 + 1080, b"\0\0")
    t.refused("a squashfs in a partition is refused by name", "the root is a squashfs", t.flash(packed), packed)
    alone = os.path.join(t.WORK, "alone.img")
    with open(alone, "wb") as file:
        file.write(b"hsqs" + bytes(100_000))
    t.refused("a squashfs alone is refused by name", "the root is a squashfs", t.flash(alone), alone)
    t.refused("a squashfs alone is refused by name, as a root too", "unsquashfs", t.flash(alone, "--rootfs"), alone)


def tables(t, root):
    """tables has the vendor's own sectors, over holes."""
    bare = t.make("own-sectors", "bare", root)
    for layout, lines, start, end in (
            ("A", "262145 1572864 83", 262145, 1835009), ("B", "262145 1572864 83\n1835009 524288 0", 262145, 1835009),
            ("C", "262145 4096 0\n266241 1572864 83", 266241, 1839105)):
        card = os.path.join(t.WORK, f"sectors-{layout}.img")
        with open(bare, "rb") as source, open(card, "wb") as file:
            file.seek(start * 512)
            file.write(source.read())
            file.truncate(2359297 * 512)
        rest = "".join("start={}, size={}, type={}\n".format(*line.split()) for line in lines.splitlines())
        t.run("sfdisk", "-q", card, input="label: dos\nstart=1, size=262144, type=c, bootable\n" + rest)
        os.truncate(card, end * 512)
        done = t.flash(card)
        name = t.debugfs(card.replace(".img", ".out") + f"?offset={start * 512}", "stat /usr/sbin/coird")
        t.promise(f"layout {layout} of the vendor's own sectors is flashed", done.returncode == 0 and "Mode:  0755" in name, done.stderr)
        t.promise(f"layout {layout}: holes stay holes", os.stat(card.replace(".img", ".out")).st_blocks < 20 << 11 if done.returncode == 0 else False)
    two = os.path.join(t.WORK, "two-roots.img")
    with open(bare, "rb") as source, open(two, "wb") as file:
        data = source.read()
        file.seek(1 << 20)
        file.write(data + data)
    t.run("sfdisk", "-q", two, input="label: dos\nstart=2048, size=32768, type=83\nstart=34816, size=32768, type=83\n")
    t.refused("two partitions that could be the root are refused", "2 partitions are of type 83", t.flash(two), two)
    t.refused("ext4 alone is told what it is", "add --rootfs", t.flash(bare), bare)


def file_systems(t, root):
    odd = t.make("feature", "a", root, "--kib", "4", "--features", "^has_journal,inline_data")
    t.refused("a feature that cannot be written safely is refused by name", "the feature inline_data", t.flash(odd), odd)
    new = t.make("orphans", "a", root, "--kib", "4", "--features", "metadata_csum,64bit,orphan_file")
    done = t.flash(new)
    t.promise("the later images' metadata_csum, 64bit and orphan_file are written", done.returncode == 0, done.stderr)

    # The journal holds a transaction that gives a free block a new content; the block itself has zeros still.
    hook = t.script("dirty", 'debugfs -w -R "jo" "$1" >/dev/null 2>&1\n'
                    'head -c 4096 /dev/zero | tr "\\000" "J" >"$1.block"\n'
                    'printf "jo\\njw -b 3900 %s.block\\njc\\n" "$1" | debugfs -w -f - "$1" >/dev/null 2>&1\nrm "$1.block"\n')
    dirty = t.make("dirty", "a", root, "--kib", "4", hook=hook)
    image, _, _ = t.root_of(dirty, "a")
    waits = "needs_recovery" in t.run("dumpe2fs", "-h", image).stdout
    original = t.digest(dirty)
    done = t.flash(dirty)
    image, _, _ = t.root_of(dirty.replace(".img", ".out"), "a") if done.returncode == 0 else (image, 0, 0)
    with open(image, "rb") as file:
        file.seek(3900 * 4096)
        block = file.read(4096)
    t.promise("a dirty journal is replayed, on the copy alone",
              waits and done.returncode == 0 and "was replayed" in done.stderr and t.digest(dirty) == original and
              block == b"J" * 4096 and "needs_recovery" not in t.run("dumpe2fs", "-h", image).stdout, done.stderr + str(waits))

    filled = t.script("fill", 'head -c 15400000 /dev/urandom >"$1.fill"\ndebugfs -w -R "write $1.fill /filler" "$1" >/dev/null 2>&1\nrm "$1.fill"\n')
    full = t.make("full", "a", root, "--kib", "4", "--features", "^has_journal", hook=filled)
    t.refused("a full root file system is refused before anything is written", "root file system is full", t.flash(full), full)
    used = t.script("inodes", 'for n in $(seq 4096); do echo "mknod n$n p"; done | debugfs -w -f - "$1" >/dev/null 2>&1\n')
    full = t.make("inodes", "a", root, "--kib", "4", hook=used)
    t.refused("a root file system without inodes is refused", "inodes left", t.flash(full), full)


def inits(t):
    for name, inittab, words in (
            ("nonsense", "[Unit]\nDescription=x\n", "no dialect that flash knows"),
            ("mixed", "a:3:respawn:/bin/x\n::sysinit:/etc/init.d/rcS\n", "mixes the dialects"),
            ("empty", "# nothing\n", "no dialect that flash knows")):
        card = t.make("init-" + name, "bare", t.tree("init-" + name, inittab))
        t.refused(f"an inittab that is {name} is refused", words, t.flash(card, "--rootfs"), card)
    folder = t.tree("systemd", **{"usr/lib/systemd/systemd": "x"})
    os.unlink(os.path.join(folder, "etc/inittab"))
    card = t.make("systemd", "bare", folder)
    t.refused("an init that has no inittab is refused by name", "no /etc/inittab but systemd", t.flash(card, "--rootfs"), card)
    card = t.make("other-board", "bare", t.tree("bare-sysv", t.SYSVINIT))
    t.refused("an image of another board's init is refused", "the image's init is sysvinit",
              t.flash(card, "--rootfs", "--board", t.NO_TABLE), card)
    taken = t.SYSVINIT + "coir:2345:respawn:/bin/x\nc0:2345:respawn:/bin/y\n"
    card = t.make("ids", "bare", t.tree("ids", taken))
    done = t.flash(card, "--rootfs")
    table = t.text_in(card.replace(".img", ".out"), "/etc/inittab")
    t.promise("the line's id is one that no other line has", table == taken + "c1:2345:respawn:/etc/init.d/S90coird run\n", table + done.stderr)
    bare = t.make("newline", "bare", t.tree("newline", t.BUSYBOX.rstrip("\n")))
    done = t.flash(bare, "--rootfs")
    undone = t.flash(bare.replace(".img", ".out"), "--rootfs", "--remove", out=bare + ".undone")
    t.promise("an inittab without a last newline comes back as it was",
              t.text_in(bare + ".undone", "/etc/inittab") == t.BUSYBOX.rstrip("\n"), done.stderr + undone.stderr)


def files(t, card):
    own = os.path.join(t.WORK, "own files")
    os.makedirs(os.path.join(own, "etc/init.d"))
    os.makedirs(os.path.join(own, "opt"))
    for path in ("etc/init.d/S90station", "opt/with space"):
        with open(os.path.join(own, path), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
    os.chmod(os.path.join(own, "etc/init.d/S90station"), 0o755)
    os.symlink("with space", os.path.join(own, "opt/link"))
    station = os.path.join(t.WORK, "station")
    shutil.copyfile(t.PROGRAM, station)
    out = os.path.join(t.WORK, "own.img")
    done = t.flash(card, "--files", own, out=out, program=("--app", station))
    image, _, _ = t.root_of(out, "a") if done.returncode == 0 else ("", 0, 0)
    t.promise("a daemon of one's own goes in with its files",
              done.returncode == 0 and t.text_in(image, "/etc/inittab").endswith("::respawn:/etc/init.d/S90station run\n") and
              '"with space"' in t.debugfs(image, "stat /opt/link") and
              t.text_in(image, '"/opt/with space"') == "#!/bin/sh\n" and "coird" not in t.debugfs(image, "ls /usr/sbin"), done.stderr)
    refused = os.path.join(t.WORK, "refused.img")
    done = t.flash(card, out=refused.replace(".img", ".out"), program=("--app", station))
    t.refused("a daemon without a start script is refused", "no etc/init.d/S90station", done, refused)
    for path, words in (("mnt/data/auto.sh", "the user's own hook"), ("mnt/system/auto.sh", "the user's own hook"),
                        ("etc/inittab", "the image's own"), ("etc/init.d/S90coird.bak", "rcS runs every")):
        folder = os.path.join(t.WORK, "files-" + path.replace("/", "-"))
        os.makedirs(os.path.join(folder, os.path.dirname(path)))
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write("x")
        t.refused(f"--files with {path} is refused", words, t.flash(card, "--files", folder, out=refused.replace(".img", ".out")), refused)

    out = card.replace(".img", ".out")
    image, start, _ = t.root_of(out, "a")
    with open(image + ".edit", "w", encoding="utf-8") as file:
        file.write("COIRD_ARGS=mine\n")
    t.debugfs(image, "rm /etc/default/coird", write=True)
    t.debugfs(image, f'write "{image}.edit" /etc/default/coird', write=True)
    edited = copy(t, out, "edited")
    with open(image, "rb") as file:
        poke(edited, start, file.read())
    done = t.flash(edited)
    image, _, _ = t.root_of(edited.replace(".img", ".out"), "a")
    t.promise("defaults that somebody edited stay", t.text_in(image, "/etc/default/coird") == "COIRD_ARGS=mine\n", done.stderr)
    newer = os.path.join(t.WORK, "newer")
    t.make_program(newer, fill=b"newer")
    done = t.flash(out, out=out + "5", program=("--coird", newer))
    image, _, _ = t.root_of(out + "5", "a")
    t.promise("a newer binary replaces the older", t.contents(image)["/usr/sbin/coird"][3] == t.digest(newer), done.stderr)
    t.refused("--remove of what was never put there is refused", "no /etc/coird.flash",
              t.flash(card, "--remove", out=refused.replace(".img", ".out")), refused)
    done = t.run("sh", "-c", 'ulimit -f 9000; exec "$@"', "sh", os.path.join(t.ROOT, "scripts/flash"), "--image", card,
                 "--out", refused.replace(".img", ".out"), "--coird", t.PROGRAM)
    t.refused("a disk that does not take the output is told, and keeps nothing", "File too large", done, refused)
    done = t.flash(card, "--dry-run")
    t.promise("--dry-run prints the plan and writes nothing", done.returncode == 0 and "put /usr/sbin/coird 0755" in done.stdout, done.stderr)
    with open(os.path.join(t.WORK, "logo.txt"), "w", encoding="utf-8") as file:
        file.write("mine\n")
    fat = [t.flash(card, "--boot-file", os.path.join(t.WORK, "logo.txt"), out=os.path.join(t.WORK, f"fat{n}.img")) for n in (1, 2)]
    named = t.run("mtype", "-i", os.path.join(t.WORK, "fat1.img") + "@@512", "::/logo.txt").stdout
    t.promise("a file for the FAT goes in, and gives the same bytes each time",
              named == "mine\n" and t.digest(os.path.join(t.WORK, "fat1.img")) == t.digest(os.path.join(t.WORK, "fat2.img")), fat[0].stderr)


def outputs(t, card):
    """outputs that are no file of this machine's stay what they were."""
    fifo, folder = (os.path.join(t.WORK, name) for name in ("out-fifo", "out-folder"))
    os.mkfifo(fifo)
    os.makedirs(folder)
    done = t.flash(card, out=fifo)
    t.promise("--out that is a device or a pipe is refused, with the cure", done.returncode == 1 and done.stderr.count("\n") == 1 and
              "is no file; --sd writes to a card" in done.stderr and stat.S_ISFIFO(os.stat(fifo).st_mode), done.stderr)
    done = t.flash(card, out=folder)
    t.promise("--out that is a folder is refused", done.returncode == 1 and "is no file" in done.stderr and not os.listdir(folder), done.stderr)
    device = f"/dev/coir-flash-{os.getpid()}"
    done = t.flash(card, out=device)
    there = os.path.exists(device)
    if there:
        os.unlink(device)
    t.promise("--out for the device of a card that is not there is refused", done.returncode == 1 and "--sd writes" in done.stderr and not there,
              done.stderr)


def cards(t, card, want):
    sys, proc, device = (os.path.join(t.WORK, name) for name in ("sys", "proc", "sdz"))
    folder = os.path.join(sys, "class/block/sdz")
    part = os.path.join(folder, "sdz1")
    for made in (os.path.join(folder, "device"), part, os.path.join(proc, "self")):
        os.makedirs(made)

    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    size = os.path.getsize(card) + (1 << 20)
    facts = {"size": str(size // 512), "removable": "1", "ro": "0", "dev": "8:240", "device/model": "USB Reader", "sdz1/partition": "1",
             "sdz1/dev": "8:241"}
    for name, value in facts.items():
        write(os.path.join(folder, name), value + "\n")
    write(os.path.join(proc, "self/mountinfo"), "")
    environment = dict(os.environ, COIR_FLASH_SYS=sys, COIR_FLASH_PROC=proc)

    def attempt(text="sdz\n", *options):
        with open(device, "wb") as file:
            file.truncate(size)
        return t.flash(card, "--sd", device, *options, input=text, env=environment)

    def untouched():
        with open(device, "rb") as file:
            return not any(file.read())

    done = attempt()
    with open(device, "rb") as file:
        t.promise("--sd shows model and size, and the card holds the image", done.returncode == 0 and "USB Reader, 0.0 GB" in done.stderr
                  and t.hashlib.sha256(file.read(os.path.getsize(card))).hexdigest() == want, done.stderr)
    for text, path, value, words in (
            ("not removable", "removable", "0", "is not removable"), ("write-protected", "ro", "1", "write-protected"),
            ("larger than a card", "size", str(200 * 10**9 // 512), "more than a card"), ("too small", "size", "2048", "take a larger card"),
            ("a partition", "partition", "1", "is a partition")):
        write(os.path.join(folder, path), value)
        done = attempt()
        t.promise(f"--sd refuses what is {text}", done.returncode == 1 and words in done.stderr and untouched(), done.stderr)
        if path in facts:
            write(os.path.join(folder, path), facts[path])
        else:
            os.unlink(os.path.join(folder, path))
    write(os.path.join(proc, "self/mountinfo"), "36 35 8:241 / /media/card rw - vfat /dev/sdz1 rw\n")
    done = attempt()
    t.promise("--sd refuses what is mounted, with the cure", done.returncode == 1 and "umount /media/card" in done.stderr and untouched(), done.stderr)
    write(os.path.join(proc, "self/mountinfo"), "")
    write(os.path.join(proc, "swaps"), "Filename Type Size\n/dev/sdz1 partition 9\n")
    done = attempt()
    t.promise("--sd refuses what is swap", done.returncode == 1 and "swapoff" in done.stderr and untouched(), done.stderr)
    os.unlink(os.path.join(proc, "swaps"))
    for answer in ("", "y\n", "sda\n"):
        done = attempt(answer)
        t.promise(f"--sd wants the name typed, not {answer.strip()!r}",
                  done.returncode == 1 and "not confirmed" in done.stderr and untouched(), done.stderr)
    lying = ("import os, runpy, sys\nreal = os.pwrite\n"
             "def pwrite(to, data, at):\n"
             "    if os.readlink(f'/proc/self/fd/{to}').endswith('/sdz') and at >> 20 == 7:\n"
             "        data = data[:-1] + b'?'\n"
             "    return real(to, data, at)\n"
             "os.pwrite, sys.argv = pwrite, sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n")
    done = t.run("python3", "-c", lying, os.path.join(t.ROOT, "scripts/flash"), "--image", card, "--sd", device, "--coird", t.PROGRAM,
                 input="sdz\n", env=environment)
    t.promise("--sd reads back, and names a card that lies", done.returncode == 1 and "does not hold what was written" in done.stderr, done.stderr)
    full = os.path.join(sys, "class/block/full")
    shutil.copytree(folder, full)
    done = t.flash(card, "--sd", "/dev/full", input="full\n", env=environment)
    t.promise("--sd tells a card that takes no more", done.returncode == 1 and "holds a part of the image" in done.stderr, done.stderr)
    blocks(t, card, want, sys)
    done = t.flash(card, "--sd", "/dev/null", input="null\n")
    t.promise("--sd refuses what is no disk", done.returncode == 1 and "is no disk" in done.stderr, done.stderr)


def blocks(t, card, want, sys):
    """blocks is the same with a block device of the kernel's, and its own word for what is mounted."""
    backing, mounted = (os.path.join(t.WORK, name) for name in ("backing", "mounted"))
    with open(backing, "wb") as file:
        file.truncate(24 << 20)
    t.run("mke2fs", "-q", "-F", backing)
    loop = t.run("losetup", "--find", "--show", backing).stdout.strip() if os.getuid() == 0 else ""
    if not loop:
        print("ok - --sd refuses a block device that is mounted # SKIP no loop device for this user")
        return
    folder = os.path.join(sys, "class/block", os.path.basename(loop))
    os.makedirs(folder)
    for name, text in {"size": str((24 << 20) // 512), "removable": "1", "ro": "0"}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    environment, answer = dict(os.environ, COIR_FLASH_SYS=sys), os.path.basename(loop) + "\n"
    os.makedirs(mounted)
    try:
        if t.run("mount", loop, mounted).returncode != 0:
            print("ok - --sd refuses a block device that is mounted # SKIP no mounting here")
        else:
            done = t.flash(card, "--sd", loop, input=answer, env=environment)
            t.promise("--sd refuses a block device that is mounted", done.returncode == 1 and f"umount {mounted}" in done.stderr, done.stderr)
            empty = os.path.join(t.WORK, "no-proc")
            os.makedirs(empty)
            done = t.flash(card, "--sd", loop, input=answer, env=dict(environment, COIR_FLASH_PROC=empty))
            t.promise("--sd takes no block device that is mounted meanwhile", done.returncode == 1 and "busy" in done.stderr, done.stderr)
            t.run("umount", mounted)
        done = t.flash(card, "--sd", loop, input=answer, env=environment)
        with open(loop, "rb") as file:
            t.promise("--sd writes to a block device", done.returncode == 0 and
                      t.hashlib.sha256(file.read(os.path.getsize(card))).hexdigest() == want, done.stderr)
    finally:
        t.run("umount", mounted)
        t.run("losetup", "-d", loop)


def check(t):
    card = t.make("plain", "a", t.tree("plain"))
    want = archives(t, card)
    broken_images(t, card)
    programs(t, card)
    squashfs(t, card)
    tables(t, t.tree("plain"))
    file_systems(t, t.tree("plain"))
    inits(t)
    files(t, card)
    outputs(t, card)
    cards(t, card, want)
    left = [name for base, folders, _ in os.walk(t.WORK) for name in folders if name.startswith(".flash-")]
    t.promise("no run leaves a working file", not left, left)
