"""An agent: MCP of 2026-07-28 over one plain connection a request, so that nothing is hidden."""

import json
import os
import shutil
import tempfile

from daemon import request

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
TOKEN = "a-token-of-more-than-twenty-characters"


def body_of(method, params=None, number=1, progress=None):
    meta = {META + "protocolVersion": VERSION, META + "clientCapabilities": {}}
    if progress is not None:
        meta["progressToken"] = progress
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": meta}}


def message(method, params=None, path="/mcp", token=None, progress=None, host=None, **fields):
    """The bytes of a POST. `fields` are more header fields, with _ for -."""
    body = json.dumps(body_of(method, params, progress=progress)).encode()
    heads = {"Host": host or "127.0.0.1", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
             "MCP-Protocol-Version": VERSION, "Mcp-Method": method, "Content-Length": str(len(body)), "Connection": "close"}
    if params and ("name" in params or "uri" in params):
        heads["Mcp-Name"] = params.get("name") or params["uri"]
    if token:
        heads["Authorization"] = f"Bearer {token}"
    heads.update({name.replace("_", "-"): value for name, value in fields.items()})
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in heads.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def messages_in(response):
    """The messages of an answer: one, or those of a stream of events."""
    if (response["content-type"] or "").startswith("text/event-stream"):
        events = response.body.decode().split("\n\n")
        datas = ["\n".join(line[5:].strip() for line in event.splitlines() if line.startswith("data:")) for event in events]
        return [json.loads(data) for data in datas if data]
    return [json.loads(response.body)] if (response["content-type"] or "").startswith("application/json") else []


def ask(daemon, method, params=None, **options):
    """Sends a request and returns the response with .messages, of which the last is the answer."""
    with daemon.connect() as client:
        client.send(message(method, params, **options))
        response = client.response()
    response.messages = messages_in(response)
    response.answer = response.messages[-1] if response.messages else {}
    return response


def call(daemon, tool, arguments=None, **options):
    """Calls a tool and returns its result."""
    response = ask(daemon, "tools/call", {"name": tool, "arguments": arguments or {}}, **options)
    assert response.status == 200 and "result" in response.answer, (response.status, response.body)
    return response.answer["result"]


def good(daemon, tool, arguments=None, **options):
    """Calls a tool that must not fail; returns its structured content, or its text where it has none."""
    result = call(daemon, tool, arguments, **options)
    assert not result.get("isError"), result
    if "structuredContent" in result:
        return result["structuredContent"]
    return result["content"][0]["text"]


def failure(daemon, tool, arguments=None, **options):
    """Calls a tool that must fail; returns what it says."""
    result = call(daemon, tool, arguments, **options)
    assert result.get("isError"), result
    return result["content"][0]["text"]


class Board:
    """A folder that looks like /sys of a board: two thermometers, an LED, two pins and a converter."""

    FILES = {
        "class/thermal/thermal_zone0/type": "cpu\n",
        "class/thermal/thermal_zone0/temp": "41250\n",
        "class/thermal/thermal_zone1/type": "case\n",
        "class/thermal/thermal_zone1/temp": "-1500\n",
        "class/leds/user/brightness": "0\n",
        "class/leds/user/max_brightness": "255\n",
        "class/gpio/export": "",
        "class/gpio/gpio7/direction": "in\n",
        "class/gpio/gpio7/value": "1\n",
        "class/gpio/gpio8/direction": "in\n",
        "class/gpio/gpio8/value": "0\n",
        "bus/iio/devices/iio:device0/in_voltage1_raw": "2048\n",
        "bus/iio/devices/iio:device0/in_voltage_scale": "0.439453125\n",
    }

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="coir-board.")
        self.place(self.path)

    @classmethod
    def place(cls, folder):
        for name, content in cls.FILES.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(content)

    def write(self, name, content):
        path = os.path.join(self.path, name)
        with open(path, "w") as file:
            file.write(content)
        return path

    def read(self, name):
        with open(os.path.join(self.path, name)) as file:
            return file.read().strip()

    def secret(self, text, mode=0o600):
        """A file with a token."""
        path = self.write("secret", text)
        os.chmod(path, mode)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)
