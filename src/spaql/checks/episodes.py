"""Random episodes of a problem, for checks to look at."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.problems import Problem

EPISODES = 3
STEPS = 300
"""Of each episode, at most."""


@dataclass
class Transition:
    """One step of an environment, as it was given."""

    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: Any
    action: Any


@dataclass
class Episode:
    """What an environment gave for random actions."""

    start: Any
    info: Any
    steps: list[Transition] = field(default_factory=list)

    @property
    def observations(self) -> list[Any]:
        """All observations, the first one included."""
        return [self.start, *(step.observation for step in self.steps)]


class ProblemCase:
    """A problem, with some random episodes of it."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.actions = copy.deepcopy(problem.actions.space)

    @cached_property
    def episodes(self) -> list[Episode]:
        """Episodes with different seeds."""
        return [self.play(seed) for seed in range(EPISODES)]

    @property
    def all_steps(self) -> list[Transition]:
        """The steps of all episodes."""
        return [step for episode in self.episodes for step in episode.steps]

    def play(self, seed: int) -> Episode:
        """Play one episode of random actions."""
        with closing(self.problem.make()) as env:
            self.actions.seed(seed)
            episode = Episode(*env.reset(seed=seed))
            for _ in range(min(self.problem.horizon, STEPS)):
                action = self.actions.sample()
                episode.steps.append(Transition(*env.step(action), action))
                if episode.steps[-1].terminated or episode.steps[-1].truncated:
                    break
        return episode

    @property
    def observations(self) -> list[Any]:
        """The observations of all episodes."""
        return [x for episode in self.episodes for x in episode.observations]

    @cached_property
    def standard(self) -> NDArray[np.float64]:
        """The observations of all episodes, in standard coordinates."""
        return np.array([self.problem.states.standardise(x) for x in self.observations])


def global_generators() -> Any:
    """Give the state of Python's and NumPy's global random generators."""
    return random.getstate(), repr(np.random.get_state(legacy=False))  # noqa: NPY002


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed the global random generators for a while."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
