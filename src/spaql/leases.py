"""Leases on a shared file system: which driver executes which run.

Every driver has a file of its own, which it touches every few seconds. A lease is a hard link to that
file: making a link is atomic, the link identifies the driver, and because all links share one time of
modification, one touch renews all leases. Where a file system has no hard links, a lease is a folder, which
is made as atomically, and in it the path of the driver's file.

An expired lease is not removed by its successor (two could do so at once, and both continue): the successor
makes the next in a numbered row of links, which only one can.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from spaql.archive import make_folder, remove_empty, write_atomically
from spaql.errors import SettingError, SpaqlError

_TOUCHES_EVERY = 5.0
_EXPIRES_AFTER = 60.0
"""Seconds without a touch after which a driver counts as dead if its process cannot be looked up: on
another machine, or on a system without /proc."""
_PROC = Path("/proc")
_POINTER = "driver"
"""In a lease that is a folder, the path from there to the driver's file."""
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""Errors of file systems without hard links."""


class Driver:
    """The current process, as a holder of leases.

    Leases of a driver on the same machine expire when its process ends, others when they have not been
    renewed for a while.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            if _died_here(file) or _was_left_here(file):
                file.unlink(missing_ok=True)
        pid = os.getpid()
        identity = {"machine": _machine(), "pid": pid, "started": _started(pid), "since": time.time()}
        self._file = folder / f"{socket.gethostname()}-{pid}-{secrets.token_hex(4)}"
        write_atomically(self._file, json.dumps(identity).encode())
        self._closed = threading.Event()
        self._heartbeat = threading.Thread(target=self._renew, daemon=True)
        self._heartbeat.start()

    def close(self) -> None:
        """Release all leases: they are links to this file, and an empty file holds nothing."""
        self._closed.set()
        self._heartbeat.join()
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self._file, 0)
            with contextlib.suppress(PermissionError):  # on Windows, while others read it
                self._file.unlink()

    def _renew(self) -> None:
        while not self._closed.wait(_TOUCHES_EVERY):
            with contextlib.suppress(OSError):  # a full disk or a lost network may recover
                os.utime(self._file)

    def take(self, place: Path) -> bool:
        """Take the lease of a folder, and return whether no other live driver holds it."""
        number = 0
        while True:
            lease = place / f"lease.{number}"
            try:
                _make_lease(lease, self._file)
            except FileNotFoundError:
                if not self._file.exists():
                    raise SpaqlError(f"{self._file}, the file of this process, was removed.") from None
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    place.mkdir(parents=True, exist_ok=True)  # others remove empty folders
            except FileExistsError:
                os.utime(self._file)  # so that all times are by the file system's clock
                with contextlib.suppress(FileNotFoundError):  # just released: try again
                    if _alive(lease, self._file.stat().st_mtime):
                        return False
                    number += 1
            else:
                # A driver that was taken for dead may have released a lease below one that is held.
                if is_held(place, but=lease):
                    _remove(lease)
                    return False
                return True

    def release(self, place: Path) -> None:
        """Release the lease of a folder; expired leases stay."""
        with contextlib.suppress(FileNotFoundError):
            for lease in place.glob("lease.*"):
                if self._made(lease):
                    _remove(lease)

    def clear(self, place: Path) -> None:
        """Release the lease of a folder, and remove the expired ones, as only its holder may."""
        with contextlib.suppress(FileNotFoundError):
            for lease in place.glob("lease.*"):
                if not self._made(lease):
                    _remove(lease)
        self.release(place)

    def _made(self, lease: Path) -> bool:
        return _pointed_to(lease).name == self._file.name if lease.is_dir() else lease.samefile(self._file)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder during the work in it; refuse one that another live process holds.

    The folder is made first, so that one that cannot be written to fails before the work, and is removed if
    it stays empty.
    """
    place = folder / ".lock"
    made: list[Path] = []
    try:
        made = make_folder(folder)
        driver = Driver(place / "drivers")
    except OSError as error:
        remove_empty([place / "drivers", place, *made])
        error.filename = os.fspath(folder)
        raise
    try:
        with contextlib.closing(driver):
            if not driver.take(place):
                raise SettingError(
                    f"{folder} is in use by {_named_holder(place)}: wait until that ends, or name another "
                    "folder."
                )
            try:
                yield
            finally:
                driver.clear(place)
    finally:
        remove_empty([place / "drivers", place, *made])


def _named_holder(place: Path) -> str:
    """Return a description of the process that holds a folder."""
    for lease in place.glob("lease.*"):
        with contextlib.suppress(FileNotFoundError):
            if _alive(lease, time.time()):
                holder = _holder(_pointed_to(lease) if lease.is_dir() else lease)
                host = str(holder.get("machine")).partition(" ")[0]
                since = datetime.fromtimestamp(float(holder.get("since", 0))).astimezone()
                return f"process {holder['pid']} on {host} since {since:%Y-%m-%d %H:%M:%S}"
    return "another process"


def _make_lease(lease: Path, file: Path) -> None:
    """Make a lease of a driver's file; raises `FileExistsError` if it exists."""
    try:
        os.link(file, lease)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        lease.mkdir()
        write_atomically(lease / _POINTER, os.path.relpath(file, lease).encode())


