"""usage: use.py chat|service PROGRAM

Uses the program as ten people would, ours or Go's, and prints what is resident while they are all there, in kB.
"""
import http.client
import re
import socket
import subprocess
import sys
import tempfile

PATIENCE = 60
PEOPLE = 10


def use_chat(port):
    members = []
    for i in range(PEOPLE):
        member = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).makefile("rw", newline="\n")
        assert "your name?" in member.readline()
        member.write(f"member{i}\n")
        member.flush()
        while f"member{i} has come to lobby" not in member.readline():
            pass
        members.append(member)
    for i, member in enumerate(members):
        member.write(f"I am number {i}\n")
        member.flush()
        for each in members:
            while f"I am number {i}" not in each.readline():
                pass
    return members


def use_service(port):
    connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE) for _ in range(PEOPLE)]
    for i, connection in enumerate(connections):
        for method, path, content, status in (("PUT", f"/files/file{i}", b"x" * 10_000, 201),
                                              ("GET", f"/files/file{i}", None, 200),
                                              ("GET", f"/changes?after={i}", None, 200)):
            connection.request(method, path, body=content)
            answer = connection.getresponse()
            assert answer.status == status, (method, path, answer.status)
            answer.read()
    for connection in connections:
        connection.request("GET", f"/changes?after={PEOPLE}")
    # What came before is answered, so that these polls wait, as nearly as can be told from outside.
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    asked.request("GET", "/changes?after=0")
    asked.getresponse().read()
    return connections, asked


what, program = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="coir-newcomer.") as folder:
    words = ["127.0.0.1:0"] if what == "chat" else [folder, "127.0.0.1:0"]
    process = subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        held = use_chat(port) if what == "chat" else use_service(port)
        with open(f"/proc/{process.pid}/smaps_rollup") as rollup:
            print(re.search(r"^Rss: *(\d+)", rollup.read(), re.MULTILINE)[1])
    finally:
        process.kill()
        process.wait()
