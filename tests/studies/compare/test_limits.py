"""Limits: nearly the highest possible returns, compared with exact ones and played again."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from spaql.errors import SettingError
from spaql.evaluation import start_states
from spaql.kernels.jit import ENABLED
from spaql.policy import RandomPolicy
from spaql.problems import Dynamics, Problem, make_problem

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from limits import limit
from state_range import periodic_numbers, state_range

STEPS = 3_000_000
"""Of the fine grid."""

needs_jit = pytest.mark.skipif(not ENABLED, reason="so many steps are for compiled kernels")


def plant(name: str, step, start=lambda rng: (rng.uniform(-1.0, 1.0), 0.0), **others) -> Problem:
    settings = {"observations": {"x": (-math.inf, math.inf), "v": (-math.inf, math.inf)}, "horizon": 30}
    settings |= {"actions": {"u": (-3, 3)}} | others
    return make_problem(Dynamics(id=f"limit/{name}-v0", start=start, step=step, **settings), measured=False)


def riccati(a: np.ndarray, b: np.ndarray, q: np.ndarray, r: np.ndarray, horizon: int) -> np.ndarray:
    """The matrix P of the lowest cost x' P x over a horizon, if a step costs x' Q x + u' R u."""
    cost = np.zeros_like(q)
    for _ in range(horizon):
        gain = np.linalg.solve(r + b.T @ cost @ b, b.T @ cost @ a)
        cost = q + a.T @ cost @ (a - b @ gain)
    return cost


def step_double_integrator(state, action):
    x, v = state
    u = action[0]
    return (x + 0.1 * v, v + 0.1 * u), -(x * x + 0.1 * v * v + 0.1 * u * u), False


@needs_jit
def test_a_double_integrator_returns_within_one_percent_of_the_riccati_equation() -> None:
    problem = plant("double", step_double_integrator, horizon=50)
    starts = np.array([[0.6, 0.0], [-0.3, 0.2], [0.1, -0.4]])  # none of them saturates the action
    a, b = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    best = -np.einsum("ij,jk,ik->i", starts, riccati(a, b, np.diag([1.0, 0.1]), 0.1 * np.eye(1), 50), starts)
    found = limit(problem, starts, steps=2 * STEPS)
    assert (found.returns <= best + 1e-6).all()  # single precision of actions
    assert found.returns == pytest.approx(best, rel=0.01)
    assert found.fine.points > found.coarse.points
    assert abs(found.change) < 0.02 * abs(found.mean)


def step_explosive(state, action):
    x = state[0] * state[0] + 0.5 * action[0]
    return (x * x * x, 0.0), -abs(x), False


@needs_jit
def test_a_plant_that_can_explode_is_kept_from_it() -> None:
    # x² + u / 2 is 0 with u = -2 x²; random actions lead to infinity and to NaN.
    found = limit(plant("explosive", step_explosive), np.array([[0.8, 0.0]]), steps=200_000)
    assert -0.05 < found.mean <= 0.0


def step_race(state, action):
    x = state[0] + 0.1 * (action - 1)
    return (x, state[1] + 1.0), -1.0 + (5.0 if x > 0.95 else 0.0), x > 0.95 or x < -0.95


def test_a_terminated_episode_has_no_further_value() -> None:
    # Ten steps to the right, with a reward at the end; or one to the left, from -0.9, without one.
    problem = plant("race", step_race, actions=("left", "stay", "right"), horizon=40)
    found = limit(problem, np.array([[0.0, 0.0], [-0.9, 0.0]]), steps=100_000)
    assert found.returns.tolist() == [-5.0, -1.0]
    assert found.lengths.tolist() == [10, 1]
    assert found.actions[0, :10, 0].tolist() == [2.0] * 10
    assert not found.actions[0, 10:].any()


def test_the_angle_of_pendulum_is_found_and_no_other_number() -> None:
    for name, angles in (("Pendulum-v1", [True, False]), ("MountainCar-v0", [False, False])):
        problem = make_problem(name)
        actions = np.array([[0.0], [1.0], [2.0]])
        assert problem.dynamics is not None
        starts = np.array([problem.dynamics.start(np.random.default_rng(i)) for i in range(20)])
        seen = state_range(problem.dynamics, 200, starts, actions)
        assert periodic_numbers(problem.dynamics, seen, actions).tolist() == angles
        if name == "MountainCar-v0":  # a step from its range leads beyond what random actions reach
            assert seen[1, 0] > 0.45
            assert seen[:, 1].tolist() == [-0.07, 0.07]


@needs_jit
@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_its_actions_return_the_same_in_gymnasium(name: str) -> None:
    problem = make_problem(name, compiled=False, horizon=150)
    starts = start_states(RandomPolicy(problem.states, problem.actions), name, episodes=2)
    found = limit(make_problem(name, horizon=150), starts, steps=STEPS)
    for i, start in enumerate(starts):
        env, total = problem.make(), 0.0
        env.reset(seed=0)
        env.unwrapped.state = np.array(start)
        for action in found.actions[i, : found.lengths[i]]:
            _, reward, terminated, _, _ = env.step(action.astype(np.float32))
            total += float(reward)
        assert total == pytest.approx(found.returns[i], rel=1e-6)
        assert terminated == (found.lengths[i] < 150)


def test_a_problem_without_a_limit_says_why() -> None:
    with pytest.raises(
        SettingError, match=r"CartPole-v1 .* its state has 4 numbers, and a grid is too large"
    ):
        limit("CartPole-v1", np.zeros((1, 4)))
    with pytest.raises(
        SettingError, match=r"no compiled dynamics, and runs on gymnasium.make\('Pendulum-v1'\)"
    ):
        limit(make_problem("Pendulum-v1", compiled=False), np.zeros((1, 2)))
    five = plant("five", step_double_integrator, actions={f"u{i}": (-1, 1) for i in range(5)})
    with pytest.raises(SettingError, match="its actions have 5 numbers"):
        limit(five, np.zeros((1, 2)))
    with pytest.raises(
        SettingError, match=r"shape \(1, 3\), and must have a row for each start, of 2 numbers"
    ):
        limit("Pendulum-v1", np.zeros((1, 3)))
