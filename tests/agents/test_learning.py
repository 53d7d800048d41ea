"""Does it learn? A small version of the paper's claims; the full studies are commands of their own."""

import numpy as np
import pytest

import spaql

pytestmark = pytest.mark.slow


def random_mean(problem: spaql.Problem) -> float:
    return spaql.evaluate(spaql.RandomPolicy(problem.states, problem.actions), problem, episodes=200).mean


def test_spaql_ts_balances_cartpole() -> None:
    """300 iterations, 20 rollouts, 5 seeds: a fresh mean of at least 150 of 200."""
    means = []
    for seed in range(5):
        agent = spaql.SPAQLTS("CartPole-v1", horizon=200, scaling=20, seed=seed, reference=[0, 0, 0, 0])
        agent.learn(iterations=300, progress_bar=False)
        means.append(spaql.evaluate(agent, episodes=100, seed=1000 + seed).mean)
    assert np.mean(means) >= 150, means


def test_aql_stays_near_random_on_cartpole() -> None:
    agent = spaql.AQL("cartpole200", scaling=120, seed=0).learn(iterations=300, progress_bar=False)
    fresh = spaql.evaluate(agent, episodes=200, seed=1000).mean
    assert abs(fresh - random_mean(agent.problem)) < 20


def test_spaql_beats_random_on_pendulum() -> None:
    agent = spaql.SPAQL("pendulum5", scaling=4, seed=0).learn(iterations=60, progress_bar=False)
    assert spaql.evaluate(agent, episodes=100, seed=1000).mean > random_mean(agent.problem) + 100
