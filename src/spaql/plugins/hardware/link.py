"""Lines to and from a board: over a serial port, or TCP."""

from __future__ import annotations

import select
import socket
from typing import Any, Protocol
from urllib.parse import urlsplit

from spaql.errors import BadEnvironmentError, MissingExtraError, SettingError
from spaql.plugins.hardware.protocol import LONGEST

TCP = "tcp://"
_CONNECT = 5.0
"""Seconds until a connection is given up."""
_WRITE = 1.0
"""Seconds until a line that cannot be written is given up."""
_CHUNK = 1_024
"""Most bytes of a read, so that what it takes to look at them is short, however much has come."""


class Stream(Protocol):
    """Bytes to and from a board; all methods raise `OSError` where the connection is broken."""

    def read(self, timeout: float) -> bytes:
        """Return at most `_CHUNK` bytes that have come, and wait for the first at most this long."""

    def write(self, data: bytes) -> None:
        """Write bytes at once."""

    def close(self) -> None:
        """Close the connection."""


class Link:
    """Lines over a stream of bytes."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._rest = b""
        self.name = name

    def send(self, line: bytes) -> None:
        """Send a line."""
        try:
            self._stream.write(line)
        except OSError as error:
            raise BadEnvironmentError(f"{self.name} cannot be written to: {error}.") from error

    def receive(self, timeout: float) -> list[bytes]:
        """Return the lines that end in one read, which waits at most this long.

        Noise without an end of line is returned as a line when it is longer than a line may be.
        """
        try:
            data = self._stream.read(timeout)
        except OSError as error:
            raise BadEnvironmentError(f"{self.name} cannot be read: {error}.") from error
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            lines.append(self._rest)
            self._rest = b""
        return [line for line in lines if line.strip()]

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()


def opened(port: str, baud: int) -> Link:
    """Return a link to `tcp://HOST:PORT`, or to a serial port."""
    if not port.startswith(TCP):
        return Link(_Serial(port, baud), port)
    try:
        parts = urlsplit(port)
        host = parts.hostname
        number = parts.port
    except ValueError:
        host = number = None
    if host is None or number is None:
        raise SettingError(f"port is {port!r}: a network address is written tcp://HOST:PORT.")
    return Link(_Socket(host, number), port)


class _Socket:
    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=_CONNECT)
        except OSError as error:
            raise BadEnvironmentError(
                f"There is no board at {TCP}{host}:{port}: {error}. Is it on, and is the address right?"
            ) from error
        self._socket.settimeout(_WRITE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, timeout: float) -> bytes:
        if not select.select([self._socket], [], [], timeout)[0]:
            return b""
        data = self._socket.recv(_CHUNK)
        if not data:
            raise ConnectionError("the other side has closed the connection")
        return data

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()


class _Serial:
    def __init__(self, port: str, baud: int) -> None:
        try:
            import serial
        except ImportError as error:
            raise MissingExtraError("A serial port needs pyserial: pip install 'spaql[serial]'.") from error
        try:
            # Exclusive, so that no second process plays actions.
            self._port: Any = serial.Serial(port, baud, write_timeout=_WRITE, exclusive=True)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise BadEnvironmentError(
                f"The serial port {port} cannot be opened: {error}. `python -m serial.tools.list_ports` "
                "lists those that there are."
            ) from error

    def read(self, timeout: float) -> bytes:
        self._port.timeout = timeout
        data: bytes = self._port.read(min(max(self._port.in_waiting, 1), _CHUNK))
        return data

    def write(self, data: bytes) -> None:
        self._port.write(data)

    def close(self) -> None:
        self._port.close()
