"""The phase of exploration: plans by value iteration in a learned plant, and look-ahead with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.plantree.learned_plant import BOLD, CAUTIOUS, fit_plant
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale
from spaql.kernels.numerics import Floats, Ints, Rng, mean
from spaql.kernels.plantree.pwa_model import PlantEnsemble
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
_FIRST_PLAN = 200
"""Fewest steps before the first plan, and between two plans."""
_GROWTH = 1.4
"""Least ratio of the steps of a plan to those of the one before."""
_RANDOM = 0.05
"""Share of random actions."""


@dataclass(frozen=True)
class Plan:
    """A learned plant with values, optimistic and plain."""

    scale: Scale
    plant: PlantEnsemble
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


def warm_start(memory: ReplayMemory, plan: Plan | None) -> Floats:
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
    memory: ReplayMemory,
    code: ActionCode,
    settings: PlanTreeSettings,
    state_values: Floats,
    rng: Rng,
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
    chosen: Ints = np.arange(len(memory))
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


class Explorer:
    """Chooses actions by look-ahead, and plans again when the memory has grown enough."""

    def __init__(self, experience: Experience, settings: PlanTreeSettings) -> None:
        self._experience = experience
        self._settings = settings
        self._tried_actions = experience.code.tried()
        self._plan: Plan | None = None
        self.warm = np.zeros((2, 0))
        """The initial values of the last plan, which with its seed determine the plan."""
        self.plan_seed = 0
        self.optimistic_steps = 0
        """Steps that were taken by optimistic values."""
        self._is_optimistic = True

    def begin(self) -> None:
        """Start an episode: an optimistic one if half of the steps were none, or no goal was seen yet."""
        memory = self._experience.memory
        self._is_optimistic = self.optimistic_steps <= len(memory) / 2 or not memory.goal_seen

    def act(self, state: Floats, rng: Rng) -> Floats:
        """Return the next action, as the memory has it."""
        plan = self._current_plan()
        if plan is None or rng.random() < _RANDOM:
            choice = int(rng.integers(len(self._tried_actions)))
        else:
            choice = int(np.argmax(plan.values(state, optimistic=self._is_optimistic)))
        return np.asarray(self._tried_actions[choice])

    def learn(self, rng: Rng) -> None:
        """Count a step; plan again when the memory has grown enough."""
        self.optimistic_steps += self._is_optimistic
        planned = self.warm.shape[1]
        if len(self._experience.memory) >= max(planned + _FIRST_PLAN, int(planned * _GROWTH)):
            self.replan(rng)

    def end_episode(self, rng: Rng) -> None:
        """Plan again if this episode was the first to see a goal."""
        plan = self._current_plan()
        if plan is not None and plan.searching and self._experience.memory.goal_seen:
            self.replan(rng)

    def replan(self, rng: Rng) -> None:
        """Make a plan of the memory as it is now."""
        seed = int(rng.integers(2**62))
        self.warm = warm_start(self._experience.memory, self._current_plan())
        self.plan_seed = seed
        self._plan = self._make_plan()

    def forget(self) -> None:
        """Forget the plan: that of other states."""
        self.set_plan(np.zeros((2, 0)), self.plan_seed)

    def set_plan(self, warm: Floats, seed: int) -> None:
        """Take the initial values and the seed of a plan, which is made when it is needed."""
        self._plan = None
        self.warm = warm
        self.plan_seed = seed

    @property
    def planned(self) -> ReplayMemory:
        """The steps of the last plan."""
        return self._experience.memory.until(self.warm.shape[1])

    def final_plan(self, rng: Rng, mirror: Mirror | None) -> Plan:
        """Return the plan for all steps from which controllers are distilled."""
        memory = self._experience.memory
        state_values = warm_start(memory, self._current_plan())
        return self._plan_of(memory, state_values, rng, mirror, final=True)

    def _current_plan(self) -> Plan | None:
        if self._plan is None and self.warm.shape[1]:
            self._plan = self._make_plan()
        return self._plan

    def _make_plan(self) -> Plan:
        rng = np.random.default_rng(self.plan_seed)
        return self._plan_of(
            self.planned, self.warm, rng, self._experience.mirror_of(self.planned), final=False
        )

    def _plan_of(
        self, memory: ReplayMemory, state_values: Floats, rng: Rng, mirror: Mirror | None, *, final: bool
    ) -> Plan:
        """Return a plan for a memory, and for its mirror images if the plant has a mirror."""
        code = self._experience.code
        if mirror is None:
            return make_plan(memory, code, self._settings, state_values, rng, final=final)
        both = mirror.memory(memory)
        plan = make_plan(both, code, self._settings, np.tile(state_values, 2), rng, final=final)
        return replace(plan, state_values=plan.state_values[:, : len(memory)])
