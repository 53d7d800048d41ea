"""Limits: nearly the highest possible returns, compared with exact ones and played again."""

import math

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.errors import BadEnvironmentError, SettingError
from spaql.evaluation import evaluate, limit, start_states
from spaql.evaluation.state_range import periodic_numbers, state_range
from spaql.kernels.jit import ENABLED
from spaql.policy import RandomPolicy
from spaql.problems import Dynamics, Problem, make_problem

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


def step_scalar(state, action):
    x, u = state[0], action[0]
    return (1.1 * x + 0.5 * u,), -(x * x + u * u), False


@needs_jit
def test_an_unstable_scalar_plant_returns_what_the_riccati_equation_says_to_three_thousandths() -> None:
    problem = plant("scalar", step_scalar, lambda rng: (rng.uniform(-1.0, 1.0),), observations={"x": (-9, 9)})
    starts = np.array([[1.0], [-0.5], [0.25]])
    cost = riccati(np.array([[1.1]]), np.array([[0.5]]), np.eye(1), np.eye(1), 30)[0, 0]
    found = limit(problem, starts, steps=STEPS)
    assert found.returns == pytest.approx(-cost * starts[:, 0] ** 2, abs=0.003)


def step_three(state, action):
    x, v, f = state
    u, w = action[0], action[1]
    cost = x * x + 0.1 * v * v + 0.1 * u * u + 0.1 * w * w
    return (x + 0.1 * v + 0.1 * w, v + 0.1 * f, 0.7 * f + 0.3 * u), -cost, False


@needs_jit
def test_three_numbers_and_two_actions_return_within_four_percent_of_the_riccati_equation() -> None:
    problem = plant(
        "three",
        step_three,
        lambda rng: (rng.uniform(-1.0, 1.0), 0.0, 0.0),
        observations=dict.fromkeys("xvf", (-math.inf, math.inf)),
        actions={"u": (-3, 3), "w": (-3, 3)},
    )
    starts = np.array([[0.5, 0.0, 0.0], [-0.3, 0.5, 0.2]])
    a = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.0, 0.0, 0.7]])
    b = np.array([[0.0, 0.1], [0.0, 0.0], [0.3, 0.0]])
    cost = riccati(a, b, np.diag([1.0, 0.1, 0.0]), 0.1 * np.eye(2), 30)
    found = limit(problem, starts, steps=20_000_000)
    assert found.periodic == (False, False, False)
    assert found.fine.outside == 0.0  # although random episodes go fifty times as far as needed
    assert found.returns == pytest.approx(-np.einsum("ij,jk,ik->i", starts, cost, starts), rel=0.04)


def step_explosive(state, action):
    x = state[0] * state[0] + 0.5 * action[0]
    return (x * x * x, 0.0), -abs(x), False


@needs_jit
def test_a_plant_that_can_explode_is_kept_from_it() -> None:
    # x² + u / 2 is 0 with u = -2 x²; random actions lead to infinity and to NaN.
    found = limit(plant("explosive", step_explosive), np.array([[0.8, 0.0]]), steps=200_000)
    assert -0.05 < found.mean <= 0.0


def step_doomed(state, action):
    x = state[0] * state[0] + 0.0 * action[0]
    return (x, 0.0), -x, False


@needs_jit
def test_a_plant_that_explodes_whatever_is_played_is_refused() -> None:
    doomed = plant("doomed", step_doomed)
    with pytest.raises(BadEnvironmentError, match=r"doomed-v0 returned -inf from the start \[3.0, 0.0\]"):
        limit(doomed, np.array([[0.5, 0.0], [3.0, 0.0]]), steps=100_000)


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


def step_almost_periodic(state, action):
    x, v = state
    return (x + 0.1 * v, v + 0.1 * action[0] - math.sin(x)), math.cos(x) - 0.001 * x, False


def test_a_number_on_which_rewards_depend_otherwise_is_no_angle() -> None:
    problem = plant("almost", step_almost_periodic)
    assert problem.dynamics is not None
    actions, seen = np.array([[-3.0], [3.0]]), np.array([[-4.0, -2.0], [4.0, 2.0]])
    assert not periodic_numbers(problem.dynamics, seen, actions).any()


@needs_jit
def test_the_same_starts_in_other_turns_return_the_same() -> None:
    starts = np.array([[2.0, 0.5], [2.0 + math.tau, 0.5], [2.0 - 2 * math.tau, 0.5]])
    found = limit("Pendulum-v1", starts, steps=STEPS)
    assert found.periodic == (True, False)
    assert found.returns == pytest.approx(np.full(3, found.returns[0]), rel=1e-3)


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


@pytest.mark.parametrize("algorithm", [spaql.SPAQL, None])
def test_the_starts_are_those_of_an_evaluation(algorithm) -> None:
    problem = make_problem("Pendulum-v1")
    policy = RandomPolicy(problem.states, problem.actions)
    agent = policy if algorithm is None else algorithm(problem, seed=0).policy
    states = start_states(agent, problem, episodes=130, seed=5)
    assert problem.dynamics is not None
    seen = np.zeros((130, 3))
    problem.dynamics.loops.observe(states, seen)
    assert np.array_equal(evaluate(agent, problem, episodes=130, seed=5).starts, seen)


@needs_jit
def test_given_levels_are_kept() -> None:
    found = limit(make_problem("Pendulum-v1", levels=3, horizon=20), np.array([[3.0, 0.0]]), steps=STEPS)
    assert set(found.actions.ravel().tolist()) <= {-2.0, 0.0, 2.0}


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


def test_the_starts_of_an_environment_that_is_copied_are_not_known() -> None:
    env = gymnasium.make("Pendulum-v1")
    env.unwrapped.max_torque = 1.0
    problem = make_problem(env)
    with pytest.raises(SettingError, match="it has no compiled dynamics, and runs on copies of the Pendulum"):
        start_states(RandomPolicy(problem.states, problem.actions), problem)


@needs_jit
def test_the_text_says_how_far_it_is_refined() -> None:
    found = limit(make_problem("MountainCar-v0"), np.array([[-0.5, 0.0], [-0.4, 0.0]]), steps=STEPS)
    assert "of 2 episodes, grid 70 x 70, which adds " in repr(found)
    assert found.steps > STEPS / 2
