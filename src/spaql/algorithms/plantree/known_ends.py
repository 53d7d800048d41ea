"""End conditions that are known as an expression, for the termination tree of learned plants."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.plantree.dynamics import CAUTIOUS
from spaql.algorithms.plantree.replay_memory import KnownEnds, Memory
from spaql.problems import Problem
from spaql.problems.expressions import Expression, identifier

_POINTS = 3000


def known_ends(memory: Memory, problem: Problem) -> KnownEnds | None:
    """Return where the end condition of a log's problem holds, in and around the data; None without one.

    The points are the same whenever they are drawn for this memory.
    """
    log = problem.log or {}
    if log.get("end") is None or not len(memory):
        return None
    names = tuple(map(identifier, problem.states.names))
    end = Expression.parse("end condition", log["end"], names)
    both = np.concatenate([memory.states, memory.nexts])
    low, high = both.min(axis=0), both.max(axis=0)
    wide = CAUTIOUS * (high - low)
    points = np.random.default_rng(0).uniform(low - wide, high + wide, (_POINTS, len(low)))
    ended = end.holds(dict(zip(names, points.T, strict=True)), _POINTS)
    return KnownEnds(points, ended, float(log["end_reward"]))
