"""How flash speaks: progress on standard error, and one line that tells the cure when it refuses."""
import sys


class Refused(Exception):
    """Refused ends the program with its text, before the output file exists."""


def say(text):
    print(text, file=sys.stderr, flush=True)


class Steps:
    def __init__(self, total):
        self.total, self.done = total, 0

    def __call__(self, text):
        self.done += 1
        say(f"[{self.done}/{self.total}] {text}")
