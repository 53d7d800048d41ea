"""A board that sends at every sample what a script says."""

import math
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from spaql.plugins.hardware.protocol import decoded, encoded


class Scripted:
    """A board of two observations that sends at every sample what a script says; it keeps what it is sent."""

    def __init__(self, script: Callable[[int], bytes], floods: bytes = b"", period: float = 0.03) -> None:
        self._script = script
        self._period = period
        self._floods = floods
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self.heard: list[tuple[float, list[str]]] = []
        """When lines came, and their words."""
        self.began_to_flood = math.inf
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with suppress(ConnectionError), self._server, self._server.accept()[0] as client:
            self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        client.setblocking(False)
        rest = b""
        due = math.inf
        number = 0
        while not self.is_over.is_set():
            now = time.monotonic()
            floods = [client] if now > self.began_to_flood else []
            readable, writable, _ = select.select([client], floods, [], min(max(due - now, 0.0), 0.01))
            if writable:
                client.send(self._floods)
            data = client.recv(4096) if readable else b""
            if readable and not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for words in filter(None, map(decoded, lines)):
                self.heard.append((time.monotonic(), words))
                if words[0] == "?":
                    client.send(encoded("I", 1, 2, 1, round(self._period * 1e6), 3, 0.0))
                elif words[0] in "QXU" and not floods:
                    client.send(encoded(words[0]))
                    due = math.inf
                elif words[0] == "G":
                    due = time.monotonic()
                    number = 0
            if time.monotonic() >= due:
                line = self._script(number)
                if not line and self._floods:
                    self.began_to_flood = time.monotonic()
                    due = math.inf
                else:
                    client.send(line)
                    due += self._period
                number += 1

    @property
    def letters(self) -> str:
        """The letters of the lines that came."""
        return "".join(words[0] for _, words in self.heard)
