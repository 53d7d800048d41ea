"""The settings of PlanTree."""

from __future__ import annotations

from dataclasses import dataclass

from spaql.algorithms.settings import LearnerSettings, setting
from spaql.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class PlanTreeSettings(LearnerSettings):
    """Settings of PlanTree."""

    discount: float = setting(0.99, "discount factor of planning, per step", above=0, most=1)
    members: int = setting(4, "learned plants of the search; twice as many compare its results", least=1)
    partitions: int = setting(20, "random partitions that hold the values", least=1)
    leaves: int = setting(32, "leaves of the first controller, which is then pruned", least=2)
    own_share: float = setting(0.3, "share of the budget that controllers play", least=0, most=1)
    tolerance: float = setting(0.01, "share of the return a smaller controller may cost", least=0, most=1)
    effort: float = setting(1.0, "steps in learned plants, relative to the default", above=0)
    mirror: str = setting("auto", "mirror symmetry to use: auto, off, or by names, as angle,speed:torque")
    lags: str = setting(
        "off",
        "auto: differences and last actions in the state of the learned plant, as few as predictions need",
    )
    nominal: bool = setting(
        False,
        "design for the plant as it was learned, not for a perturbed one; where set-points are declared",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lags not in ("auto", "off"):
            raise SettingError(f"lags is {self.lags!r}, and must be auto or off.")
        if self.lags == "auto" and self.mirror not in ("auto", "off"):
            raise SettingError(
                "A mirror that is given does not name the lags: leave out one of them, or let both be auto."
            )
        if not isinstance(self.mirror, str):
            raise SettingError(
                f"mirror is {self.mirror!r}, and must be auto, off, or names such as angle,speed:torque."
            )
