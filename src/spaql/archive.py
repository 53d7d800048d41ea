"""The model file: plain data and arrays, never code.

Layout: 8 bytes of magic (`spaql` and the format version), the SHA-256 of all that follows (32 bytes),
then a safetensors file whose metadata holds one JSON text (docs/model-file.md has it in full). A file whose
hash is wrong is refused before any of it is parsed, and the arrays are views of the file's bytes: a size that
is written in the file is held against them before anything of that size is made.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as tensors

from spaql.errors import ArchiveError, SpaqlError
from spaql.values import plain

FORMAT = 1
_MAGIC = b"spaql\0\0" + bytes([FORMAT])
_HEAD = len(_MAGIC) + hashlib.sha256().digest_size
_DTYPES = {"BOOL": "?", "F16": "<f2", "F32": "<f4", "F64": "<f8"} | {
    f"{sign}{8 * size}": f"<{sign.lower()}{size}" for sign in "IU" for size in (1, 2, 4, 8)
}
_TEXT = 2**20
"""Bytes of the header, at most: as objects of Python, JSON can take fifty times the memory of its text."""
_TEMPORARY = re.compile(r"\..+\.[0-9]+\.[0-9a-f]{8}")
PAUSES = tuple(0.01 * 2**i for i in range(8)) if os.name == "nt" else ()
"""Seconds between attempts to rename a file that may be open elsewhere: two and a half in all."""
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Python and NumPy raise at data of the wrong form."""


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
    text = json.dumps(plain(data), sort_keys=True, allow_nan=False, separators=(",", ":"))
    # safetensors takes the bytes as they lie, so a strided view must be copied first.
    tight = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    body = tensors.save(tight, metadata={"spaql": text})
    if (size := int.from_bytes(body[:8], "little")) > _TEXT:
        raise ArchiveError(f"A model file has at most {_TEXT} bytes of names and settings, no {size}.")
    return _MAGIC + hashlib.sha256(body).digest() + body


def loads(content: bytes) -> Document:
    """Read a document; anything but a whole and unchanged one raises `ArchiveError`."""
    if len(content) < _HEAD or content[: len(_MAGIC) - 1] != _MAGIC[:-1]:
        raise ArchiveError(
            "This is not a spaql model file: give a run folder, or a file that spaql has saved (.spaql)."
        )
    if content[len(_MAGIC) - 1] != FORMAT:
        raise ArchiveError(
            f"The file has format {content[len(_MAGIC) - 1]}, and this version of spaql reads {FORMAT}: "
            "update spaql to read it."
        )
    body = memoryview(content)[_HEAD:]
    if hashlib.sha256(body).digest() != content[len(_MAGIC) : _HEAD]:
        raise ArchiveError(
            "The file is damaged, its content does not have the hash it was saved with: take a copy of it "
            "from elsewhere, or train again."
        )
    try:
        size = int.from_bytes(body[:8], "little")
        if size > _TEXT:
            raise ValueError(f"a header of {size} bytes")
        header = _json(str(body[8 : 8 + size], "utf-8"))
        data = _json(header.pop("__metadata__")["spaql"])
        arrays = _views(header, body[8 + size :])
    except _UNREADABLE as error:
        raise ArchiveError(f"The file is no spaql model file inside ({error}).") from error
    if not isinstance(data, dict):
        raise ArchiveError("The file is no spaql model file inside (no object of settings).")
    return Document(data, arrays)


