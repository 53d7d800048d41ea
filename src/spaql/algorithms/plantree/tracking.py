"""A learned plant with recorded set-points, in which controllers with memory are designed."""

from __future__ import annotations

import math

import numpy as np
from gymnasium.spaces import Box

from spaql.algorithms.plantree.dynamics import CAUTIOUS, fit_plant
from spaql.algorithms.plantree.lags import Prediction
from spaql.algorithms.plantree.learned_plant import as_printed, raw_plant
from spaql.algorithms.replay.encoding import ActionCode, Scale
from spaql.algorithms.replay.exact_sums import mean
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.controllers.arrays import action_range
from spaql.kernels.controller import RESET
from spaql.kernels.plantree.pwa_model import fit_cell
from spaql.kernels.plantree.raw_model import find_cells
from spaql.kernels.plantree.tracking import (
    ALIVE,
    EPISODE,
    GAINS,
    NOISE,
    SHIFT,
    TrackedPlant,
    reward_rows,
)
from spaql.problems import Dynamics, Problem
from spaql.problems.disturbances import Perturbation
from spaql.simulate import CandidateEpisodes, CandidatePlayer, Candidates, EpisodeRunner
from spaql.simulate.candidates import candidate_episodes
from spaql.spaces import observation_names

_NOISE = 4096
"""Rows of sensor noise, of which every episode begins at one."""
_RIDGE = 1e-6


def without_setpoints(memory: Memory, problem: Problem) -> Memory:
    """Return a memory whose states have the numbers of an observation that are no set-points."""
    places, _ = _split(problem)
    return memory.with_states(memory.states[:, places], memory.nexts[:, places])


def _split(problem: Problem) -> tuple[list[int], list[int]]:
    """Return the places in an observation of the numbers that are no set-points, and of set-points."""
    goals = [r for _, r in problem.setpoint_places]
    return [j for j in range(problem.states.dims) if j not in goals], goals


def fit_tracked(memory: Memory, code: ActionCode, problem: Problem, prediction: Prediction) -> TrackedPlant:
    """Return the plant of a memory, with lags and cells by which it predicts held-out episodes."""
    places, goals = _split(problem)
    moving = without_setpoints(memory, problem)
    extended = prediction.lags.extend(moving, code)
    scale = Scale.of(extended)
    rows = [np.arange(len(extended))]
    fitted = fit_plant(extended, scale, code, rows, squares=True, margin=CAUTIOUS, least=prediction.least)
    raw = raw_plant(fitted, scale, code, as_printed(fitted), extended.states)
    u = code.raw_numbers(memory.actions)
    after = moving.nexts
    n = len(places)
    wide = CAUTIOUS * np.ptp(after, axis=0)
    space = problem.states.space
    assert isinstance(space, Box)
    ends = [np.asarray(end, np.float64).ravel()[places] for end in (space.low, space.high)]
    output = np.array([places.index(y) for y, _ in problem.setpoint_places])
    before = np.concatenate([code.resting[np.newaxis], u[:-1]])
    before[memory.begins] = code.resting
    errors = memory.nexts[:, goals] - after[:, output]
    weights = _reward(reward_rows(after, errors, u, before), memory.rewards)
    plant = TrackedPlant(
        raw=raw,
        source=prediction.lags.sources(code.numbers),
        lagged=n + sum(prediction.lags.differences),
        low=np.maximum(after.min(axis=0) - wide, ends[0]),
        high=np.minimum(after.max(axis=0) + wide, ends[1]),
        reward=weights,
        place=np.array(
            [places.index(j) if j in places else -1 - goals.index(j) for j in range(problem.states.dims)]
        ),
        output=output,
        begin=np.append(memory.begins, len(memory)),
        first=extended.states[memory.begins],
        setpoint=np.ascontiguousarray(memory.states[:, goals]),
        error=np.zeros((len(memory), n)),
        noise=np.zeros((1, n)),
        action_low=action_range(problem.actions.space).low,
        action_high=action_range(problem.actions.space).high,
        room=(
            np.empty(extended.states.shape[1]),
            np.empty(len(u[0])),
            np.empty(len(goals)),
            np.empty(len(weights)),
        ),
    )
    laws = raw.law[find_cells(raw, extended.states)][:, :n]
    guess = np.zeros((len(u), n))
    x = np.concatenate([np.ones((len(u), 1)), extended.states, u, u * u], axis=1)
    for j in range(x.shape[1]):  # in this order, on every version of NumPy
        guess = guess + laws[:, :, j] * x[:, j : j + 1]
    return plant._replace(error=after - guess)


