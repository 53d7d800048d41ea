"""The plants that spaql ships: their ids, equations and starts."""

import dataclasses
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spaql
from spaql.problems import find_dynamics, perturbed
from spaql.registration import HORIZONS

# The returns of a fixed sequence of actions from the start of seed 0, in the equations without noise: of a
# separate implementation of the same plants (the oven's differs by up to 0.002: its reward sees the load on
# the heat).
RETURNS = {
    "spaql/DCMotor-v0": -992.4093508688958,
    "spaql/Oven-v0": -723.6442315848541,
    "spaql/QuadrupleTank-v0": -98.55735125715027,
    "spaql/QuadrupleTankFixed-v0": -134.8007357872221,
    "spaql/CartPoleSwingUp-v0": 5.7707947650363325,
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
    state, rng = start(np.random.default_rng(0)), np.random.default_rng(1000)
    low, high = np.array(list(plant.actions.values()), np.float64).T
    u, total = np.zeros(len(low)), 0.0
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
    assert other.disturbances.gain == 0.2
    assert any(other.disturbances.noise)


@pytest.mark.parametrize("id", [pytest.param("spaql/DCMotor-v0", marks=pytest.mark.slow), "spaql/Oven-v0"])
@pytest.mark.filterwarnings("ignore:.*WARN")  # Gymnasium wants ranges of actions around 0
def test_they_are_proper_environments(id: str) -> None:
    env = gymnasium.make(id)
    check_env(env.unwrapped, skip_render_check=True)
    problem = spaql.make_problem(id)
    assert problem.dynamics is find_dynamics(id)
    assert list(problem.setpoints) == [next(iter(problem.states.names))]


def test_the_oven_is_declared() -> None:
    oven = find_dynamics("spaql/Oven-v0")
    assert oven.delay == 3
    assert perturbed(oven).delay == (2, 4)
    state = oven.functions[0](np.random.default_rng(7))
    assert len(state) == oven.state_dims == 10
    assert 40 <= state[6] < 80
