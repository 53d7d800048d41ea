"""The phase of exploration: look-ahead in a learned plant, optimistic in half of the steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.experience import Experience
from spaql.algorithms.plantree.known_mirror import KnownMirror
from spaql.algorithms.plantree.planning import Plan, make_plan, warm_start
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.controllers.policy import Rng

_FIRST_PLAN = 200
"""Fewest steps before the first plan, and between two plans."""
_GROWTH = 1.4
"""Least ratio of the steps of a plan to those of the one before."""
_RANDOM = 0.05
"""Share of random actions."""


class Explorer:
    """Chooses actions by look-ahead, and plans again when the memory has grown enough."""

    def __init__(self, experience: Experience, mirror: KnownMirror, settings: PlanTreeSettings) -> None:
        self._experience = experience
        self._mirror = mirror
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
    def planned(self) -> Memory:
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
        return self._plan_of(self.planned, self.warm, rng, self._mirror.of(self.planned), final=False)

    def _plan_of(
        self, memory: Memory, state_values: Floats, rng: Rng, mirror: Mirror | None, *, final: bool
    ) -> Plan:
        """Return a plan for a memory, and for its mirror images if the plant has a mirror."""
        code = self._experience.code
        if mirror is None:
            return make_plan(memory, code, self._settings, state_values, rng, final=final)
        both = mirror.memory(memory)
        plan = make_plan(both, code, self._settings, np.tile(state_values, 2), rng, final=final)
        return replace(plan, state_values=plan.state_values[:, : len(memory)])
