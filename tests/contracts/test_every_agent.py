"""One suite over every algorithm: what a user may rely on, whichever they choose."""

import functools
import hashlib
import inspect
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import spaql
from spaql.agents import agent_types

QUICK = {
    "aql": {"rollouts": 3},
    "spaql": {"rollouts": 3},
    "spaql-ts": {"rollouts": 3},
    "plantree": {"effort": 0.01, "leaves": 4, "members": 2},
    "treesearch": {"max_leaves": 2},
}
PROBLEMS = ["cartpole200", "pendulum", "pendulum5"]
pytestmark = pytest.mark.parametrize("algorithm", QUICK)


def make(algorithm: str, problem: str = "cartpole200", **options) -> spaql.Agent:
    if algorithm in ("plantree", "treesearch") and problem == "pendulum5":
        pytest.skip("It writes laws for a Box of actions, and refuses to cut it into levels.")
    return agent_types()[algorithm](problem, **({"seed": 0} | QUICK[algorithm] | options))


def learned(algorithm: str, problem: str = "cartpole200", iterations: int = 4) -> spaql.Agent:
    return make(algorithm, problem).learn(iterations=iterations, progress_bar=False)


trained = functools.cache(learned)
"""One agent for all tests that only look at it."""


def digest(agent: spaql.Agent, folder: Path) -> str:
    agent.save(folder / "agent.spaql")
    return hashlib.sha256((folder / "agent.spaql").read_bytes()).hexdigest()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_same_seed_gives_the_same_bytes(algorithm: str, problem: str, tmp_path: Path) -> None:
    first = trained(algorithm, problem)
    second = learned(algorithm, problem)
    assert digest(first, tmp_path) == digest(second, tmp_path)
    assert first.history.to_csv() == second.history.to_csv()
    other = make(algorithm, problem, seed=1).learn(iterations=4, progress_bar=False)
    assert digest(other, tmp_path) != digest(first, tmp_path)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_training_that_was_interrupted_goes_on_to_the_same_bytes(
    algorithm: str, problem: str, tmp_path: Path
) -> None:
    whole = trained(algorithm, problem, 6)
    half = make(algorithm, problem).learn(
        iterations=6, callback=lambda _, row: row["iteration"] < 3, progress_bar=False
    )
    half.save(tmp_path / "half.spaql")
    resumed = spaql.load(tmp_path / "half.spaql").learn(iterations=3, progress_bar=False)
    assert digest(resumed, tmp_path) == digest(whole, tmp_path)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_saved_agent_acts_as_before(algorithm: str, problem: str, tmp_path: Path) -> None:
    agent = trained(algorithm, problem)
    agent.save(tmp_path / "agent.spaql")
    loaded = spaql.load(tmp_path / "agent.spaql")
    observations = np.random.default_rng(0).normal(0, 1, (200, agent.problem.states.dims))
    before, after = (a.predict(observations, deterministic=True)[0] for a in (agent, loaded))
    assert np.array_equal(before, after)
    assert type(loaded) is type(agent)
    assert (loaded.settings, loaded.seed) == (agent.settings, agent.seed)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_predict_takes_one_observation_or_many(algorithm: str, problem: str, deterministic: bool) -> None:
    agent = trained(algorithm, problem)
    env = agent.problem.make()
    observation, _ = env.reset(seed=0)
    action, _ = agent.predict(observation, deterministic=deterministic)
    assert env.action_space.contains(action)
    batch = np.repeat(observation[np.newaxis], 5, axis=0)
    actions, _ = agent.predict(batch, deterministic=deterministic)
    assert len(actions) == 5
    assert all(env.action_space.contains(a) for a in actions)
    if deterministic:
        assert all(np.array_equal(a, action) for a in actions)


def test_predict_leaves_its_input_alone(algorithm: str) -> None:
    observation = np.zeros(4, np.float32)
    observation.flags.writeable = False
    trained(algorithm).predict(observation)


