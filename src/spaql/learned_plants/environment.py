"""A learned plant as a Gymnasium environment."""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from spaql.kernels.plantree.raw_model import predict_all
from spaql.learned_plants.plant import PlantModel

ENVIRONMENT = "spaql/LearnedPlant-v0"


class PlantEnv(gymnasium.Env[Any, Any]):
    """A learned plant as an environment, without a time limit.

    Episodes begin at recorded starts, and terminate where recorded ones did. Observations are cut to their
    space.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, model: PlantModel) -> None:
        self.model = model
        self.observation_space = model.observation_space
        self.action_space = model.action_space
        self.state = model.starts[0].copy()
        """The state of the plant in double precision; it may be set."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode at one of the recorded starts."""
        super().reset(seed=seed)
        self.state = self.model.starts[int(self.np_random.integers(len(self.model.starts)))].copy()
        return self._observed(), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take a step; termination is random where its predicted probability is neither 0 nor 1."""
        model = self.model
        space = self.model.observation_space
        state = np.asarray(self.state, np.float64).reshape(1, -1)
        nexts, rewards, chances = predict_all(model.plant, state, model.inputs_of(action, 1))
        self.state = np.clip(nexts[0], space.low, space.high, dtype=np.float64)
        terminated = bool(self.np_random.random() < chances[0])
        reward = float(model.plant.rewards[2] if terminated else rewards[0])
        return self._observed(), reward, terminated, False, {}

    def _observed(self) -> NDArray[Any]:
        return np.asarray(self.state, self.observation_space.dtype)


def simulator(model: PlantModel | str | os.PathLike[str]) -> gymnasium.Env[Any, Any]:
    """Return a Gymnasium environment of a learned plant.

    Its spaces and time limit are those of the environment from which the plant was learned.

    Parameters
    ----------
    model
        A plant, or the file of one, as `gymnasium.make("spaql.learned_plants:spaql/LearnedPlant-v0",
        model=file)` takes it.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> learner = spaql.SPAQL(simulator(model), rollouts=2, seed=0).learn(iterations=2, progress_bar=False)
    >>> learner.problem.horizon
    200
    """
    plant = model if isinstance(model, PlantModel) else PlantModel.load(model)
    return TimeLimit(PlantEnv(plant), plant.horizon)
