"""Expressions that users write, with their text, evaluated for many rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.program.evaluate import Evaluator
from spaql.program.ir import Expression
from spaql.program.parser import parse


@dataclass(frozen=True)
class Formula:
    """An expression and its text.

    Examples
    --------
    >>> cost = Formula.parse("cost", "atan2(sin, cos)**2 + 0.1 * speed**2", ["cos", "sin", "speed"])
    >>> cost({"cos": np.array([1.0, 0.0]), "sin": np.zeros(2), "speed": np.array([0.0, 2.0])})
    array([0. , 0.4])
    """

    what: str
    """What it is for, in messages."""
    text: str
    expression: Expression

    @classmethod
    def parse(cls, what: str, text: str, known: Iterable[str]) -> Formula:
        """Return the formula of a text over known names; raises `SettingError` for anything else."""
        return cls(what, text, parse(what, text, known))

    def __call__(self, values: Mapping[str, NDArray[Any]], count: int | None = None) -> NDArray[np.float64]:
        """Return the value for each row, as floats; `count` is the number of rows of one without names."""
        columns = {name: np.asarray(column, np.float64) for name, column in values.items()}
        with np.errstate(all="ignore"):  # the caller checks what it gets: a branch not taken may divide by 0
            result = Evaluator(columns).number(self.expression)
        rows = len(next(iter(columns.values()))) if count is None else count
        return np.array(np.broadcast_to(result, (rows,)))

    def holds(self, values: Mapping[str, NDArray[Any]], count: int | None = None) -> NDArray[np.bool_]:
        """Return whether it holds, for each row; a number other than 0 holds."""
        return np.asarray(self(values, count) != 0.0)
