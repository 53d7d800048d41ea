"""Networks of Stable-Baselines3 and sb3-contrib (extra `baselines`), as trainers of runs."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.agents import History
from spaql.agents.run_folder import versions
from spaql.archive import write_atomically
from spaql.controllers import Policy
from spaql.controllers.policy import Rng
from spaql.errors import MissingExtraError, SettingError
from spaql.evaluation import evaluate
from spaql.plugins.sweeps.curve import LearningCurve
from spaql.plugins.sweeps.run import Run
from spaql.plugins.sweeps.trainers import Trained
from spaql.problems import Problem, make_problem

_CLASSES = MappingProxyType(
    {
        "sac": "SAC",
        "tqc": "TQC",
        "td3": "TD3",
        "dqn": "DQN",
        "qr-dqn": "QRDQN",
        "ppo": "PPO",
        "trpo": "TRPO",
        "ars": "ARS",
    }
)
NETWORKS = tuple(_CLASSES)
"""The algorithms, by name."""

SOURCE = "rl-zoo3 2.9.2"
"""The source of the hyperparameters in `zoo.toml`."""
ZOO: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (algorithm, environment): hyperparameters
    for algorithm, environments in tomllib.loads(
        Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8")
    ).items()
    for environment, hyperparameters in environments.items()
}
"""Published hyperparameters by algorithm and environment; `n_timesteps` is the published length."""

_ACTING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sac": ("actor.latent_pi", "actor.mu"),
        "tqc": ("actor.latent_pi", "actor.mu"),
        "td3": ("actor.mu",),
        "dqn": ("q_net",),
        "qr-dqn": ("quantile_net",),
        "ppo": ("mlp_extractor.policy_net", "action_net"),
        "trpo": ("mlp_extractor.policy_net", "action_net"),
        "ars": ("action_net",),
    }
)
"""The parts of a policy that an action is computed from: critics and exploration are excluded."""

BATCHES: Mapping[str, Any] = MappingProxyType(
    {"learning_rate": 1e-3, "n_critic_updates": 20, "batch_size": 500, "n_steps": 200}
)
"""Hyperparameters of TRPO where its budget is in iterations: batches of 4,000 samples, as in the paper. The
network is Stable-Baselines3's default, two layers of 64 tanh units."""
_BATCHES_IN: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "CartPole-v1": {"gamma": 0.99, "gae_lambda": 0.98, "cg_damping": 1e-3},
        "Pendulum-v1": {"gamma": 0.9, "gae_lambda": 0.95, "cg_damping": 0.1, "cg_max_steps": 25},
    }
)
"""Rl-zoo3's discount, trace decay, damping and conjugate gradient steps for each environment."""
_TOGETHER = 20
"""Parallel environments: an episode of each makes a batch."""


