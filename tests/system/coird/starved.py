"""coird on a kernel that has no random numbers at first."""

import contextlib
import os
import signal

from daemon import Daemon


class Starved(Daemon):
    """A coird whose kernel refuses each thread its first `refused` requests for random numbers, or all of them."""

    def __init__(self, program, refused, *options, **more):
        times = "" if refused is None else f":when=1..{refused}"
        # It has one worker, because strace counts for each thread.
        super().__init__(program, *options, **more, environment={"COIR_WORKERS": "1"},
                         wrapper=["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject=getrandom:error=EAGAIN{times}"])

    def signal(self, number=signal.SIGTERM):
        os.kill(self.traced(), number)

    def __exit__(self, kind, *rest):
        # A daemon whose strace is killed runs on.
        if kind is not None and self.process.poll() is None:
            with contextlib.suppress(IndexError, ProcessLookupError):
                self.signal(signal.SIGKILL)
        super().__exit__(kind, *rest)
