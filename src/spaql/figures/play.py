"""Episodes of a policy, step by step."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.policy import Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem


@dataclass(frozen=True, eq=False)
class Played:
    """An episode."""

    observations: NDArray[np.float64]
    """Before each action, and after the last."""
    actions: tuple[Any, ...]
    total: float
    """The return."""
    terminated: bool
    """Whether it ended before the horizon."""


def play(policy: Policy, problem: Problem, seeds: list[int], rng: Rng | None = None) -> list[Played]:
    """Play an episode in Gymnasium's environment for each seed; without `rng` no action is drawn."""
    with closing(problem.make()) as env:
        return [_episode(policy, env, seed, rng) for seed in seeds]


def _episode(policy: Policy, env: Any, seed: int, rng: Rng | None) -> Played:
    observation, _ = env.reset(seed=seed)
    seen, total, ended, terminated = [observation], 0.0, False, False
    actions: list[Any] = []
    while not ended:
        action = policy.act(np.asarray(observation)[None], np.array([len(actions)]), rng)[0]
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        actions.append(action)
        total += float(reward)
        ended = bool(terminated or truncated)
    rows = np.array(seen, np.float64).reshape(len(seen), -1)
    return Played(rows, tuple(actions), total, bool(terminated))
