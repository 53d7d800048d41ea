"""Networks of Stable-Baselines3 and sb3-contrib, trained by published settings and looked at meanwhile."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from spaql.agents.run_folder import versions
from spaql.archive import write_atomically
from spaql.errors import MissingExtraError
from spaql.problems import make_problem
from spaql.studies.baselines.sb3 import NetworkPolicy

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
"""The parts of a policy that an action is computed from: critics and exploration are left out."""

Look = Callable[[int, NetworkPolicy, int], None]
"""Is given the interactions so far, the policy as it is then, and how many numbers an action is made of."""


@dataclass(frozen=True)
class Network:
    """A trained network."""

    name: str
    policy: NetworkPolicy
    settings: Mapping[str, Any]
    seed: int
    model: Any

    def save_run(self, folder: Path) -> None:
        """Write `settings.json`, and the network with its scale of observations as `policy.safetensors`."""
        import torch
        from safetensors.torch import save

        settings = {
            "algorithm": self.name,
            "hyperparameters": dict(self.settings),
            "seed": self.seed,
            "versions": versions("torch", "stable-baselines3", "sb3-contrib"),
        }
        write_atomically(folder / "settings.json", (json.dumps(settings, indent=2) + "\n").encode())
        weights = {name: tensor.contiguous() for name, tensor in self.model.policy.state_dict().items()}
        if (envs := self.model.get_vec_normalize_env()) is not None:
            scale = {"mean": envs.obs_rms.mean, "var": envs.obs_rms.var}
            weights |= {f"observations.{name}": torch.from_numpy(values) for name, values in scale.items()}
        write_atomically(folder / "policy.safetensors", save(weights))


def train_network(
    name: str,
    env: str,
    *,
    budget: int,
    seed: int,
    looks: Sequence[int],
    look: Look,
    **settings: Any,
) -> Network:
    """Train a network by rl-zoo3's settings, in the names of its files (see `spaql.studies.baselines.zoo`).

    Parameters
    ----------
    name
        Of the algorithm, one of `NETWORKS`.
    env
        The id of an environment.
    budget
        Interactions, those of all environments that are stepped together; a batch that is begun is finished.
        Schedules fall over the budget, as with rl-zoo3's option `-n`.
    seed
        Of all randomness.
    looks
        Interactions, below the budget, at which to look at the policy.
    look
        Is called at each of them, and at the end.
    **settings
        Hyperparameters.
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
    torch.set_num_threads(1)  # one core a run
    seed %= 2**32
    chosen = copy.deepcopy(settings)  # some of the models add to their arguments
    chosen.pop("n_timesteps", None)
    envs = make_vec_env(env, chosen.pop("n_envs", 1), seed=seed)
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
    model = make(chosen.pop("policy", "MlpPolicy"), envs, seed=seed, device="cpu", **chosen)
    model.set_logger(Logger(folder=None, output_formats=[]))
    policy = NetworkPolicy(model, make_problem(env, measured=False))
    parts = [model.policy.get_submodule(part) for part in _ACTING[name]]
    numbers = sum(weights.numel() for part in parts for weights in part.parameters())
    pending = sorted(looks)

    def at_step(*_: Any) -> bool:
        if due := [steps for steps in pending if steps <= model.num_timesteps]:
            del pending[: len(due)]
            look(model.num_timesteps, policy, numbers)
        return True

    model.learn(budget, callback=at_step)
    look(model.num_timesteps, policy, numbers)
    envs.close()
    return Network(name, policy, settings, seed, model)


def _noise(kind: str, std: float, shape: Any) -> Any:
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    make = {"normal": NormalActionNoise, "ornstein-uhlenbeck": OrnsteinUhlenbeckActionNoise}[kind]
    return make(mean=np.zeros(shape), sigma=std * np.ones(shape))


def _falling(start: float) -> Callable[[float], float]:
    return lambda left: left * start
