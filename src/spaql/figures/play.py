"""Episodes of a policy, for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.policy import Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem
from spaql.training.recording import record


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
    return [
        Played(one.observations, tuple(one.actions), sum(one.rewards.tolist()), one.terminated)
        for one in record(policy, problem, seeds, rng)
    ]
