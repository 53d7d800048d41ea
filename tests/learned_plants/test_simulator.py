"""Simulators that were learned from data, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.utils.env_checker import check_env

import spaql
from learned_plants import ENVIRONMENTS, known
from spaql.cli import main
from spaql.learned_plants import simulator


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.filterwarnings("ignore:.*(infinity|symmetric and normalized).*")
def test_a_simulator_keeps_what_environments_promise(name: str) -> None:
    env = simulator(known(name).model)
    check_env(env.unwrapped, skip_render_check=True)
    report = spaql.check_problem(env)
    assert report, str(report)


def test_a_simulator_does_what_its_model_says() -> None:
    model = known("CartPole-v1").model
    env = simulator(model)
    episodes = []
    for _ in range(2):
        observation, _ = env.reset(seed=3)
        rng = np.random.default_rng(0)
        rows = []
        over = False
        assert any(np.array_equal(observation, start.astype(np.float32)) for start in model.starts)
        while not over:
            state = np.array(env.unwrapped.state)
            action = int(rng.integers(2))
            told = model.predict(state, action)
            observation, reward, terminated, truncated, _ = env.step(action)
            rows.append([*observation.tolist(), reward])
            assert env.unwrapped.state == pytest.approx(told.observations)
            assert terminated == (told.ends == 1.0)
            over = terminated or truncated
        episodes.append(rows)
    assert episodes[0] == episodes[1]
    pendulum = simulator(known("Pendulum-v1").model)
    pendulum.reset(seed=0)
    ends = [pendulum.step(np.zeros(1, np.float32))[2:4] for _ in range(200)]
    assert ends == [(False, False)] * 199 + [(False, True)]


def test_other_algorithms_train_in_a_simulator() -> None:
    trained = spaql.SPAQL(simulator(known("Pendulum-v1").model), seed=0, rollouts=2)
    real = spaql.evaluate(trained.learn(iterations=3, progress_bar=False), "Pendulum-v1", episodes=3)
    assert len(real.returns) == 3


def test_stable_baselines3_trains_in_a_simulator() -> None:
    baselines = pytest.importorskip("stable_baselines3")
    env = simulator(known("Pendulum-v1").model)
    learner = baselines.PPO("MlpPolicy", env, n_steps=64, n_epochs=1, seed=0, device="cpu").learn(64)
    assert env.action_space.contains(learner.predict(env.reset(seed=0)[0])[0])


def test_the_command_shows_and_judges(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    def command(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == code, result.output
        return result.output

    agent = spaql.PlanTree("CartPole-v1", seed=0, effort=0.02, leaves=4)
    agent.learn(total_timesteps=500, progress_bar=False).save("agent.spaql")
    assert command("model", "agent.spaql").startswith("# CartPole-v1: ")
    assert json.loads(command("model", "agent.spaql", "--json"))["cells"] == agent.model.n_cells
    shown = command("model", "agent.spaql", "--errors", "--episodes", "3")
    assert "3 fresh episodes of the controller" in shown
    assert "held out while learning" in shown
    found = json.loads(command("model", "agent.spaql", "--errors", "--episodes", "3", "--json"))
    assert [len(one["steps"]["1"]["error"]) for one in found["errors"]] == [5, 5]
    spaql.SPAQL("cartpole200", seed=0).save("other.spaql")
    assert "--algo plantree" in command("model", "other.spaql", code=1)
