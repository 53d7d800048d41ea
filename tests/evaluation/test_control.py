"""Measures of closed loops with set-points."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spaql
from spaql.controllers import Policy
from spaql.evaluation import (
    ClassicalComparison,
    Evaluation,
    Judged,
    beside,
    evaluate_control,
    step_response,
    step_test,
)
from spaql.evaluation.conditions import conditions_of
from spaql.evaluation.control import actuator, measure_control, settling_time
from spaql.evaluation.result_tables import actuator_cells, return_cells, tracking_cells
from spaql.tables import aligned


def test_a_response_of_first_order() -> None:
    t = 0.1 * np.arange(200)
    found = step_response(2.0 - np.exp(-t), 2.0, time_step=0.1)
    assert found.rise_time == pytest.approx(math.log(9), abs=0.15)
    assert found.overshoot == 0.0
    assert found.settling_time == pytest.approx(3.0, abs=0.1)
    assert found.error_at_rest < 1e-6
    assert found.integral_of_absolute_error == pytest.approx(1.05, abs=0.01)


def test_a_response_that_overshoots_and_one_that_never_arrives() -> None:
    t = np.arange(300)
    found = step_response(-1.0 * (1.0 - np.exp(-0.1 * t) * np.cos(0.4 * t)), -1.0)
    assert 0.4 < found.overshoot < 0.5
    assert np.isfinite(found.settling_time)
    stuck = step_response(np.full(50, 0.5), 1.0)
    assert (stuck.rise_time, stuck.settling_time, stuck.error_at_rest) == (math.inf, math.inf, 0.5)
    still = step_response(np.full(50, 1.0), 1.0)
    assert math.isnan(still.rise_time)
    assert still.error_at_rest == 0.0
    noisy = step_response(1.0 + 0.1 * np.sin(t), 1.0, noise=0.1)
    assert math.isnan(noisy.settling_time)


def test_what_an_actuator_has_to_do() -> None:
    found = actuator("u", [np.array([0.0, 1.0, 0.0, 0.5]), np.array([1.0, 1.0])], (0.0, 2.0), 0.5)
    assert found.movement == pytest.approx(2.5 / 4 / 2)
    assert found.total_variation == pytest.approx(1.25)
    assert found.reversals == pytest.approx(2 / 3.0)
    assert found.at_limit == pytest.approx(2 / 6)
    listed = actuator("u", [np.array([0.0, 2.0, 2.0])], None, 1.0)
    assert (listed.movement, listed.at_limit) == (0.5, 0.0)


def test_a_set_point_that_moves_makes_several_responses() -> None:
    problem = spaql.make_problem(
        "MountainCarContinuous-v0", observation_names=["y", "goal"], setpoints={"y": "goal"}
    )
    goal = np.repeat([1.0, 3.0], 50)
    lag = np.concatenate([1.0 - 0.5 ** np.arange(50), 3.0 - 2.0 * 0.5 ** np.arange(50)])
    found = measure_control(problem, [np.stack([lag, goal], axis=1)], [np.zeros((100, 1))])
    (one,) = found.tracking
    assert found.time_unit == "samples"
    assert (one.settled, one.overshoot) == (1.0, 0.0)
    assert one.settling_time == pytest.approx(5.0)
    assert one.integral_of_absolute_error == pytest.approx(2.0 + 4.0, rel=1e-6)


def test_an_angle_takes_the_short_way() -> None:
    problem = spaql.make_problem(
        "MountainCarContinuous-v0", observation_names=["y", "goal"], setpoints={"y": "goal"}, angles=["y"]
    )
    angle = math.pi - 0.5 ** np.arange(60)
    wrapped = np.remainder(angle + 0.5 + math.pi, math.tau) - math.pi
    rows = np.stack([wrapped, np.full(60, 0.5 - math.pi)], axis=1)
    (one,) = measure_control(problem, [rows], [np.zeros((60, 1))]).tracking
    assert one.error_at_rest < 1e-6
    assert one.overshoot < 1e-6


def test_measures_leave_the_evaluation_as_it_is() -> None:
    motor = spaql.make_problem("spaql/DCMotor-v0", measured=False)
    policy = spaql.RandomPolicy(motor.states, motor.actions)
    evaluation, control = evaluate_control(policy, motor, episodes=7, seed=3)
    assert np.array_equal(evaluation.returns, spaql.evaluate(policy, motor, episodes=7, seed=3).returns)
    assert [one.name for one in control.tracking] == ["position [rad]"]
    assert control.time_unit == "s"
    car = spaql.make_problem("MountainCar-v0", observation_names=["x", "v"], setpoints={"x": "v"})
    agent = spaql.SPAQL(car, seed=0)
    evaluation, control = evaluate_control(agent, episodes=3)
    assert np.array_equal(evaluation.returns, spaql.evaluate(agent, episodes=3).returns)
    assert len(control.actuators) == 1


def test_controllers_are_judged_in_the_same_episodes() -> None:
    oven = spaql.make_problem("spaql/Oven-v0")
    policy = spaql.RandomPolicy(oven.states, oven.actions)
    found = beside(policy, oven, methods=["pid"], conditions=["nominal"], steps=20_000, episodes=4)
    rows = found.rows
    assert [row.name for row in rows] == ["this", "pid"]
    assert np.array_equal(rows[0].evaluation.starts, rows[1].evaluation.starts)
    mean = float((rows[1].evaluation.returns - rows[0].evaluation.returns).mean())
    assert rows[1].difference == pytest.approx(mean)
    text = aligned(return_cells(rows))
    assert "20,000 steps" in text or f"{rows[1].steps:,} steps" in text
    assert "°C" in aligned(tracking_cells(rows, 0))
    assert "/ s" in aligned(actuator_cells(rows, 0))


def test_the_load_of_a_step_test_begins_after_the_step() -> None:
    oven = spaql.make_problem("spaql/Oven-v0")
    test = step_test(oven, {"random": spaql.RandomPolicy(oven.states, oven.actions)}, horizon=60)
    before = test.setpoints[0, 0]
    after = test.setpoints[-1, 0]
    assert 60 < before < after < 120
    assert test.setpoints[:, 0].tolist() == [before] * 60 + [after] * 120
    assert test.begins == (60, 120)
    assert test.responses["random"].interactions == (0.0,)
    with pytest.raises(spaql.SettingError, match="has no step test"):
        step_test(spaql.make_problem("CartPole-v1"), {})


def _two_rooms_start(rng):
    return (20.0, 20.0, rng.uniform(18.0, 22.0), rng.uniform(18.0, 22.0))


def _two_rooms_step(state, action):
    first, second, to_first, to_second = state
    moved = 0.2 * (action[0] + 0.5 * action[1] - first)
    return (first + moved, second + 0.2 * (action[1] - second), to_first, to_second), 0.0, False


def two_rooms(**changes) -> spaql.Dynamics:
    """Two temperatures, of which the first is moved by both heaters."""
    whole = {
        "id": "test/TwoRooms-v0",
        "start": _two_rooms_start,
        "step": _two_rooms_step,
        "observations": {
            "first [°C]": (0, 40),
            "second [°C]": (0, 40),
            "to first": (0, 40),
            "to second": (0, 40),
        },
        "actions": {"heater 1": (-50, 50), "heater 2": (-50, 50)},
        "horizon": 40,
        "setpoints": {"first [°C]": "to first", "second [°C]": "to second"},
    }
    return spaql.Dynamics(**(whole | changes))


class _Feedforward(Policy):
    """The actions that hold both rooms, as if the first were alone."""

    def __init__(self, problem: spaql.Problem) -> None:
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations, steps, rng):
        seen = np.asarray(observations, np.float64)
        return seen[:, 2:4].astype(np.float32)


def test_each_set_point_steps_alone_and_shows_what_it_does_to_the_others() -> None:
    problem = spaql.make_problem(two_rooms())
    test = step_test(problem, {"this": _Feedforward(problem)}, horizon=40)
    assert test.begins == (40, 80, 120)
    assert test.setpoints.shape == (160, 2)
    changes = np.flatnonzero(np.diff(test.setpoints, axis=0).any(axis=1)) + 1
    assert changes.tolist() == [40, 80]
    assert (np.diff(test.setpoints, axis=0) != 0).sum(axis=1).max() == 1  # never both at once
    found = test.responses["this"]
    step = abs(test.setpoints[-1, 1] - test.setpoints[0, 1])
    assert found.interactions[0] == pytest.approx(0.5 * step, rel=1e-3)
    assert found.interactions[1] < 1e-3
    assert found.steps[1].error_at_rest < 1e-2
    assert np.ptp(found.signals[70:80, 0]) < 1e-2  # the first has settled when the second steps


def _clocked_start(rng):
    return (20.0, rng.uniform(18.0, 22.0), 0.0)


def _clocked_step(state, action):
    x, goal, clock = state
    x += 0.2 * (action[0] - x) + 0.01 * math.sin(clock)
    return (x, goal, clock + 0.1), -abs(x - goal), False


def test_a_classical_controller_that_cannot_be_built_leaves_the_others() -> None:
    """The clock moves the plant, so that there is no steady state for a linear regulator."""
    plant = spaql.Dynamics(
        id="test/Clocked-v0",
        start=_clocked_start,
        step=_clocked_step,
        observe=lambda state: (state[0], state[1]),
        observations={"x": (0, 40), "goal": (0, 40)},
        actions={"heat": (0, 40)},
        horizon=30,
        setpoints={"x": "goal"},
    )
    problem = spaql.make_problem(plant)
    policy = spaql.RandomPolicy(problem.states, problem.actions)
    found = beside(policy, problem, methods=["lqr", "pid"], steps=5_000, episodes=10)
    assert list(found.conditions) == ["perturbed", "nominal"]
    assert [row.name for row in found.rows] == ["this", "pid"]
    assert "No steady state" in found.refused["lqr"]
    assert found.verdict.startswith("A PID controller is better here: use it (this controller: ")
    with pytest.raises(spaql.SettingError, match="did you mean pid"):
        beside(policy, problem, methods=["pdi"])


def _judged(name: str, mean: float, difference: float, ci95: float) -> Judged:
    evaluation = Evaluation(np.full(3, mean), np.ones(3, np.int64), np.zeros((3, 1)))
    return Judged(name, evaluation, None, difference=difference, difference_ci95=ci95)


@pytest.mark.parametrize(
    ("perturbed", "nominal", "verdict"),
    [
        (
            (-0.96, 0.01),
            (1.0, 0.01),
            "Compared with an LQR: 4 % better on perturbed plants, 5 % worse on the nominal plant.",
        ),
        (
            (0.05, 0.01),
            (0.1, 0.3),
            "An LQR is as good here: use it (this controller: as good on perturbed plants, as good on the "
            "nominal plant).",
        ),
        (
            (2.4, 0.01),
            (0.0, 0.0),
            "An LQR is better here: use it (this controller: 10 % worse on perturbed plants, as good on the "
            "nominal plant).",
        ),
        (
            (-0.96, 2.0),
            (0.0, 0.0),
            "Compared with an LQR: 4 % better (not significant) on perturbed plants, as good on the "
            "nominal plant.",
        ),
    ],
)
def test_the_verdict_of_a_comparison(
    perturbed: tuple[float, float], nominal: tuple[float, float], verdict: str
) -> None:
    conditions = {
        name: [_judged("this", mean - off, 0.0, 0.0), _judged("lqr", mean, off, ci95)]
        for name, mean, (off, ci95) in (("perturbed", -24.0, perturbed), ("nominal", -20.0, nominal))
    }
    assert ClassicalComparison(conditions).verdict == verdict
    assert ClassicalComparison({name: rows[:1] for name, rows in conditions.items()}).verdict == ""


def test_the_condition_that_was_designed_for_comes_first() -> None:
    oven = spaql.make_problem("spaql/Oven-v0")
    nominal, robust = (spaql.TreeSearch(oven, seed=0, nominal=one) for one in (True, False))
    assert conditions_of(robust, oven) == ("perturbed", "nominal")
    assert conditions_of(nominal, oven) == ("nominal", "perturbed")
    assert conditions_of(spaql.SPAQL("CartPole-v1", seed=0), spaql.make_problem("CartPole-v1")) == (
        "nominal",
    )
    slow = spaql.make_problem("spaql/Oven-v0", compiled=False)
    assert conditions_of(spaql.TreeSearch(slow, seed=0), slow) == ("nominal",)


def test_a_decaying_exponential_settles_when_it_has_fallen_to_the_band() -> None:
    times = np.arange(0, 5, 0.001)
    for rate, band in ((1.0, 0.05), (3.0, 0.02)):
        signal = 2.0 + np.exp(-rate * times)
        assert settling_time(signal, 2.0, band, 0.001) == pytest.approx(math.log(1 / band) / rate, abs=0.001)


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=30),
    st.floats(0.01, 3),
    st.floats(-2, 2),
)
def test_settled_is_what_its_definition_says(signal: list[float], band: float, setpoint: float) -> None:
    time = settling_time(signal, setpoint, band)
    inside = [abs(x - setpoint) <= band for x in signal]
    expected = next((float(k) for k in range(len(signal)) if all(inside[k:])), math.inf)
    assert time == expected