def test_the_history_counts_every_step(algorithm: str) -> None:
    agent = trained(algorithm)
    history = agent.history
    evaluated = agent.learner_type.evaluated
    assert history["iteration"].tolist() == [0, 1, 2, 3, 4][0 if evaluated else 1 :]
    assert (np.diff(history["training_steps"]) > 0).all()
    assert (np.diff(history["best_return"]) >= 0).all()
    if not evaluated:
        assert history["interactions"].tolist() == history["training_steps"].tolist()
        if algorithm == "plantree":
            assert np.diff(history["training_steps"]).tolist() == history["mean_return"][1:].tolist()
        return
    evaluation_steps = np.diff(history["interactions"]) - np.diff(history["training_steps"])
    # CartPole's return is its number of steps.
    assert evaluation_steps.tolist() == pytest.approx((3 * history["mean_return"][1:]).tolist())
    assert {"arms", "temperature", "splits", "resets"} <= set(history.columns)


def test_time_steps_are_an_alternative_to_iterations(algorithm: str) -> None:
    agent = make(algorithm).learn(total_timesteps=50, progress_bar=False)
    steps = agent.history["training_steps"].tolist()
    assert steps[-1] >= 50
    assert all(before < 50 for before in steps[:-1])
    for budget in ({}, {"iterations": 1, "total_timesteps": 1}, {"iterations": 0}):
        with pytest.raises(spaql.SettingError):
            agent.learn(**budget)


def test_a_callback_sees_every_iteration_and_can_stop(algorithm: str) -> None:
    seen = []

    def stop_after_two(agent: spaql.Agent, row: dict[str, float]) -> bool:
        seen.append(row["iteration"])
        return len(seen) < 3

    agent = make(algorithm).learn(iterations=50, callback=stop_after_two, progress_bar=False)
    assert seen == ([0, 1, 2] if agent.learner_type.evaluated else [1, 2, 3])
    assert len(agent.history) == 3


def test_an_environment_given_as_an_object(algorithm: str, tmp_path: Path) -> None:
    env = gymnasium.wrappers.TransformReward(gymnasium.make("Pendulum-v1"), lambda r: r / 10)
    agent = make(algorithm, env, horizon=20, reference=[1, 0, 0]).learn(iterations=2, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    loaded = spaql.load(tmp_path / "a.spaql")
    assert loaded.predict(np.zeros(3))[0].shape == (1,)
    with pytest.raises(spaql.BadEnvironmentError, match="env="):
        loaded.learn(iterations=1, progress_bar=False)
    spaql.load(tmp_path / "a.spaql", env=env).learn(iterations=1, progress_bar=False)


@pytest.mark.parametrize(
    "env", ["MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "LunarLander-v3"]
)
def test_any_environment_works_with_no_code(algorithm: str, env: str) -> None:
    if env.startswith("Lunar"):
        pytest.importorskip("Box2D")
    dims = 2 if env.startswith("Mountain") else 6 if env.startswith("Acrobot") else 8
    agent = make(algorithm, env, horizon=30, reference=[0.0] * dims)
    assert agent.learn(iterations=2, progress_bar=False).iterations == 2


def test_unknown_settings_are_refused_with_the_nearest(algorithm: str) -> None:
    own = {"plantree": ("effort", "members"), "treesearch": ("leaf_price", "max_leaves")}
    name, count = own.get(algorithm, ("scaling", "rollouts"))
    with pytest.raises(spaql.SettingError, match=f"did you mean {name}"):
        make(algorithm, **{name + name[-1]: 3})
    with pytest.raises(spaql.SettingError, match="at least 1"):
        make(algorithm, **{count: 0})


def test_settings_show_in_the_signature(algorithm: str) -> None:
    parameters = inspect.signature(agent_types()[algorithm]).parameters
    assert {"env", "seed", "horizon", *QUICK[algorithm]} <= set(parameters)
    assert "settings" not in parameters


def test_the_algorithm_is_one_of_those_shipped(algorithm: str) -> None:
    shipped = {name for name, agent in agent_types().items() if agent.__module__ == "spaql.agents.registry"}
    assert shipped == set(QUICK)
