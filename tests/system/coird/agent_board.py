"""An agent before coird on the emulated board: agent_board.py URL STEP, for tests/system/board/mcp.sh. Fails by an exception."""

import sys
from urllib.parse import urlsplit

from agent import *
from daemon import Daemon


class Machine:
    """The board's coird, by its address."""

    connect = Daemon.connect

    def __init__(self, url):
        self.port = urlsplit(url).port


def lists(board):
    names = [tool["name"] for tool in ask(board, "tools/list").answer["result"]["tools"]]
    assert names == ["system", "memory", "temperature", "leds", "read_pin", "led", "fetch"], names
    found = ask(board, "server/discover").answer["result"]
    assert VERSION in str(found), found


def calls(board):
    system = good(board, "system")
    print(system)
    assert system["machine"] == "riscv64" and 20_000 < system["memory_kb"] < 32_000, system
    assert good(board, "temperature") == {"sensors": [{"name": "case", "celsius": -1.5}, {"name": "cpu", "celsius": 41.25}]}
    assert good(board, "read_pin", {"pin": "7"}) == {"high": True, "direction": "in"}
    good(board, "led", {"name": "user", "brightness": 9})
    assert good(board, "leds")["leds"][0]["brightness"] == 9


def progresses(board):
    response = ask(board, "tools/call", {"name": "fetch", "arguments": {"url": "http://127.0.0.1/healthz"}}, progress=1)
    told = [each["params"]["progress"] for each in response.messages if each.get("method") == "notifications/progress"]
    assert told == [3] and response.answer["result"]["structuredContent"]["text"] == "ok\n", response.messages


def listens(board):
    with board.connect() as client:
        client.send(message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        heard = b""
        while b"notifications/subscriptions/acknowledged" not in heard:
            heard += client.plain.recv(4096)
        for _ in range(20):
            good(board, "read_pin", {"pin": "7"})
        print(good(board, "memory")["total"])


if __name__ == "__main__":
    {each.__name__: each for each in (lists, calls, progresses, listens)}[sys.argv[2]](Machine(sys.argv[1]))
