"""Limits: nearly the highest possible returns, compared with exact ones and played again."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from spaql.controllers import RandomPolicy
from spaql.kernels.jit import ENABLED
from spaql.problems import Dynamics, Problem, make_problem
from spaql.simulate.batches import fresh_states

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from limits import BOXES, Box, limit

needs_jit = pytest.mark.skipif(not ENABLED, reason="so many steps are for compiled kernels")


def plant(name: str, step, actions, horizon: int) -> Problem:
    return make_problem(
        Dynamics(
            id=f"limit/{name}-v0",
            start=lambda rng: (rng.uniform(-1.0, 1.0), 0.0),
            step=step,
            observations={"x": (-math.inf, math.inf), "v": (-math.inf, math.inf)},
            actions=actions,
            horizon=horizon,
        ),
        measured=False,
    )


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
    problem = plant("double", step_double_integrator, {"u": (-3, 3)}, horizon=50)
    starts = np.array([[0.6, 0.0], [-0.3, 0.2], [0.1, -0.4]])  # none of them saturates the action
    a = np.array([[1.0, 0.1], [0.0, 1.0]])
    b = np.array([[0.0], [0.1]])
    best = -np.einsum("ij,jk,ik->i", starts, riccati(a, b, np.diag([1.0, 0.1]), 0.1 * np.eye(1), 50), starts)
    coarse, fine = (limit(problem, Box((-1, -1), (1, 1), points), starts).returns for points in (40, 80))
    assert (fine <= best + 1e-6).all()  # single precision of actions
    assert fine == pytest.approx(best, rel=0.01)
    assert abs(fine.mean() - coarse.mean()) < 0.02 * abs(best.mean())


def step_race(state, action):
    x = state[0] + 0.1 * (action - 1)
    return (x, state[1] + 1.0), -1.0 + (5.0 if x > 0.95 else 0.0), x > 0.95 or x < -0.95


def test_a_terminated_episode_has_no_further_value() -> None:
    # Ten steps to the right, with a reward at the end; or one to the left, from -0.9, without one.
    problem = plant("race", step_race, ("left", "stay", "right"), horizon=20)
    starts = np.array([[0.0, 0.0], [-0.9, 0.0]])
    found = limit(problem, Box((-1, 0), (1, 20), 21), starts)
    assert found.returns.tolist() == [-5.0, -1.0]
    assert np.isfinite(found.actions).sum(1).tolist() == [10, 1]
    assert found.actions[0, :10].tolist() == [2.0] * 10
    assert starts.tolist() == [[0.0, 0.0], [-0.9, 0.0]]


@needs_jit
def test_turns_of_an_angle_change_nothing() -> None:
    starts = np.array([[1.0, 0.5], [1.0 + math.tau, 0.5], [1.0 - 3 * math.tau, 0.5]])
    problem = make_problem("Pendulum-v1", horizon=50)
    found = limit(problem, BOXES["Pendulum-v1"]._replace(points=30), starts)
    assert found.returns == pytest.approx(found.returns[0], rel=1e-6)


@needs_jit
@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_its_actions_return_the_same_in_gymnasium(name: str) -> None:
    problem = make_problem(name, compiled=False, horizon=150)
    starts = fresh_states(RandomPolicy(problem.states, problem.actions), make_problem(name), 2, 0)
    found = limit(make_problem(name, horizon=150), BOXES[name]._replace(points=34), starts)
    for start, actions, returned in zip(starts, found.actions, found.returns, strict=True):
        env = problem.make()
        total = 0.0
        env.reset(seed=0)
        env.unwrapped.state = np.array(start)
        played = actions[np.isfinite(actions)]
        for action in played:
            _, reward, terminated, _, _ = env.step(np.array([action], np.float32))
            total += float(reward)
        assert total == pytest.approx(returned, rel=1e-6)
        assert terminated == (len(played) < 150)