def _pointed_to(lease: Path) -> Path:
    """Return the driver's file of a lease that is a folder."""
    return lease / (lease / _POINTER).read_text(encoding="utf-8")


def _remove(lease: Path) -> None:
    if lease.is_dir():
        shutil.rmtree(lease, ignore_errors=True)
    else:
        lease.unlink(missing_ok=True)


def is_held(place: Path, but: Path | None = None) -> bool:
    """Return whether a live driver holds the lease of a folder."""
    for lease in place.glob("lease.*"):
        with contextlib.suppress(FileNotFoundError):
            if lease != but and _alive(lease, time.time()):
                return True
    return False


def _alive(lease: Path, now: float) -> bool:
    """Return whether the driver that made a lease is alive."""
    file = lease
    if lease.is_dir():
        try:
            file = _pointed_to(lease)
        except FileNotFoundError:  # it is being made, unless its driver died
            return now - lease.stat().st_mtime < _EXPIRES_AFTER
        if not file.exists():
            return False
    holder = _holder(file)
    if _is_here(holder):
        return bool(holder["started"] == _started(holder["pid"]))
    if holder.get("machine") == _machine() and not _exists(holder["pid"]):
        return False
    return bool(holder) and now - file.stat().st_mtime < _EXPIRES_AFTER


def _died_here(file: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        holder = _holder(file)
        return _is_here(holder) and holder["started"] != _started(holder["pid"])
    return False


def _was_left_here(file: Path) -> bool:
    """Return whether a driver of this machine died while it wrote its file, or could not remove it."""
    host, pid, _ = file.name.removeprefix(".").rsplit("-", 2) if file.name.count("-") > 1 else ("", "", "")
    if host != socket.gethostname() or not pid.isdecimal() or _started(int(pid)) is not None:
        return False
    with contextlib.suppress(FileNotFoundError):
        known = _started(os.getpid()) is not None
        old = known or time.time() - file.stat().st_mtime > _EXPIRES_AFTER
        return old and (file.name.startswith(".") or not file.stat().st_size)
    return False


def _holder(lease: Path) -> dict[str, Any]:
    """Read who made a lease; a released one is empty, and a damaged one has no holder."""
    try:
        holder = json.loads(lease.read_bytes().decode() or "{}")
    except (ValueError, RecursionError):
        return {}
    named = isinstance(holder, dict) and isinstance(holder.get("pid"), int) and "started" in holder
    return holder if named else {}


def _is_here(holder: dict[str, Any]) -> bool:
    """Return whether a driver runs, or ran, where its process number can be looked up."""
    return holder.get("machine") == _machine() and holder["started"] is not None


def _exists(pid: int) -> bool:
    """Return whether a process may exist, on a system without start times of processes."""
    if os.name == "nt":  # where signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _machine() -> str:
    """Return what a process number belongs to: this boot of this machine, or of this container."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append((_PROC / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip())
        parts.append(os.readlink(_PROC / "self/ns/pid"))
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """Return the start time of a process, which distinguishes it from a later one of the same number.

    Without /proc it is not known, and leases expire by time alone.
    """
    try:
        fields = (_PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
