"""Fibers in gdb, of a live process and of a core file, on x86_64, riscv64, aarch64 and armv7:

    (gdb) source scripts/gdb/coir.py
    (gdb) info fibers               all of them: state, what each waits for, where it was spawned
    (gdb) fiber 12                  looks at fiber 12: backtrace, up, down, info locals show its calls
    (gdb) fiber                     says which one is looked at
    (gdb) fiber apply all bt        a command for each; also: fiber apply 3 12 bt
    (gdb) fiber off                 back to the thread

Registers of a core file cannot be set, and those of a process better are not: so the fiber's calls are shown as the
callers of the thread's innermost frame. An unwinder answers gdb's question for the caller of that with the
context that the fiber parked. The program itself tells where its fibers are: core/src/schedule/debugger_view.h.
"""

import itertools
import struct

import gdb
import gdb.unwinder

STATES = ("free", "runnable", "running", "parked", "ended")
FREE, RUNNING, ENDED = 0, 2, 4
FIELDS = (
    "version arenas scheduler wait_words arena_count arena_bytes arena_base arena_stride arena_used arena_cold "
    "control_bytes control_sp control_worker control_id control_parent control_state control_wait_kind "
    "control_wait_object control_since control_name control_where worker_thread_id wait_words_bytes tick_shift"
).split()


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def u64(address):
    return struct.unpack("<Q", read(address, 8))[0]


def word_bytes():
    return gdb.lookup_type("unsigned long").sizeof


def word(address):
    """An integer type as large as a pointer."""
    return u64(address) if word_bytes() == 8 else u32(address)


def i64(address):
    return struct.unpack("<q", read(address, 8))[0]


def u32(address):
    return struct.unpack("<I", read(address, 4))[0]


def u8(address):
    return read(address, 1)[0]


def text(address):
    """The C string at an address, cut off where it is no text."""
    if address == 0:
        return ""
    found = b""
    while len(found) < 400 and not found.endswith(b"\0"):
        try:
            found += read(address + len(found), 1)
        except gdb.MemoryError:
            break
    return found.rstrip(b"\0").decode(errors="replace")


def symbol(name):
    return int(gdb.parse_and_eval("(unsigned long)&" + name))


class View:
    """The record that coir_debugger_view holds."""

    def __init__(self):
        try:
            start = symbol("coir_debugger_view")
        except gdb.error:
            raise gdb.GdbError("this program has no coir in it, or its symbols were stripped")
        for number, field in enumerate(FIELDS):
            setattr(self, field, word(start + word_bytes() * number))
        if self.version != 1:
            raise gdb.GdbError("coir.py does not know version %d of coir_debugger_view" % self.version)

    def waits_for(self, kind):
        """The words before and after the number of a wait's object; None behind it if the number means nothing."""
        words = self.wait_words + kind * self.wait_words_bytes
        behind = word(words + 2 * word_bytes())
        return text(word(words + word_bytes())), text(behind) if behind else None


class Fiber:
    """One fiber, as it is while the program stands still."""

    def __init__(self, view, control):
        self.view = view
        self.control = control
        self.id = u64(control + view.control_id)
        self.parent = u64(control + view.control_parent)
        self.state = u8(control + view.control_state)
        self.sp = word(control + view.control_sp)

    @property
    def name(self):
        return text(word(self.control + self.view.control_name))

    @property
    def where(self):
        """FILE:LINE of the spawn; libc++'s and libstdc++'s source_location point to file, function, line, column."""
        place = word(self.control + self.view.control_where)
        return "%s:%d" % (text(word(place)), u32(place + 2 * word_bytes())) if place else "?"

    @property
    def waits(self):
        view = self.view
        kind = u8(self.control + view.control_wait_kind)
        if STATES[self.state] != "parked" or kind == 0:
            return ""
        before, after = view.waits_for(kind)
        number = i64(self.control + view.control_wait_object)
        return (before if after is None else before + str(number) + after).strip()

    def thread(self):
        """The thread that runs it, or None."""
        worker = word(self.control + self.view.control_worker)
        lwp = u32(worker + self.view.worker_thread_id) if worker else 0
        threads = gdb.selected_inferior().threads()
        for thread in threads:
            if lwp in thread.ptid[:2] and (thread.ptid[1] == lwp or len(threads) == 1):
                return thread
        return threads[0] if len(threads) == 1 else None