def _reward(terms: Floats, rewards: Floats) -> Floats:
    """Return the weights of the terms of a reward."""
    size = np.sqrt(np.array([mean(column * column) for column in terms.T])) + 1e-12
    x = np.ascontiguousarray(terms / size)
    y = rewards[:, np.newaxis]
    law = np.zeros((terms.shape[1], 1))
    fit_cell(x, y, np.arange(len(x)), 0, len(x), _RIDGE, np.zeros_like(law), law)
    weights: Floats = law[:, 0] / size
    return weights


class TrackedCandidates:
    """Candidates in a learned plant; a start is a recorded episode, and what a perturbation draws for it."""

    def __init__(self, plant: TrackedPlant, problem: Problem, perturbation: Perturbation | None) -> None:
        self._plant = plant
        self._problem = problem
        self._perturbation = perturbation
        has_actions = plant.lagged < len(plant.source)
        self._delay = min(1, perturbation.delay) if perturbation and has_actions else 0
        if perturbation is not None:
            std = _more_noise(plant, problem, perturbation)
            noise = np.random.default_rng(0).standard_normal((_NOISE, len(std))) * std
            self._plant = plant._replace(noise=noise)

    def starts(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw starts of episodes."""
        numbers = len(action_range(self._problem.actions.space).low)
        starts = np.zeros((n, GAINS + numbers))
        starts[:, EPISODE] = rng.integers(len(self._plant.begin) - 1, size=n)
        starts[:, ALIVE:] = 1.0
        if self._perturbation is not None:
            gain = self._perturbation.gain
            starts[:, NOISE] = rng.integers(_NOISE, size=n)
            starts[:, GAINS:] = rng.uniform(1 - gain, 1 + gain, (n, numbers))
            starts[:, SHIFT] = rng.integers(-self._delay, self._delay + 1, size=n)
        return starts

    def corners(self, rng: np.random.Generator, n: int) -> Floats:
        """Return no starts: recorded episodes have no corners."""
        return np.empty((0, GAINS + len(action_range(self._problem.actions.space).low)))

    def play(self, candidates: Candidates, starts: Floats, visited: int = 0) -> CandidateEpisodes:
        """Play every start with each candidate, and keep so many rows of features of the first."""
        rest = np.tile(candidates.frame.limit[RESET], (len(starts), 1))
        first = self._plant.first[starts[:, EPISODE].astype(np.int64)]
        return candidate_episodes(
            self._plant, candidates, np.hstack([first, starts, rest, rest]), self._problem.horizon, visited
        )

    def close(self) -> None:
        """Free resources."""


def _more_noise(plant: TrackedPlant, problem: Problem, perturbation: Perturbation) -> Floats:
    """Return the standard deviation of the noise that a perturbation adds to each number of a state.

    The noise that a plant declares is in what was recorded.
    """
    names = observation_names(problem.states.space, problem.states.names)
    declared = problem.dynamics.noise if problem.dynamics is not None else {}
    added = np.zeros(len(plant.low))
    for name, std in perturbation.noise.items():
        at = plant.place[names.index(name)]
        if at >= 0:
            added[at] = math.sqrt(max(0.0, std**2 - declared.get(name, 0.0) ** 2))
    return added


class TrackedRunner(EpisodeRunner):
    """Plays candidates in a learned plant; its interactions are steps in that."""

    def __init__(self, plant: TrackedPlant, problem: Problem) -> None:
        super().__init__(problem, 0)
        self._plant = plant

    def candidate_player(self, plant: Dynamics | Perturbation | None) -> CandidatePlayer:
        """Return the player of candidates in the plant as it is, or in a perturbed one."""
        assert not isinstance(plant, Dynamics)
        name = "" if plant is None else "perturbed"
        if name not in self._candidates:
            self._candidates[name] = TrackedCandidates(self._plant, self._problem, plant)
        return self._candidates[name]
