#!/usr/bin/env python3
# usage: websocket_client.py PORT
"""Python's websockets as a client of websocket_peer: prints a line for each promise."""
import asyncio
import random
import sys

import websockets

PORT = sys.argv[1]
failed = False


def tell(right, text, more=""):
    global failed
    print("%s - %s%s" % ("ok" if right else "not ok", text, "" if right or not more else " (%s)" % more))
    failed = failed or not right


def connect(path, **options):
    return websockets.connect("ws://127.0.0.1:%s%s" % (PORT, path), max_size=None, ping_interval=None, **options)


async def main():
    chance = random.Random(1)
    async with connect("/") as socket:
        right = True
        for size in (0, 1, 125, 126, 65535, 65536, 1 << 20):
            message = chance.randbytes(size)
            await socket.send(message)
            right = right and await socket.recv() == message
        tell(right, "websockets: binary messages come back")
        tell(socket.extensions == [], "websockets: permessage-deflate is not agreed on")
        right = True
        for _ in range(30):
            parts = ["".join(chance.choice("aé€😀") for _ in range(chance.randrange(60))) for _ in range(chance.randrange(1, 9))]
            await socket.send(parts)
            right = right and await socket.recv() == "".join(parts)
        tell(right, "websockets: text in fragments comes back")
        await (await socket.ping(b"here"))
        tell(True, "websockets: a ping is answered")
    tell(socket.close_code == 1000, "websockets: a close is answered", str(socket.close_code))

    async with connect("/pieces") as socket:
        message = chance.randbytes(4 << 20)
        await socket.send(message)
        tell(await socket.recv() == message, "websockets: 4 MiB come back in pieces")

    async with connect("/close/3001", subprotocols=["none", "echo.v2"]) as socket:
        await socket.send("now")
        try:
            await socket.recv()
        except websockets.ConnectionClosed:
            pass
        tell((socket.close_code, socket.close_reason) == (3001, "as you asked"), "websockets: the server's code and reason arrive",
             "%s %s" % (socket.close_code, socket.close_reason))
        tell(socket.subprotocol == "echo.v2", "websockets: a subprotocol is agreed on")


asyncio.run(asyncio.wait_for(main(), 120))
sys.exit(1 if failed else 0)
