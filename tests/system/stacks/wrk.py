#!/usr/bin/env python3
# usage: wrk.py PROGRAM
#
# Two seconds of wrk with 64 connections against a painted coird.
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "coird"))
from daemon import *

with Site(**{"small__txt": b"x" * 100}) as site, Daemon(sys.argv[1], files=site.path) as daemon:
    command = ["wrk", "-t1", "-c64", "-d2s", f"http://127.0.0.1:{daemon.port}/small.txt"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and "Non-2xx" not in done.stdout and "Socket errors" not in done.stdout, done.stdout
