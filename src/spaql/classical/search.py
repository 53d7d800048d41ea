"""A direct search for the numbers of a controller on the simulator, with every step counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from spaql.classical.linear import Floats
from spaql.kernels.treesearch.cma import ask, new_distribution, population_size, tell
from spaql.policy import Policy
from spaql.problems import Problem
from spaql.rollouts import EpisodeRunner
from spaql.rollouts.play import returns_from
from spaql.rollouts.seeds import Purpose, generator

_EPISODES = (2, 10)
"""Episodes by which a candidate of a generation is judged, at least and at most."""
_GENERATIONS = 40
"""Generations that are wanted before candidates are judged by more episodes."""
_JUDGED = 0.2
"""Share of the steps for the last choice among candidates."""
_FINALISTS = 5
_LARGEST = 12.0
"""Logarithms of gains stay within this of where the search begins."""


@dataclass(frozen=True)
class Tuned:
    """A tuned controller."""

    name: str
    policy: Policy
    text: str
    """Its law, for people."""
    steps: int
    """Simulator steps of the tuning, all of them."""
    numbers: int
    """How many numbers were tuned."""


Family = Callable[[Floats, int], Policy]
"""Returns a policy for vectors of numbers, one per row, each of which plays so many rows of a batch."""


class Simulator:
    """Plays candidates from the same starts, and counts the steps."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed, self.spent, self._batch = problem, seed, 0, 0

    def starts(self, n: int) -> Floats | int:
        """Return new starts: states of compiled dynamics, otherwise the number of a random stream."""
        self._batch += 1
        plant = self.problem.dynamics
        if plant is None:
            return self._batch
        states, seen = np.empty((n, plant.state_dims)), np.empty((n, len(plant.observations)))
        rng = generator(self.seed, Purpose.TRAINING, self._batch)
        plant.loops.reset(np.ones(n, np.bool_), rng, states, seen)
        return states

    def returns(self, family: Family, vectors: Floats, episodes: int) -> Floats:
        """Return the mean return of each vector over the same new episodes; -infinity if it is not finite."""
        starts = self.starts(episodes)
        if isinstance(starts, int):
            means = np.array([self.in_environments(family(v[None], 1), starts, episodes) for v in vectors])
        else:
            rows = np.tile(starts, (len(vectors), 1))
            found, spent = returns_from(family(vectors, episodes), self.problem, rows)
            self.spent += spent
            means = found.reshape(len(vectors), episodes).mean(axis=1)
        return np.where(np.isfinite(means), means, -np.inf)

    def in_environments(self, policy: Policy, batch: int, episodes: int) -> float:
        """Return the mean return in Gymnasium's environments."""
        with closing(EpisodeRunner(self.problem, episodes)) as runner:
            found = runner.evaluate(policy, generator(self.seed, Purpose.TRAINING, batch), deterministic=True)
        self.spent += found.steps
        return found.mean


def search(simulator: Simulator, family: Family, n: int, steps: int) -> tuple[Floats, float]:
    """Return the best vector that CMA-ES finds with so many steps, and its return in the last choice."""
    first, horizon = simulator.spent, simulator.problem.horizon
    rng = generator(simulator.seed, Purpose.SELECTION, n)
    count = population_size(n)
    least, most = _EPISODES
    searched = (1.0 - _JUDGED) * steps
    episodes = int(min(max(searched / (_GENERATIONS * count * horizon), least), most))
    distribution, vectors = new_distribution(np.zeros(n), np.ones(n), 1.0), np.empty((count, n))
    finalists: list[Floats] = [np.zeros(n)]
    while simulator.spent - first + count * episodes * horizon <= searched or len(finalists) == 1:
        ask(distribution, rng, vectors)
        np.clip(vectors, -_LARGEST, _LARGEST, out=vectors)
        scores = simulator.returns(family, vectors, episodes)
        tell(distribution, vectors, scores)
        finalists.append(vectors[int(scores.argmax())].copy())
    last = np.array([np.clip(distribution.mean, -_LARGEST, _LARGEST), *finalists[-_FINALISTS:]])
    left = steps - (simulator.spent - first)
    judged = simulator.returns(family, last, max(least, left // (len(last) * horizon)))
    best = int(judged.argmax())
    return last[best], float(judged[best])
