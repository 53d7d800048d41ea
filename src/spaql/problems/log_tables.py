"""Tables of recorded columns: CSV and Parquet files, or arrays by name."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from spaql.errors import MissingExtraError, SettingError, nearest
from spaql.spaces import split_unit

Floats = NDArray[np.float64]
LogSource = str | os.PathLike[str] | Mapping[str, Any]
"""A CSV or Parquet file, or columns by name."""
_SEPARATORS = ",;\t"
_EMPTY = ("", "nan", "na", "null", "none")
"""Texts, in lower case, of a cell without a value."""


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of one file that were asked for."""

    name: str
    numbers: dict[str, Floats]
    """NaN where a cell is empty."""
    labels: list[str] | None
    """The label of each row's episode, if there is a column of them."""
    rows: NDArray[np.int64]
    """The number of each row in messages: its line in a CSV file, otherwise counted from 1."""

    def place(self, row: int, column: str) -> str:
        """Return where a cell is, for a message."""
        return f"{self.name}, row {int(self.rows[row])}, column {column!r}"


def read_table(source: LogSource, numbers: Sequence[str], label: str | None) -> Table:
    """Return columns of a log, which are asked for by their names, with or without their units."""
    if isinstance(source, Mapping):
        return _of_arrays("the log", source, numbers, label)
    path = Path(source)
    if not path.is_file():
        raise SettingError(f"There is no log {path}: give a CSV or Parquet file.")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _of_arrays(str(path), _parquet(path), numbers, label)
    return _of_csv(path, numbers, label)


def find_column(wanted: str, there: Iterable[str], where: str) -> str:
    """Return the column of a name, which may leave out its unit; an unknown one is refused."""
    there = list(there)
    if wanted in there:
        return wanted
    without_unit = [name for name in there if split_unit(name)[0] == split_unit(wanted)[0]]
    if len(without_unit) == 1 and split_unit(wanted)[1] in ("", split_unit(without_unit[0])[1]):
        return without_unit[0]
    raise SettingError(f"{where} has no column {wanted!r}: {nearest(wanted, there)}")


def _of_csv(path: Path, numbers: Sequence[str], label: str | None) -> Table:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return _of_lines(path, file, numbers, label)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read as text: {error}.") from error


def _of_lines(path: Path, file: TextIO, numbers: Sequence[str], label: str | None) -> Table:
    """Return the columns of a CSV file.

    It is read line by line into arrays: its whole text and all cells as objects would take twice the memory.
    """
    head = file.readline()
    lines = (line.removesuffix("\n") for line in chain([head], file))
    separator = max(_SEPARATORS, key=head.count)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise SettingError(f"{path}, row 1 is no CSV: {error}.") from error
    if not header:
        raise SettingError(f"{path} is empty: its first row must name the columns.")
    if len(set(header)) != len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise SettingError(f"{path} has two columns {twice!r}: give each its own name.")
    columns = {name: find_column(name, header, str(path)) for name in (*numbers, *([label] if label else []))}
    places = {name: header.index(column) for name, column in columns.items()}
    cells_of = {name: array("d") for name in numbers}
    labels: list[str] = []
    rows = array("q")
    begins = reader.line_num + 1
    try:
        for cells in reader:
            begins = reader.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise SettingError(
                    f"{path}, row {reader.line_num} has {len(cells)} cells, and the header has {len(header)}."
                )
            for name in numbers:
                cells_of[name].append(_number(cells[places[name]], path, reader.line_num, columns[name]))
            if label:
                own = cells[places[label]].strip()
                labels.append(labels[-1] if labels and labels[-1] == own else own)  # one text an episode
            rows.append(reader.line_num)
    except csv.Error as error:
        raise SettingError(f"{path}, row {begins} is no CSV: {error}.") from error
    arrays = {columns[name]: np.array(values, np.float64) for name, values in cells_of.items()}
    return Table(str(path), arrays, labels if label else None, np.array(rows, np.int64))


def _number(cell: str, path: Path, row: int, column: str) -> float:
    try:
        value = float(cell if cell.isascii() and "_" not in cell else "")  # Python reads 1_0 as 10
    except ValueError:
        if cell.strip().lower() in _EMPTY:
            return math.nan
        value = math.inf
    if math.isinf(value):
        raise SettingError(f"{path}, row {row}, column {column!r} is {cell!r}, and must be a finite number.")
    return value


def _of_arrays(name: str, columns: Mapping[str, Any], numbers: Sequence[str], label: str | None) -> Table:
    there = [str(key) for key in columns]
    arrays = {}
    for wanted in numbers:
        column = find_column(wanted, there, name)
        try:
            arrays[column] = np.array(columns[column], np.float64)
        except (TypeError, ValueError) as error:
            raise SettingError(f"{name}, column {column!r} holds what is no number: {error}.") from error
        if arrays[column].ndim != 1:
            raise SettingError(f"{name}, column {column!r} has the shape {arrays[column].shape}: give a row.")
        if np.isinf(arrays[column]).any():
            row = int(np.flatnonzero(np.isinf(arrays[column]))[0]) + 1
            raise SettingError(f"{name}, row {row}, column {column!r} is infinite.")
    labels = [str(cell) for cell in columns[find_column(label, there, name)]] if label else None
    lengths = {len(column) for column in arrays.values()} | ({len(labels)} if labels is not None else set())
    if len(lengths) != 1:
        raise SettingError(f"{name} has columns of different lengths: {sorted(lengths)}.")
    return Table(name, arrays, labels, np.arange(1, lengths.pop() + 1))


def _parquet(path: Path) -> dict[str, Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtraError(
            f"To read {path}, run pip install 'spaql[parquet]', or write it as CSV."
        ) from error
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        raise SettingError(f"{path} cannot be read as Parquet: {error}.") from error
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
