"""The gains of the textbook's controllers against Riccati's equation for Gymnasium's own plants."""

from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

from spaql.plugins.compare.baselines.classical import _CART_POLE_GAINS, _PENDULUM_GAINS

SMALL = 1e-4


def pendulum(state: np.ndarray, torque: float) -> np.ndarray:
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.state = state
    env.step(np.array([torque]))
    return np.asarray(env.state)


def cart_pole(state: np.ndarray, force: float) -> np.ndarray:
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset()
    env.state = state
    env.force_mag = force
    env.step(1)
    return np.asarray(env.state)


def gains(step: Callable[[np.ndarray, float], np.ndarray], q: np.ndarray, r: float) -> np.ndarray:
    """Linearise about rest upright, and solve the quadratic problem."""
    rest = np.zeros(len(q))
    a = np.stack([(step(x, 0.0) - step(-x, 0.0)) / (2 * SMALL) for x in SMALL * np.eye(len(q))], axis=1)
    b = ((step(rest, SMALL) - step(rest, -SMALL)) / (2 * SMALL))[:, np.newaxis]
    p = solve_discrete_are(a, b, q, np.array([[r]]))
    return np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)[0]


def test_the_pendulum_is_held_by_the_best_gains_for_its_reward() -> None:
    assert gains(pendulum, np.diag([1.0, 0.1]), 0.001) == pytest.approx(_PENDULUM_GAINS, abs=0.01)


def test_the_cart_and_pole_are_pushed_as_all_weights_one_say() -> None:
    found = gains(cart_pole, np.eye(4), 1.0)
    assert -found == pytest.approx(_CART_POLE_GAINS, abs=0.01)
