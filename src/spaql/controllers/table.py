"""Controllers as tables: a row for each leaf, with the conditions that lead to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.cells import tree_cells
from spaql.controllers.controller import Controller
from spaql.controllers.text import leaf_text
from spaql.controllers.wording import number_text
from spaql.tables import latex, markdown


@dataclass(frozen=True, eq=False)
class LeafTable:
    """The leaves of a tree as boxes `low <= x < high`: parallel arrays, in the order of the printed rules."""

    tree: Controller
    low: NDArray[np.float64]
    """A row for each leaf, a column for each number that rules compare: the inputs, and their sums
    (see `Controller.numbers`); minus infinity where there is no lower end."""
    high: NDArray[np.float64]
    leaf: NDArray[np.int64]
    """Rows in the tree's table of laws."""

    def __len__(self) -> int:
        return len(self.leaf)

    def names(self, digits: int | None = None) -> list[str]:
        """Return the names of the columns; of sums that read the same, all but the first are numbered."""
        names: list[str] = []
        for name in self.tree.number_names(digits):
            again = (f"{name} ({i})" for i in count(2))
            names.append(
                name
                if name not in names
                else next(candidate for candidate in again if candidate not in names)
            )
        return names


def table(tree: Controller) -> LeafTable:
    """Return the leaves of a tree with the interval of each number that its rules compare.

    The rows are boxes that cover the space without overlap. Leaves whose conditions contradict each other are
    left out; where rules compare sums, it is not examined whether an observation has all numbers of a box.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> rows = table(spaql.controller_of(agent.learn(iterations=20, progress_bar=False)))
    >>> observation = np.array([0.0, 0.1, 0.02, -0.3])
    >>> inside = (rows.low <= observation) & (observation < rows.high)
    >>> int(inside.all(axis=1).sum())
    1
    """
    cells = tree_cells(tree)
    low = np.empty(cells.low.shape)
    high = np.empty(cells.low.shape)
    for j, thresholds in enumerate(cells.thresholds):
        edges = np.concatenate([[-math.inf], thresholds, [math.inf]])
        low[:, j] = edges[cells.low[:, j]]
        high[:, j] = edges[cells.high[:, j]]
    return LeafTable(tree, low, high, cells.label)


def table_markdown(tree: Controller, digits: int | None = 3) -> str:
    """Return the leaves as a Markdown table, with rounded numbers unless `digits` is None."""
    return markdown(_cells(tree, digits))


def table_latex(tree: Controller, digits: int | None = 3) -> str:
    """Return the leaves as a LaTeX table, with rounded numbers unless `digits` is None."""
    return latex(_cells(tree, digits))


def _cells(tree: Controller, digits: int | None) -> list[dict[str, str]]:
    rows = table(tree)
    names = rows.names(digits)
    return [
        {
            **{
                name: _interval(float(low), float(high), digits)
                for name, low, high in zip(names, rows.low[i], rows.high[i], strict=True)
            },
            "action": leaf_text(tree, int(rows.leaf[i]), digits),
        }
        for i in range(len(rows))
    ]


def _interval(low: float, high: float, digits: int | None) -> str:
    """Return an interval as text, whose lower end belongs to it; empty if it is unbounded."""
    if math.isinf(low):
        return "" if math.isinf(high) else f"< {number_text(high, digits)}"
    if math.isinf(high):
        return f"≥ {number_text(low, digits)}"
    return f"{number_text(low, digits)} … {number_text(high, digits)}"
