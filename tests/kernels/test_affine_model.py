"""The regulator and the episodes of an affine model, against slow and obvious ones."""

import math

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from spaql.kernels.affine_model import (
    DISTANCE,
    LEVELS,
    PLANES,
    QUADRATIC,
    RANGE,
    SCORES,
    play_laws,
    regulator,
)


def test_the_regulator_is_that_of_the_riccati_equation():
    rng = np.random.default_rng(0)
    a = np.array([[1.0, 0.1], [-0.2, 0.95]])
    b = np.array([[0.0], [0.3]])
    model = np.zeros((4, 3))  # rows: two observations, 1, an action
    model[:2, :2] = a.T
    model[2, 2] = 1.0
    model[3, :2] = b[:, 0]
    cost = np.diag([1.0, 0.3, 0.0, 0.2])
    values = np.empty((4, 4))
    gains = np.empty((1, 3))
    regulator(model, cost, 1.0, 0.0, 3000, values, gains)
    p = solve_discrete_are(a, b, np.diag([1.0, 0.3]), np.array([[0.2]]))
    expected = np.linalg.solve(0.2 + b.T @ p @ b, b.T @ p @ a)
    assert gains[0, :2] == pytest.approx(expected[0], rel=1e-9)
    assert gains[0, 2] == 0.0
    x = rng.normal(size=2)
    u = -gains[0, :2] @ x
    z = np.array([*x, 1.0, u])
    assert z @ values @ z == pytest.approx(x @ p @ x, rel=1e-9)


def slow_return(kind, half, law, start, noise, motion, low, high, after, shape, form, best):
    """Play one law from one start."""
    x = start
    total = 0.0
    for step_noise in noise:
        action = law @ np.append(x, 1.0)
        if kind == SCORES:
            action = np.eye(len(action))[np.argmax(action)]
        else:
            action = np.clip(action, -1.0, 1.0)
            if kind == LEVELS:
                action = np.floor((action + 1.0) * half + 0.5) / half - 1.0
        moved = np.clip(np.concatenate([x, [1.0], action]) @ motion + step_noise, low, high)
        z = np.concatenate([moved if after else x, [1.0], action])
        if shape == PLANES:
            total += (form @ z).min()
        elif shape == QUADRATIC:
            total += best + z @ form @ z
        else:
            total += best - math.sqrt(max(-(z @ form @ z), 0.0))
        x = moved
    return total


@pytest.mark.parametrize("kind", [RANGE, LEVELS, SCORES])
@pytest.mark.parametrize("shape", [QUADRATIC, DISTANCE, PLANES])
@pytest.mark.parametrize("after", [False, True])
def test_laws_are_played_as_slowly(kind, shape, after):
    rng = np.random.default_rng([kind, shape, after])
    states = 2
    actions = 3
    steps = 7
    starts = 4
    width = states + 1 + actions
    laws = rng.normal(size=(5, actions, states + 1))
    begun = rng.normal(size=(starts, states))
    noise = 0.1 * rng.normal(size=(steps, starts, states))
    motion = 0.4 * rng.normal(size=(width, states))
    low = np.full(states, -1.5)
    high = np.full(states, 1.2)
    form = rng.normal(size=(3, width)) if shape == PLANES else -np.diag(rng.random(width))
    returns = np.empty(5)
    play_laws(kind, 1.5, laws, begun, noise, motion, low, high, after, shape, form, 0.3, returns)
    for law, found in zip(laws, returns, strict=True):
        each = [
            slow_return(kind, 1.5, law, begun[i], noise[:, i], motion, low, high, after, shape, form, 0.3)
            for i in range(starts)
        ]
        assert found == pytest.approx(np.mean(each), rel=1e-12)
