"""PID and LQR: their memory, and their tuning within a number of simulator steps."""

from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.classical import PIDPolicy, tune
from spaql.classical.tuning import _paired, pid_controller
from spaql.evaluation import evaluate_control, step_test
from spaql.problems import perturbed


@pytest.fixture(scope="module")
def oven() -> spaql.Problem:
    return spaql.make_problem("spaql/Oven-v0")


def pid(
    problem: spaql.Problem, *, kp: float, ki: float, kd: float = 0.0, filter_time: float = 0.0
) -> PIDPolicy:
    gains = {"kp": kp, "ki": ki, "kd": kd, "filter_time": filter_time, "bias": 0.0}
    return PIDPolicy(problem, [(0, 1, 0)], **{name: np.array([[x]]) for name, x in gains.items()})


def test_the_law_of_a_pid_controller(oven: spaql.Problem) -> None:
    policy = pid(oven, kp=0.01, ki=0.001, kd=0.1)

    def act(temperature: float, step: int) -> float:
        return float(policy.act(np.array([[temperature, 100.0]]), np.array([step]), None)[0, 0])

    assert act(90.0, 0) == pytest.approx(0.1)
    assert act(92.0, 1) == pytest.approx(0.01 * 8 + 0.001 * 50 + 0.1 * -2 / 5, abs=1e-6)
    assert act(92.0, 2) == pytest.approx(0.01 * 8 + 0.001 * 90, abs=1e-6)
    assert act(92.0, 0) == pytest.approx(0.08)  # a new episode


def test_an_integral_waits_while_it_would_push_a_cut_action(oven: spaql.Problem) -> None:
    policy = pid(oven, kp=0.02, ki=0.01)
    for step in range(20):
        assert policy.act(np.array([[20.0, 100.0]]), np.array([step]), None)[0, 0] == 1.0
    assert policy._memory is not None
    assert policy._memory[0][0, 0] == 0.0
    policy.act(np.array([[101.0, 100.0]]), np.array([20]), None)
    assert policy._memory[0][0, 0] == 0.0  # below 0 as well


def test_episodes_of_a_batch_have_memories_of_their_own(oven: spaql.Problem) -> None:
    policy = pid(oven, kp=0.01, ki=0.001)
    rows = np.array([[90.0, 100.0], [95.0, 100.0]])
    for step in range(3):
        together = policy.act(rows, np.full(2, step), None)
    alone = pid(oven, kp=0.01, ki=0.001)
    for step in range(3):
        single = alone.act(rows[1:], np.array([step]), None)
    assert together[1] == single[0]
    assert alone.predict(rows[0], (np.array([3]),), np.array([True]))[0] == pytest.approx(0.1)


def test_a_pid_controller_and_a_regulator_are_tuned_within_the_steps(oven: spaql.Problem) -> None:
    found = {method: tune(oven, method, steps=60_000, seed=1) for method in ("pid", "lqr")}
    for method, one in found.items():
        assert one.steps <= 60_000
        evaluation, control = evaluate_control(one.policy, oven, episodes=50)
        assert evaluation.mean > -26.0, (method, evaluation)
        assert control.tracking[0].settled > 0.85
    test = step_test(oven, {name: one.policy for name, one in found.items()})
    for response in test.responses.values():
        assert response.steps[0].error_at_rest < 1e-3
        assert response.errors_under_load[0] < 1e-3  # integral action
        assert response.steps[0].rise_time < 60.0
    assert "Ti = " in found["pid"].text
    assert "integral" in found["lqr"].text
    again = tune(oven, "pid", steps=60_000, seed=1)
    assert (again.text, again.steps) == (found["pid"].text, found["pid"].steps)


@pytest.mark.slow
def test_tuning_on_a_perturbed_plant_is_for_it(oven: spaql.Problem) -> None:
    assert oven.dynamics is not None
    shaky = spaql.make_problem(perturbed(oven.dynamics))
    tuned = tune(shaky, "pid", steps=30_000)
    assert evaluate_control(tuned.policy, shaky, episodes=20)[0].mean > -45.0


def test_environments_that_are_not_compiled_are_tuned_as_well() -> None:
    problem = spaql.make_problem("spaql/Oven-v0", compiled=False, horizon=40)
    assert problem.dynamics is None
    tuned = tune(problem, "pid", steps=4_000)
    assert 2_000 < tuned.steps < 12_000
    with pytest.raises(spaql.SettingError, match="cannot be linearised"):
        tune(problem, "lqr", steps=1_000)


def test_loops_are_paired_by_relative_gains() -> None:
    crossed = np.array([[0.1, 2.0], [3.0, 0.2]])
    assert _paired([(0, 4), (1, 5)], crossed) == [(0, 4, 1), (1, 5, 0)]
    with pytest.raises(spaql.SettingError, match="2 numbers have a set-point, and there are 1"):
        _paired([(0, 4), (1, 5)], crossed[:, :1])


def test_what_cannot_be_tuned_is_said() -> None:
    with pytest.raises(spaql.SettingError, match="no classical controller 'pdi': did you mean pid"):
        tune(spaql.make_problem("spaql/Oven-v0"), "pdi")
    with pytest.raises(spaql.SettingError, match="are a list"):
        tune(spaql.make_problem("CartPole-v1"), "pid")
    with pytest.raises(spaql.SettingError, match="no set-point for a PID"):
        tune(spaql.make_problem("Pendulum-v1"), "pid")


@pytest.mark.slow
def test_a_pole_is_swung_up_and_held() -> None:
    problem = spaql.make_problem("spaql/CartPoleSwingUp-v0", measured=False)
    tuned = tune(problem, "lqr", steps=150_000, seed=2)
    assert tuned.steps <= 150_000
    assert "energy pumping" in tuned.text
    found = spaql.evaluate(tuned.policy, problem, episodes=50)
    assert found.mean > 210.0
    assert found.lengths.min() == 250


def test_a_tuned_pid_controller_is_a_controller_like_any_other(oven: spaql.Problem, tmp_path: Path) -> None:
    """It acts as the definition by which it was tuned, and can be saved and exported."""
    slow = pid(oven, kp=0.02, ki=0.0004, kd=0.3, filter_time=4.0)
    made = pid_controller(oven, slow)
    assert made is not None
    rng = np.random.default_rng(0)
    observations = 100.0 + np.cumsum(rng.normal(scale=5.0, size=(300, 2)), axis=0)
    playing = made.for_episodes(1)
    for step, row in enumerate(observations.astype(np.float32)):
        steps = np.array([step])
        np.testing.assert_allclose(
            playing.act(row[None], steps, None), slow.act(row[None], steps, None), rtol=1e-5, atol=1e-6
        )
    assert "Kp = 0.02" in str(made)
    assert tune(oven, "pid", steps=3_000).policy.remembers
    spaql.Design(made, oven).save(tmp_path / "pid.spaql")
