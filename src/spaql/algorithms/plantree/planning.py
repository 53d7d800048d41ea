"""Planning: value iteration on random partitions of the states seen, and look-ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.dynamics import BOLD, CAUTIOUS, fit_plant
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay.encoding import ActionCode, Scale
from spaql.algorithms.replay.exact_sums import mean
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.kernels.plantree.pwa_model import Plant
from spaql.kernels.plantree.value_cells import (
    ValueCells,
    grow_cells,
    look_ahead,
    mean_values,
    sweep,
    try_options,
)

_POINTS = 5000
"""Most planning points."""
_FEWEST = 4
"""Fewest points of a cell that is cut."""
_COARSE = 6.0
"""Cells longer than the box over this are cut anywhere, so that some are empty and their value unknown."""
_SWEEPS = 20
_SWEEPS_AT_MOST = 200
_CONVERGED = 1e-4
_SEARCHING = 0.7
"""Width of the margin around the states seen, as a share of their range, until a goal is seen."""
_REFINING = 0.05
"""The same afterwards."""


@dataclass(frozen=True)
class Plan:
    """A learned plant with values, optimistic and plain."""

    scale: Scale
    plant: Plant
    actions: Floats
    """The plant's inputs for each of the actions considered."""
    cells: ValueCells
    optimistic: Floats
    """The value of each cell, if unknown cells have the best return seen."""
    plain: Floats
    """The value of each cell, if unknown cells are left out."""
    state_values: Floats
    """Optimistic and plain values of the state of each step of the memory."""
    discount: float
    searching: bool
    """Whether no goal was seen yet: values then reward reaching unknown cells soon."""

    def values(self, state: Floats, *, optimistic: bool) -> Floats:
        """Return the value of each of the actions considered, for one state."""
        value = self.optimistic if optimistic else self.plain
        z = self.scale.z(state)[np.newaxis]
        found = look_ahead(self.plant, self.cells, value, self.actions, optimistic, self.discount, z)
        return np.asarray(found[0])

    def values_of(self, z: Floats) -> Floats:
        """Return the plain value of each of the actions considered, for standardised states."""
        return look_ahead(self.plant, self.cells, self.plain, self.actions, False, self.discount, z)


def warm_start(memory: Memory, plan: Plan | None) -> Floats:
    """Return optimistic and plain values of the memory's states by the last plan; 0 without one."""
    state_values = np.zeros((2, len(memory)))
    if plan is not None and not (plan.searching and memory.goal_seen):
        known = plan.state_values.shape[1]
        state_values[:, :known] = plan.state_values
        z = plan.scale.z(memory.states[known:])
        for row, value in enumerate((plan.optimistic, plan.plain)):
            rest = mean(plan.state_values[row])
            state_values[row, known:] = mean_values(plan.cells, value, row == 0, z, rest)
    return state_values


def make_plan(
    memory: Memory,
    code: ActionCode,
    settings: PlanTreeSettings,
    state_values: Floats,
    rng: np.random.Generator,
    *,
    final: bool,
) -> Plan:
    """Fit a plant to the memory, and iterate values in it from initial ones; returns the plan.

    A final plan, for distillation, has a plant with a small margin and is iterated until it converges.
    """
    scale = Scale.of(memory)
    searching = not (final or memory.goal_seen)
    fitted = memory.unrewarded() if searching else memory
    margin = CAUTIOUS if final else BOLD
    plant = fit_plant(fitted, scale, code, [np.arange(len(memory))], squares=False, margin=margin)
    actions = code.inputs(code.tried(), squares=False)
    chosen: NDArray[np.int64] = np.arange(len(memory))
    if len(memory) > _POINTS:
        chosen = rng.permutation(len(memory))[:_POINTS]
    z = scale.z(memory.states)
    both = np.concatenate([z, scale.z(memory.nexts)])
    low = both.min(axis=0)
    high = both.max(axis=0)
    margin_width = (_SEARCHING if searching else _REFINING) * (high - low + 1e-9)
    points = np.ascontiguousarray(z[chosen])
    cells, member = grow_cells(
        points, low - margin_width, high + margin_width, settings.partitions, _FEWEST, _COARSE, rng
    )
    cells = ValueCells._make(array.copy() for array in cells)  # views of much larger arrays
    options = try_options(plant, cells, points, actions, settings.discount)
    unknown = 1.0 if searching else memory.best_to_go(settings.discount)
    state_values = state_values.copy()
    values = []
    for row, optimistic in enumerate((True, False)):
        begun = state_values[row, chosen]
        long = final and not optimistic
        values.append(
            sweep(
                options,
                cells,
                member,
                begun,
                unknown,
                optimistic,
                _SWEEPS_AT_MOST if long else _SWEEPS,
                _CONVERGED if long else 0.0,
            )
        )
        state_values[row, chosen] = begun
    return Plan(
        scale, plant, actions, cells, values[0], values[1], state_values, settings.discount, searching
    )
