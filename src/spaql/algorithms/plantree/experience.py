"""What PlanTree knows: its memory, with lags where states need them, known ends and a mirror."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaql.algorithms.mirrors.detection import chosen_mirror
from spaql.algorithms.mirrors.mirror import Mirror, mirror_from
from spaql.algorithms.plantree.lags import LagPrediction, Lags, chosen_lags, with_lags
from spaql.algorithms.plantree.learned_plant import CAUTIOUS
from spaql.algorithms.replay import ActionCode, KnownEnds, ReplayMemory
from spaql.errors import BadEnvironmentError
from spaql.kernels.numerics import Floats
from spaql.problems import Problem
from spaql.program.parser import Formula
from spaql.spaces import identifier

_POINTS = 3000


def known_ends(memory: ReplayMemory, problem: Problem) -> KnownEnds | None:
    """Return where the end condition of a log's problem holds, in and around the data; None without one.

    The points are the same whenever they are drawn for this memory.
    """
    log = problem.log or {}
    if log.get("end") is None or not len(memory):
        return None
    both = np.concatenate([memory.states, memory.nexts])
    low = both.min(axis=0)
    high = both.max(axis=0)
    wide = CAUTIOUS * (high - low)
    points = np.random.default_rng(0).uniform(low - wide, high + wide, (_POINTS, len(low)))
    names = tuple(map(identifier, problem.states.names))
    end = Formula.parse("end condition", log["end"], names)
    ended = end.holds(dict(zip(names, points.T, strict=True)), len(points))
    return KnownEnds(points, ended, float(log["end_reward"]))


class Experience:
    """All transitions, how observations become states, and the mirror that the transitions show."""

    def __init__(self, problem: Problem, mirror_setting: str) -> None:
        if mirror_setting not in ("auto", "off"):
            mirror_from(mirror_setting, problem)  # refuses what it cannot read
        self.problem = problem
        self.code = ActionCode(problem.actions.space)
        self.memory = ReplayMemory(problem.states.dims, self.code.numbers)
        self.lags: Lags | None = None
        """The lags in the states of the memory, once they are chosen."""
        self.task = problem
        """The problem with these lags, for which trees are made."""
        self._prediction: tuple[int, LagPrediction] | None = None
        """The last prediction, and of how many steps."""
        self._mirror_setting = mirror_setting
        self._mirrors: dict[int, Mirror | None] = {}
        """By the number of first steps."""
        self.mirror_dropped_at: int | None = None
        """The steps after which a search without the mirror found a better controller: it is used no more."""

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
        self._mirrors = {}
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
    def observed(self) -> ReplayMemory:
        """The memory without lags."""
        dims = self.problem.states.dims
        if not self.has_lags:
            return self.memory
        return self.memory.with_states(self.memory.states[:, :dims], self.memory.nexts[:, :dims])

    def replace(self, memory: ReplayMemory) -> None:
        """Take other transitions instead."""
        self.memory = memory
        self._prediction = None
        self._mirrors = {}

    def prediction(self) -> LagPrediction:
        """Return the lags that predictions of the memory need, without set-points."""
        if self._prediction is None or self._prediction[0] != len(self.memory):
            prediction = chosen_lags(without_setpoints(self.memory, self.problem), self.code)
            self._prediction = len(self.memory), prediction
        return self._prediction[1]

    def mirror_of(self, memory: ReplayMemory) -> Mirror | None:
        """Return the mirror that was given, or that these first steps of the memory show, or None."""
        if self.mirror_dropped_at is not None and len(memory) > self.mirror_dropped_at:
            return None
        if len(memory) not in self._mirrors:
            self._mirrors[len(memory)] = chosen_mirror(self._mirror_setting, memory, self.code, self.task)
        return self._mirrors[len(memory)]

    @property
    def mirror(self) -> Mirror | None:
        """The mirror that was given, or that the whole memory shows, or None."""
        return None if self.mirror_dropped_at == len(self.memory) else self.mirror_of(self.memory)

    def drop_mirror(self) -> None:
        """Use no mirror from now on."""
        self.mirror_dropped_at = len(self.memory)


def without_setpoints(memory: ReplayMemory, problem: Problem) -> ReplayMemory:
    """Return a memory whose states have the numbers of an observation that are no set-points."""
    places, _ = split_setpoints(problem)
    return memory.with_states(memory.states[:, places], memory.nexts[:, places])


def split_setpoints(problem: Problem) -> tuple[list[int], list[int]]:
    """Return the places in an observation of the numbers that are no set-points, and of set-points."""
    goals = [r for _, r in problem.setpoint_places]
    return [j for j in range(problem.states.dims) if j not in goals], goals
