"""The facts of boards that flash wants: port/boards/NAME/board.conf, or a folder elsewhere."""
import os
import re

from speech import Refused


class Board:
    def __init__(self, tree, name):
        boards = os.path.join(tree, "port", "boards")
        self.named = bool(name)
        if not name:
            with open(os.path.join(boards, "default"), encoding="utf-8") as file:
                name = file.read().strip()
        self.name = name
        folder = name if "/" in name else os.path.join(boards, name)
        try:
            with open(os.path.join(folder, "board.conf"), encoding="utf-8") as file:
                self.facts = dict(re.findall(r'^([a-z_]+)="?([^"\n]*)"?$', file.read(), re.M))
        except OSError as error:
            there = " ".join(sorted(b for b in os.listdir(boards) if os.path.exists(os.path.join(boards, b, "board.conf"))))
            raise Refused(f"no such board: {name}; there are: {there}") from error

    def __getattr__(self, name):
        return self.facts.get(name, "")

    @property
    def offset(self):
        """offset is where the root lies in an image that has no table, in bytes; 0 if the board's images have one."""
        return int(self.facts.get("root_offset") or 0)
