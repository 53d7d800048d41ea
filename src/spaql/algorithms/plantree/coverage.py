"""Which states a log covers, and where its controller goes in the plant that was fitted to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.known_ends import end_condition
from spaql.algorithms.plantree.support import TestPlant
from spaql.algorithms.replay.encoding import ActionCode
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.algorithms.rule_learners import in_pairs
from spaql.controllers import Controller
from spaql.problems import Problem

_STARTS = 50
"""Most episodes in the learned plant."""


class Coverage(NamedTuple):
    """States of a log, and of its controller in the learned plant, one per row."""

    logged: Floats
    visited: Floats
    clipped: NDArray[np.bool_]
    """Whether the prediction from a visited state is cut at the edge of the data."""


def coverage_of(memory: Memory, code: ActionCode, problem: Problem, rules: Controller) -> Coverage:
    """Return what a log covers, and episodes of a controller from starts of the log."""
    plant = TestPlant(memory, code, lambda states, *_: np.zeros(len(states)), end_condition(problem))
    starts = memory.states[memory.begins]
    starts = starts[np.unique(np.linspace(0, len(starts) - 1, _STARTS).astype(np.int64))]
    steps = list(plant.steps(in_pairs(rules), starts, problem.horizon))
    return Coverage(
        np.concatenate([memory.states, memory.nexts[memory.ends - 1]]),
        np.concatenate([step.states[step.going] for step in steps]),
        np.concatenate([step.clipped[step.going] for step in steps]),
    )
