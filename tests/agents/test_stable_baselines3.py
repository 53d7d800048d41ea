"""Stable-Baselines3's tools take an agent as it is."""

import math

import gymnasium
import numpy as np
import pytest

import spaql

pytest.importorskip("stable_baselines3")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("agent_type", [spaql.AQL, spaql.SPAQL, spaql.SPAQLTS, spaql.PlanTree])
@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_evaluate_policy_accepts_an_agent(agent_type: type[spaql.Agent], env: str) -> None:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    few = {"effort": 0.02} if agent_type is spaql.PlanTree else {"rollouts": 3}
    agent = agent_type(env, horizon=200, seed=0, **few).learn(iterations=10, progress_bar=False)
    single = gymnasium.make(env, max_episode_steps=200)
    single.reset(seed=0)
    theirs, _ = evaluate_policy(agent, single, n_eval_episodes=20, return_episode_rewards=True, warn=False)
    ours = spaql.evaluate(agent, episodes=200, deterministic=True).returns
    error = math.hypot(np.std(theirs) / math.sqrt(20), ours.std() / math.sqrt(200))
    assert abs(np.mean(theirs) - ours.mean()) < 4 * error + 1e-6
    vector = make_vec_env(env, n_envs=3)
    returns, lengths = evaluate_policy(agent, vector, n_eval_episodes=6, return_episode_rewards=True)
    assert len(returns) == len(lengths) == 6


@pytest.mark.filterwarnings("ignore")
def test_their_callbacks_and_vectors_of_environments_are_refused_with_what_to_give() -> None:
    from stable_baselines3.common.callbacks import CallbackList, CheckpointCallback, EvalCallback
    from stable_baselines3.common.env_util import make_vec_env

    agent = spaql.SPAQL("cartpole200", rollouts=1, seed=0)
    saving = CheckpointCallback(save_freq=1, save_path="models")
    for theirs in (EvalCallback(make_vec_env("CartPole-v1")), saving, CallbackList([saving]), [saving]):
        with pytest.raises(spaql.SettingError, match=r"Callback.*must be a function of the agent"):
            agent.learn(iterations=1, callback=theirs, progress_bar=False)  # type: ignore[arg-type]
    assert len(agent.history) == 0
    with pytest.raises(spaql.SettingError, match=r"is no environment: .* or a vector of several"):
        spaql.SPAQL(make_vec_env("CartPole-v1", n_envs=2))  # type: ignore[arg-type]
