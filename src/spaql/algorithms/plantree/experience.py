"""What PlanTree has seen: the replay memory, with lags in its states where these are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaql.algorithms.plantree.lags import Lags, Prediction, chosen_lags, with_lags
from spaql.algorithms.plantree.tracking import without_setpoints
from spaql.algorithms.replay.encoding import ActionCode
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.errors import BadEnvironmentError
from spaql.problems import Problem


class Experience:
    """All transitions, and how observations become states."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.code = ActionCode(problem.actions.space)
        self.memory = Memory(problem.states.dims, self.code.numbers)
        self.lags: Lags | None = None
        """The lags in the states of the memory, once they are chosen."""
        self.task = problem
        """The problem with these lags, for which trees are made."""
        self._prediction: tuple[int, Prediction] | None = None
        """The last prediction, and of how many steps."""

    def first_state(self, observation: Any) -> Floats:
        """Return the state at the start of an episode."""
        state = self._checked(observation)
        return state if self.lags is None else self.lags.first(state, self.code)

    def next_state(self, state: Floats, action: Floats, observation: Any) -> Floats:
        """Return the state after an action."""
        after = self._checked(observation)
        return after if self.lags is None else self.lags.after(state, self.code.raw_numbers(action), after)

    def _checked(self, observation: Any) -> Floats:
        state = np.array(observation, np.float64).ravel()
        if np.isnan(state).any():
            raise BadEnvironmentError(f"The observation of step {len(self.memory)} holds NaN: {observation}.")
        return state

    def choose_lags(self) -> bool:
        """Choose the lags of all states, those of the memory included; returns whether there are any."""
        lags = chosen_lags(self.memory, self.code).lags
        self.memory = lags.extend(self.memory, self.code)
        self.set_lags(lags)
        return self.has_lags

    def set_lags(self, lags: Lags | None) -> None:
        """Take lags as those in the states."""
        self.lags = lags
        self.task = self.problem if lags is None else with_lags(self.problem, lags)

    @property
    def has_lags(self) -> bool:
        """Whether the states of the memory have lags."""
        return self.lags is not None and self.lags.count > 0

    @property
    def observed(self) -> Memory:
        """The memory without lags."""
        dims = self.problem.states.dims
        if not self.has_lags:
            return self.memory
        return self.memory.with_states(self.memory.states[:, :dims], self.memory.nexts[:, :dims])

    def replace(self, memory: Memory) -> None:
        """Take other transitions instead."""
        self.memory = memory
        self._prediction = None

    def prediction(self) -> Prediction:
        """Return the lags that predictions of the memory need, without set-points."""
        if self._prediction is None or self._prediction[0] != len(self.memory):
            prediction = chosen_lags(without_setpoints(self.memory, self.problem), self.code)
            self._prediction = len(self.memory), prediction
        return self._prediction[1]
