"""The file format of agents, controllers and plants: plain data and arrays, never code.

Layout: 8 bytes of magic (`spaql` and the format version), the SHA-256 of the rest (32 bytes), then a
safetensors file whose metadata holds one JSON text (see docs/model-file.md). A file with a wrong hash is
rejected before any of it is parsed, and the arrays are views of the file's bytes: a size in the file is
compared with them before anything of that size is allocated.
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
from functools import lru_cache, partial
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
"""Most bytes of the header: parsed JSON can take fifty times the memory of its text."""
_TEMPORARY = re.compile(r"\..+\.[0-9]+\.[0-9a-f]{8}")
PAUSES = tuple(0.01 * 2**i for i in range(8)) if os.name == "nt" else ()
"""Seconds between attempts to rename a file that may be open elsewhere: two and a half in all."""
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Python and NumPy raise for data of the wrong form."""


@dataclass(frozen=True)
class Document:
    """The content of a file."""

    data: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def part(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays whose names begin with a prefix, without it."""
        return {n.removeprefix(prefix): a for n, a in self.arrays.items() if n.startswith(prefix)}


def dumps(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a document as bytes, which are equal for equal documents.

    Examples
    --------
    >>> loads(dumps({"kind": "example"}, {"q": np.zeros(2)})).arrays["q"]
    array([0., 0.])
    """
    text = json.dumps(plain(data), allow_nan=False, separators=(",", ":"))
    # safetensors writes the buffer as it is, so a strided view must be copied first.
    tight = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    body = tensors.save(tight, metadata={"spaql": text})
    if (size := int.from_bytes(body[:8], "little")) > _TEXT:
        raise ArchiveError(
            f"The names and settings take {size} bytes, and a file has at most {_TEXT} of them."
        )
    return _MAGIC + hashlib.sha256(body).digest() + body


def loads(content: bytes) -> Document:
    """Return the document in bytes; raises `ArchiveError` unless they are complete and unchanged."""
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
            "The file is damaged, its content does not match its hash: use another copy, or train again."
        )
    try:
        size = int.from_bytes(body[:8], "little")
        if size > _TEXT:
            raise ValueError(f"a header of {size} bytes")
        header = _json(str(body[8 : 8 + size], "utf-8"))
        data = _json(header.pop("__metadata__")["spaql"])
        arrays = _views(header, body[8 + size :])
    except _UNREADABLE as error:
        raise ArchiveError(f"The content is not that of a spaql file ({error}).") from error
    if not isinstance(data, dict):
        raise ArchiveError("The content is not that of a spaql file (it has no object of settings).")
    return Document(data, arrays)


def _json(text: str) -> Any:
    """Parse strict JSON: without NaN, and without numbers that a float cannot represent."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _views(header: Mapping[str, Any], body: memoryview) -> dict[str, NDArray[Any]]:
    """Return the arrays of a safetensors file as read-only views; they must fill its body without gaps."""
    arrays = {}
    places = []
    for name, entry in header.items():
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        shape = entry["shape"]
        begin, end = entry["data_offsets"]
        if not all(type(n) is int and 0 <= n <= len(body) for n in (*shape, begin, end)):
            raise ValueError(f"{name} has no valid shape and offsets")
        if begin > end or math.prod(shape) * dtype.itemsize != end - begin:
            raise ValueError(f"the size of {name} does not match its offsets")
        array = np.frombuffer(body[begin:end], dtype).reshape(shape)
        if dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
            raise ValueError(f"{name} holds values other than true and false")
        arrays[name] = array
        places.append((begin, end))
    place = 0
    for begin, end in sorted(places):
        if begin != place:
            raise ValueError("the arrays overlap, or leave gaps")
        place = end
    if place != len(body):
        raise ValueError("there are bytes after the arrays")
    return arrays


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise `ArchiveError` instead of any error of the data of a file."""
    try:
        yield
    except ArchiveError:
        raise
    except (*_UNREADABLE, AssertionError, MemoryError, SpaqlError) as error:
        raise ArchiveError(f"The file does not hold a valid {what} ({error!r}).") from error


