"""What is sent to worker processes by the tests of tries: environments and an agent of one's own."""

import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import spaql
from spaql.algorithms import SPAQLLearner


class OwnLearner(SPAQLLearner):
    name = "own-spaql"


class Own(spaql.Agent):
    learner_type = OwnLearner


def _start(rng: Any) -> tuple[float]:
    return (rng.uniform(0.0, 1.0),)


def _step(state: Any, action: int) -> tuple[tuple[float], float, bool]:
    return (min(state[0] * 0.9 + 0.1 * action, 1.0),), -abs(state[0] - 0.5), False


TANK = spaql.Dynamics(
    id="SentTank-v0",
    start=_start,
    step=_step,
    observations={"level": (0.0, 1.0)},
    actions=("off", "on"),
    horizon=10,
)


class Walk(gymnasium.Env[Any, Any]):
    """A walk to the right; `mortal` names a file, and while there is none the process dies at step 5."""

    def __init__(self, mortal: str = "") -> None:
        self.observation_space = Box(0.0, 1.0, (1,), np.float64)
        self.action_space = Discrete(2)
        self._mortal = mortal
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = float(self.np_random.random())
        return np.array([self._at]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        if self._mortal and self._steps == 5 and not Path(self._mortal).exists():
            Path(self._mortal).touch()
            os._exit(9)
        self._at = float(np.clip(self._at + 0.1 * (2 * int(action) - 1), 0.0, 1.0))
        return np.array([self._at]), self._at, False, False, {}


if "SentWalk-v0" not in gymnasium.registry:
    gymnasium.register("SentWalk-v0", Walk, max_episode_steps=8)
