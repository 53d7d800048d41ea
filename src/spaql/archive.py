"""The model file: plain data and arrays, never code.

Layout: 8 bytes of magic (`spaql` and the format version), the SHA-256 of all that follows (32 bytes),
then a safetensors file whose metadata holds one JSON text. A file whose hash is wrong is refused before
any of it is parsed.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as tensors

from spaql.errors import ArchiveError

FORMAT = 1
_MAGIC = b"spaql\0\0" + bytes([FORMAT])
_HEAD = len(_MAGIC) + hashlib.sha256().digest_size


@dataclass(frozen=True)
class Document:
    """What a model file holds."""

    data: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def part(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Give the arrays whose names begin with a prefix, without it."""
        return {n.removeprefix(prefix): a for n, a in self.arrays.items() if n.startswith(prefix)}


def dumps(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write a document as bytes: equal documents give equal bytes.

    Examples
    --------
    >>> loads(dumps({"kind": "example"}, {"q": np.zeros(2)})).arrays["q"]
    array([0., 0.])
    """
    text = json.dumps(data, sort_keys=True, allow_nan=False, separators=(",", ":"))
    # safetensors takes the bytes as they lie, so a strided view must be copied first.
    tight = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    body = tensors.save(tight, metadata={"spaql": text})
    return _MAGIC + hashlib.sha256(body).digest() + body


def loads(content: bytes) -> Document:
    """Read a document; anything but a whole and unchanged one raises `ArchiveError`."""
    if len(content) < _HEAD or content[: len(_MAGIC) - 1] != _MAGIC[:-1]:
        raise ArchiveError("This is not a spaql model file.")
    if content[len(_MAGIC) - 1] != FORMAT:
        raise ArchiveError(
            f"The file has format {content[len(_MAGIC) - 1]}, and this version of spaql reads {FORMAT}: "
            "update spaql to read it."
        )
    body = memoryview(content)[_HEAD:]
    if hashlib.sha256(body).digest() != content[len(_MAGIC) : _HEAD]:
        raise ArchiveError("The file is damaged: its content does not have the hash it was saved with.")
    try:
        header_length = int.from_bytes(body[:8], "little")
        header = json.loads(bytes(body[8 : 8 + header_length]))
        data = json.loads(header["__metadata__"]["spaql"])
        arrays = tensors.load(bytes(body))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveError(f"The file is no spaql model file inside ({error}).") from error
    if not isinstance(data, dict):
        raise ArchiveError("The file is no spaql model file inside (no object of settings).")
    return Document(data, arrays)


def save(path: str | os.PathLike[str], data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file; it appears whole or not at all."""
    write_atomically(path, dumps(data, arrays))


def load(path: str | os.PathLike[str]) -> Document:
    """Read a model file."""
    try:
        return loads(Path(path).read_bytes())
    except OSError as error:
        raise ArchiveError(f"Cannot read {os.fspath(path)}: {error.strerror}.") from error


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(path: Path) -> None:
    """Flush a folder to the disk: a rename in it is safe only then."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
