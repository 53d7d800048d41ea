"""The paper's setups, usable wherever an environment id is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What the paper fixes for a problem."""

    env: str
    horizon: int
    levels: int | None = None
    squash: Mapping[int, float] = field(default_factory=dict)
    summary: str


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "pendulum": Preset(
            env="Pendulum-v1", horizon=200, summary="swing a pendulum up, torque in [-2, 2] Nm"
        ),
        "pendulum5": Preset(
            env="Pendulum-v1",
            horizon=200,
            levels=5,
            summary="the same with the torques -2, -1, 0, 1, 2 Nm",
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
