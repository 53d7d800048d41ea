"""The cost of the safe action of exported code: how often noise triggers it, and the returns with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Policy, RecordingPolicy
from spaql.evaluation.conditions import disturbed, paired_episodes
from spaql.problems import EnvironmentLike, make_problem


@dataclass(frozen=True)
class SafeActionRow:
    """Fresh episodes of a policy with a safe action, and of the policy without it, under equal noise."""

    noise: float
    """Standard deviation of the noise, relative to that of each observation in episodes without noise."""
    mean: float
    """Mean return with the safe action."""
    ci95: float
    """Half-width of its 95 % interval."""
    without: float
    """Mean return without the safe action."""
    steps: float
    """Share of the steps at which the safe action was taken."""
    episodes: float
    """Share of the episodes in which it was taken at least once."""


def safe_action_use(
    guarded: Policy,
    policy: Policy,
    env: EnvironmentLike,
    is_safe_action: Callable[[NDArray[Any]], NDArray[np.bool_]],
    *,
    noise: Sequence[float] = (0.0, 0.01, 0.03),
    episodes: int = 100,
    seed: int = 0,
) -> list[SafeActionRow]:
    """Return how often the safe action is taken in fresh episodes with noise on the observations.

    Parameters
    ----------
    guarded
        The policy with its safe action, such as `spaql.export.ExportedPolicy`.
    policy
        The policy without it.
    env
        The problem.
    is_safe_action
        Returns which rows of observations get the safe action.
    noise
        Standard deviations of Gaussian noise on every observation, relative to its standard deviation in
        episodes without noise.
    episodes
        Number of episodes of each row, with the same starts and noise for all.
    seed
        Of the episodes and the noise.

    Returns
    -------
    list of SafeActionRow
        One for each level of noise.
    """
    problem = make_problem(env)
    watched = RecordingPolicy(policy)
    paired_episodes(watched, problem, problem, episodes=episodes, seed=seed)
    spread = watched.visited.std(axis=0)
    rows = []
    for level in noise:
        recorded = RecordingPolicy(guarded)
        noisy = disturbed(problem, noise=level * spread)
        safe = paired_episodes(recorded, problem, noisy, episodes=episodes, seed=seed)
        unguarded = paired_episodes(policy, problem, noisy, episodes=episodes, seed=seed)
        taken = [is_safe_action(observations) for observations in recorded.episodes(safe.lengths)]
        rows.append(
            SafeActionRow(
                noise=level,
                mean=safe.mean,
                ci95=safe.ci95,
                without=unguarded.mean,
                steps=float(np.concatenate(taken).mean()),
                episodes=float(np.mean([steps.any() for steps in taken])),
            )
        )
    return rows
