"""The history of a training: a row for every iteration."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.entry_points import Pictured
from spaql.errors import ArchiveError
from spaql.formatting import counted

_COUNTS = ("iteration", "training_steps", "interactions")
"""Columns from which training is resumed."""
_WHOLE, _REAL = "q", "d"
"""Type codes of a column: eight bytes per number, a quarter of what a list takes."""


class History(Pictured):
    """A table with a row for every iteration; row 0 is the evaluation of the untrained agent.

    Columns of every learner: `iteration`; `mean_return` of this iteration's evaluation; `best_return`,
    the best of these means so far (biased upwards: the best of many noisy means); `training_steps`, the
    steps from which the agent learned; `interactions`, all steps taken, including evaluations. A
    learner adds its own: for the partition learners `arms`, `temperature`, `splits` and `resets`. For
    PlanTree, which is not evaluated, rows begin at 1, a return is that of the episode, and it adds the
    `turn` of the controller that plays (0 while it explores) and the `leaves` of the last one. The return of
    an episode cut by the end of the budget is NaN, and so is the best return before any whole episode.

    Examples
    --------
    >>> history = History()
    >>> history.append({"iteration": 0, "mean_return": 21.5})
    >>> history["mean_return"]
    array([21.5])
    """

    def __init__(self) -> None:
        self._columns: dict[str, array[Any]] = {}

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row; all rows have the same columns."""
        if not self._columns:
            self._columns = {name: array(_WHOLE) for name in row}
        for name, column in self._columns.items():
            value = row[name]
            if column.typecode == _WHOLE and not isinstance(value, int | np.integer):
                self._columns[name] = column = array(_REAL, column)
            column.append(value)

    def __repr__(self) -> str:
        return f"History({counted(len(self), 'row')} of {', '.join(self._columns) or 'no columns'})"

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return np.array(self._columns[name])

    @property
    def n_returns(self) -> int:
        """Number of returns: of evaluations, or of whole episodes."""
        return int(np.isfinite(self["mean_return"]).sum())

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def last(self) -> dict[str, float]:
        """Return the last row."""
        return {name: column[-1] for name, column in self._columns.items()}

    def to_csv(self) -> str:
        """Return the table as CSV, every number in full precision."""
        lines = [",".join(self._columns)]
        lines += [",".join(map(repr, row)) for row in zip(*self._columns.values(), strict=True)]
        return "\n".join(lines) + "\n"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns as arrays (see `from_arrays`)."""
        return {name: np.array(column) for name, column in self._columns.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> History:
        """Return the history of these arrays; raises `ArchiveError` if they do not fit together."""
        history = cls()
        if not arrays:
            return history
        for name, column in arrays.items():
            if column.dtype not in ((np.int64,) if name in _COUNTS else (np.int64, np.float64)):
                raise ArchiveError(f"The column {name} of the file's history is of another type.")
            if column.ndim != 1:
                raise ArchiveError(
                    f"The column {name} of the file's history is not a one-dimensional array of numbers."
                )
        if any(len(column) != len(arrays["iteration"]) for column in arrays.values()):
            raise ArchiveError("The columns of the file's history are of different lengths.")
        counted = arrays["iteration"]
        if len(counted) and (counted[0] not in (0, 1) or np.any(np.diff(counted) != 1)):
            raise ArchiveError("The rows of the file's history are not counted from 0 or 1.")
        for name, column in arrays.items():
            kind = _WHOLE if column.dtype.kind == "i" else _REAL
            history._columns[name] = array(kind, column.tobytes())
        return history
