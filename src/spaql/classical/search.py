"""A direct search for the numbers of a controller on the simulator, with every step counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from spaql.classical.linear import Floats
from spaql.controllers import Policy
from spaql.kernels.treesearch.cma import ask, new_distribution, population_size, tell
from spaql.problems import Problem
from spaql.simulate import EpisodeRunner
from spaql.simulate.play import returns_from
from spaql.simulate.seeds import Purpose, generator

_EPISODES = (2, 10)
"""Episodes by which a candidate of a generation is judged, at least and at most."""
_GENERATIONS = 40
"""Generations that are wanted before candidates are judged by more episodes."""
_JUDGED = 0.2
"""Share of the steps for the last choice among candidates."""
_FINALISTS = 5
"""Candidates of the last choice beside the middle of the search."""
_STARTS = 3
"""Searches that begin, if there are steps for it."""
_RACE = 0.4
"""Share of the steps of the search after which the best of them goes on."""
_SHORTEST = 4
"""Generations of each before that, at least."""
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
        self.problem = problem
        self.seed = seed
        self.spent = 0
        self._batch = 0

    def starts(self, n: int) -> Floats | int:
        """Return new starts: states of compiled dynamics, otherwise the number of a random stream."""
        self._batch += 1
        plant = self.problem.dynamics
        if plant is None:
            return self._batch
        return plant.draw(n, generator(self.seed, Purpose.TRAINING, self._batch))

    def returns(self, family: Family, vectors: Floats, episodes: int) -> Floats:
        """Return the mean return of each vector over the same new episodes; -infinity if it is not finite."""
        starts = self.starts(episodes)
        if isinstance(starts, int):
            means = np.array([self.play(family(v[None], 1), starts, episodes).mean() for v in vectors])
        else:
            rows = np.tile(starts, (len(vectors), 1))
            returns = self.play(family(vectors, episodes), rows, len(rows))
            means = returns.reshape(len(vectors), episodes).mean(axis=1)
        return np.where(np.isfinite(means), means, -np.inf)

    def play(self, policy: Policy, starts: Floats | int, episodes: int) -> Floats:
        """Return the returns of episodes from some starts."""
        if isinstance(starts, int):
            with closing(EpisodeRunner(self.problem, episodes)) as runner:
                rng = generator(self.seed, Purpose.TRAINING, starts)
                evaluation = runner.evaluate(policy, rng, deterministic=True)
            returns = evaluation.returns
            spent = evaluation.steps
        else:
            returns, spent = returns_from(policy, self.problem, starts)
        self.spent += spent
        return returns


def search(simulator: Simulator, family: Family, n: int, steps: int) -> tuple[Floats, float]:
    """Return the best vector that CMA-ES finds with so many steps, and its return in the last choice.

    Several searches begin in different places, and the best of them goes on after a share of the steps.
    """
    first = simulator.spent
    horizon = simulator.problem.horizon
    rng = generator(simulator.seed, Purpose.SELECTION, n)
    count = population_size(n)
    least, most = _EPISODES
    searched = (1.0 - _JUDGED) * steps
    episodes = int(min(max(searched / (_GENERATIONS * count * horizon), least), most))
    cost = count * episodes * horizon
    races = _RACE * searched >= _STARTS * _SHORTEST * cost
    runs = [_Run(simulator, family, n, rng, first=start == 0) for start in range(_STARTS if races else 1)]
    while races and simulator.spent - first + _STARTS * cost <= _RACE * searched:
        for run in runs:
            run.generation(episodes)
    if races:
        means = np.array([run.mean for run in runs])
        runs = [runs[int(simulator.returns(family, means, 2 * most).argmax())]]
    (run,) = runs
    while simulator.spent - first + cost <= searched or not run.best:
        run.generation(episodes)
    last = np.array([run.mean, *run.best[-_FINALISTS:]])
    left = steps - (simulator.spent - first)
    judged = simulator.returns(family, last, max(least, left // (len(last) * horizon)))
    best = int(judged.argmax())
    return last[best], float(judged[best])


class _Run:
    """One search by CMA-ES; the first begins at 0, others at random."""

    def __init__(
        self, simulator: Simulator, family: Family, n: int, rng: np.random.Generator, *, first: bool
    ) -> None:
        self._simulator = simulator
        self._family = family
        self._rng = rng
        mean = np.zeros(n) if first else rng.standard_normal(n)
        self._distribution = new_distribution(mean, np.ones(n), 1.0)
        self._vectors = np.empty((population_size(n), n))
        self.best: list[Floats] = []
        """The best vector of each generation."""

    @property
    def mean(self) -> Floats:
        """The middle of the search distribution."""
        return np.clip(self._distribution.mean, -_LARGEST, _LARGEST)

    def generation(self, episodes: int) -> None:
        """Draw a generation, and learn from its returns in so many episodes."""
        vectors = self._vectors
        ask(self._distribution, self._rng, vectors)
        np.clip(vectors, -_LARGEST, _LARGEST, out=vectors)
        scores = self._simulator.returns(self._family, vectors, episodes)
        tell(self._distribution, vectors, scores)
        self.best.append(vectors[int(scores.argmax())].copy())