def typed(array: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return an array of a file if it has the right type.

    It is not converted, because bytes as doubles would take eight times the memory of the file.

    Examples
    --------
    >>> typed(np.zeros(2), np.float64)
    array([0., 0.])
    """
    if array.dtype != kind:
        raise ArchiveError(
            f"An array in the file has the type {array.dtype}, and must have {np.dtype(kind)}."
        )
    return array


def is_tree(
    left: NDArray[Any], right: NDArray[Any], inner: NDArray[np.bool_], *, shared_leaves: bool = False
) -> bool:
    """Return whether nodes form a tree: children come after parents, and all but node 0 have one parent.

    Whoever walks through all ways of a tree then visits each node once: what a file can ask for is bounded by
    its size. With `shared_leaves`, a leaf may be the child of several nodes.

    Examples
    --------
    >>> inner = np.array([True, True, False])
    >>> is_tree(np.array([1, 2, -1]), np.array([2, 2, -1]), inner)
    False
    >>> is_tree(np.array([1, 2, -1]), np.array([2, 2, -1]), inner, shared_leaves=True)
    True
    """
    count = len(inner)
    children = np.concatenate([left[inner], right[inner]])
    parents = np.tile(np.flatnonzero(inner), 2)
    if not count or np.any(children <= parents) or np.any(children >= count):
        return False
    times = np.bincount(children, minlength=count)
    times[0] = 1
    return bool(np.all((times == 1) | ((times > 1) & ~inner & shared_leaves)))


def number(
    data: Mapping[str, Any],
    name: str,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    whole: bool = False,
) -> Any:
    """Return a finite number of the data that lies in a range; raises for anything else, such as a string.

    Examples
    --------
    >>> number({"horizon": 200}, "horizon", 1, whole=True)
    200
    """
    value = data[name]
    if type(value) is not int and (whole or type(value) is not float):
        raise ArchiveError(f"{name} in the file is {value!r}, and must be a {'whole ' * whole}number.")
    if not math.isfinite(value) or not least <= value <= most:
        raise ArchiveError(f"{name} in the file is {value}, which is out of range.")
    return value


def save(path: str | os.PathLike[str], data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file atomically."""
    write_atomically(path, dumps(data, arrays))


def load(path: str | os.PathLike[str]) -> Document:
    """Return the document of a file."""
    try:
        return loads(Path(path).read_bytes())
    except OSError as error:
        raise ArchiveError(f"Cannot read {os.fspath(path)}: {error.strerror}.") from error
    except ArchiveError as error:
        raise ArchiveError(f"Cannot read {os.fspath(path)}. {error}") from error


def file_sha256(file: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, which is computed again only if its time of change or size differ."""
    status = Path(file).stat()
    return _sha256(os.path.abspath(file), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _sha256(file: str, changed: int, size: int) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def load_json(path: str | os.PathLike[str], form: str, version: int) -> Any:
    """Return the data of a JSON file that states its format and version."""
    try:
        data = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise ArchiveError(f"Cannot read {os.fspath(path)}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{os.fspath(path)} is not JSON ({error}).") from error
    with reading(form):
        if data["format"] != form or data["version"] != version:
            raise ArchiveError(f"The file is not a {form} of version {version}: update spaql to read it.")
    return data


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name, flush it to disk, and rename it.

    A process that is killed in between leaves the temporary file behind (see `remove_leftovers`).
    """
    write_together({Path(path): content})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write files so that a full disk leaves all of them unchanged; the first is renamed first.

    An `OSError` names the file, and folders that were created for it are removed.
    """
    temporary: dict[Path, Path] = {}
    folders: list[Path] = []
    target = Path()
    try:
        for target, content in files.items():
            folders += make_folder(target.parent)
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
        remove_empty(folders)
        if isinstance(error, OSError):  # writing and flushing do not name the file
            error.filename = os.fspath(target)
            error.filename2 = None
        raise
    for folder in {target.parent for target in files}:
        sync_folder(folder)


def make_folder(path: Path) -> list[Path]:
    """Create a folder and its parents; returns those that were created, the innermost first."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove the folders that are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files that `write_atomically` left in a folder when its process was killed."""
    for path in folder.glob(".*"):
        if _TEMPORARY.fullmatch(path.name):
            with suppress(PermissionError):  # on Windows, while another process is writing it
                path.unlink(missing_ok=True)


def patiently(change: Callable[[], None]) -> None:
    """Rename with retries, because Windows fails while another process has the file open."""
    for pause in PAUSES:
        try:
            return change()
        except PermissionError:
            time.sleep(pause)
    return change()


def sync_folder(path: Path) -> None:
    """Flush a folder to disk, which makes renames in it durable."""
    if os.name == "posix":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
