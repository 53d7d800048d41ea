"""Hyperparameters that rl-zoo3 publishes, as data, under its own names.

Source: rl-zoo3 2.9.2 (Raffin, RL Baselines3 Zoo, https://github.com/DLR-RM/rl-baselines3-zoo),
`rl_zoo3/hyperparams/*.yml`. All others are the defaults of Stable-Baselines3 or sb3-contrib.
`lin_x` decays linearly from x to 0 over the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

SOURCE = "rl-zoo3 2.9.2"
"""The source of the hyperparameters."""

_SAC_MOUNTAIN_CAR: Mapping[str, Any] = MappingProxyType(
    {
        "n_timesteps": 50_000,
        "learning_rate": 3e-4,
        "buffer_size": 50_000,
        "batch_size": 512,
        "ent_coef": 0.1,
        "train_freq": 32,
        "gradient_steps": 32,
        "gamma": 0.9999,
        "tau": 0.01,
        "learning_starts": 0,
        "use_sde": True,
        "policy_kwargs": {"log_std_init": -3.67, "net_arch": [64, 64], "use_expln": True},
    }
)
_DQN_CART_POLE: Mapping[str, Any] = MappingProxyType(
    {
        "n_timesteps": 50_000,
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1_000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    }
)
_DQN_MOUNTAIN_CAR: Mapping[str, Any] = MappingProxyType(
    {
        "n_timesteps": 120_000,
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1_000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
        "policy_kwargs": {"net_arch": [256, 256]},
    }
)
_DQN_ACROBOT: Mapping[str, Any] = MappingProxyType(
    {
        "n_timesteps": 100_000,
        "learning_rate": 6.3e-4,
        "batch_size": 128,
        "buffer_size": 50_000,
        "learning_starts": 0,
        "gamma": 0.99,
        "target_update_interval": 250,
        "train_freq": 4,
        "gradient_steps": -1,
        "exploration_fraction": 0.12,
        "exploration_final_eps": 0.1,
        "policy_kwargs": {"net_arch": [256, 256]},
    }
)
_ARS: Mapping[str, Any] = MappingProxyType(
    {
        "n_timesteps": 500_000,
        "n_envs": 1,
        "normalize": {"norm_obs": True, "norm_reward": False},
        "learning_rate": 0.018,
        "n_delta": 4,
        "n_top": 1,
        "delta_std": 0.1,
        "zero_policy": False,
        "policy_kwargs": {"net_arch": [16]},
    }
)


def _quantiles(settings: Mapping[str, Any], n: int) -> Mapping[str, Any]:
    """Return DQN's settings for QR-DQN, which adds the number of quantiles."""
    return {**settings, "policy_kwargs": {**settings["policy_kwargs"], "n_quantiles": n}}


ZOO: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType(
    {
        ("sac", "Pendulum-v1"): {"n_timesteps": 20_000, "learning_rate": 1e-3},
        ("sac", "MountainCarContinuous-v0"): _SAC_MOUNTAIN_CAR,
        ("tqc", "Pendulum-v1"): {"n_timesteps": 20_000, "learning_rate": 1e-3},
        ("tqc", "MountainCarContinuous-v0"): _SAC_MOUNTAIN_CAR,
        ("td3", "Pendulum-v1"): {
            "n_timesteps": 20_000,
            "gamma": 0.98,
            "buffer_size": 200_000,
            "learning_starts": 10_000,
            "noise_type": "normal",
            "noise_std": 0.1,
            "gradient_steps": 1,
            "train_freq": 1,
            "learning_rate": 1e-3,
            "policy_kwargs": {"net_arch": [400, 300]},
        },
        ("td3", "MountainCarContinuous-v0"): {
            "n_timesteps": 300_000,
            "noise_type": "ornstein-uhlenbeck",
            "noise_std": 0.5,
            "gradient_steps": 1,
            "train_freq": 1,
            "learning_rate": 1e-3,
            "batch_size": 256,
            "policy_kwargs": {"net_arch": [400, 300]},
        },
        ("dqn", "CartPole-v1"): _DQN_CART_POLE,
        ("dqn", "MountainCar-v0"): _DQN_MOUNTAIN_CAR,
        ("dqn", "Acrobot-v1"): _DQN_ACROBOT,
        ("qr-dqn", "CartPole-v1"): _quantiles(_DQN_CART_POLE, 10),
        ("qr-dqn", "MountainCar-v0"): _quantiles(_DQN_MOUNTAIN_CAR, 25),
        ("qr-dqn", "Acrobot-v1"): _quantiles(_DQN_ACROBOT, 25),
        ("ppo", "CartPole-v1"): {
            "n_timesteps": 100_000,
            "n_envs": 8,
            "n_steps": 32,
            "batch_size": 256,
            "gae_lambda": 0.8,
            "gamma": 0.98,
            "n_epochs": 20,
            "ent_coef": 0.0,
            "learning_rate": "lin_0.001",
            "clip_range": "lin_0.2",
        },
        ("ppo", "MountainCar-v0"): {
            "n_timesteps": 1_000_000,
            "n_envs": 16,
            "normalize": True,
            "n_steps": 16,
            "gae_lambda": 0.98,
            "gamma": 0.99,
            "n_epochs": 4,
            "ent_coef": 0.0,
        },
        ("ppo", "Acrobot-v1"): {
            "n_timesteps": 1_000_000,
            "n_envs": 16,
            "normalize": True,
            "n_steps": 256,
            "gae_lambda": 0.94,
            "gamma": 0.99,
            "n_epochs": 4,
            "ent_coef": 0.0,
        },
        ("trpo", "CartPole-v1"): {
            "n_timesteps": 100_000,
            "n_envs": 2,
            "n_steps": 512,
            "batch_size": 512,
            "cg_damping": 1e-3,
            "gae_lambda": 0.98,
            "gamma": 0.99,
            "learning_rate": 1e-3,
            "n_critic_updates": 20,
        },
        ("trpo", "MountainCar-v0"): {
            "n_timesteps": 100_000,
            "n_envs": 2,
            "normalize": True,
            "n_steps": 1_024,
            "n_critic_updates": 20,
        },
        ("trpo", "Acrobot-v1"): {
            "n_timesteps": 100_000,
            "n_envs": 2,
            "normalize": True,
            "n_steps": 1_024,
        },
        ("ars", "CartPole-v1"): {
            "n_timesteps": 50_000,
            "n_envs": 1,
            "policy": "LinearPolicy",
            "n_delta": 2,
        },
        ("ars", "MountainCar-v0"): {**_ARS, "n_delta": 8},
        ("ars", "Acrobot-v1"): _ARS,
    }
)
"""By algorithm and environment; `n_timesteps` is the length of the published run."""
