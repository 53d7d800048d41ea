"""Pictures of learned plants."""

import math
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.figures import compute_plant, save_as, svg
from spaql.figures.drawing import read, write

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow  # all share a study or a training


@pytest.fixture(scope="module")
def pendulum() -> spaql.PlanTree:
    agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.01, leaves=4, members=2)
    return agent.learn(total_timesteps=600, progress_bar=False)


def test_cells_and_errors_are_those_of_the_model(pendulum: spaql.PlanTree, tmp_path: Path) -> None:
    record = compute_plant(pendulum, "angle", "speed", episodes=4, resolution=20, y_limits=(-8.0, 8.0))
    model = pendulum.model
    for i, j in np.ndindex(20, 20):
        angle = -math.pi + (j + 0.5) / 20 * 2 * math.pi
        speed = -8.0 + (i + 0.5) / 20 * 16.0
        assert record.cells[i][j] == model.find([math.cos(angle), math.sin(angle), speed])[0]
    assert f"its {model.n_cells} cells" in record.note
    assert "2 episodes of the controller\nand 2 of random actions" in record.note
    assert len(record.at_x) == len(record.at_y) == len(record.error) == 800  # of 2,000 at most
    env = pendulum.problem.make()
    observation, _ = env.reset(seed=0)
    assert record.at_y[0] == pytest.approx(observation[2])
    action = pendulum.predict(observation, deterministic=True)[0]
    after = env.step(action)[0]
    missed = model.predict(observation, action).observations - after
    assert record.error[0] == pytest.approx(float(np.sqrt(np.mean((missed / _spread(pendulum)) ** 2))))
    write(record, tmp_path / "plant.json")
    assert read(tmp_path / "plant.json") == record
    assert svg(record) == svg(record)
    save_as(record, tmp_path / "plant.png")


def _spread(agent: spaql.PlanTree) -> np.ndarray:
    """The deviation of the observations in which the steps of the picture were taken."""
    from spaql.simulate import record

    episodes = record(agent.policy, agent.problem, range(2))
    policy = spaql.RandomPolicy(agent.problem.states, agent.problem.actions)
    episodes += record(policy, agent.problem, range(2, 4), np.random.default_rng(0))
    return np.concatenate([one.observations[:-1] for one in episodes]).std(axis=0)


def test_what_cannot_be_shown_is_said(pendulum: spaql.PlanTree) -> None:
    with pytest.raises(spaql.SettingError, match="give two"):
        compute_plant(pendulum, "angle", "speed", episodes=1)
    with pytest.raises(spaql.SettingError, match="no observation 'height'"):
        compute_plant(pendulum, "height", "speed", episodes=2)
