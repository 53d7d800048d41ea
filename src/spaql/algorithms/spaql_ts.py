"""Single-partition adaptive Q-learning with terminal state."""

from dataclasses import dataclass
from typing import Literal

from spaql.algorithms.partition_learner import RULE_SETS
from spaql.algorithms.settings import setting
from spaql.algorithms.spaql import SPAQLLearner, SPAQLSettings
from spaql.errors import SettingError
from spaql.problems import Problem


@dataclass(frozen=True, kw_only=True)
class SPAQLTSSettings(SPAQLSettings):
    """Settings of SPAQL-TS.

    The paper writes the distance to the reference in the infinity metric; its published figures were
    made with the Euclidean metric. The default is that of the rule set.
    """

    reference_std: float = setting(
        1.2, "standard deviation lambda of the weight around the reference", above=0
    )
    metric: Literal["rules", "euclidean", "infinity"] = setting(
        "rules",
        "metric of the distance to the reference, in the standard cube: by the rules, euclidean for authors "
        "and infinity for text; or the one that is named",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric == "rules":
            object.__setattr__(self, "metric", RULE_SETS[self.rules].metric)
        if self.metric not in ("euclidean", "infinity"):
            raise SettingError(f"metric is {self.metric!r}, and must be 'euclidean' or 'infinity'.")


class SPAQLTSLearner(SPAQLLearner):
    """SPAQL whose values decrease with the distance to a reference, for regulation."""

    name = "spaql-ts"
    settings_type = SPAQLTSSettings

    def __init__(self, problem: Problem, settings: SPAQLTSSettings) -> None:
        if problem.reference is None:
            raise SettingError(
                "SPAQL-TS regulates to a reference, and none is known for this problem: give an observation "
                f"of {problem.states.dims} numbers in raw units, or use SPAQL.",
                settings={"reference": "X,Y,..."},
            )
        super().__init__(problem, settings)
        self.rules = self.rules._replace(
            reference=problem.states.standardise(problem.reference),
            reference_std=settings.reference_std,
            euclidean=settings.metric == "euclidean",
        )
