"""The settings of TreeSearch."""

from __future__ import annotations

from dataclasses import dataclass

from spaql.algorithms.settings import LearnerSettings, setting

MOST_LEAVES = 64
"""The most leaves that a search takes."""


@dataclass(frozen=True, kw_only=True)
class TreeSearchSettings(LearnerSettings):
    """Settings of TreeSearch."""

    max_leaves: int = setting(6, "largest number of leaves", least=1, most=MOST_LEAVES)
    leaf_price: float = setting(
        0.0005, "what a leaf must gain, as a share of the range of returns", least=0, most=1
    )
    worst_weight: float = setting(
        0.1, "weight of the worst quarter of the starts in a score", least=0, most=1
    )
    movement_price: float = setting(
        0.001,
        "price of moving actions through their range in every step, as a share of the range of returns; "
        "for numbers: to switch between actions of a list costs nothing",
        least=0,
    )
    nominal: bool = setting(
        False, "design for the plant as it is, not for perturbed ones: with set-points, or as it declares"
    )
    memory: bool = setting(
        False,
        "let rules and laws also read the change of each observation, the last action and, of discrete "
        "actions, the time since it changed",
    )
    mirror: str = setting("auto", "mirror symmetry to use: auto, off, or by names, as angle,speed:torque")
