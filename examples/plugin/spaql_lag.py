"""A kind of plant: a file `NAME.lag`, TOML with gain, time constant and sample time of a first-order lag.

`spaql train heater.lag` then trains on it, as on an FMU.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from spaql.problems.meaning import Meaning
from spaql.problems.plant_hash import file_hash

ENVIRONMENT = "example/Lag-v0"


class Lag(gymnasium.Env[Any, Any]):
    """Follow a set-point: `T y' = gain u - y`, with u in [0, 1]; the reward is minus the error."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, lag: str, **unknown: Any) -> None:
        if unknown:
            raise ValueError(f"A lag has no option {next(iter(unknown))!r}.")
        plant = tomllib.loads(Path(lag).read_text(encoding="utf-8"))
        names = ("output", "set-point")
        self.meaning = Meaning(observations=names, actions=("input",), plant=file_hash(lag))
        self.gain = float(plant["gain"])
        self.decay = math.exp(-float(plant["sample_time"]) / float(plant["time_constant"]))
        self.observation_space = Box(0.0, self.gain, (2,), np.float64)
        self.action_space = Box(0.0, 1.0, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        """Draw the output and the set-point."""
        super().reset(seed=seed)
        self.state = self.np_random.uniform(0.0, self.gain, 2)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold the input for a sample."""
        driven = self.gain * float(np.clip(action[0], 0.0, 1.0))
        self.state[0] = driven + self.decay * (self.state[0] - driven)
        return self.state.copy(), -abs(self.state[0] - self.state[1]), False, False, {}


gymnasium.register(ENVIRONMENT, entry_point="spaql_lag:Lag", max_episode_steps=50)
