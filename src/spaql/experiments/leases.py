"""Who is at work on what: leases on a shared file system.

Every driver has a file of its own, which it touches every few seconds. A lease is a hard link to that
file: making a link is atomic, the link tells who the driver is, and because all links share one time of
modification, one touch renews all leases.

An expired lease is not removed by its successor (two could do so at once, and both go on): the successor
makes the next in a numbered row of links, which only one can.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from pathlib import Path

_TOUCHES_EVERY = 5.0
_EXPIRES_AFTER = 60.0
"""Seconds without a touch after which a driver on another machine counts as dead."""


class Driver:
    """The own process, as a holder of leases.

    Leases of a driver on the same machine expire as soon as its process is gone, others when it has not
    been heard of for a while.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            if not _alive(file, time.time()):
                file.unlink(missing_ok=True)
        self._file = folder / f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        pid = os.getpid()
        self._file.write_text(json.dumps({"machine": _machine(), "pid": pid, "started": _started(pid)}))
        self._closed = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self._heart.start()

    def close(self) -> None:
        """Stop renewing."""
        self._closed.set()
        self._heart.join()
        self._file.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._closed.wait(_TOUCHES_EVERY):
            with contextlib.suppress(OSError):  # a full disk or a lost network may come back
                os.utime(self._file)

    def take(self, place: Path) -> bool:
        """Take the lease of a folder, unless another driver that lives holds it."""
        number = 0
        while True:
            lease = place / f"lease.{number}"
            try:
                os.link(self._file, lease)
                return True
            except FileNotFoundError:
                with contextlib.suppress(FileNotFoundError):  # others remove folders that they leave empty
                    place.mkdir(parents=True, exist_ok=True)
            except FileExistsError:
                os.utime(self._file)  # so that times are compared by the file system's clock alone
                if _alive(lease, self._file.stat().st_mtime):
                    return False
                number += 1

    def give_back(self, place: Path) -> None:
        """Give back the lease of a folder; what expired before it stays, and stays expired."""
        with contextlib.suppress(FileNotFoundError):
            for lease in place.glob("lease.*"):
                if lease.samefile(self._file):
                    lease.unlink()


def is_held(place: Path) -> bool:
    """Say whether a driver that lives holds the lease of a folder."""
    return any(_alive(lease, time.time()) for lease in place.glob("lease.*"))


def _alive(lease: Path, now: float) -> bool:
    """Say whether the driver that made a lease lives."""
    try:
        holder = json.loads(lease.read_bytes())
        touched = lease.stat().st_mtime
    except (FileNotFoundError, ValueError):
        return False
    if holder["machine"] == _machine() and holder["started"] is not None:
        return bool(holder["started"] == _started(holder["pid"]))
    return now - touched < _EXPIRES_AFTER


def _machine() -> str:
    """Name what a process number belongs to: this boot of this machine, or of this container."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """Give the time at which a process began, which tells it from a later one of the same number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
