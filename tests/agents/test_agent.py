import math
from contextlib import closing
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import spaql
from spaql.simulate import EpisodeRunner


class Faulty(gymnasium.Env):
    """An environment that gives one bad number at its third step."""

    observation_space = spaces.Box(-1.0, 1.0, (2,))
    action_space = spaces.Discrete(2)

    def __init__(self, observation: float = 0.0, reward: float = 0.0) -> None:
        self.bad = observation, reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        observation, reward = self.bad if self.steps == 3 else (0.0, 0.0)
        return np.array([0.0, observation], np.float32), reward, False, False, {}


@pytest.mark.parametrize(
    ("env", "message"),
    [(Faulty(observation=np.nan), "NaN"), (Faulty(reward=np.nan), "nan"), (Faulty(reward=np.inf), "inf")],
)
def test_bad_numbers_are_named(env: gymnasium.Env, message: str) -> None:
    agent = spaql.SPAQL(env, horizon=5, rollouts=1, seed=0)
    with pytest.raises(spaql.BadEnvironmentError, match=message):
        agent.learn(iterations=1, progress_bar=False)
    with (
        closing(EpisodeRunner(agent.problem, 1)) as runner,
        pytest.raises(spaql.BadEnvironmentError, match="step 3"),
    ):
        runner.train(agent._learner, np.random.default_rng(0))


def test_large_returns_are_no_fault_while_each_is_finite() -> None:
    agent = spaql.SPAQL(Faulty(reward=1e308), horizon=5, rollouts=3, seed=0)
    assert spaql.evaluate(agent, episodes=3).returns.tolist() == [1e308] * 3


@pytest.mark.parametrize("compiled", [True, False])
def test_past_the_horizon_aql_expects_nothing(compiled: bool) -> None:
    """With a horizon of one step, Q of the only visit is r + 0 + xi: the learning rate is 1."""
    agent = spaql.AQL("CartPole-v1", horizon=1, scaling=20, rollouts=1, seed=0, compiled=compiled)
    agent.learn(iterations=1, progress_bar=False)
    assert agent.policy.partition.balls.q[0] == 1.0 + 0.0 + 20.0


def test_an_evaluation_is_repeatable_and_complete() -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=5).learn(iterations=5, progress_bar=False)
    a, b = (spaql.evaluate(agent, episodes=130, seed=3) for _ in range(2))
    assert a.returns.tolist() == b.returns.tolist()
    assert a.returns.tolist() == a.lengths.tolist()  # CartPole pays 1 a step
    assert len(a.returns) == len(a.starts) == 130
    assert len(np.unique(a.starts[:, 0])) == 130
    assert a.worst[0].total == a.returns.min()
    assert a.steps == a.lengths.sum()
    assert spaql.evaluate(agent, episodes=130, seed=4).returns.tolist() != a.returns.tolist()


def test_partitions_are_evaluated_by_drawn_actions_unless_they_are_to_be_deterministic() -> None:
    agent = spaql.SPAQL("pendulum", seed=0, rollouts=2).learn(iterations=6, progress_bar=False)
    default, drawn, fixed = (
        spaql.evaluate(agent, episodes=5, **given)
        for given in ({}, {"deterministic": False}, {"deterministic": True})
    )
    assert default.returns.tolist() == drawn.returns.tolist()
    assert np.all(default.returns != fixed.returns)
    tree = spaql.controller_of(agent)
    given = spaql.evaluate(tree, agent.problem, episodes=5)
    fixed = spaql.evaluate(tree, agent.problem, episodes=5, deterministic=True)
    assert given.returns.tolist() == fixed.returns.tolist()


def test_vector_episodes_equal_single_ones() -> None:
    """Stepped together or one by one: the same starts and actions give the same returns."""
    problem = spaql.make_problem("pendulum5")
    agent = spaql.SPAQL(problem, seed=0, rollouts=2).learn(iterations=6, progress_bar=False)
    together = spaql.evaluate(agent, episodes=5, deterministic=True)
    env = problem.make()
    for start, total in zip(together.starts, together.returns, strict=True):
        observation, _ = env.reset(seed=0)
        env.unwrapped.state = np.array([np.arctan2(start[1], start[0]), start[2]])
        observation = np.float32(start)
        alone = 0.0
        for _ in range(200):
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, *_ = env.step(action)
            alone += reward
        assert alone == pytest.approx(total, rel=1e-3)


def test_an_evaluation_is_shown_in_a_line() -> None:
    problem = spaql.make_problem("cartpole200")
    result = spaql.evaluate(spaql.RandomPolicy(problem.states, problem.actions), problem, episodes=200)
    shown = repr(result)
    worst = result.worst[0]
    assert len(shown.splitlines()) == 1
    assert f"{result.mean:.1f} ± {result.ci95:.1f} of 200 episodes" in shown
    assert f"worst {worst.total:.1f} from [{worst.start[0]:.4g}, " in shown


def test_evaluate_refusals() -> None:
    problem = spaql.make_problem("cartpole200")
    policy = spaql.RandomPolicy(problem.states, problem.actions)
    with pytest.raises(spaql.SettingError, match="give env"):
        spaql.evaluate(policy)
    with pytest.raises(spaql.SettingError, match=r"episodes is 0, .* at least 1"):
        spaql.evaluate(policy, problem, episodes=0)


def test_one_episode_is_shown_without_an_interval() -> None:
    problem = spaql.make_problem("cartpole200")
    result = spaql.evaluate(spaql.RandomPolicy(problem.states, problem.actions), problem, episodes=1)
    assert math.isnan(result.ci95)
    assert "±" not in repr(result)


