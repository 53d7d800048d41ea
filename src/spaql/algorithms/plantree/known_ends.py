"""End conditions that are known as an expression, for the termination tree of learned plants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.dynamics import CAUTIOUS
from spaql.algorithms.replay.memory import Floats, KnownEnds, Memory
from spaql.problems import Problem
from spaql.program.parser import Formula
from spaql.spaces import identifier

_POINTS = 3000


def known_ends(memory: Memory, problem: Problem) -> KnownEnds | None:
    """Return where the end condition of a log's problem holds, in and around the data; None without one.

    The points are the same whenever they are drawn for this memory.
    """
    log = problem.log or {}
    if log.get("end") is None or not len(memory):
        return None
    both = np.concatenate([memory.states, memory.nexts])
    low = both.min(axis=0)
    high = both.max(axis=0)
    wide = CAUTIOUS * (high - low)
    points = np.random.default_rng(0).uniform(low - wide, high + wide, (_POINTS, len(low)))
    return KnownEnds(points, end_condition(problem)(points), float(log["end_reward"]))


def end_condition(problem: Problem) -> Callable[[Floats], NDArray[np.bool_]]:
    """Return the function that says in which states, one per row, an episode of a log's problem ends."""
    text = (problem.log or {}).get("end")
    if text is None:
        return lambda states: np.zeros(len(states), np.bool_)
    names = tuple(map(identifier, problem.states.names))
    end = Formula.parse("end condition", text, names)
    return lambda states: end.holds(dict(zip(names, states.T, strict=True)), len(states))
