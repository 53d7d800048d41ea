"""Distillation: from look-ahead to a tree that does much the same where it goes."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.plantree.coding import ActionCode
from spaql.algorithms.plantree.exact_sums import mean
from spaql.algorithms.plantree.labels import lessons
from spaql.algorithms.plantree.memory import Floats
from spaql.algorithms.plantree.planning import Plan
from spaql.kernels.plantree.controllers import Controller, grow_choices, grow_laws
from spaql.kernels.plantree.rollout import Game

_LESSONS = 3000
"""States of the memory, and of each round in the learned plants, that are labelled."""
_ROUNDS = 3
_LEAST_CHOICES, _LEAST_LAWS = 2, 10
"""Samples of a leaf."""
_RIDGE = 0.1
_REPEATS = 2
"""Regressions more, after the first, that let go of saturated actions."""
_PUPIL = 32
"""Leaves of the trees that are followed in the learned plants."""
_PUPILS_WAY = 1
"""How their labels are said: which action is best, or weighted by what it matters."""


def distil(
    plan: Plan, game: Game, code: ActionCode, states: Floats, leaves: int, rng: np.random.Generator
) -> list[Controller]:
    """Grow controllers on the labels of look-ahead: of states, and of states that a first tree comes to.

    There is one for each way to say what the labels are.
    """
    some = states[rng.permutation(len(states))[:_LESSONS]]
    z, q = some, plan.values_of(some)
    tree = _grow(code, z, q, _PUPIL, _PUPILS_WAY)
    for around in range(_ROUNDS):
        met, values = lessons(plan, game, tree if around else None, _LESSONS, rng)
        z, q = np.concatenate([z, met]), np.concatenate([q, values])
        if around < _ROUNDS - 1:
            tree = _grow(code, z, q, _PUPIL, _PUPILS_WAY)
    return [_grow(code, z, q, leaves, way) for way in range(3 if code.listed else 2)]


def _grow(code: ActionCode, z: Floats, q: Floats, leaves: int, way: int) -> Controller:
    if code.listed:
        return grow_choices(z, _votes(q, way), leaves, _LEAST_CHOICES)
    u = code.tried()[q.argmax(axis=1)]
    weight = np.sqrt(np.ptp(q, axis=1)) if way else np.ones(len(z))
    return grow_laws(z, u, weight / (mean(weight) + 1e-12), leaves, _LEAST_LAWS, _RIDGE, _REPEATS)


def _votes(q: Floats, way: int) -> Floats:
    """Say what actions are worth: by the loss against the best, which is best, or the root of the loss."""
    loss = q.max(axis=1, keepdims=True) - q
    if way == 1:
        return np.asarray(np.arange(q.shape[1]) == q.argmax(axis=1)[:, np.newaxis], np.float64)
    return np.asarray(-np.sqrt(loss) if way else -loss)
