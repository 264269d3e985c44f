"""Runs inside gdb, which tests/system/inside_gdb has brought to the program, alive or as a core file: tries the commands
of scripts/gdb/coir.py. $kind names the combination; prints "ok - KIND: promise" or "not ok - ...", and "looked" at its
end."""

import re

import gdb


def report(promise, trouble):
    print(("ok - " if not trouble else "not ok - ") + KIND + ": " + promise)
    if trouble:
        print("\n".join("# " + line for line in trouble.splitlines()[:30]))


def said(command):
    return gdb.execute(command, to_string=True)


def in_order(seen, *wanted):
    """The first of `wanted` that is not in `seen` behind the ones before it."""
    at = 0
    for each in wanted:
        at = seen.find(each, at)
        if at < 0:
            return "no '%s' in its place in:\n%s" % (each, seen)
    return ""


READER = ("reads_innermost", "reads_middle", "reads_outermost", "fiber_main", "coir_context_start")


def look():
    listed = said("info fibers")
    ids = {name: number for number, name in re.findall(r'^\*?(\d+) .*"(\w+)"', listed, re.M)}
    missing = [name for name in ("main", "reader", "sleeper", "locker", "fresh") if name not in ids]
    report("info fibers lists every fiber", "no %s in:\n%s" % (missing, listed) if missing else "")
    if missing:
        return
    wrong = [text for text in (r'running +"main" ', r'parked +"reader" .*program.cpp:\d+ +waits to receive',
                               r'parked +"sleeper" .*sleeps', r'parked +"locker" .*mutex', r'runnable +"fresh" ')
             if not re.search(text, listed)]
    report("with its state, its place and what it waits for", "no %s in:\n%s" % (wrong, listed) if wrong else "")

    before = said("bt")
    registers = said("info registers")
    said("fiber " + ids["reader"])
    seen = said("bt")
    report("fiber N shows the calls of a parked fiber down to its first",
           in_order(seen, *READER) or ("it does not end well:\n" + seen if "Backtrace stopped" in seen else ""))
    selected = gdb.selected_frame().older().name()
    report("and goes up and down in it", "" if selected else "the selected frame has no caller")
    report("fiber alone tells which one it is", in_order(said("fiber"), "fiber " + ids["reader"]))
    every = said("fiber apply all bt")
    report("fiber apply all bt shows each of them",
           in_order(every, '"main"', "acts", '"reader"', *READER) or in_order(every, '"sleeper"', "sleeps_long")
           or in_order(every, '"locker"', "wants_the_mutex") or in_order(every, '"fresh"', "coir_context_start"))
    some = said("fiber apply %s %s bt" % (ids["sleeper"], ids["locker"]))
    report("fiber apply N N bt shows those",
           in_order(some, "sleeps_long", "wants_the_mutex") or ("reader" in some and some))
    said("fiber " + ids["main"])
    report("the fiber that runs is its thread", in_order(said("bt"), "acts", "fiber_main"))
    said("fiber " + ids["locker"])
    said("fiber off")
    after = said("bt")
    report("fiber off is the thread again, its registers as they were",
           "" if (before, registers) == (after, said("info registers")) else before + "\nthen:\n" + after)
    try:
        said("fiber 99999999")
        report("an id that nobody has is refused", "nothing was said")
    except gdb.error as refusal:
        report("an id that nobody has is refused", in_order(str(refusal), "there is no fiber 99999999"))
    if "live" in KIND:
        said("fiber " + ids["reader"])
        said("continue")
        report("a program that was looked at goes on to its end",
               "" if int(gdb.parse_and_eval("$_exitcode")) == 0 else "it did not")


gdb.execute("set pagination off")
gdb.execute("set confirm off")
KIND = str(gdb.parse_and_eval("$kind")).strip('"')
try:
    if "live" in KIND:
        gdb.execute("tbreak stop_here", to_string=True)
        gdb.execute("continue", to_string=True)
    look()
    print("looked")
except gdb.error as error:
    report("gdb does what it is told", str(error))
