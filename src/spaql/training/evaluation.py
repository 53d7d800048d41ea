"""Fresh episodes of a policy, and what they say of it."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SettingError
from spaql.policy import Policy
from spaql.policy.policy import Rng
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.stats import mean_ci95
from spaql.training.seeds import Purpose, generator

_TOGETHER = 100
"""Episodes that are stepped together."""
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Episode:
    """One episode: where it began, how long it was, what it returned."""

    start: tuple[float, ...]
    length: int
    total: float


@dataclass(frozen=True)
class Evaluation:
    """Returns of fresh episodes, in the order they were run."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    starts: NDArray[np.float64]
    """First observation of each episode, in raw units."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def ci95(self) -> float:
        """Half-width of the 95 % interval of the mean: it is `mean` ± `ci95`."""
        return mean_ci95(self.returns)[1]

    @property
    def quantiles(self) -> dict[float, float]:
        """Quantiles of the returns: 5, 25, 50, 75 and 95 %."""
        return {q: float(np.quantile(self.returns, q)) for q in _QUANTILES}

    @property
    def worst(self) -> list[Episode]:
        """The five worst episodes, the worst first."""
        order = np.argsort(self.returns, kind="stable")[:5]
        return [
            Episode(tuple(float(x) for x in self.starts[i]), int(self.lengths[i]), float(self.returns[i]))
            for i in order
        ]

    @property
    def steps(self) -> int:
        """Environment steps taken."""
        return int(self.lengths.sum())


class Rollouts:
    """Environments that run episodes of a policy side by side."""

    def __init__(self, problem: Problem, episodes: int) -> None:
        self._problem = problem
        self._env = problem.make_vector(episodes)
        self._n = episodes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._env.close()

    def run(self, policy: Policy, rng: Rng, *, deterministic: bool = False) -> Evaluation:
        """Run one episode in each environment.

        An environment whose episode has ended is stepped on with the others (Gymnasium resets it on
        the next step), but what it does then counts for nothing and draws no random numbers.
        """
        draws = None if deterministic else rng
        observations, _ = self._env.reset(seed=int(rng.integers(2**31)))
        starts = self._problem.states.batch(observations).copy()
        returns = np.zeros(self._n)
        lengths = np.zeros(self._n, np.int64)
        running = np.ones(self._n, np.bool_)
        actions: Any = None
        for step in range(self._problem.horizon):
            if running.all():
                actions = policy.act(observations, np.full(self._n, step), draws)
            else:
                some = np.flatnonzero(running)
                actions[some] = policy.act(observations[some], np.full(len(some), step), draws)
            observations, rewards, terminated, truncated, _ = self._env.step(actions)
            returns[running] += rewards[running]
            lengths[running] += 1
            running &= ~(terminated | truncated)
            if not running.any():
                break
        if not np.isfinite(returns).all():
            bad = int(np.flatnonzero(~np.isfinite(returns))[0])
            raise BadEnvironmentError(f"The rewards of episode {bad} add up to {returns[bad]}.")
        return Evaluation(returns, lengths, starts)


class Evaluable(Protocol):
    """An agent, or anything else with a policy and the problem it is for."""

    @property
    def policy(self) -> Policy:
        """What to run."""

    @property
    def problem(self) -> Problem:
        """Where to run it."""


def evaluate(
    agent: Evaluable | Policy,
    env: EnvironmentLike | None = None,
    *,
    episodes: int = 100,
    seed: int = 0,
    deterministic: bool = False,
) -> Evaluation:
    """Run fresh episodes of an agent or policy.

    Parameters
    ----------
    agent
        An agent, or a policy (which needs `env`).
    env
        What to run it on; the agent's own problem by default.
    episodes
        How many.
    seed
        Of the episodes; the same seed gives the same episodes.
    deterministic
        Play a ball's centre or first action instead of drawing from it.

    Examples
    --------
    >>> from spaql.policy import RandomPolicy
    >>> problem = make_problem("cartpole200")
    >>> result = evaluate(RandomPolicy(problem.states, problem.actions), problem, episodes=50)
    >>> 15 < result.mean < 30
    True
    """
    if episodes < 1:
        raise SettingError("An evaluation needs at least one episode.")
    if isinstance(agent, Policy):
        if env is None:
            raise SettingError("A policy alone does not say where to run it: give env.")
        policy, problem = agent, make_problem(env)
    else:
        policy, problem = agent.policy, agent.problem if env is None else make_problem(env)
    parts = []
    for index, first in enumerate(range(0, episodes, _TOGETHER)):
        with Rollouts(problem, min(_TOGETHER, episodes - first)) as rollouts:
            rng = generator(seed, Purpose.EVALUATION, index)
            parts.append(rollouts.run(policy, rng, deterministic=deterministic))
    return Evaluation(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.starts for part in parts]),
    )