class NetworkPolicy(Policy):
    """A network of Stable-Baselines3 as a policy: the most likely action, or the mean of the actions."""

    def __init__(self, model: Any, problem: Problem) -> None:
        self._model = model
        self.observation_space = problem.states.space
        self.action_space = problem.actions.space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions; a model trained on normalised observations gets them normalised."""
        if (envs := self._model.get_vec_normalize_env()) is not None:
            observations = envs.normalize_obs(observations)
        return self._model.predict(observations, deterministic=True)[0]


@dataclass(frozen=True)
class Network:
    """A network, its hyperparameters, and its problem."""

    name: str
    model: Any
    policy: NetworkPolicy
    problem: Problem
    hyperparameters: Mapping[str, Any]
    seed: int

    @property
    def size(self) -> int:
        """The number of parameters that an action is computed from."""
        parts = [self.model.policy.get_submodule(part) for part in _ACTING[self.name]]
        return sum(weights.numel() for part in parts for weights in part.parameters())

    def trained(self, result: Mapping[str, float], history: History | None = None) -> Trained:
        """Close the environments, and return the result of training."""
        self.model.get_env().close()

        def save(folder: Path) -> None:
            self.save_run(folder, history)

        return Trained(self.policy, self.problem, result, self.size, save)

    def save_run(self, folder: Path, history: History | None) -> None:
        """Write `settings.json`, `history.csv` if there is one, and the network as `policy.safetensors`."""
        import torch
        from safetensors.torch import save

        settings = {
            "algorithm": self.name,
            "problem": self.problem.name,
            "hyperparameters": dict(self.hyperparameters),
            "seed": self.seed,
            **({} if history is None else {"iterations": len(history) - 1}),
            "versions": versions("torch", "stable-baselines3", "sb3-contrib"),
        }
        write_atomically(folder / "settings.json", (json.dumps(settings, indent=2) + "\n").encode())
        if history is not None:
            write_atomically(folder / "history.csv", history.to_csv().encode())
        weights = {name: tensor.contiguous() for name, tensor in self.model.policy.state_dict().items()}
        if (envs := self.model.get_vec_normalize_env()) is not None:
            scale = {"mean": envs.obs_rms.mean, "var": envs.obs_rms.var}
            weights |= {f"observations.{name}": torch.from_numpy(values) for name, values in scale.items()}
        write_atomically(folder / "policy.safetensors", save(weights))


def make_network(name: str, problem: Problem, hyperparameters: Mapping[str, Any], seed: int) -> Network:
    """Make an untrained network.

    Parameters
    ----------
    name
        Of the algorithm, one of `NETWORKS`.
    problem
        The problem to learn.
    hyperparameters
        Under the names of rl-zoo3 (see `ZOO`); all others are the library's defaults.
    seed
        Of all random numbers.
    """
    try:
        import sb3_contrib
        import stable_baselines3
        import torch
        from stable_baselines3.common.env_util import make_vec_env
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.vec_env import VecNormalize
    except ImportError as error:
        raise MissingExtraError(f"{name} needs sb3-contrib: pip install 'spaql[baselines]'.") from error
    torch.set_num_threads(1)  # one core per run
    chosen = copy.deepcopy(dict(hyperparameters))  # some models change their arguments
    chosen.pop("n_timesteps", None)
    envs = make_vec_env(problem.make, chosen.pop("n_envs", 1), seed=seed % 2**32)
    if normalise := chosen.pop("normalize", None):
        discount = {"gamma": chosen["gamma"]} if "gamma" in chosen else {}
        envs = VecNormalize(envs, **(normalise if isinstance(normalise, dict) else {}), **discount)
    if noise := chosen.pop("noise_type", None):
        chosen["action_noise"] = _noise(noise, chosen.pop("noise_std"), envs.action_space.shape)
    for key, value in chosen.items():
        if isinstance(value, str) and value.startswith("lin_"):
            chosen[key] = _falling(float(value.removeprefix("lin_")))
    library = stable_baselines3 if hasattr(stable_baselines3, _CLASSES[name]) else sb3_contrib
    make = getattr(library, _CLASSES[name])
    model = make(chosen.pop("policy", "MlpPolicy"), envs, seed=seed % 2**32, device="cpu", **chosen)
    model.set_logger(Logger(folder=None, output_formats=[]))  # the default one makes a folder for each batch
    return Network(name, model, NetworkPolicy(model, problem), problem, hyperparameters, seed)


def _noise(kind: str, std: float, shape: Any) -> Any:
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    make = {"normal": NormalActionNoise, "ornstein-uhlenbeck": OrnsteinUhlenbeckActionNoise}[kind]
    return make(mean=np.zeros(shape), sigma=std * np.ones(shape))


def _falling(start: float) -> Callable[[float], float]:
    return lambda left: left * start


class _NetworkTrainer:
    """Trains the runs of networks: all with a budget of steps, TRPO also with iterations as in the paper."""

    def check(self, run: Run) -> None:
        if run.iterations is not None and run.algorithm != "trpo":
            raise SettingError(f"{run.algorithm} has no iterations: give it total_timesteps.")
        if run.iterations is not None and set(run.settings) - {"rollouts"}:
            raise SettingError(
                "trpo has its hyperparameters for iterations, which are batches of 4,000 steps: give it "
                "total_timesteps to choose others."
            )
        if run.total_interactions == 0:
            raise SettingError(f"{run.algorithm} learns from interactions: give it one at least.")

    def train(self, run: Run, curve: LearningCurve, checkpoint: Path, checkpoint_every: int) -> Trained:
        """Train from the beginning: there are no checkpoints."""
        problem = make_problem(run.problem, measured=False)
        if run.iterations is not None:
            return _train_in_batches(run, problem, curve)
        settings = run.settings or ZOO.get((run.algorithm, problem.env or ""), {})
        network = make_network(run.algorithm, problem, settings, run.agent_seed)
        model = network.model

        def at_step(*_: Any) -> bool:
            if curve.due(model.num_timesteps):
                curve.evaluate(model.num_timesteps, network.policy, problem, network.size)
            return True

        model.learn(run.total_timesteps or run.total_interactions, callback=at_step)
        return network.trained({"training_steps": model.num_timesteps, "interactions": model.num_timesteps})


def _train_in_batches(run: Run, problem: Problem, curve: LearningCurve) -> Trained:
    """Train in iterations: a batch of samples, and an evaluation."""
    settings = {**BATCHES, **_BATCHES_IN.get(problem.env or "", {}), "n_envs": _TOGETHER}
    batch = settings["n_steps"] * _TOGETHER
    network = make_network(run.algorithm, problem, settings, run.agent_seed)
    history = History()
    interactions = 0
    for iteration in range((run.iterations or 0) + 1):
        if iteration:
            network.model.learn(batch, reset_num_timesteps=False)
        episodes = run.settings.get("rollouts", _TOGETHER)
        result = evaluate(network.policy, problem, episodes=episodes, seed=run.agent_seed + iteration)
        interactions += result.steps + (batch if iteration else 0)
        history.append(
            {
                "iteration": iteration,
                "mean_return": result.mean,
                "best_return": max(result.mean, history.last()["best_return"]) if iteration else result.mean,
                "training_steps": iteration * batch,
                "interactions": interactions,
            }
        )
        if curve.due(interactions):
            curve.evaluate(interactions, network.policy, problem, network.size)
    return network.trained({name: x for name, x in history.last().items() if name != "iteration"}, history)


network = _NetworkTrainer()
"""The trainer of all networks."""
