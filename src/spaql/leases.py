"""Leases: which process trains in a folder, and which driver of a study executes a run.

A lease is a file that the operating system locks for the process that holds it, and unlocks when that process
ends, however it ends. On a network drive it holds for all machines. Where a file system has no locks, a lease
is had without one: two drivers may then execute the same run, which ends in the same bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO

from spaql.archive import make_folder, remove_empty
from spaql.errors import SettingError

_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
"""Errors of file systems without locks."""

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> bool:
        """Lock a file, and return whether no other process has locked it."""
        file.seek(2**30)  # far behind its text, because a locked byte cannot be read
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(file: IO[bytes]) -> bool:
        """Lock a file, and return whether no other process has locked it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        return True


def take(path: Path) -> IO[bytes] | None:
    """Return the file of a lease, which is held until it is closed; None if another process holds it."""
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b", buffering=0)
        except FileNotFoundError:  # others remove empty folders
            continue
        if not _lock(file):
            file.close()
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # its last holder has removed it


def release(file: IO[bytes], path: Path) -> None:
    """Remove the file of a lease, then give it up; on Windows the other way round: an open file stays."""
    if os.name == "nt":
        file.close()
    with contextlib.suppress(OSError):
        path.unlink()
    file.close()


def is_held(path: Path) -> bool:
    """Return whether a process holds a lease."""
    try:
        with path.open("r+b") as file:
            return not _lock(file)
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder during the work in it; refuse one that another process holds.

    The folder is made first, so that one that cannot be written to fails before the work, and is removed if
    it stays empty.
    """
    path = folder / ".lock"
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(remove_empty, make_folder(folder))
            file = take(path)
            if file is not None:
                stack.callback(release, file, path)
                since = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())
        except OSError as error:
            error.filename = os.fspath(folder)
            raise
        if file is None:
            holder = path.read_text(encoding="utf-8") or "another process"
            raise SettingError(
                f"{folder} is in use by {holder}: wait until that ends, or name another folder."
            )
        yield
