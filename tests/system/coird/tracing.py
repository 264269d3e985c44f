"""Runs a program under ptrace, and ends it, or has a call fail, at one of its system calls on a folder."""

import ctypes
import os
import platform
import signal
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
TRACEME, POKEUSER, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 6, 24, 0x4200, 0x420E
OPTIONS = 1 | 8 | 1 << 20  # marks stops at calls, follows threads, ends them with this process
ALL_CHILDREN = 0x40000000
ENTRY, EXIT = 1, 2
CAN_FAIL = platform.machine() == "x86_64"  # of its registers only
ORIG_RAX, RAX = 15 * 8, 10 * 8


class Traced:
    """One run of a program, in .status and .said. `folder` is the one whose calls count; the `at`th is refused by `error`,
    or the program killed before it; `chosen` counts other calls, by number and arguments. .reached tells whether there were as
    many, .call its number."""

    def __init__(self, command, folder, at, said, error=None, until=None, chosen=None):
        self.chosen = chosen
        self.folder, self.at, self.error, self.until = os.fsencode(folder), at, error, until
        self.reached, self.count, self.call, self.failing = False, 0, None, None
        with open(said, "wb") as file:
            self.pid = os.fork()
            if self.pid == 0:
                try:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
                    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
                    LIBC.ptrace(TRACEME, 0, None, None)
                    os.kill(os.getpid(), signal.SIGSTOP)
                    os.execv(command[0], command)
                finally:
                    os._exit(127)
        self.path, self.stopped = said, False
        self.run()
        with open(said, errors="replace") as file:
            self.said = file.read()

    def run(self):
        _, status = os.waitpid(self.pid, ALL_CHILDREN)
        LIBC.ptrace(SETOPTIONS, self.pid, None, OPTIONS)
        LIBC.ptrace(SYSCALL, self.pid, None, None)
        known = {self.pid}
        while True:
            thread, status = os.waitpid(-1, ALL_CHILDREN)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                known.discard(thread)
                if thread == self.pid:
                    self.status = os.waitstatus_to_exitcode(status)
                    return
                continue
            passed = 0
            stop = os.WSTOPSIG(status)
            if stop == signal.SIGTRAP | 0x80:
                self.at_call(thread)
            elif thread not in known or status >> 16 != 0:
                known.add(thread)  # its first stop, or an event's
            elif stop not in (signal.SIGTRAP, signal.SIGSTOP):
                passed = stop
            LIBC.ptrace(SYSCALL, thread, None, passed)

    def at_call(self, thread):
        info = ctypes.create_string_buffer(96)
        LIBC.ptrace(GET_SYSCALL_INFO, thread, 96, info)
        kind = info.raw[0]
        if kind == EXIT:
            if self.failing == thread:
                LIBC.ptrace(POKEUSER, thread, RAX, ctypes.c_void_p(-self.error))
                self.failing = None
            if self.until and not self.stopped and self.until in open(self.path, errors="replace").read():
                self.stopped = True
                os.kill(self.pid, signal.SIGTERM)
        elif kind == ENTRY and not self.reached:
            number, *arguments = struct.unpack_from("<7Q", info.raw, 24)
            if not (self.chosen(number, arguments) if self.chosen else self.is_of_folder(thread, arguments)):
                return
            self.count += 1
            if self.count < self.at:
                return
            self.reached, self.call = True, number
            if self.error is None:
                os.kill(self.pid, signal.SIGKILL)
            else:
                self.failing = thread
                LIBC.ptrace(POKEUSER, thread, ORIG_RAX, ctypes.c_void_p(-1))

    def is_of_folder(self, thread, arguments):
        """Whether a call has the folder, or what is in it, as its descriptor or one of its first two names."""
        if arguments[0] < 1024:
            try:
                if os.readlink(f"/proc/{thread}/fd/{arguments[0]}".encode()).startswith(self.folder):
                    return True
            except OSError:
                pass
        for address in arguments[:2]:
            if address < 65536 or address >> 47:
                continue
            try:
                with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
                    memory.seek(address)
                    if memory.read(len(self.folder)) == self.folder:
                        return True
            except OSError:
                pass
        return False
