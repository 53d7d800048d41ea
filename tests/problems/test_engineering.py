"""The plants that spaql ships: their ids, equations and starts."""

import dataclasses
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spaql
from spaql.classical import tune
from spaql.evaluation import evaluate_control
from spaql.problems import Perturbation, find_dynamics, perturbed
from spaql.registration import HORIZONS

# The returns of a fixed sequence of actions from the start of seed 0, in the equations without noise. The
# first five are of a separate implementation of the same plants (the oven's differs by up to 0.002: its
# reward sees the load on the heat); test_engineering_equations.py integrates the equations of the others.
RETURNS = {
    "spaql/DCMotor-v0": -992.4093508688958,
    "spaql/Oven-v0": -723.6442315848541,
    "spaql/QuadrupleTank-v0": -98.55735125715027,
    "spaql/QuadrupleTankFixed-v0": -134.8007357872221,
    "spaql/CartPoleSwingUp-v0": 5.7707947650363325,
    "spaql/TwoTanks-v0": -312.58474223578406,
    "spaql/CSTR-v0": -569.8608320234572,
    "spaql/Furuta-v0": -0.1564899658293717,
    "spaql/BallAndBeam-v0": -202.45636962802325,
    "spaql/Crane-v0": -177.90051492828195,
    "spaql/BoostConverter-v0": -1664.9231264759974,
    "spaql/Pitch-v0": -131.80774360613123,
    "spaql/FlexibleJoint-v0": -317.26765330866203,
}


@pytest.mark.parametrize("order", ["import gymnasium, spaql", "import spaql, gymnasium"])
def test_ids_are_known_after_the_import_alone(order: str) -> None:
    code = (
        f"{order}\nimport sys\n"
        f"assert all(id in gymnasium.registry for id in {list(HORIZONS)})\n"
        "assert 'spaql.problems' not in sys.modules and 'numba' not in sys.modules\n"
        "env = gymnasium.make('spaql/Oven-v0', disable_env_checker=True)\n"
        "assert env.spec.max_episode_steps == 150, env.spec"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def played(plant: spaql.Dynamics) -> float:
    """The return of slow random actions from the start of seed 0, in plain Python."""
    start, step, _ = plant.functions
    state = start(np.random.default_rng(0))
    rng = np.random.default_rng(1000)
    low, high = np.array(list(plant.actions.values()), np.float64).T
    u = np.zeros(len(low))
    total = 0.0
    for _ in range(plant.horizon):
        u = np.clip(0.9 * u + 0.3 * rng.uniform(low, high), low, high).astype(np.float32).astype(np.float64)
        state, reward, terminated = step(state, u.copy())
        total += reward
        if terminated:
            break
    return total


@pytest.mark.parametrize("id", HORIZONS)
def test_the_equations_are_as_they_were(id: str) -> None:
    plant = find_dynamics(id)
    quiet = dataclasses.replace(plant, id=f"test/{id.partition('/')[2]}", noise={})
    assert played(quiet) == pytest.approx(RETURNS[id], abs=2e-3 if "Oven" in id else 1e-9)
    assert plant.sample_time is not None
    assert plant.horizon == HORIZONS[id]
    other = perturbed(plant)
    assert other.observation_space == plant.observation_space
    assert other.disturbances.gain == (plant.perturbation or Perturbation()).gain
    assert any(other.disturbances.noise)


@pytest.mark.parametrize(
    "id", [one if "Oven" in one else pytest.param(one, marks=pytest.mark.slow) for one in HORIZONS]
)
@pytest.mark.filterwarnings("ignore:.*WARN")  # Gymnasium wants ranges of actions around 0
def test_they_are_proper_environments(id: str) -> None:
    env = gymnasium.make(id)
    check_env(env.unwrapped, skip_render_check=True)
    problem = spaql.make_problem(id, measured=False)
    assert problem.dynamics is find_dynamics(id)
    assert list(problem.setpoints) == list(problem.states.names[: len(problem.setpoints)])
    assert bool(problem.setpoints) != bool(problem.angles)  # to follow, or to swing up
    report = spaql.check_problem(id)
    assert report, str(report)


@pytest.mark.parametrize("id", HORIZONS)
def test_perturbed_plants_stay_finite_and_within_their_ranges(id: str) -> None:
    plant = perturbed(find_dynamics(id))
    start, step, observe = plant.functions
    low, high = np.array(list(plant.actions.values()), np.float64).T
    ends = np.array(list(plant.observations.values()))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        state = start(rng)
        at_an_end = seed % 2 == 0
        for t in range(plant.horizon):
            if t % 10 == 0 or not at_an_end:
                action = (
                    np.where(rng.random(len(low)) < 0.5, low, high) if at_an_end else rng.uniform(low, high)
                )
            state, reward, terminated = step(state, action.copy())
            seen = np.array(observe(state))
            assert np.isfinite([*state, reward]).all()
            beyond = np.maximum(ends[:, 0] - seen, seen - ends[:, 1])
            assert (beyond <= 0.1 * (ends[:, 1] - ends[:, 0])).all()
            if terminated:
                break


FOLLOWED = {
    "spaql/TwoTanks-v0": ("pid", "lqr"),
    "spaql/CSTR-v0": ("pid", "lqr"),
    "spaql/BallAndBeam-v0": ("pid", "lqr"),
    "spaql/Crane-v0": ("pid", "lqr"),
    "spaql/BoostConverter-v0": ("pid", "lqr"),
    "spaql/Pitch-v0": ("pid", "lqr"),
    "spaql/FlexibleJoint-v0": ("lqr",),  # a PID controller of the link's angle alone hardly damps the spring
}


@pytest.mark.long
@pytest.mark.parametrize(("id", "method"), [(name, one) for name in FOLLOWED for one in FOLLOWED[name]])
def test_classical_controllers_follow_the_set_point(id: str, method: str) -> None:
    problem = spaql.make_problem(id, measured=False)
    random, _ = evaluate_control(spaql.RandomPolicy(problem.states, problem.actions), problem, episodes=30)
    tuned, control = evaluate_control(
        tune(problem, method, steps=60_000, seed=1).policy, problem, episodes=30
    )
    assert tuned.mean > 0.25 * random.mean
    (followed,) = control.tracking
    low, high = problem.dynamics.observations[followed.setpoint]
    assert followed.error_at_rest < 0.03 * (high - low)


@pytest.mark.long
def test_the_rotary_pendulum_is_swung_up_and_held() -> None:
    problem = spaql.make_problem("spaql/Furuta-v0", measured=False)
    tuned = tune(problem, "lqr", steps=150_000, seed=1)
    found = spaql.evaluate(tuned.policy, problem, episodes=30)
    assert found.mean > 200.0
    assert found.lengths.min() == 250


def test_the_oven_is_declared() -> None:
    oven = find_dynamics("spaql/Oven-v0")
    assert oven.delay == 3
    assert perturbed(oven).delay == (2, 4)
    state = oven.functions[0](np.random.default_rng(7))
    assert len(state) == oven.state_dims == 10
    assert 40 <= state[6] < 80
