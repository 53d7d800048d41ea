"""Episodes of a policy, written down step by step."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import numpy as np

from spaql.errors import SettingError
from spaql.model import PredictionErrors, Recorded, prediction_errors
from spaql.policy import Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem
from spaql.training.agents import PlanTree
from spaql.words import counted


def record(policy: Policy, problem: Problem, seeds: Iterable[int], rng: Rng | None = None) -> list[Recorded]:
    """Play an episode in Gymnasium's environment for each seed; without `rng` no action is drawn."""
    with closing(problem.make()) as env:
        return [_episode(policy, env, seed, rng) for seed in seeds]


def _episode(policy: Policy, env: Any, seed: int, rng: Rng | None) -> Recorded:
    observation, _ = env.reset(seed=seed)
    seen, ended, terminated = [observation], False, False
    actions: list[Any] = []
    rewards: list[float] = []
    while not ended:
        action = policy.act(np.asarray(observation)[None], np.array([len(actions)]), rng)[0]
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        actions.append(action)
        rewards.append(float(reward))
        ended = bool(terminated or truncated)
    rows = np.array(seen, np.float64).reshape(len(seen), -1)
    return Recorded(rows, np.array(actions), np.array(rewards), bool(terminated))


def model_errors(
    agent: PlanTree, *, held_out: bool = False, episodes: int = 20, seed: int = 0
) -> PredictionErrors:
    """Hold the learned plant of an agent against what it was not fitted to, 1 and 50 steps ahead.

    Parameters
    ----------
    agent
        Which has learned.
    held_out
        Judge a model of four fifths of the agent's episodes by the others: all that it did to learn, and no
        step in the environment. By default its model is judged by fresh episodes of its controller.
    episodes, seed
        Of the fresh episodes; the same seed gives the same ones.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> agent = agent.learn(total_timesteps=600, progress_bar=False)
    >>> errors = model_errors(agent, episodes=2)
    >>> errors.on, errors.counts
    ('2 fresh episodes of the controller, 400 steps', (400, 302))
    """
    if held_out:
        model, others = agent.hold_out()
        steps = sum(len(one.rewards) for one in others)
        on = f"{counted(len(others), 'episode')} held out while learning, {counted(steps, 'step')}"
        return prediction_errors(model, others, on=on)
    if episodes < 1:
        raise SettingError("A model is judged by one episode at least.")
    fresh = record(agent.policy, agent.problem, range(seed, seed + episodes))
    steps = sum(len(one.rewards) for one in fresh)
    on = f"{counted(episodes, 'fresh episode')} of the controller, {counted(steps, 'step')}"
    return prediction_errors(agent.model, fresh, on=on)
