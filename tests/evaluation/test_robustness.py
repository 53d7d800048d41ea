"""Changed plants, noise and delay."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete

import spaql
from spaql.evaluation import find_bench, robustness
from spaql.evaluation.robustness import changed
from spaql.policy import DelayedPolicy, DisturbedPolicy, NoisyPolicy, RecordingPolicy
from spaql.problems import make_problem


class Echo(spaql.Policy):
    """Answers with what it sees, and remembers the time steps it was told."""

    def __init__(self) -> None:
        space = make_problem("pendulum").actions.space
        self.observation_space = self.action_space = space
        self.steps: list[list[int]] = []

    def act(self, observations, steps, rng):
        self.steps.append(list(steps))
        return observations


def test_a_delayed_policy_acts_on_what_was_seen_before() -> None:
    echo = Echo()
    late = DelayedPolicy(echo)
    seen = [np.array([[t], [10.0 + t]]) for t in range(3)]
    played = [late.act(seen[t], np.full(2, t), None).tolist() for t in range(3)]
    assert played == [seen[0].tolist(), seen[0].tolist(), seen[1].tolist()]
    assert echo.steps == [[0, 0], [0, 0], [1, 1]]
    # The next episode knows nothing of the last one.
    assert late.act(seen[2], np.zeros(2, np.int64), None).tolist() == seen[2].tolist()


def test_noise_has_the_spread_that_was_asked_for() -> None:
    noisy = NoisyPolicy(Echo(), [0.5], np.random.default_rng(0))
    seen = noisy.act(np.full((20_000, 1), 3.0), np.zeros(20_000, np.int64), None)
    assert seen.mean() == pytest.approx(3.0, abs=0.02)
    assert seen.std() == pytest.approx(0.5, rel=0.02)


def test_a_recording_policy_keeps_what_it_saw() -> None:
    watched = RecordingPolicy(Echo())
    buffer = np.zeros((2, 1))
    for value in (1.0, 2.0):
        buffer[:] = value
        watched.act(buffer, np.zeros(2, np.int64), None)
    assert watched.visited.ravel().tolist() == [1.0, 1.0, 2.0, 2.0]


def test_what_depends_on_a_parameter_follows_it() -> None:
    problem = make_problem("cartpole200")
    plant = changed(problem, {"masspole": 3.0, "length": 2.0}, find_bench(problem)).make().unwrapped
    assert (plant.masspole, plant.length) == pytest.approx((0.3, 1.0))
    assert (plant.total_mass, plant.polemass_length) == pytest.approx((1.3, 0.3))
    assert problem.make().unwrapped.total_mass == pytest.approx(1.1)


def test_a_parameter_that_is_none() -> None:
    with pytest.raises(spaql.SettingError, match=r"no parameter 'mass'.*masspole"):
        changed(make_problem("cartpole200"), {"mass": 2.0})


def test_a_change_of_nothing_changes_nothing() -> None:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=1)
    agent.learn(iterations=40, progress_bar=False)
    rows = robustness(
        agent, factors=[1.0, 0.5], noise=[0.0], disturbance=[0.0], parameters=["length"], episodes=20
    )
    same, shorter, quiet, undisturbed, late = rows[1:]
    assert [row.change for row in rows] == [
        "nominal", "length × 1", "length × 0.5", "noise 0 %", "actions 0 % off", "one step late"
    ]  # fmt: skip
    for row in (rows[0], same, quiet, undisturbed):
        assert (row.mean, row.worst, row.difference, row.difference_ci95) == (
            rows[0].mean, rows[0].worst, 0.0, 0.0
        )  # fmt: skip
    for row in (shorter, late):
        assert row.difference == pytest.approx(row.mean - rows[0].mean)
        assert row.difference != 0
    assert robustness(agent, noise=[0.05], parameters=[], episodes=20) == robustness(
        agent, noise=[0.05], parameters=[], episodes=20
    )


def cart(push: float) -> spaql.Dynamics:
    def start(rng):
        return (rng.uniform(0.5, 1.0),)

    def step(state, action):
        x = state[0] + push * (1.0 if action == 1 else -1.0)
        return (x,), -abs(x), False

    return spaql.Dynamics(
        id=f"test/Cart-push{push}",
        start=start,
        step=step,
        observations={"x": (-2.0, 2.0)},
        actions=("left", "right"),
        horizon=3,
    )


def test_a_plant_of_ones_own_is_changed_by_variants() -> None:
    problem = make_problem(cart(0.0))
    policy = spaql.SPAQL(problem, seed=0).policy  # plays the first action, left
    rows = robustness(policy, problem, variants={"pushes": cart(0.1)}, noise=[], disturbance=[], episodes=10)
    assert [row.change for row in rows] == ["nominal", "pushes", "one step late"]
    # From the same x, three steps of 0.1 towards 0 save 0.1 + 0.2 + 0.3.
    assert rows[1].difference == pytest.approx(0.6)
    assert rows[1].difference_ci95 == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(spaql.SettingError, match="variants"):
        robustness(policy, problem, parameters=["push"], episodes=2)


def test_whole_numbers_are_seen_as_whole_numbers() -> None:
    """Noise far below 1 changes no whole number: nothing is cut off towards 0, and nothing wraps around."""
    echo = Echo()
    seen = np.arange(256, dtype=np.uint8)[:, np.newaxis]
    noisy = NoisyPolicy(echo, [0.1], np.random.default_rng(0))
    assert noisy.act(seen, np.zeros(256, np.int64), None).tolist() == seen.tolist()
    loud = NoisyPolicy(echo, [40.0], np.random.default_rng(0)).act(seen, np.zeros(256, np.int64), None)
    assert np.abs(loud.astype(int) - seen).max() < 200
    echo.observation_space = Discrete(4, start=2)
    listed = np.array([2, 3, 4, 5] * 50)
    drawn = NoisyPolicy(echo, [1.0], np.random.default_rng(0)).act(listed, np.zeros(200, np.int64), None)
    assert set(drawn.tolist()) == {2, 3, 4, 5}


def test_noise_on_observations_with_rows() -> None:
    noisy = NoisyPolicy(Echo(), np.arange(6.0), np.random.default_rng(0))
    seen = noisy.act(np.zeros((1000, 2, 3)), np.zeros(1000, np.int64), None)
    assert seen.std(axis=0).ravel() == pytest.approx(np.arange(6.0), rel=0.1)


def test_actions_are_disturbed_within_their_bounds() -> None:
    echo = Echo()  # of Pendulum's torques, -2 to 2
    given = np.full((5000, 1), 1.9, np.float32)
    played = DisturbedPolicy(echo, 0.1, [[-2.0], [2.0]], np.random.default_rng(0)).act(
        given, np.zeros(5000, np.int64), None
    )
    assert played.dtype == np.float32
    assert played.max() == 2.0
    assert (played < 1.9).mean() == pytest.approx(0.5, abs=0.03)
    echo.action_space = Discrete(4)
    listed = DisturbedPolicy(echo, 0.4, [[0.0]], np.random.default_rng(0)).act(
        np.zeros(5000, np.int64), np.zeros(5000, np.int64), None
    )
    assert (listed != 0).mean() == pytest.approx(0.4 * 3 / 4, abs=0.03)


def noisy_tank(gain: float, parameter: float | tuple[float, float]) -> spaql.Dynamics:
    """A tank with a load and noise, whose starts spread returns; its outflow is a declared parameter."""

    def start(rng):
        return (rng.uniform(0.0, 8.0),)

    def step(state, action, parameters):
        (level,) = state
        level += 0.1 * (action[0] - parameters[0] * level)
        return (level,), -level, False

    return spaql.Dynamics(
        id="PairedTank-v0",
        start=start,
        step=step,
        observations={"level [m]": (-2.0, 10.0)},
        actions={"inflow": (-1.0, 1.0)},
        horizon=20,
        noise={"level [m]": 0.1},
        parameters={"outflow": parameter},
        perturbation=spaql.problems.Perturbation(gain=gain),
    )


@pytest.mark.parametrize("parameter", [0.5, (0.4, 0.6)])
def test_a_perturbed_plant_has_the_starts_and_the_noise_of_the_nominal_one(parameter: Any) -> None:
    problem = make_problem(noisy_tank(1e-9, parameter))
    rows = robustness(Proportional(problem), problem, noise=[], disturbance=[], episodes=30)
    found = {row.change: row for row in rows}
    assert list(found) == ["nominal", "outflow × 0.8", "outflow × 1.2", "perturbed", "one step late"]
    assert abs(found["perturbed"].difference) < 1e-5
    assert found["perturbed"].difference_ci95 < 1e-5
    if parameter == 0.5:  # an outflow that is proportional to the level
        assert found["outflow × 0.8"].difference < 0 < found["outflow × 1.2"].difference
        assert found["outflow × 0.8"].difference_ci95 < 0.5 * found["nominal"].ci95


class Proportional(spaql.Policy):
    """Empties a tank the faster, the fuller it seems to be."""

    def __init__(self, problem: spaql.Problem) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations: Any, steps: Any, rng: Any) -> Any:
        return np.clip(-0.1 * observations, -1.0, 1.0).astype(np.float32)
