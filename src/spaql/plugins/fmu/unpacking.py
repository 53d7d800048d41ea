"""An FMU may come from anybody: its archive is unpacked within limits of size, and only into its folder."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path, PurePosixPath

from spaql.errors import BadEnvironmentError

MOST_FILES = 10_000
MOST_BYTES = 2_000_000_000
"""Most bytes of all files of an FMU."""
MOST_TIMES = 100
SMALL = 100_000_000
"""Most bytes of all files as a multiple of the size of the archive; that many are allowed in any case."""
_PIECE = 1 << 20
_METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
"""The methods of FMI; both give no more bytes at once than are asked for."""
_ENCRYPTED = 1


def unpack(file: Path, folder: Path) -> None:
    """Write the files of an FMU into a folder.

    What the archive says of its sizes may be wrong: bytes are counted while they are unpacked.
    """
    left = most = min(MOST_BYTES, max(SMALL, MOST_TIMES * file.stat().st_size))
    try:
        with zipfile.ZipFile(file) as archive:
            for member in _checked(file, archive.infolist()):
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as copy:
                    while left >= 0 and (piece := source.read(_PIECE)):
                        left -= len(piece)
                        copy.write(piece)
                if left < 0:
                    raise _refused(file, f"unpacks to more than {most:,} bytes, the limit for its size")
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError) as error:
        raise _refused(file, f"cannot be unpacked: {error}") from error


def _checked(file: Path, members: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the files of an archive, without folders; bad names, methods and numbers of them are refused."""
    if len(members) > MOST_FILES:
        raise _refused(file, f"has {len(members):,} files, more than {MOST_FILES:,}, the limit")
    for member in members:
        path = PurePosixPath(member.filename)
        if path.is_absolute() or ".." in path.parts or not set(member.filename).isdisjoint("\\:"):
            raise _refused(file, f"holds {member.filename!r}, which is no path within the archive")
        if member.compress_type not in _METHODS or member.flag_bits & _ENCRYPTED:
            raise _refused(file, f"holds {member.filename!r}, which is not stored or deflated as FMI demands")
    return [member for member in members if not member.is_dir()]


def _refused(file: Path, why: str) -> BadEnvironmentError:
    return BadEnvironmentError(f"{file} {why}.")
