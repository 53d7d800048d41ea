"""Hyperparameters that rl-zoo3 publishes, under its own names: the file `zoo.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = "rl-zoo3 2.9.2"
"""The source of the hyperparameters."""

ZOO: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (algorithm, environment): hyperparameters
    for algorithm, environments in tomllib.loads(
        Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8")
    ).items()
    for environment, hyperparameters in environments.items()
}
"""By algorithm and environment; `n_timesteps` is the length of the published run."""
