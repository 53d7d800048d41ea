"""The phase of design: controllers with memory are designed in a learned plant with recorded set-points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from gymnasium.spaces import Box

from spaql.algorithms.plantree.experience import Experience, split_setpoints, without_setpoints
from spaql.algorithms.plantree.lags import LagPrediction
from spaql.algorithms.plantree.learned_plant import CAUTIOUS, fit_plant, raw_plant
from spaql.algorithms.plantree.settings import PlanTreeSettings
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale
from spaql.algorithms.treesearch import TreeSearchLearner, TreeSearchSettings
from spaql.algorithms.treesearch.ladder.stages import consider
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.controllers import Controller
from spaql.controllers.arrays import action_range
from spaql.kernels.controller import RESET
from spaql.kernels.numerics import Floats, Rng, mean
from spaql.kernels.plantree.pwa_model import fit_cell
from spaql.kernels.plantree.raw_model import find_cells
from spaql.kernels.plantree.tracking import ALIVE, EPISODE, GAINS, NOISE, SHIFT, TrackedPlant, reward_rows
from spaql.problems import Dynamics, Problem
from spaql.problems.disturbances import Perturbation
from spaql.simulate import CandidateEpisodes, CandidatePlayer, Candidates, EpisodeRunner
from spaql.simulate.candidates import candidate_episodes
from spaql.spaces import observation_names

_NOISE = 4096
"""Rows of sensor noise, of which every episode begins at one."""
_RIDGE = 1e-6
_MODEL_STEPS = 5_000_000
"""Steps in the learned plant for each design, at an effort of 1."""


def fit_tracked(
    memory: ReplayMemory, code: ActionCode, problem: Problem, prediction: LagPrediction
) -> TrackedPlant:
    """Return the plant of a memory, with lags and cells by which it predicts held-out episodes."""
    places, goals = split_setpoints(problem)
    moving = without_setpoints(memory, problem)
    extended = prediction.lags.extend(moving, code)
    scale = Scale.of(extended)
    rows = [np.arange(len(extended))]
    fitted = fit_plant(extended, scale, code, rows, squares=True, margin=CAUTIOUS, least=prediction.least)
    raw = raw_plant(fitted, scale, code, extended.states)
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

    def starts(self, rng: Rng, n: int) -> Floats:
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

    def corners(self, rng: Rng, n: int) -> Floats:
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


@dataclass(eq=False)
class LadderDesign:
    """A controller with memory, by the search that found it in a learned plant, and what it has played."""

    search: TreeSearchLearner
    returns: list[float] = field(default_factory=list)
    """Of the whole episodes that it has played in the environment."""

    @property
    def ladder(self) -> Ladder:
        """The ladder that was climbed."""
        assert self.search.ladder is not None
        return self.search.ladder

    @property
    def controller(self) -> Controller:
        """The controller that was chosen."""
        return self.ladder.controller

    def add_episode(self, start: Floats, total: float) -> None:
        """Keep the return of a whole episode that it has played."""
        self.returns.append(total)


class Designs:
    """Controllers with memory, to follow set-points: those that have played, and the last one."""

    def __init__(self, experience: Experience, settings: PlanTreeSettings) -> None:
        self._experience = experience
        self._settings = settings
        self.players: list[LadderDesign] = []

    def next_player(self, seed: int, *, anew: bool, last: bool) -> int:
        """Return the index of the design that plays next: the last one, after a new design if `anew`."""
        if anew:
            self.controller(seed, anew=True)
        return len(self.players) - 1

    def controller(self, seed: int, *, anew: bool) -> Controller:
        """Design a controller in the plant of the memory as it is now.

        Those that have played, which were designed by fewer data, may be chosen again.
        """
        experience = self._experience
        problem = experience.problem
        played = [design for design in self.players if design.returns]
        plant = fit_tracked(experience.memory, experience.code, problem, experience.prediction())
        rng = np.random.default_rng((seed, 0))
        steps = int(self._settings.effort * _MODEL_STEPS)
        design = LadderDesign(new_search(problem, nominal=self._settings.nominal))
        design.search.aim(None, steps)
        runner = TrackedRunner(plant, problem)
        while runner.interactions.total < steps:
            design.search.iterate(runner, rng, trained=True)
        for earlier in played:
            consider(design.ladder, earlier.ladder, runner)
        self.players = [*played, design]
        return design.controller


def new_search(problem: Problem, *, nominal: bool) -> TreeSearchLearner:
    """Return a search for a controller with memory, in a plant without equations."""
    search = TreeSearchLearner(replace(problem, dynamics=None), TreeSearchSettings(nominal=nominal))
    assert search.ladder is not None
    if not nominal:
        declared = problem.dynamics.perturbation if problem.dynamics else None
        search.ladder.design = declared or Perturbation()
    return search
