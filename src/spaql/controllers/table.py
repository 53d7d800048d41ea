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
from spaql.kernels.controller import HIGH, LOW
from spaql.tables import comma_separated, latex, markdown


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


def table_csv(tree: Controller) -> str:
    """Return the leaves as CSV for programs: exact numbers, the lower and upper end of each number compared.

    Those are the inputs, and the sums of them that rules compare. The lower end belongs to
    an interval, the upper one does not; missing ends are infinite. Then follows the action: if all
    laws are constant its number and name, or each of its components; otherwise of each component the offset,
    the gains and the bounds of its law, or of each discrete action the offset and the gains of its score.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", rollouts=5, seed=1).learn(iterations=5, progress_bar=False)
    >>> print(table_csv(spaql.controller_of(agent)).splitlines()[0][:41])
    cart position [m] low,cart position [m] h
    """
    rows = table(tree)
    names = rows.names()
    constant = tree.laws.constant[rows.leaf].all() and (tree.discrete or not tree.remembers)
    cells = []
    for i in range(len(rows)):
        cell: dict[str, str] = {}
        for name, low, high in zip(names, rows.low[i], rows.high[i], strict=True):
            cell |= {f"{name} low": repr(float(low)), f"{name} high": repr(float(high))}
        cells.append(cell | (_action if constant else _law)(tree, int(rows.leaf[i])))
    return comma_separated(cells)


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


def _action(tree: Controller, row: int) -> dict[str, str]:
    """Return the action of a law that is constant, in full precision."""
    action = tree.constant_action(row)
    assert action is not None
    if tree.discrete:
        return {"action": str(int(action[0])), "name": leaf_text(tree, row, None)}
    return {name: repr(x) for name, x in zip(tree.actions, action, strict=True)}


def _law(tree: Controller, row: int) -> dict[str, str]:
    """Return a law in full precision."""
    low, high = tree.frame.limit[[LOW, HIGH]].tolist()
    cell: dict[str, str] = {}
    for i, name in enumerate(tree.actions):
        cell[f"{name} offset"] = repr(float(tree.laws.offset[row, i]))
        for j, input_name in enumerate(tree.inputs):
            cell[f"{name} gain of {input_name}"] = repr(float(tree.laws.gain[row, i, j]))
        if not tree.discrete:
            cell[f"{name} least"] = repr(low[i])
            cell[f"{name} most"] = repr(high[i])
    return cell
