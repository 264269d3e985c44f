"""Usage: listen.py ADDRESS: prints what is said by multicast DNS on the link of ADDRESS, a line each.

"probe NAME FROM" for each name that a probe asks for, "says NAME IP TTL FROM" for each address that a response gives. The line
"ready" comes first."""
import socket
import struct
import sys


def name(message, at):
    labels, end = [], None
    while True:
        size = message[at]
        if size >= 0xC0:
            end = end or at + 2
            at = (size & 0x3F) << 8 | message[at + 1]
        elif size == 0:
            return ".".join(labels), end or at + 1
        else:
            labels.append(message[at + 1:at + 1 + size].decode("utf-8", "replace"))
            at += 1 + size


def lines(message, source):
    _, flags, questions, answers, authorities, _ = struct.unpack_from(">6H", message)
    at = 12
    for _ in range(questions):
        asked, at = name(message, at)
        at += 4
        if authorities and not flags & 0x8000:
            yield f"probe {asked} {source}"
    for _ in range(answers if flags & 0x8000 else 0):
        owner, at = name(message, at)
        kind, _, ttl, size = struct.unpack_from(">HHIH", message, at)
        at += 10
        if kind == 1:
            yield f"says {owner} {socket.inet_ntoa(message[at:at + 4])} {ttl} {source}"
        at += size


def main():
    here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    here.bind(("", 5353))
    here.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                    socket.inet_aton("224.0.0.251") + socket.inet_aton(sys.argv[1]))
    print("ready", flush=True)
    while True:
        message, (source, _) = here.recvfrom(9000)
        for line in lines(message, source):
            print(line, flush=True)


main()
