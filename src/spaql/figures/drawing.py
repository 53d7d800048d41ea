"""Records and figures, written to files and read from them."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from spaql.archive import write_atomically
from spaql.entry_points import declared, load_declared
from spaql.errors import SettingError
from spaql.figures.style import styled
from spaql.languages import in_figure
from spaql.values import with_null

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def to_json(kind: str, record: Any) -> str:
    """Return a record as JSON, with every number in full precision, in the order of its fields.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Dot:
    ...     x: float
    >>> to_json("dot", Dot(0.1))
    '{\\n "kind": "dot",\\n "x": 0.1\\n}\\n'
    """
    data = {"kind": kind, **with_null(dataclasses.asdict(record))}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def from_data(hint: Any, data: Any) -> Any:
    """Return a record of this type from decoded JSON."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{f.name: from_data(hints[f.name], data[f.name]) for f in dataclasses.fields(hint)})
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return tuple(from_data(item, value) for value in data)
    if hint is float and data is None:
        return math.nan
    return data


def with_plain_text(record: Any) -> Any:
    """Return a record whose texts are drawn as they are: none is read as a formula.

    Examples
    --------
    >>> with_plain_text((1.5, ("a $b$",)))
    (1.5, ('a \\\\$b\\\\$',))
    """
    if isinstance(record, str):
        return in_figure(record)
    if isinstance(record, tuple):
        return tuple(map(with_plain_text, record))
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    fields = (field.name for field in dataclasses.fields(record))
    return dataclasses.replace(record, **{name: with_plain_text(getattr(record, name)) for name in fields})


Record = Any
"""The data of a figure: a frozen dataclass of a registered kind."""


@dataclass(frozen=True)
class _Kind:
    name: str
    record_type: type
    draw: Callable[[Any], Figure]


FIGURES = "spaql.figures"
"""The entry points by which a package declares pictures of a study: functions of its folder to a record."""
_KINDS: dict[str, _Kind] = {}
_KIND_OF: dict[type, _Kind] = {}


def register(name: str, record_type: type, draw: Callable[[Any], Figure]) -> None:
    """Register a kind of figure: the dataclass of its record, and how it is drawn."""
    _KINDS[name] = _KIND_OF[record_type] = _Kind(name, record_type, draw)


# No dates, so that equal records have equal files.
_METADATA: Mapping[str, dict[str, Any]] = MappingProxyType(
    {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
)
_PNG_DPI = 200
_PNG_WIDTH = 1600
"""Pixels, at most."""


def draw(record: Record) -> Figure:
    """Draw a record of any kind."""
    with styled():
        return _KIND_OF[type(record)].draw(with_plain_text(record))


def write(record: Record, path: Path) -> None:
    """Write a record as JSON; equal records have equal files."""
    write_atomically(path, to_json(_KIND_OF[type(record)].name, record).encode())


def read(path: str | os.PathLike[str]) -> Record:
    """Read a record that was written with a figure."""
    try:
        data = json.loads(Path(path).read_bytes())
        kind = data["kind"]
        if kind not in _KINDS:
            for entry in declared(FIGURES):
                load_declared(entry)  # which registers its kinds
        if kind not in _KINDS:
            raise SettingError(
                f"{Path(path)} is a record of kind {kind!r}, which nothing that is imported can draw: the "
                "figures of the paper and of the comparison are in spaql.plugins."
            )
        record: Record = from_data(_KINDS[kind].record_type, data)
    except OSError as error:
        raise SettingError(f"Cannot read {Path(path)}: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{Path(path)} is not the record of a figure ({error!r}).") from error
    return record


def save(record: Record, folder: Path, name: str) -> list[Path]:
    """Draw a record and save it as SVG, PDF and PNG; equal records have equal files."""
    paths = [folder / f"{name}.{suffix}" for suffix in _METADATA]
    for path, content in zip(paths, _rendered(record, *_METADATA), strict=True):
        write_atomically(path, content)
    return paths


def svg(record: Record) -> str:
    """Return the drawing of a record as an SVG element, for a page of HTML."""
    text = _rendered(record, "svg")[0].decode()
    return text[text.index("<svg") :]


def save_as(record: Record, path: str | os.PathLike[str]) -> None:
    """Draw a record into one file, in the format of its suffix: .svg, .pdf or .png."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    if suffix not in _METADATA:
        raise SettingError(f"{Path(path)} ends in no format of pictures: call it .svg, .pdf or .png.")
    write_atomically(Path(path), _rendered(record, suffix)[0])


def _rendered(record: Record, *formats: str) -> list[bytes]:
    figure = draw(record)
    files = [io.BytesIO() for _ in formats]
    dpi = min(_PNG_DPI, _PNG_WIDTH / figure.get_figwidth())
    with styled():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the same layout in all formats
        for file, suffix in zip(files, formats, strict=True):
            figure.savefig(file, format=suffix, dpi=dpi, metadata=_METADATA[suffix])
    return [file.getvalue() for file in files]


def redraw(record: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[Path]:
    """Draw the record of a file again, as SVG, PDF and PNG in the folder `out`, without its runs."""
    return save(read(record), Path(out), Path(record).stem)
