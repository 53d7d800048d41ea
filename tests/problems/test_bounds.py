"""Plants that leave their declared bounds, or fail: what was played counts, is saved, and is reported."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main

MIXER = """
import spaql


def start(rng):
    return rng.uniform(30.0, 50.0), rng.uniform(0.8, 1.2)


def step(state, action):
    temperature, level = state
    hot, cold = action
    temperature += 0.1 * (40.0 + 40.0 * (hot - cold) - temperature)
    level += 0.05 * (hot + cold - level)
    return (temperature, level), abs(temperature - 40.0), False


spaql.Dynamics(
    id="Mixer-v0",
    start=start,
    step=step,
    observations={"temperature [°C]": (10.0, 70.0), "level [m]": (0.0, 2.0)},
    actions={"hot": (0.0, 1.0), "cold": (0.0, 1.0)},
    horizon=60,
)
"""
"""A plant that leaves its declared range if all is hot and nothing cold: 80 °C."""


@pytest.fixture
def mixer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bounds_mixer", raising=False)
    (tmp_path / "bounds_mixer.py").write_text(MIXER, encoding="utf-8")


@pytest.mark.usefixtures("mixer")
def test_the_check_finds_bounds_that_constant_actions_leave() -> None:
    finding = spaql.check_problem("bounds_mixer:Mixer-v0")["observations are within bounds"]
    assert finding.outcome == "failed"
    assert "temperature [°C] was 3.788, beyond its declared range of 10 to 70" in finding.why


@pytest.mark.usefixtures("mixer")
@pytest.mark.filterwarnings("always::spaql.errors.SpaqlWarning")
def test_a_training_that_leaves_the_bounds_is_saved_and_says_so() -> None:
    words = ("train", "bounds_mixer:Mixer-v0", "--steps", "300", "--effort", "0.02", "--seed", "0")
    trained = CliRunner().invoke(main, [*words, "--gymnasium", "--out", "run"])
    assert trained.exit_code == 0, trained.output
    assert "Warning: In training, temperature [°C] was " in trained.stderr


FAILING = """
import gymnasium
import numpy as np

TAKEN = [0]


class Failing(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        TAKEN[0] += 1
        reward = float("nan") if TAKEN[0] == 170 else float(action)
        return np.zeros(1, np.float32), reward, False, False, {}


gymnasium.register("Failing-v0", Failing, max_episode_steps=50)
"""


def test_what_was_learned_before_an_environment_fails_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "failing_plant.py").write_text(FAILING, encoding="utf-8")
    words = ("train", "failing_plant:Failing-v0", "--steps", "600", "--effort", "0.02")
    trained = CliRunner().invoke(main, [*words, "--seed", "0", "--quiet", "--out", "run"])
    assert trained.exit_code == 1
    assert "At step 20 of a training episode, failing_plant:Failing-v0 gave the reward nan" in trained.stderr
    assert "The result of the 150 steps before is saved in run." in trained.stderr
    assert len(spaql.load("run").history) == 3
