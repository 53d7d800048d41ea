"""Changed plants, noise and delay."""

from typing import Any

import numpy as np
import pytest

import spaql
from spaql.controllers import RecordingPolicy
from spaql.evaluation import find_bench, robustness
from spaql.evaluation.conditions import disturbed, paired_episodes
from spaql.evaluation.robustness import changed
from spaql.problems import make_problem


class Echo(spaql.Policy):
    """Answers with what it observes."""

    observation_space = action_space = make_problem("pendulum").actions.space

    def act(self, observations, steps, rng):
        return observations


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
    values = {"outflow": [0.7]}
    rows = robustness(Proportional(problem), problem, values=values, noise=[0.1], disturbance=[], episodes=30)
    found = {row.change: row for row in rows}
    declared = ["outflow × 0.8", "outflow × 1.2", "outflow = 0.7", "perturbed"]
    assert list(found) == ["nominal", *declared, "noise 10 %", "one step late"]
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


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "Gymnasium"])
def test_disturbances_have_the_spread_that_was_asked_for(compiled: bool) -> None:
    """In compiled dynamics and in environments: the noise on what a policy observes, and on its actions."""
    problem = make_problem(tank(), compiled=compiled)

    def recorded(**more: Any) -> tuple[Any, Any]:
        watched = RecordingPolicy(Proportional(problem))
        where = disturbed(problem, **more)
        played = paired_episodes(watched, problem, where, episodes=50, seed=3)
        return np.array(watched.episodes(played.lengths))[:, :, 0], played

    plain, nominal = recorded()
    noisy, _ = recorded(noise=0.3)
    assert (noisy - plain)[:, 0].std() == pytest.approx(0.3, rel=0.25)
    late, _ = recorded(late=True)
    assert np.array_equal(late[:, 0], plain[:, 0])
    assert np.array_equal(late[:, 1], plain[:, 0])
    assert np.abs(late[:, 2] - plain[:, 1]).max() < 1e-6  # of the same action, to the first observation
    pushed, moved = recorded(action_noise=0.2)
    assert np.array_equal(pushed[:, 0], plain[:, 0])
    assert ((pushed - plain)[:, 1]).std() == pytest.approx(0.1 * 0.2, rel=0.25)
    assert not np.array_equal(moved.returns, nominal.returns)


def tank() -> spaql.Dynamics:
    """A tank without any disturbance."""

    def start(rng):
        return (rng.uniform(2.0, 8.0),)

    def step(state, action):
        level = state[0] + 0.1 * action[0]
        return (level,), -level, False

    return spaql.Dynamics(
        id="QuietTank-v0",
        start=start,
        step=step,
        observations={"level [m]": (-2.0, 10.0)},
        actions={"inflow": (-1.0, 1.0)},
        horizon=20,
    )


def test_noise_is_added_to_that_of_the_plant() -> None:
    problem = make_problem(noisy_tank(0.2, 0.5))
    assert disturbed(problem).dynamics is problem.dynamics
    more = disturbed(problem, noise=0.1, action_noise=[0.3], late=True).dynamics
    assert more.noise["level [m]"] == pytest.approx(0.1 * 2**0.5)
    assert (more.action_noise, more.late_observations) == ({"inflow": 0.3}, True)
    twice = disturbed(disturbed(make_problem("cartpole200"), action_noise=0.5), action_noise=0.5)
    assert set(twice.dynamics.action_noise.values()) == {0.75}
