"""Differences between the text of the paper and its authors' code, one field for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Metric = Literal["euclidean", "infinity"]


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """What AQL, SPAQL and SPAQL-TS do where text and code differ; the defaults are those of the code.

    Where the text leaves a point open, all rule sets share one choice.
    """

    tie_is_gain: bool = True
    """Whether an evaluation that equals the best counts as a gain, which keeps the trainee and damps u."""
    heats_after_split: bool = True
    """Whether the temperature rises only once a ball was split since the last gain or reset."""
    temperature_max: float = 10.0
    """The temperature rises only while it is below this."""
    balls_before_reset: int | None = None
    """Balls split without gain after which the trainee is reset to the best; if None, it is reset after the
    second iteration that split any."""
    by_maximum: bool = False
    """Whether Boltzmann sampling divides Q by max Q; if not, by the largest absolute Q."""
    metric: Metric = "euclidean"
    """Of the distance to the reference (SPAQL-TS), unless the setting `metric` names one."""


AUTHORS = RuleSet()
"""The code that made the paper's figures."""

TEXT = RuleSet(
    tie_is_gain=False,
    heats_after_split=False,
    temperature_max=math.inf,
    balls_before_reset=3,  # "more than two splits" in algorithm 3; the prose beside it says two
    by_maximum=True,
    metric="infinity",
)
"""The paper, read literally."""

RULE_SETS: Mapping[str, RuleSet] = MappingProxyType({"authors": AUTHORS, "text": TEXT})
"""By the values of the setting `rules`."""
