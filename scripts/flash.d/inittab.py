"""The respawn line in an image's own dialect of /etc/inittab."""
from speech import Refused

ACTIONS = frozenset("sysinit respawn askfirst wait once ctrlaltdel shutdown restart boot bootwait initdefault off ondemand "
                    "powerfail powerwait powerokwait powerfailnow kbrequest".split())


def fields_of(text):
    """fields_of returns the lines that are no comments, each as [id, runlevels, action, process]."""
    lines = [line.strip() for line in text.splitlines()]
    return [line.split(":", 3) for line in lines if line and not line.startswith("#")]


def dialect(text):
    """dialect returns busybox or sysvinit. sysvinit wants a default runlevel and an id in each line; busybox has neither."""
    lines = fields_of(text)
    if not lines or any(len(line) != 4 or line[2] not in ACTIONS for line in lines):
        raise Refused("/etc/inittab is in no dialect that flash knows (busybox, sysvinit); add the respawn line by hand")
    if any(action == "initdefault" for _, _, action, _ in lines) and all(line[0] for line in lines):
        return "sysvinit"
    if not any(levels for _, levels, _, _ in lines):
        return "busybox"
    raise Refused("/etc/inittab mixes the dialects of busybox and sysvinit; add the respawn line by hand")


def command(name):
    return f"/etc/init.d/S90{name} run"


def with_line(text, name, kind):
    """with_line returns the text with the daemon's line at its end, and whether a newline had to go before it."""
    lines = fields_of(text)
    if any(action == "respawn" and process == command(name) for _, _, action, process in lines):
        return text, False
    head = "::"
    if kind == "sysvinit":
        # An id has four characters at most, and is any line's once.
        taken = {line[0] for line in lines}
        head = next(i for i in [name[:2], name[:4], *(f"{name[:1]}{n}" for n in range(1000))] if i not in taken) + ":2345:"
    bare = bool(text) and not text.endswith("\n")
    return text + ("\n" if bare else "") + f"{head}respawn:{command(name)}\n", bare


def without_line(text, name, bare):
    """without_line undoes with_line."""
    kept = "".join(line for line in text.splitlines(True)
                   if line.lstrip().startswith("#") or not line.rstrip("\n").endswith(f":respawn:{command(name)}"))
    return kept[:-1] if bare and kept.endswith("\n") else kept
