"""Runs inside gdb, which tests/system/gdb_backtrace has attached to the program: looks at backtraces from every side.

Prints "ok - CPU: promise" or "not ok - CPU: promise", and "walked" when it came to its end.
"""

import re

import gdb

CPU = gdb.selected_frame().architecture().name().split(":")[-1]
CPU = {"x86-64": "x86_64", "rv64": "riscv64"}.get(CPU, "armv7" if CPU.startswith("arm") else CPU)

MAIN = ["resume", "main"]
PARKED = ["innermost", "middle", "outermost", "parked_entry", "coir_context_start"]
FRESH = ["coir_context_start"]
FIRST_TWIN = ["change_twins", "first_twin", "coir_context_start"]
SECOND_TWIN = ["change_twins", "second_twin", "coir_context_start"]
LARGE = ["stop_on_large_stack", "on_large_stack", "coir_call_on", "outermost", "parked_entry", "coir_context_start"]
ON_WORKER = ["stop_on_worker_stack", "coir_call_on", "leaves_its_stack", "in_a_fiber", "coir_context_start"]
SWITCH = ["coir_switch"]

# The frame of a parked context: its length, and where it keeps what, by gdb's names. The red zone is what signal
# handlers leave alone below the stack.
# On armv7, bit 0 of a return address tells the caller's state.
PC_BITS = ~1 if CPU == "armv7" else ~0
RED_ZONE = 128 if CPU == "x86_64" else 0
if CPU == "x86_64":
    SIZE, PC, FRAME_POINTER = 64, 56, "rbp"
    LAYOUT = {"r12": 8, "r13": 16, "r14": 24, "r15": 32, "rbx": 40, "rbp": 48}
elif CPU == "aarch64":
    SIZE, PC, FRAME_POINTER = 176, 8, "x29"
    LAYOUT = {"x29": 0, "x30": 8}
    LAYOUT.update(("x%d" % n, 16 + 8 * (n - 19)) for n in range(19, 29))
    LAYOUT.update(("d%d" % n, 96 + 8 * (n - 8)) for n in range(8, 16))
elif CPU == "armv7":
    SIZE, PC, FRAME_POINTER = 112, 32, "r7"
    LAYOUT = {"lr": 32}
    LAYOUT.update(("r%d" % n, 4 * (n - 4)) for n in range(4, 12))
    LAYOUT.update(("d%d" % n, 40 + 8 * (n - 8)) for n in range(8, 16))
else:
    SIZE, PC, FRAME_POINTER = 208, 0, "fp"
    LAYOUT = {"ra": 0, "fp": 8}
    LAYOUT.update(("s%d" % n, 16 + 8 * (n - 1)) for n in range(1, 12))
    LAYOUT.update(("fs%d" % n, 104 + 8 * n) for n in range(12))


def report(promise, trouble):
    print(("ok - " if not trouble else "not ok - ") + CPU + ": " + promise)
    if trouble:
        print("# " + trouble)


def backtrace():
    """The functions of the current stack, innermost first; a walk that ended for a bad reason shows as a last entry."""
    names = []
    frame = gdb.newest_frame()
    while frame is not None and len(names) < 20:
        names.append(frame.name() or hex(frame.pc()))
        last, frame = frame, frame.older()
    reason = last.unwind_stop_reason()
    if reason not in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST):
        names.append("stopped: " + gdb.frame_stop_reason_string(reason))
    return names


def differs(expected):
    seen = backtrace()
    text = gdb.execute("bt", to_string=True)
    if seen != expected:
        return "expected %s, saw %s" % (" < ".join(expected), " < ".join(seen))
    if "Backtrace stopped" in text or "Cannot access" in text or "??" in text:
        return text
    return ""


def lacks(expected):
    """As differs, where core's own functions lie in between: the first, the last, and the order of all."""
    seen = backtrace()
    rest = iter(seen)
    if seen[0] != expected[0] or seen[-1] != expected[-1] or not all(each in rest for each in expected):
        return "expected %s, saw %s" % (" < .. < ".join(expected), " < ".join(seen))
    return ""


def value(expression):
    return int(gdb.parse_and_eval("(unsigned long)(%s)" % expression))


def word(address):
    return value("*(unsigned long *)%d" % address)


class Borrowed:
    """Sets registers and gives the old values back at the end."""

    def __init__(self, **registers):
        self.registers = registers

    def __enter__(self):
        self.old = {name: value("$" + name) for name in self.registers}
        self.set(self.registers)

    def __exit__(self, *unused):
        self.set(self.old)

    def set(self, registers):
        for name, new in registers.items():
            gdb.execute("set $%s = %d" % (name, new))


def at_the_switch(context):
    """The context as coir_switch would resume it: its unwind information finds all registers in the frame."""
    return Borrowed(sp=context, pc=value("&coir_switch_parked"))


def at_its_caller(context):
    """The context as it will be when the switch has returned."""
    registers = {FRAME_POINTER: word(context + LAYOUT[FRAME_POINTER])}
    return Borrowed(sp=context + SIZE, pc=word(context + PC) & PC_BITS, **registers)


