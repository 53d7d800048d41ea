"""Records and figures, written to files and read from them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from spaql.archive import write_atomically
from spaql.entry_points import declared, load_declared
from spaql.errors import SettingError
from spaql.figures.record import from_data, to_json, with_plain_text
from spaql.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
