"""Evaluation in processes of their own gives what evaluation in one process gives."""

import gymnasium
import numpy as np

import spaql


def test_parallel_rollouts_change_nothing_but_the_time() -> None:
    # A wrapper keeps Gymnasium from using CartPole's vector environment, which draws other starts.
    env = gymnasium.wrappers.ClipReward(gymnasium.make("CartPole-v1"), -1, 1)
    alone, parallel = (
        spaql.SPAQL(env, horizon=30, rollouts=3, seed=0, parallel=parallel).learn(
            iterations=4, progress_bar=False
        )
        for parallel in (False, True)
    )
    assert np.array_equal(parallel.history["mean_return"], alone.history["mean_return"])
    assert parallel.policy.partition.digest() == alone.policy.partition.digest()


def test_a_loaded_policy_can_be_evaluated_in_parallel(tmp_path) -> None:
    agent = spaql.SPAQL("CartPole-v1", horizon=30, rollouts=3, seed=0, compiled=False)
    agent.learn(iterations=2, progress_bar=False).save(tmp_path / "a.spaql")
    result = spaql.evaluate(spaql.load(tmp_path / "a.spaql"), episodes=3, parallel=True)
    assert len(result.returns) == 3