def saved_registers():
    """The addresses at which gdb looks for the registers of the innermost function's caller."""
    text = gdb.execute("info frame", to_string=True).partition("Saved registers:")[2]
    return {name: int(address, 16) for name, address in re.findall(r"(\w+) at 0x([0-9a-f]+)", text)}


def misplaced(context):
    """The registers that gdb, stopped in coir_switch, does not look for where the frame keeps them."""
    seen = saved_registers()
    seen.update({"d" + name[1:]: address for name, address in seen.items() if re.match(r"[vz]\d+$", name)})
    return ", ".join(name for name, offset in LAYOUT.items() if seen.get(name) != context + offset)


def given_up():
    """The registers that gdb looks for just below the stack, where a signal handler may have overwritten them."""
    if gdb.newest_frame().name() == "coir_context_start":  # nothing called it
        return ""
    end = value("$sp") - RED_ZONE
    return ", ".join(name for name, address in saved_registers().items() if end - 256 <= address < end)


def callers_registers():
    """The registers of the function's caller, as far as gdb can tell from here."""
    frame = gdb.newest_frame()
    while frame.name() in ("coir_switch", "coir_call_on", "on_large_stack", "fresh_entry"):
        frame = frame.older()
    return [(name, str(frame.read_register(name))) for name in ["sp"] + sorted(LAYOUT) if name not in ("ra", "x30", "lr")]


def step_until(function, contexts, allowed, promise):
    """Steps by instructions until `function` is the innermost one. Each backtrace on the way must be one of `allowed`,
    in their order, and the registers of the caller those of one of as many `contexts`, in turn."""
    at = 0
    steps = 0
    changes = 0
    trouble = ""
    before = None
    while not trouble:
        while at + 1 < len(allowed) and backtrace() != allowed[at]:
            at += 1
        trouble = differs(allowed[at]) or given_up()
        if trouble or gdb.newest_frame().name() == function:
            break
        now = callers_registers()
        changes += before not in (None, now)
        if changes >= contexts:
            trouble = "the registers of the caller change: %s" % sorted(set(now) ^ set(before))
        before = now
        gdb.execute("stepi", to_string=True)
        steps += 1
        if steps > 200:
            trouble = "%s is not reached in 200 steps" % function
    if trouble:
        trouble = "after %d steps at %s: %s" % (steps, gdb.execute("x/i $pc", to_string=True).strip(), trouble)
    elif callers_registers() != before:
        trouble = "the registers of the caller were not what they seemed to be"
    elif at + 1 < len(allowed):
        trouble = "never saw " + " < ".join(allowed[-1])
    report("%s (%d instructions)" % (promise, steps), trouble)


def run_to(function):
    gdb.execute("tbreak " + function, to_string=True)
    gdb.execute("continue", to_string=True)


def main():
    gdb.execute("set pagination off")
    gdb.execute("set confirm off")

    run_to("stop_all_parked")
    parked, fresh = value("parked_context"), value("fresh_context")
    with at_the_switch(parked):
        report("a parked context shows its calls down to its entry, and no more", differs(SWITCH + PARKED))
        report("each register is looked for where the frame keeps it", misplaced(parked))
    with at_its_caller(parked):
        report("so it does from pc, frame pointer and stack pointer alone", differs(PARKED))
    with at_the_switch(fresh):
        report("a context that never ran shows where it will start", differs(SWITCH + FRESH))
    with at_its_caller(fresh):
        report("so it does from pc, frame pointer and stack pointer alone, again", differs(FRESH))

    run_to("*coir_switch")
    step_until("fresh_entry", 2, [SWITCH + MAIN, SWITCH + FRESH, FRESH, ["fresh_entry"] + FRESH],
               "at each instruction of a first switch the backtrace is the one context's or the other's")

    run_to("stop_twins_differ")
    run_to("*coir_switch")
    step_until("change_twins", 2, [SWITCH + SECOND_TWIN, SWITCH + FIRST_TWIN, FIRST_TWIN],
               "so it is where both parked by the same call and round differently")

    run_to("resume")
    run_to("*coir_switch")
    step_until("innermost", 2, [SWITCH + MAIN, SWITCH + PARKED, PARKED],
               "at each instruction of a switch the backtrace is the one context's or the other's")

    run_to("*coir_call_on")
    step_until("on_large_stack", 1, [LARGE[2:], LARGE[1:]],
               "at each instruction on the way to the large stack the backtrace shows the caller")
    run_to("stop_on_large_stack")
    report("on the large stack the backtrace shows the caller on the small one", differs(LARGE))
    gdb.execute("finish", to_string=True)
    while gdb.newest_frame().name() == "on_large_stack":
        gdb.execute("stepi", to_string=True)
    step_until("outermost", 1, [LARGE[2:], LARGE[3:]],
               "at each instruction on the way back from the large stack the backtrace shows the caller")

    run_to("stop_on_worker_stack")
    report("on the worker's stack the backtrace shows the fiber's callers, down to its entry", lacks(ON_WORKER))
    print("walked")


try:
    main()
except gdb.error as error:
    report("gdb does what it is told", str(error))
gdb.execute("kill")