def fibers():
    """All that live, oldest id first."""
    view = View()
    found = []
    if word(view.scheduler) == 0:
        return found
    for number in range(view.arena_count):
        arena = view.arenas + number * view.arena_bytes
        base, stride = word(arena + view.arena_base), word(arena + view.arena_stride)
        cold = word(arena + view.arena_cold)
        for slot in range(u32(arena + view.arena_used)):
            if u64(cold + slot // 64 * 8) >> slot % 64 & 1:
                continue
            fiber = Fiber(view, base + (slot + 1) * stride - view.control_bytes)
            if fiber.state not in (FREE, ENDED) and fiber.state < len(STATES):
                found.append(fiber)
    return sorted(found, key=lambda fiber: fiber.id)


def find(number):
    for fiber in fibers():
        if fiber.id == number:
            return fiber
    raise gdb.GdbError("there is no fiber %d; info fibers lists them" % number)


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class Looking(gdb.unwinder.Unwinder):
    """The unwinder that shows the chosen fiber behind frame 0, and which fiber that is."""

    def __init__(self):
        super().__init__("coir fibers")
        self.fiber = None

    def choose(self, fiber):
        self.fiber = None
        gdb.invalidate_cached_frames()
        if fiber is not None:
            frame = gdb.newest_frame()
            self.top = [int(frame.read_register(name)) for name in self.registers(frame)]
            self.fiber = fiber
            gdb.invalidate_cached_frames()

    @staticmethod
    def registers(frame):
        return ("rsp", "rip") if frame.architecture().name() == "i386:x86-64" else ("sp", "pc")

    def __call__(self, pending):
        # Inlined calls in front of the thread's innermost frame have its registers, and are not asked about.
        if self.fiber is None:
            return None
        sp, pc = self.registers(pending)
        if [int(pending.read_register(name)) for name in (sp, pc)] != self.top:
            return None
        # The context as coir_switch would resume it; from there on the unwind information of the switch serves. Its
        # stack lies above this frame's made-up one, as gdb expects of a caller's.
        here = gdb.Value(self.fiber.sp)
        info = pending.create_unwind_info(FrameId(gdb.Value(self.fiber.sp - 16), pending.read_register(pc)))
        pointer = gdb.lookup_type("unsigned long")
        info.add_saved_register(sp, here.cast(pointer))
        # A caller is looked up by the byte before its pc.
        info.add_saved_register(pc, gdb.Value(symbol("coir_switch_parked") + 1).cast(pointer))
        return info


def is_switch(frame):
    return frame.name() == "coir_switch"


class OnlyTheFiber:
    """The frame filter that leaves the thread's frames, and the switch, out of a fiber's backtrace."""

    def __init__(self):
        self.name = "coir fibers"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        if looking.fiber is None:
            return frames
        return itertools.islice(itertools.dropwhile(lambda each: not is_switch(each.inferior_frame()), frames), 1, None)


looking = Looking()
gdb.unwinder.register_unwinder(None, looking, replace=True)


def stop_looking(*_):
    if looking.fiber is not None:
        looking.choose(None)


gdb.events.cont.connect(stop_looking)
gdb.events.exited.connect(stop_looking)


def look_at(fiber):
    """Makes the fiber's innermost call the selected frame."""
    if fiber.state == RUNNING:
        looking.choose(None)
        thread = fiber.thread()
        if thread is None:
            raise gdb.GdbError("fiber %d runs, and its thread is not to be found" % fiber.id)
        thread.switch()
        return
    looking.choose(fiber)
    frame = gdb.newest_frame()
    while frame is not None and not is_switch(frame):
        frame = frame.older()
    if frame is None or frame.older() is None:
        raise gdb.GdbError("fiber %d has no frames to show" % fiber.id)
    frame.older().select()


class InfoFibers(gdb.Command):
    """info fibers: every fiber with its state, what it waits for and where it was spawned."""

    def __init__(self):
        super().__init__("info fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        rows = [("Id", "Parent", "State", "Name", "Spawned at", "Waits for")]
        for fiber in fibers():
            chosen = "*" if looking.fiber is not None and looking.fiber.id == fiber.id else ""
            rows.append((chosen + str(fiber.id), str(fiber.parent or ""), STATES[fiber.state], '"%s"' % fiber.name,
                         fiber.where, fiber.waits))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        for row in rows:
            gdb.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + "  " + row[5] + "\n")


class FiberCommand(gdb.Command):
    """fiber N: looks at a fiber; backtrace, up and down then show its calls. fiber off: back to the thread."""

    def __init__(self):
        super().__init__("fiber", gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)

    def invoke(self, argument, from_tty):
        if argument == "":
            gdb.write("no fiber is looked at\n" if looking.fiber is None else "fiber %d\n" % looking.fiber.id)
        elif argument == "off":
            stop_looking()
            gdb.newest_frame().select()
        else:
            if not argument.isdigit():
                raise gdb.GdbError("fiber wants an id; info fibers lists them")
            look_at(find(int(argument)))
            gdb.execute("frame")


class FiberApply(gdb.Command):
    """fiber apply all COMMAND, or fiber apply N ... COMMAND: runs a gdb command for each of the fibers."""

    def __init__(self):
        super().__init__("fiber apply", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split()
        numbers = []
        while words and words[0].isdigit():
            numbers.append(int(words.pop(0)))
        if not numbers and words[:1] == ["all"]:
            words.pop(0)
        elif not numbers:
            raise gdb.GdbError("fiber apply wants all, or ids, and a command")
        if not words:
            raise gdb.GdbError("fiber apply wants a command")
        chosen = [find(number) for number in numbers] if numbers else fibers()
        before, thread = looking.fiber, gdb.selected_thread()
        try:
            for fiber in chosen:
                gdb.write('\nFiber %d "%s" (%s)\n' % (fiber.id, fiber.name, STATES[fiber.state]))
                try:
                    look_at(fiber)
                    gdb.execute(" ".join(words))
                except gdb.error as trouble:
                    gdb.write("  %s\n" % trouble)
        finally:
            thread.switch()
            looking.choose(before)


OnlyTheFiber()
InfoFibers()
FiberCommand()
FiberApply()
