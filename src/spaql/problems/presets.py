"""The paper's setups, usable wherever an environment id is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The paper's settings of a problem."""

    env: str
    horizon: int
    levels: int | None = None
    squash: Mapping[int, float] = field(default_factory=dict)
    reward_range: tuple[float, float] = (0.0, 1.0)
    summary: str


_HIGHEST_COST = math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2
"""The highest cost of a step of Pendulum."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "pendulum": Preset(
            env="Pendulum-v1", horizon=200, summary="swing a pendulum up, torque in [-2, 2] Nm"
        ),
        "pendulum-scaled": Preset(
            env="Pendulum-v1",
            horizon=200,
            reward_range=(-_HIGHEST_COST, 0.0),
            summary="the same, learning from rewards that are scaled to [0, 1]",
        ),
        "pendulum5": Preset(
            env="Pendulum-v1",
            horizon=200,
            levels=5,
            summary="pendulum with the torques -2, -1, 0, 1, 2 Nm",
        ),
        # phi_m squashes the velocities: m = 1/240 s/m for the cart, 1/21 s/rad for the pole.
        "cartpole200": Preset(
            env="CartPole-v1",
            horizon=200,
            squash=MappingProxyType({1: 240.0, 3: 21.0}),
            summary="balance a pole for 200 steps, pushing the cart left or right",
        ),
    }
)
