"""Logs of a plant: recorded columns of files as transitions of episodes."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from spaql.errors import MissingExtraError, SettingError, nearest
from spaql.formatting import counted
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


_UNEVEN = 0.1
"""Share of the sample time by which the time between two rows may differ before it is reported."""
_MISSING = 1.5
"""Sample times between two rows from which on rows are missing between them."""


@dataclass(frozen=True, eq=False)
class Log:
    """Transitions of a log, in its order: the observations and actions of a row, and the next observations.

    The last row of an episode is only the end of a transition, so that its action may be empty.
    """

    files: tuple[str, ...]
    observations: tuple[str, ...]
    actions: tuple[str, ...]
    states: Floats
    taken: Floats
    """The actions, in raw units, one row per transition."""
    nexts: Floats
    first: NDArray[np.bool_]
    """Whether an episode begins with this transition."""
    places: NDArray[np.int64]
    """File and row of each transition, one row each."""
    rows: int
    """How many rows the files have."""
    sample_time: float | None
    """The median time between two rows, if there is a column of times."""
    notes: tuple[str, ...]
    """What was left out, and what is uneven."""

    def __len__(self) -> int:
        return len(self.states)

    def place(self, i: int) -> str:
        """Return the file and row of a transition, for a message."""
        file, row = self.places[i].tolist()
        return f"{self.files[file]}, row {row}"


def read_log(
    source: LogSource | Sequence[LogSource],
    *,
    observations: Sequence[str],
    actions: Sequence[str],
    episode: str | None = None,
    time: str | None = None,
) -> Log:
    """Return the transitions of a log, copies of a recording counted once.

    Parameters
    ----------
    source
        A CSV or Parquet file, columns by name, or several of these; each begins an episode.
    observations, actions
        Names of columns, with or without their units.
    episode
        Column whose value changes where an episode begins; without one, each file is an episode.
    time
        Column of times. Where rows are missing the episode is cut, and uneven ones are reported.

    Examples
    --------
    >>> log = read_log({"x": [0.0, 1.0, 3.0], "u": [1.0, 2.0, 0.0]}, observations=["x"], actions=["u"])
    >>> log.states.ravel(), log.nexts.ravel(), log.taken.ravel()
    (array([0., 1.]), array([1., 3.]), array([1., 2.]))
    """
    return _counted_once(_read(source, observations, actions, episode, time))


def _read(
    source: LogSource | Sequence[LogSource],
    observations: Sequence[str],
    actions: Sequence[str],
    episode: str | None,
    time: str | None,
) -> Log:
    """Return all transitions of a log."""
    several = isinstance(source, Sequence) and not isinstance(source, str)
    sources: list[LogSource] = list(source) if several else [source]  # type: ignore[list-item, arg-type]
    wanted = [*observations, *actions, *([time] if time else [])]
    if not observations or not actions or not sources:
        raise SettingError("A log needs at least one file, one observation and one action.")
    if len(set(wanted)) != len(wanted):
        twice = next(name for name in wanted if wanted.count(name) > 1)
        raise SettingError(f"The column {twice!r} is named twice: a column is an observation or an action.")
    tables = [read_table(table, wanted, episode) for table in sources]
    names = list(tables[0].numbers)
    if len(names) != len(wanted):
        raise SettingError(f"{wanted} name only the columns {names}: a column is one observation or action.")
    for table in tables[1:]:
        if list(table.numbers) != names:
            raise SettingError(f"{table.name} has the columns {list(table.numbers)}, not {names}.")
    notes: list[str] = []
    dims = len(observations)
    last = len(observations) + len(actions)
    parts = [_transitions(table, names[:dims], names[dims:last], notes) for table in tables]
    times = [_times(table, names[last]) for table in tables] if time else None
    if times is not None:
        step = float(np.median(np.concatenate([gaps[~np.isnan(gaps)] for gaps in times])))
        for table, part, gaps in zip(tables, parts, times, strict=True):
            _cut_at_gaps(table, names[last], part, gaps, step, notes)
    kept = [np.flatnonzero(part.there) for part in parts]
    if not sum(map(len, kept)):
        raise SettingError("The log has no two successive rows: it must hold at least one step.")
    return Log(
        files=tuple(table.name for table in tables),
        observations=tuple(names[:dims]),
        actions=tuple(names[dims:last]),
        states=np.concatenate([part.states[i] for part, i in zip(parts, kept, strict=True)]),
        taken=np.concatenate([part.actions[i] for part, i in zip(parts, kept, strict=True)]),
        nexts=np.concatenate([part.states[i + 1] for part, i in zip(parts, kept, strict=True)]),
        first=np.concatenate([_begins(part.there)[i] for part, i in zip(parts, kept, strict=True)]),
        places=np.concatenate(
            [np.column_stack([np.full(len(i), f), tables[f].rows[i]]) for f, i in enumerate(kept)]
        ),
        rows=sum(len(table.rows) for table in tables),
        sample_time=step if times is not None else None,
        notes=tuple(notes),
    )


def _counted_once(log: Log) -> Log:
    """Return a log without the episodes that are the same as earlier ones, which are no further evidence."""
    begins = np.flatnonzero(log.first)
    rows = np.column_stack([log.states, log.taken, log.nexts])
    moves = np.logical_or.reduceat((log.states != log.nexts).any(axis=1), begins)
    copied = np.zeros(len(begins), np.bool_)
    known = set()
    for i, episode in enumerate(np.split(rows, begins[1:])):
        content = sha256(episode.tobytes()).digest()
        copied[i] = moves[i] and content in known  # a plant at rest may well repeat itself
        known.add(content)
    if not copied.any():
        return log
    kept = ~np.repeat(copied, np.diff(np.append(begins, len(log))))
    number = f"{int(copied.sum()):,} of {counted(len(begins), 'episode')}"
    first = log.place(int(begins[copied.argmax()]))
    return replace(
        log,
        states=log.states[kept],
        taken=log.taken[kept],
        nexts=log.nexts[kept],
        first=log.first[kept],
        places=log.places[kept],
        notes=(*log.notes, f"{number} are copies: counted once; the first copy is at {first}"),
    )


@dataclass(frozen=True, eq=False)
class _Part:
    states: Floats
    actions: Floats
    there: NDArray[np.bool_]
    """Whether a transition leads from each row to the next one."""


def _transitions(table: Table, observations: list[str], actions: list[str], notes: list[str]) -> _Part:
    """Return the rows of a file, and which of them are followed by the next one of their episode."""
    states = np.column_stack([table.numbers[name] for name in observations])
    taken = np.column_stack([table.numbers[name] for name in actions])
    count = len(states)
    same = np.zeros(count, np.bool_)
    same[:-1] = True
    if table.labels is not None:
        labels = np.array(table.labels, np.str_)
        same[:-1] = labels[1:] == labels[:-1]
        ended: set[str] = set()
        for i in np.flatnonzero(np.append(True, ~same[:-1])[:count]).tolist():
            if labels[i] in ended:
                raise SettingError(
                    f"{table.name}, row {int(table.rows[i])} goes on with the episode {str(labels[i])!r}, "
                    "which has ended before: sort the rows by episode and time."
                )
            ended.add(str(labels[i]))
    no_state, no_action = (np.asarray(np.isnan(rows).any(axis=1)) for rows in (states, taken))
    lost = no_state | (no_action & same)
    if lost.any():
        row = int(np.flatnonzero(lost)[0])
        column = next(name for name in (*observations, *actions) if np.isnan(table.numbers[name][row]))
        number = counted(int(lost.sum()), "row")
        notes.append(f"{number} with empty cells left out, the first: {table.place(row, column)}")
    there = np.asarray(same & ~no_state & ~no_action)
    there[:-1] &= ~no_state[1:]
    return _Part(states, taken, there)


def _times(table: Table, column: str) -> Floats:
    """Return the time from each row to the next of its episode; NaN where there is none."""
    gaps = np.append(np.diff(table.numbers[column]), np.nan)[: len(table.rows)]
    if table.labels is not None:
        labels = np.array(table.labels, np.str_)
        gaps[:-1][labels[1:] != labels[:-1]] = np.nan
    if np.isnan(table.numbers[column]).any():
        i = int(np.flatnonzero(np.isnan(table.numbers[column]))[0])
        raise SettingError(f"{table.place(i, column)} is empty: every row must have a time.")
    back = np.flatnonzero(gaps <= 0)
    if len(back):
        raise SettingError(
            f"{table.place(int(back[0]) + 1, column)} is not later than the row before: sort the rows by "
            "time, and name the column of episodes if there are several."
        )
    return gaps


def _cut_at_gaps(table: Table, column: str, part: _Part, gaps: Floats, step: float, notes: list[str]) -> None:
    """Cut episodes where rows are missing, and report uneven times."""
    missing = np.nan_to_num(gaps) > _MISSING * step
    if missing.any():
        i = int(np.flatnonzero(missing)[0])
        number = counted(int(missing.sum()), "gap")
        notes.append(
            f"{number} with missing rows, at which episodes are cut, the first of {gaps[i]:.4g} after "
            f"{table.place(i, column)}; rows are {step:.4g} apart"
        )
        part.there[missing] = False
    uneven = (np.abs(gaps - step) > _UNEVEN * step) & ~missing
    if uneven.any():
        i = int(np.nanargmax(np.where(uneven, np.abs(gaps - step), -1.0)))
        number = counted(int(uneven.sum()), "row")
        notes.append(
            f"{number} unevenly sampled, the worst with {gaps[i]:.4g} instead of {step:.4g} after "
            f"{table.place(i, column)}: a controller is fitted as if all were {step:.4g} apart"
        )


def _begins(there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether a transition is the first of an episode: none leads to its row."""
    return np.append(True, ~there[:-1]) if len(there) else there
