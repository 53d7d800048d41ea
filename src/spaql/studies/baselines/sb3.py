"""Algorithms of Stable-Baselines3 and sb3-contrib (extra `baselines`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.agents import History
from spaql.agents.run_folder import versions
from spaql.archive import write_atomically
from spaql.errors import MissingExtraError, SettingError
from spaql.evaluation import evaluate
from spaql.experiments import Run
from spaql.policy import Policy
from spaql.policy.policy import Rng
from spaql.problems import Problem, make_problem

BASELINES = ("trpo",)
BATCH = 4_000
"""Samples of an iteration."""

_ENVS = 20
"""Environments that are stepped together: an episode of each makes a batch."""

HYPERPARAMETERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "CartPole-v1": {"gamma": 0.99, "gae_lambda": 0.98, "cg_damping": 1e-3},
        "Pendulum-v1": {"gamma": 0.9, "gae_lambda": 0.95, "cg_damping": 0.1, "cg_max_steps": 25},
    }
)
"""Of TRPO: rl-zoo3's discount, trace decay, damping and conjugate gradient steps for each environment."""

COMMON: Mapping[str, Any] = MappingProxyType(
    {"learning_rate": 1e-3, "n_critic_updates": 20, "batch_size": 500, "n_steps": BATCH // _ENVS}
)
"""Of TRPO on all problems; the network is Stable-Baselines3's default, two layers of 64 tanh units."""


@dataclass(frozen=True)
class Baseline:
    """A trained baseline: what an agent is to evaluation and to the run store."""

    name: str
    policy: Policy
    problem: Problem
    history: History
    seed: int
    hyperparameters: Mapping[str, Any]
    model: Any

    def save_run(self, folder: Path) -> None:
        """Write `settings.json`, `history.csv`, and the network as `policy.safetensors`."""
        from safetensors.torch import save

        settings = {
            "algorithm": self.name,
            "problem": self.problem.name,
            "hyperparameters": dict(self.hyperparameters),
            "seed": self.seed,
            "iterations": len(self.history) - 1,
            "versions": versions("torch", "stable-baselines3", "sb3-contrib"),
        }
        write_atomically(folder / "settings.json", (json.dumps(settings, indent=2) + "\n").encode())
        write_atomically(folder / "history.csv", self.history.to_csv().encode())
        weights = {name: tensor.contiguous() for name, tensor in self.model.policy.state_dict().items()}
        write_atomically(folder / "policy.safetensors", save(weights))


class NetworkPolicy(Policy):
    """A network of Stable-Baselines3 as a policy: the most likely action, or the mean of the actions."""

    def __init__(self, model: Any, problem: Problem) -> None:
        self._model = model
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Give a batch of raw actions; a model that was trained on normalised observations gets them so."""
        if (envs := self._model.get_vec_normalize_env()) is not None:
            observations = envs.normalize_obs(observations)
        return self._model.predict(observations, deterministic=True)[0]


def train_baseline(name: str, env: str, *, iterations: int, rollouts: int, seed: int) -> Baseline:
    """Train TRPO in batches of 4,000 samples, each followed by an evaluation.

    Parameters
    ----------
    name
        Of the algorithm, one of `BASELINES`.
    env
        The id of an environment, or a preset.
    iterations
        Batches.
    rollouts
        Episodes of the evaluation after each.
    seed
        Of all randomness.
    """
    try:
        import torch
        from sb3_contrib import TRPO
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.vec_env import DummyVecEnv
    except ImportError as error:
        raise MissingExtraError(f"{name} needs sb3-contrib: pip install 'spaql[baselines]'.") from error
    assert name in BASELINES
    torch.set_num_threads(1)  # one core a run
    problem = make_problem(env)
    chosen = {**COMMON, **HYPERPARAMETERS.get(problem.env or "", {})}
    model = TRPO("MlpPolicy", DummyVecEnv([problem.make] * _ENVS), seed=seed % 2**32, device="cpu", **chosen)
    model.set_logger(Logger(folder=None, output_formats=[]))  # its own would leave a folder for each batch
    policy = NetworkPolicy(model, problem)
    history = History()
    interactions = 0
    for iteration in range(iterations + 1):
        if iteration:
            model.learn(BATCH, reset_num_timesteps=False)
        result = evaluate(policy, problem, episodes=rollouts, seed=seed + iteration)
        interactions += result.steps + (BATCH if iteration else 0)
        history.append(
            {
                "iteration": iteration,
                "mean_return": result.mean,
                "best_return": max(result.mean, history.last()["best_return"]) if iteration else result.mean,
                "training_steps": iteration * BATCH,
                "interactions": interactions,
            }
        )
    return Baseline(name, policy, problem, history, seed, {**chosen, "n_envs": _ENVS}, model)


class _TRPOTrainer:
    """Trains the runs of TRPO in a study."""

    def check(self, run: Run) -> None:
        if run.iterations is None:
            raise SettingError(
                f"{run.algorithm} learns in batches of steps: give it iterations, in [[runs]]."
            )

    def train(self, run: Run, checkpoint: Path, checkpoint_every: int) -> Baseline:
        assert run.iterations is not None  # `check` refuses others
        return train_baseline(
            run.algorithm, run.problem, iterations=run.iterations, seed=run.agent_seed, **run.settings
        )


trpo = _TRPOTrainer()
"""The trainer of TRPO's runs."""
