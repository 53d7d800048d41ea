"""What docs/what-they-learn.md proves of Q and V holds in trained agents, and ends where it says."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import spaql
from spaql.partition import Partition

H = 200
Floats = NDArray[np.float64]


def trained(agent: spaql.Agent) -> spaql.Agent:
    return agent.learn(iterations=60, progress_bar=False)


def visited(partition: Partition) -> tuple[Floats, NDArray[np.int64]]:
    """Q and visits of the balls that were visited and not split."""
    balls = partition.balls
    used = partition.n_balls
    there = (balls.first_child[:used] < 0) & (balls.visits[:used] > 0)
    return balls.q[:used][there], balls.visits[:used][there]


def mean_bonus(visits: int) -> Floats:
    """f_H(v): the bonuses 1 / sqrt(i) of v visits, as the learning rates average them; index 0 is unused."""
    means = [1.0, 1.0]
    for v in range(2, visits + 1):
        rate = (H + 1) / (H + v)
        means.append((1 - rate) * means[-1] + rate / math.sqrt(v))
    return np.array(means)


def mean_rewards(agent: spaql.Agent, scaling: float) -> Floats:
    """What is left of Q without H and the bonus."""
    q, visits = visited(agent.policy.partition)
    return q - H - scaling * mean_bonus(int(visits.max()))[visits]


@pytest.mark.parametrize("algorithm", [spaql.SPAQL, spaql.AQL])
def test_on_cartpole_q_counts_visits_and_v_is_the_horizon(algorithm: type[spaql.Agent]) -> None:
    agent = trained(algorithm("cartpole200", scaling=20, rollouts=5, seed=0))
    partition = agent.policy.partition
    assert (partition.balls.q[: partition.n_balls] >= H).all()  # so max Q >= H, and V = min(H, max Q) = H
    q, visits = visited(partition)
    assert len(np.unique(visits)) > 10
    assert round(float(np.corrcoef(q, 1 / np.sqrt(visits))[0, 1]), 3) == 1.0
    assert mean_rewards(agent, 20) == pytest.approx(1.0, abs=1e-9)  # the reward of every step


def test_on_cartpole_the_greedy_ball_is_the_least_visited_one() -> None:
    agent = trained(spaql.SPAQL("cartpole200", scaling=20, rollouts=5, seed=0))
    partition = agent.policy.partition
    states = agent.problem.states
    for step in np.random.default_rng(0).uniform(-1, 1, (200, 4)) * [2.4, 2.0, 0.2, 2.0]:
        found = partition.relevant(states.standardise(step).tolist()).ball
        visits = partition.balls.visits[found]
        assert visits[partition.balls.q[found].argmax()] == visits.min()


def test_with_scaled_rewards_q_holds_one_step_and_the_bonus() -> None:
    agent = trained(spaql.SPAQL("pendulum-scaled", scaling=10, rollouts=5, seed=0))
    partition = agent.policy.partition
    assert (partition.balls.q[: partition.n_balls] >= H).all()
    left = mean_rewards(agent, 10)
    assert left.min() >= 0.0
    assert left.max() <= 1.0
    assert np.ptp(left) > 0.5


@pytest.mark.parametrize("scaling", [0, 4])
def test_it_ends_with_negative_rewards(scaling: float) -> None:
    agent = trained(spaql.SPAQL("pendulum", scaling=scaling, rollouts=5, seed=0))
    q, visits = visited(agent.policy.partition)
    assert np.mean(q < H) > 0.5
    assert abs(np.corrcoef(q, 1 / np.sqrt(visits))[0, 1]) < 0.9


def test_it_ends_with_the_weight_of_spaql_ts() -> None:
    agent = trained(spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=0))
    q, visits = visited(agent.policy.partition)
    assert np.mean(q < H) > 0.1
    assert abs(np.corrcoef(q, 1 / np.sqrt(visits))[0, 1]) < 0.9


def test_without_a_bonus_cartpole_is_pushed_to_the_right() -> None:
    aql = trained(spaql.AQL("cartpole200", scaling=0, rollouts=5, seed=0))
    assert set(visited(aql.policy.partition)[0]) == {H + 1.0}
    assert aql.predict(np.zeros(4), deterministic=True)[0] == 1
    assert spaql.evaluate(aql, episodes=100, seed=1).mean < 11  # a random policy: 22
    kept = trained(spaql.SPAQL("cartpole200", scaling=0, rollouts=20, seed=0))
    assert kept.policy.partition.n_balls == 1  # nothing that was trained is better than the untrained agent
