"""Fresh episodes of a policy, in batches with separate random streams."""

from __future__ import annotations

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.problems import Problem
from spaql.simulate.returns import Evaluation
from spaql.simulate.runner import EpisodeRunner
from spaql.simulate.seeds import Purpose, generator

TOGETHER = 100
"""Episodes of a batch."""


def fresh_episodes(
    policy: Policy,
    problem: Problem,
    episodes: int,
    seed: int,
    purpose: Purpose = Purpose.EVALUATION,
    *,
    together: int = TOGETHER,
    deterministic: bool = False,
) -> Evaluation:
    """Return the evaluation of fresh episodes; the same seed and purpose repeat the same ones."""
    parts = []
    for index, first in enumerate(range(0, episodes, together)):
        with closing(EpisodeRunner(problem, min(together, episodes - first))) as runner:
            rng = generator(seed, purpose, index)
            parts.append(runner.evaluate(policy, rng, deterministic=deterministic))
    return Evaluation(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.starts for part in parts]),
        problem.constraints,
        np.concatenate([part.broken for part in parts]) if problem.constraints else None,
    )


def fresh_states(policy: Policy, problem: Problem, episodes: int, seed: int) -> NDArray[np.float64]:
    """Return the states in which compiled dynamics start the `fresh_episodes` of an evaluation."""
    return np.concatenate(
        [
            EpisodeRunner(problem, min(TOGETHER, episodes - first)).start_states(
                policy, generator(seed, Purpose.EVALUATION, index)
            )
            for index, first in enumerate(range(0, episodes, TOGETHER))
        ]
    )
