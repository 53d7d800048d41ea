"""Lags: differences of observations and last actions in the state of a learned plant, as few as it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from spaql.algorithms.plantree.learned_plant import EXACT, LEAST, RIDGE
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale, regressors
from spaql.algorithms.rule_learners import actions_of, ago, observations_of, without_units
from spaql.algorithms.saved import Data, require
from spaql.archive import number
from spaql.controllers import Controller
from spaql.controllers.feature_table import feature_names
from spaql.controllers.features import Difference, Feature, LastAction, Observed
from spaql.kernels.numerics import Floats, Ints, mean, moments
from spaql.kernels.plantree.pwa_model import find_all, grow_motion
from spaql.problems import Problem
from spaql.spaces import StandardStates
from spaql.spaces.states import unbounded

_HELD_OUT = 5
"""Every fifth episode is held out."""
MOST_DIFFERENCES = 2
"""The most differences of an observation."""
MOST_ACTIONS = 4
"""The most last actions."""
_SHARE = 1 / 3
"""What is added must leave at most this share of the error."""
_SMALL = 1e-2
"""Errors below this, as a share of the changes of a number, are not worth anything."""
_NEAR = 1.1
"""Fewer lags or fewer cells are preferred if the error is at most so many times the least."""
_CELLS = (LEAST, 10 * LEAST, 100 * LEAST)
"""Fewest samples of a cell that are tried."""


@dataclass(frozen=True)
class Lags:
    """What the state of a learned plant holds besides an observation."""

    differences: tuple[int, ...]
    """How many differences of each number of an observation: to the sample before, and of these again."""
    actions: int = 0
    """How many of the last actions."""

    @property
    def count(self) -> int:
        """How many there are in all, the numbers of an action as one."""
        return sum(self.differences) + self.actions

    def features(self, observations: Sequence[str], actions: Sequence[str]) -> list[Feature]:
        """Return what a state has besides an observation as features, for numbers of these names."""
        features: list[Feature] = []
        for name, count in zip(observations, self.differences, strict=True):
            if count:
                features.append(Difference(f"change of {name}", name))
            if count > 1:
                features.append(Difference(f"second change of {name}", f"change of {name}"))
        for k in range(self.actions):
            features += [LastAction(f"{name} {ago(k + 1)}", name, samples=k + 1) for name in actions]
        return features

    def sources(self, numbers: int) -> Ints:
        """Return, for each number of a state, of which number it is the difference, or the value before.

        For the last action these are -1 and below; for an observation, its own place.
        """
        sources = list(range(len(self.differences)))
        for j, lags in enumerate(self.differences):
            for k in range(lags):
                sources.append(len(sources) - 1 if k else j)
        for k in range(self.actions):
            sources += [len(sources) + i - numbers if k else -1 - i for i in range(numbers)]
        return np.array(sources, np.int64)

    def extend(self, memory: ReplayMemory, code: ActionCode) -> ReplayMemory:
        """Return a memory whose states have these lags, with actions in the units of the environment.

        At the start of an episode differences are 0, and the last actions the resting one.
        """
        if not self.count:
            return memory
        sources = self.sources(code.numbers)
        dims = len(self.differences)
        actions = code.raw_numbers(memory.actions)
        states, nexts = (np.empty((len(memory), len(sources))) for _ in range(2))
        states[:, :dims] = memory.states
        nexts[:, :dims] = memory.nexts
        begins = memory.begins
        firsts = [self.first(observation, code) for observation in memory.states[begins]]
        for j in range(dims, len(sources)):
            nexts[:, j] = self._lag(j, int(sources[j]), states, actions, nexts)
            states[1:, j] = nexts[:-1, j]
            states[begins, j] = [first[j] for first in firsts]
        return memory.with_states(states, nexts)

    def first(self, observation: Floats, code: ActionCode) -> Floats:
        """Return the state at the start of an episode."""
        return np.concatenate([observation, np.zeros(sum(self.differences)), *[code.resting] * self.actions])

    def after(self, state: Floats, action: Floats, observation: Floats) -> Floats:
        """Return the state after an action, in the units of the environment, by the next observation."""
        sources = self.sources(len(action))
        dims = len(self.differences)
        after = np.concatenate([observation, np.empty(len(state) - dims)])
        for j in range(dims, len(state)):
            after[j] = self._lag(j, int(sources[j]), state, action, after)
        return after

    def _lag(self, j: int, source: int, state: Floats, action: Floats, after: Floats) -> Any:
        """Return number j of the next state or, by rows, of states, which is computed from a source."""
        if j < len(self.differences) + sum(self.differences):
            return after[..., source] - state[..., source]
        return action[..., -1 - source] if source < 0 else state[..., source]

    def larger(self) -> Iterator[Lags]:
        """Yield lags with a difference more of one number or of all, or with more actions."""
        every = tuple(min(n + 1, MOST_DIFFERENCES) for n in self.differences)
        single = [(*self.differences[:j], every[j], *self.differences[j + 1 :]) for j in range(len(every))]
        for differences in (*single, every):
            if differences != self.differences:
                yield replace(self, differences=differences)
        for k in range(self.actions + 1, MOST_ACTIONS + 1):
            yield replace(self, actions=k)

    def smaller(self) -> Iterator[Lags]:
        """Yield lags without a difference of a number, or without the earliest action."""
        for j, n in enumerate(self.differences):
            if n:
                yield replace(self, differences=(*self.differences[:j], n - 1, *self.differences[j + 1 :]))
        if self.actions:
            yield replace(self, actions=self.actions - 1)


def with_lags(problem: Problem, lags: Lags) -> Problem:
    """Return a problem whose observations have lags, for actions with a range."""
    if not lags.count:
        return problem
    observed = problem.states.space
    acted = problem.actions.space
    assert isinstance(observed, Box)
    assert isinstance(acted, Box)
    free = np.full(sum(lags.differences), np.inf)
    features = lags.features(*names_of(problem))
    low, high = (
        np.concatenate([end, sign * free, *[np.ravel(last)] * lags.actions]).astype(np.float64)
        for end, sign, last in ((observed.low, -1.0, acted.low), (observed.high, 1.0, acted.high))
    )
    names = feature_names(
        [*map(Observed, names_of(problem)[0]), *features], observations_of(problem), actions_of(problem)
    )
    space = Box(low, high, dtype=np.float64)
    squash = dict.fromkeys(np.flatnonzero(unbounded(space)).tolist(), 1.0)  # no cube is used
    states = StandardStates.of(space, squash=squash, names=tuple(names))
    return replace(problem, states=states)


def lagged_controller(rules: Controller, problem: Problem, lags: Lags) -> Controller:
    """Return the rules of a problem with lags as a controller with memory for the problem without."""
    observations, actions = names_of(problem)
    return replace(
        rules,
        observation_space=problem.states.space,
        observations=problem.states.names,
        features=(*map(Observed, observations), *lags.features(observations, actions)),
        sample_time=problem.sample_time or 1.0,
    )


def names_of(problem: Problem) -> tuple[list[str], list[str]]:
    """Return the names of the components of an observation and of an action, without their units."""
    return without_units(observations_of(problem)), without_units(actions_of(problem))


def lags_from(data: Data, dims: int) -> Lags:
    """Return the lags of a file."""
    differences = tuple(
        number({"difference": count}, "difference", 0, MOST_DIFFERENCES, whole=True)
        for count in data["differences"]
    )
    require("lags", len(differences) == dims)
    return Lags(differences, number(data, "actions", 0, MOST_ACTIONS, whole=True))


@dataclass(frozen=True)
class LagPrediction:
    """Lags, and how well a plant with them predicts held-out episodes."""

    lags: Lags
    error: float
    """Mean squared error, as a share of the changes of each number that moves."""
    least: int
    """Fewest samples of a cell, by which it predicts as well as it can."""


def predicted(memory: ReplayMemory, code: ActionCode, lags: Lags) -> LagPrediction:
    """Return how well a plant with lags predicts the observations of held-out episodes."""
    lengths = memory.ends - memory.begins
    if len(lengths) < _HELD_OUT:
        return LagPrediction(lags, 0.0, LEAST)
    out = np.repeat(np.arange(len(lengths)) % _HELD_OUT == _HELD_OUT - 1, lengths)
    changes = memory.nexts - memory.states
    moves = np.flatnonzero(changes.max(axis=0) > changes.min(axis=0))
    extended = lags.extend(memory, code)
    z = Scale.of(extended).z(extended.states)
    x = regressors(z, code.inputs(memory.actions, squares=True))
    y = changes[:, moves] / moments(changes[:, moves])[1]
    kept = ~out & ~memory.ended
    test = out & ~memory.ended
    predictions = []
    for least in _CELLS:
        feature, threshold, left, law = grow_motion(x[kept], y[kept], z.shape[1], least, EXACT, RIDGE)
        leaf = find_all(feature, threshold, left, 0, np.ascontiguousarray(z[test]))
        errors = y[test] - (x[test][:, :, np.newaxis] * law[leaf]).sum(axis=1)
        predictions.append(LagPrediction(lags, mean((errors * errors).ravel()), least))
        if len(feature) == 1:
            break
    least_error = min(prediction.error for prediction in predictions)
    return max(
        (prediction for prediction in predictions if prediction.error <= _NEAR * least_error),
        key=lambda prediction: prediction.least,
    )


def chosen_lags(memory: ReplayMemory, code: ActionCode) -> LagPrediction:
    """Return as few lags as predictions of held-out episodes need: none where none helps.

    What is added, a difference of a number or of all, or some of the last actions, must leave a third of the
    error at most.
    """
    best = predicted(memory, code, Lags((0,) * memory.states.shape[1]))
    while best.error > _SMALL:
        predictions = [predicted(memory, code, lags) for lags in best.lags.larger()]
        least = min((prediction.error for prediction in predictions), default=np.inf)
        if least > _SHARE * best.error:
            break
        enough = [prediction for prediction in predictions if prediction.error <= max(_SMALL, _NEAR * least)]
        best = min(enough, key=lambda prediction: (prediction.lags.count, prediction.error))
    while True:
        predictions = [predicted(memory, code, lags) for lags in best.lags.smaller()]
        enough = [
            prediction for prediction in predictions if prediction.error <= max(_SMALL, _NEAR * best.error)
        ]
        if not enough:
            return best
        best = min(enough, key=lambda prediction: prediction.error)