def _json(text: str) -> Any:
    """Read JSON as its standard has it: without NaN, and without numbers that a float cannot hold."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _views(header: Mapping[str, Any], body: memoryview) -> dict[str, NDArray[Any]]:
    """Give the arrays of a safetensors file as read-only views; they fill its body without gaps."""
    arrays, places = {}, []
    for name, entry in header.items():
        dtype, shape, (begin, end) = np.dtype(_DTYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        if not all(type(n) is int and 0 <= n <= len(body) for n in (*shape, begin, end)):
            raise ValueError(f"{name} has no shape and place in the file")
        if begin > end or math.prod(shape) * dtype.itemsize != end - begin:
            raise ValueError(f"{name} has another size than its place in the file")
        array = np.frombuffer(body[begin:end], dtype).reshape(shape)
        if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
            raise ValueError(f"{name} holds what is neither true nor false")
        arrays[name] = array
        places.append((begin, end))
    place = 0
    for begin, end in sorted(places):
        if begin != place:
            raise ValueError("the arrays overlap, or leave gaps")
        place = end
    if place != len(body):
        raise ValueError("there is more in it than its arrays")
    return arrays


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn all that goes wrong with the data of a file into `ArchiveError`: it is not what it says it is."""
    try:
        yield
    except ArchiveError:
        raise
    except (*_UNREADABLE, AssertionError, MemoryError, SpaqlError) as error:
        raise ArchiveError(f"The file holds no {what} that can be used ({error!r}).") from error


def typed(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Give an array of a file if it is of the type it should be of.

    Were it converted, numbers of a byte would take eight times the memory of the file.

    Examples
    --------
    >>> typed(np.zeros(2), np.float64)
    array([0., 0.])
    """
    if array.dtype != kind:
        raise ArchiveError(
            f"The file has numbers of the type {array.dtype} where {np.dtype(kind)} should be."
        )
    return array


def number(
    data: Mapping[str, Any],
    name: str,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    whole: bool = False,
) -> Any:
    """Read a finite number that lies in a range; nothing that is written otherwise, such as a text.

    Examples
    --------
    >>> number({"horizon": 200}, "horizon", 1, whole=True)
    200
    """
    value = data[name]
    if type(value) is not int and (whole or type(value) is not float):
        raise ArchiveError(f"The file has {value!r} where {name}, a {'whole ' * whole}number, should be.")
    if not math.isfinite(value) or not least <= value <= most:
        raise ArchiveError(f"The file says that {name} is {value}, which is out of range.")
    return value


def save(path: str | os.PathLike[str], data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file; it appears whole or not at all."""
    write_atomically(path, dumps(data, arrays))


def load(path: str | os.PathLike[str]) -> Document:
    """Read a model file."""
    try:
        return loads(Path(path).read_bytes())
    except OSError as error:
        raise ArchiveError(f"Cannot read {os.fspath(path)}: {error.strerror}.") from error
    except ArchiveError as error:
        raise ArchiveError(f"Cannot read {os.fspath(path)}. {error}") from error


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, and rename it.

    A process that is killed meanwhile leaves the temporary file behind (see `remove_leftovers`).
    """
    write_together({Path(path): content})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write files so that a full disk leaves all of them as they were; the first is renamed first.

    An `OSError` names the file, and the folders that were made for it are removed.
    """
    temporary: dict[Path, Path] = {}
    made: list[Path] = []
    target = Path()
    try:
        for target, content in files.items():
            made += make_folder(target.parent)
            temporary[target] = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
            with open(temporary[target], "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for target, written in temporary.items():
            patiently(partial(os.replace, written, target))
    except BaseException as error:
        for written in temporary.values():
            written.unlink(missing_ok=True)
        remove_empty(made)
        if isinstance(error, OSError):  # to write and to flush do not say where
            error.filename, error.filename2 = os.fspath(target), None
        raise
    for folder in {target.parent for target in files}:
        sync_folder(folder)


def make_folder(path: Path) -> list[Path]:
    """Make a folder with all above it; returns those that were made, the innermost first."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of some folders that are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def remove_leftovers(folder: Path) -> None:
    """Remove what `write_atomically` left in a folder when its process was killed."""
    for path in folder.glob(".*"):
        if _TEMPORARY.fullmatch(path.name):
            with suppress(PermissionError):  # another process is writing it, which Windows does not let go
                path.unlink(missing_ok=True)


def patiently(change: Callable[[], None]) -> None:
    """Rename something; Windows refuses it while another process has it open, so try there for a while."""
    for pause in PAUSES:
        try:
            return change()
        except PermissionError:
            time.sleep(pause)
    return change()


def sync_folder(path: Path) -> None:
    """Flush a folder to the disk: a rename in it is safe only then."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
