"""Episodes of random and of extreme actions, as raw records of what an environment returned."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.problems import Problem

EPISODES = 3
STEPS = 300
"""Most steps of an episode."""
DRIVEN_STEPS = 10_000
"""Most steps of all episodes of extreme actions."""
_SEEDS = 5
_PERIODS = (1, 5, 20)
_CORNERS = 4
"""Most components of an action of which all corners are held."""
_LISTED = 6
"""Most Discrete actions that count as extreme, and most components of an observation that are driven."""
ActionDriver = Callable[[int, NDArray[np.float64], NDArray[np.float64]], Any]
"""Returns an action for the step, the observation and the one before."""


@dataclass
class Transition:
    """What an environment returned for one step."""

    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    action: Any


@dataclass
class RawEpisode:
    """What an environment returned in one episode, unchecked."""

    start: Any
    info: Any
    steps: list[Transition] = field(default_factory=list)

    @property
    def observations(self) -> list[Any]:
        """All observations, including the first."""
        return [self.start, *(step.observation for step in self.steps)]


class ProblemCase:
    """A problem with some random episodes."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.actions = copy.deepcopy(problem.actions.space)

    @cached_property
    def episodes(self) -> list[RawEpisode]:
        """Episodes with different seeds."""
        return [self.play(seed) for seed in range(EPISODES)]

    @property
    def all_steps(self) -> list[Transition]:
        """The steps of all episodes."""
        return [step for episode in self.episodes for step in episode.steps]

    @cached_property
    def driven(self) -> list[RawEpisode]:
        """Whole episodes of extreme actions: held, alternated, and timed to excite each number."""
        episodes = []
        left = DRIVEN_STEPS
        for seed in range(_SEEDS):
            for driver in drivers(self.problem):
                if left > 0:
                    episodes.append(self.play(seed, driver, min(self.problem.horizon, left)))
                    left -= len(episodes[-1].steps)
        return episodes

    def play(self, seed: int, driver: ActionDriver | None = None, steps: int = STEPS) -> RawEpisode:
        """Return one episode, of random actions unless a driver chooses them."""
        with closing(self.problem.make()) as env:
            self.actions.seed(seed)
            episode = RawEpisode(*env.reset(seed=seed))
            observation = before = _numbers(episode.start)
            for step in range(min(self.problem.horizon, steps)):
                action = self.actions.sample() if driver is None else driver(step, observation, before)
                episode.steps.append(Transition(*env.step(action), action))
                if episode.steps[-1].terminated or episode.steps[-1].truncated:
                    break
                observation, before = _numbers(episode.steps[-1].observation), observation
        return episode

    @property
    def driven_steps(self) -> list[Transition]:
        """The steps of all episodes of extreme actions."""
        return [step for episode in self.driven for step in episode.steps]

    @property
    def observations(self) -> list[Any]:
        """The observations of all random episodes."""
        return [x for episode in self.episodes for x in episode.observations]

    @cached_property
    def standard(self) -> NDArray[np.float64]:
        """The observations of all episodes, in standard coordinates."""
        return np.array([self.problem.states.standardise(x) for x in self.observations])


def drivers(problem: Problem) -> Iterator[ActionDriver]:
    """Yield drivers that take a plant to extremes."""
    space = problem.actions.space
    pairs: list[tuple[Any, Any]] = []
    if isinstance(space, Discrete):
        chosen = np.unique(np.linspace(0, int(space.n) - 1, _LISTED).astype(np.int64))
        ends: list[Any] = [np.int64(space.start + i) for i in chosen]
        pairs.append((ends[0], ends[-1]))
    else:
        pairs.append((space.low, space.high))
        for j in range(min(space.shape[0], _LISTED) if space.shape[0] > 1 else 0):
            low, high = (((space.low + space.high) / 2).astype(space.dtype) for _ in range(2))
            low[j] = space.low[j]
            high[j] = space.high[j]
            pairs.append((low, high))
        ends = [*_corners(space), *(end for pair in pairs[1:] for end in pair)]
    yield from (_held(end) for end in ends)
    for both in pairs:
        yield from (_alternated(both, period) for period in _PERIODS)
        for j in range(min(problem.states.dims, _LISTED)):
            yield from (_timed(both, j, sign) for sign in (1, -1))


def _corners(space: Box) -> list[Any]:
    """Return the corners of a Box of few actions, of any other the lowest and the highest one."""
    if space.shape[0] > _CORNERS:
        return [space.low, space.high]
    corners = itertools.product(*zip(space.low, space.high, strict=True))
    return [np.array(corner, space.dtype) for corner in corners]


def _held(action: Any) -> ActionDriver:
    return lambda step, observation, before: copy.copy(action)


def _alternated(pair: tuple[Any, Any], period: int) -> ActionDriver:
    return lambda step, observation, before: copy.copy(pair[step // period % 2])


def _timed(pair: tuple[Any, Any], j: int, sign: int) -> ActionDriver:
    """Return a driver that switches the action with the sign of a number's change, to excite resonances."""
    return lambda step, observation, before: copy.copy(pair[int(sign * (observation[j] - before[j]) >= 0)])


def _numbers(observation: Any) -> NDArray[np.float64]:
    return np.asarray(observation, np.float64).ravel()


def global_generators() -> Any:
    """Return the state of Python's and NumPy's global random generators."""
    return random.getstate(), repr(np.random.get_state(legacy=False))  # noqa: NPY002


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed the global random generators within a context."""
    python = random.getstate()
    numpy = np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
