"""Planning: values on random partitions of what was seen, and what look-ahead on them would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.coding import ActionCode, Scale
from spaql.algorithms.plantree.dynamics import BOLD, CAUTIOUS, fit_plant
from spaql.algorithms.plantree.exact_sums import mean
from spaql.algorithms.plantree.memory import Floats, Memory
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.kernels.plantree.pwa_model import Plant
from spaql.kernels.plantree.value_cells import Cells, grow_cells, look_ahead, mean_values, sweep, try_options

_POINTS = 5000
"""States at which values are kept, at most."""
_FEWEST = 4
"""Points in a cell that may be cut."""
_COARSE = 6.0
"""Cells longer than the box over this are cut anywhere, so that some are empty: unknown."""
_SWEEPS, _SWEEPS_AT_MOST = 20, 200
_CONVERGED = 1e-4
_SEARCHING, _REFINING = 0.7, 0.05
"""Width of the unknown around what was seen, as a share of it: until a goal is seen, and then."""


@dataclass(frozen=True)
class Plan:
    """A learned plant with values, optimistic and plain."""

    scale: Scale
    plant: Plant
    actions: Floats
    """What the plant takes as each of the actions that are tried."""
    cells: Cells
    hopeful: Floats
    """The value of each cell, if unknown ones are worth the best that was ever seen."""
    plain: Floats
    """The value of each cell, if unknown ones are left out."""
    worth: Floats
    """Of each step of the memory: hopeful, and plain."""
    discount: float
    searching: bool
    """No goal was seen: all that counts is to come to the unknown, soon."""

    def values(self, state: Floats, *, hopeful: bool) -> Floats:
        """Give the value of each of the actions that are tried."""
        value, z = self.hopeful if hopeful else self.plain, self.scale.z(state)[np.newaxis]
        found = look_ahead(self.plant, self.cells, value, self.actions, hopeful, self.discount, z)
        return np.asarray(found[0])

    def values_of(self, z: Floats) -> Floats:
        """Give the plain value of each of the actions, for standardised states."""
        return look_ahead(self.plant, self.cells, self.plain, self.actions, False, self.discount, z)


def warm_start(memory: Memory, plan: Plan | None) -> Floats:
    """Give what each step of the memory is worth by the last plan, hopeful and plain; 0 without one."""
    worth = np.zeros((2, len(memory)))
    if plan is not None and not (plan.searching and memory.goal_seen):
        known = plan.worth.shape[1]
        worth[:, :known] = plan.worth
        z = plan.scale.z(memory.states[known:])
        for row, value in enumerate((plan.hopeful, plan.plain)):
            rest = mean(plan.worth[row])
            worth[row, known:] = mean_values(plan.cells, value, row == 0, z, rest)
    return worth


def make_plan(
    memory: Memory,
    code: ActionCode,
    settings: PlanTreeSettings,
    worth: Floats,
    rng: np.random.Generator,
    *,
    final: bool,
) -> Plan:
    """Fit a plant to the memory, and values to the plant, from a worth to begin with.

    A final plan, to be written down, is made in a cautious plant and swept until it converges.
    """
    scale = Scale.of(memory)
    searching = not (final or memory.goal_seen)
    told = memory.unrewarded() if searching else memory
    margin = CAUTIOUS if final else BOLD
    plant = fit_plant(told, scale, code, [np.arange(len(memory))], squares=False, margin=margin)
    actions = code.inputs(code.tried(), squares=False)
    chosen: NDArray[np.int64] = np.arange(len(memory))
    if len(memory) > _POINTS:
        chosen = rng.permutation(len(memory))[:_POINTS]
    z = scale.z(memory.states)
    both = np.concatenate([z, scale.z(memory.nexts)])
    low, high = both.min(axis=0), both.max(axis=0)
    rim = (_SEARCHING if searching else _REFINING) * (high - low + 1e-9)
    points = np.ascontiguousarray(z[chosen])
    cells, member = grow_cells(points, low - rim, high + rim, settings.partitions, _FEWEST, _COARSE, rng)
    cells = Cells._make(array.copy() for array in cells)  # which have room for many more nodes
    options = try_options(plant, cells, points, actions, settings.discount)
    unknown = 1.0 if searching else memory.best_to_go(settings.discount)
    worth = worth.copy()
    values = []
    for row, hopeful in enumerate((True, False)):
        begun = worth[row, chosen]
        long = final and not hopeful
        values.append(
            sweep(
                options,
                cells,
                member,
                begun,
                unknown,
                hopeful,
                _SWEEPS_AT_MOST if long else _SWEEPS,
                _CONVERGED if long else 0.0,
            )
        )
        worth[row, chosen] = begun
    return Plan(scale, plant, actions, cells, values[0], values[1], worth, settings.discount, searching)
