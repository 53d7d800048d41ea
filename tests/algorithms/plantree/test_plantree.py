"""PlanTree as a whole: a problem with a known solution, the account of steps, and the same bytes."""

import hashlib
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box
from scipy.linalg import solve_discrete_are

import spaql
from spaql.algorithms.plantree.rule_trees import rules_from, rules_to, within_space
from spaql.cli import main

QUICK = {"effort": 0.02, "leaves": 8}


class Regulator(gymnasium.Env):
    """A damped oscillator with quadratic cost, whose best controller is Riccati's."""

    observation_space = Box(-10.0, 10.0, (2,), np.float64)
    action_space = Box(-2.0, 2.0, (1,), np.float64)
    a = np.array([[0.98, 0.2], [-0.2, 0.94]])
    b = np.array([[0.0], [0.2]])
    q = np.diag([1.0, 0.5])
    r = np.array([[0.5]])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = self.np_random.uniform(-1.0, 1.0, 2)
        return self.s.copy(), {}

    def step(self, u):
        cost = self.s @ self.q @ self.s + u @ self.r @ u
        self.s = self.a @ self.s + self.b @ u
        return self.s.copy(), -float(cost), False, False, {}


class Counting(gymnasium.Wrapper):
    steps = 0

    def step(self, action):
        Counting.steps += 1
        return super().step(action)


def digest(agent: spaql.Agent, folder: Path) -> str:
    agent.save(folder / "agent.spaql")
    return hashlib.sha256((folder / "agent.spaql").read_bytes()).hexdigest()


def returns_of(gain: np.ndarray | None, policy: spaql.Policy | None) -> np.ndarray:
    env = Regulator()
    found = []
    for seed in range(50):
        s, _ = env.reset(seed=seed)
        total = 0.0
        for _ in range(50):
            u = -gain @ s if gain is not None else policy.predict(s, deterministic=True)[0]
            s, reward, *_ = env.step(np.clip(u, -2.0, 2.0))
            total += reward
        found.append(total)
    return np.array(found)


def test_a_linear_quadratic_problem_is_solved_within_two_per_cent() -> None:
    p = solve_discrete_are(Regulator.a, Regulator.b, Regulator.q, Regulator.r)
    gain = np.linalg.solve(Regulator.r + Regulator.b.T @ p @ Regulator.b, Regulator.b.T @ p @ Regulator.a)
    agent = spaql.PlanTree(Regulator(), horizon=50, seed=0, effort=0.2, leaves=8)
    agent.learn(total_timesteps=3000, progress_bar=False)
    assert agent.policy.laws.gain.any()
    best = returns_of(gain, None).mean()
    ours = returns_of(None, agent.policy).mean()
    assert ours >= 1.02 * best  # both are negative


def test_a_range_of_rewards_changes_nothing_for_it() -> None:
    plain, scaled = (
        spaql.PlanTree(env, seed=0, **QUICK).learn(total_timesteps=600, progress_bar=False)
        for env in ("pendulum", "pendulum-scaled")
    )
    assert str(plain.policy) == str(scaled.policy)
    assert plain.model.plant.rewards.tolist() == scaled.model.plant.rewards.tolist()


def test_settings_out_of_range_are_refused() -> None:
    for name in ("discount", "own_share", "tolerance"):
        with pytest.raises(spaql.SettingError, match=f"{name} is 1.5, and must be at most 1"):
            spaql.PlanTree("Pendulum-v1", **{name: 1.5})


@pytest.mark.parametrize("seed", [4009, 4013, 4016])
def test_a_goal_is_found_where_moving_costs_and_staying_is_free(seed: int) -> None:
    agent = spaql.PlanTree("MountainCarContinuous-v0", seed=seed, own_share=0.0, **QUICK)
    agent.learn(total_timesteps=1500, progress_bar=False)
    assert agent.history["best_return"][-1] > 0


def test_interactions_are_the_steps_that_were_taken() -> None:
    Counting.steps = 0
    env = Counting(gymnasium.make("CartPole-v1"))
    agent = spaql.PlanTree(env, horizon=500, seed=0, **QUICK).learn(total_timesteps=700, progress_bar=False)
    assert agent.history["interactions"][-1] == agent.history["training_steps"][-1] == 700
    assert Counting.steps == 700
    assert agent.policy.n_leaves >= 1
    assert Counting.steps == 700


@pytest.mark.parametrize("env", ["CartPole-v1", pytest.param("Pendulum-v1", marks=pytest.mark.long)])
def test_the_same_seed_gives_the_same_bytes_also_when_interrupted(env: str, tmp_path: Path) -> None:
    def make(**more) -> spaql.Agent:
        agent = spaql.PlanTree(env, horizon=60, seed=3, **QUICK)
        return agent.learn(total_timesteps=900, progress_bar=False, **more)

    whole = make()
    assert digest(make(), tmp_path) == digest(whole, tmp_path)
    for stop_at in (0.5, 0.75, 0.9):
        steps = stop_at * 900
        make(callback=lambda agent, row, at=steps: row["training_steps"] < at).save(tmp_path / "part.spaql")
        part = spaql.load(tmp_path / "part.spaql")
        part.learn(total_timesteps=900 - part.training_steps, progress_bar=False)
        assert digest(part, tmp_path) == digest(whole, tmp_path)


def test_a_controller_is_there_at_any_time_and_saved(tmp_path: Path) -> None:
    agent = spaql.PlanTree("MountainCarContinuous-v0", horizon=150, seed=0, **QUICK)
    agent.learn(iterations=2, progress_bar=False)
    assert agent.iterations == 2
    observations = np.random.default_rng(0).normal(0, 0.5, (100, 2))
    agent.save(tmp_path / "a.spaql")
    loaded = spaql.load(tmp_path / "a.spaql")
    assert np.array_equal(agent.predict(observations)[0], loaded.predict(observations)[0])
    assert str(spaql.controller_of(loaded, minimise=False)) == str(agent.policy)


@pytest.mark.parametrize("env", ["cartpole200", "pendulum"])
def test_the_rules_of_an_agent_are_written_so_and_come_back_from_arrays(env: str) -> None:
    agent = spaql.PlanTree(env, seed=0, effort=0.01).learn(total_timesteps=400, progress_bar=False)
    tree = agent.policy
    learner = agent._learner
    assert str(within_space(tree)) == str(tree)
    assert len(tree.laws) == len(set(tree.leaf[tree.feature < 0].tolist()))
    assert str(rules_from(rules_to(tree), learner.code, agent.problem)) == str(tree)


def test_observations_of_a_list_are_refused() -> None:
    with pytest.raises(spaql.UnsupportedSpaceError, match="Box of observations"):
        spaql.PlanTree("CliffWalking-v1", horizon=10)
    with pytest.raises(spaql.SettingError, match="levels"):
        spaql.PlanTree("Pendulum-v1", levels=5)


def test_the_command_line_trains_goes_on_and_shows(tmp_path: Path) -> None:
    def command(*words: str) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        return result.stdout

    words = ("train", "CartPole-v1", "--algo", "plantree", "--seed", "1", "--effort", "0.02", "--leaves", "8")
    report = command(*words, "--steps", "400", "--out", str(tmp_path / "run"), "--quiet")
    assert "400 training steps, 400 interactions without evaluations" in report
    report = command(*words, "--steps", "600", "--out", str(tmp_path / "run"), "--resume", "--quiet")
    assert "600 interactions" in report
    assert "push left" in command("show", str(tmp_path / "run"))