def test_a_drawn_seed_is_kept() -> None:
    first = spaql.SPAQL("cartpole200", rollouts=2).learn(iterations=2, progress_bar=False)
    again = spaql.SPAQL("cartpole200", rollouts=2, seed=first.seed).learn(iterations=2, progress_bar=False)
    assert first.history.to_csv() == again.history.to_csv()
    with pytest.raises(spaql.SettingError, match=r"seed is -1, .* at least 0"):
        spaql.SPAQL("cartpole200", seed=-1)


def test_scaled_rewards_leave_returns_raw() -> None:
    scaled = spaql.SPAQL("pendulum", reward_range=(-16.3, 0.0), rollouts=2, seed=0)
    assert scaled.learn(iterations=2, progress_bar=False).history["mean_return"].max() < -100
    with pytest.raises(spaql.SettingError, match="plantree does not scale rewards"):
        spaql.PlanTree("pendulum", reward_range=(-16.3, 0.0))


def test_loading_checks_the_algorithm(tmp_path) -> None:
    agent = spaql.AQL("cartpole200", rollouts=1, seed=0).learn(iterations=1, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    assert isinstance(spaql.AQL.load(tmp_path / "a.spaql"), spaql.AQL)
    with pytest.raises(spaql.SettingError, match="contains AQL, not SPAQL"):
        spaql.SPAQL.load(tmp_path / "a.spaql")


def test_learn_counts_time_steps_first_as_stable_baselines3_does() -> None:
    agent = spaql.SPAQL("cartpole200", seed=0, rollouts=1).learn(30, progress_bar=False)
    named = spaql.SPAQL("cartpole200", seed=0, rollouts=1).learn(total_timesteps=30, progress_bar=False)
    assert agent.training_steps >= 30 > agent.history["training_steps"][-2]
    assert agent.to_bytes() == named.to_bytes()
    with pytest.raises(TypeError, match="positional"):
        agent.learn(30, 2)  # type: ignore[misc]


@pytest.mark.parametrize("make", [spaql.AQL, spaql.SPAQL, spaql.SPAQLTS])
def test_the_policy_is_kept_until_learning_goes_on(make: type[spaql.Agent], tmp_path: Path) -> None:
    """So that `predict` does not make it anew at each call; every way to change the learner drops it."""
    agent = make("cartpole200", seed=0, rollouts=1, horizon=20)
    untrained = agent.policy
    assert agent.policy is untrained
    points = np.random.default_rng(0).normal(scale=0.2, size=(200, 4))
    steps = np.arange(200) % 20

    def kept_is_fresh(one: spaql.Agent, row: dict[str, float]) -> None:
        kept, fresh = (policy.act(points, steps, None) for policy in (one.policy, one._learner.policy))
        assert np.array_equal(kept, fresh)

    agent.learn(iterations=30, callback=kept_is_fresh, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    loaded = spaql.load(tmp_path / "a.spaql")
    fresh = agent._learner.policy.act(points, steps, None)
    for policy in (agent.policy, loaded.policy):
        assert np.array_equal(policy.act(points, steps, None), fresh)
    tried = make("cartpole200", seed=0, rollouts=1, horizon=20)
    before = tried.policy
    tried.learn(iterations=2, tries=2, selection_episodes=2, progress_bar=False)
    assert tried.policy is not before
    assert tried.policy.partition.arms == tried._learner.policy.partition.arms


def test_reading_the_policy_of_plantree_starts_no_search(tmp_path: Path) -> None:
    agent = spaql.PlanTree("cartpole200", seed=0, effort=0.02)
    before = agent.to_bytes()
    assert agent.policy.n_leaves == 1  # idle: it has seen nothing
    assert agent.to_bytes() == before
    agent.learn(600, callback=lambda one, row: row["training_steps"] < 300, progress_bar=False)
    stopped = agent.to_bytes()
    with pytest.raises(spaql.SettingError, match=r"stopped after \d+ steps, within its budget.*conclude"):
        _ = agent.policy
    assert agent.to_bytes() == stopped
    agent.save(tmp_path / "stopped.spaql")
    tree = agent.conclude()
    assert agent.policy is tree
    assert str(spaql.load(tmp_path / "stopped.spaql").conclude()) == str(tree)
    assert spaql.load(tmp_path / "stopped.spaql").predict(np.zeros(4))[0] == tree.predict(np.zeros(4))[0]
    assert (
        spaql.evaluate(tmp_path / "stopped.spaql", episodes=2).mean == spaql.evaluate(agent, episodes=2).mean
    )


def test_an_episode_that_the_budget_cuts_is_never_the_best_seen(tmp_path: Path) -> None:
    agent = spaql.PlanTree("MountainCar-v0", seed=0, effort=0.02)  # its return is minus the steps
    agent.learn(total_timesteps=50, progress_bar=False)
    assert np.isnan(agent.history["mean_return"]).tolist() == [True]
    assert np.isnan(agent.history["best_return"]).tolist() == [True]
    agent.save(tmp_path / "cut.spaql")
    agent = spaql.load(tmp_path / "cut.spaql").learn(total_timesteps=250, progress_bar=False)
    assert agent.history["mean_return"][1:].tolist() == pytest.approx([-200.0, np.nan], nan_ok=True)
    assert agent.history["best_return"][1:].tolist() == [-200.0, -200.0]
    assert agent.history["training_steps"].tolist() == [50, 250, 300]
    assert agent.history.n_returns == 1
