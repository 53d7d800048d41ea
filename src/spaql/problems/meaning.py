"""What the numbers of an environment mean, as the environment itself declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from spaql.problems.dynamics import Dynamics
from spaql.problems.stage_cost import Constraint


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """Names, set-points, sample time and horizon of an environment, which declares them as its `meaning`.

    What is given to `make_problem` comes before them.
    """

    observations: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    setpoints: Mapping[str, str] = field(default_factory=dict)
    angles: tuple[str, ...] = ()
    sample_time: float | None = None
    horizon: int | None = None
    constraints: tuple[Constraint, ...] = ()
    """What the environment itself judges, see `spaql.problems.stage_cost.BROKEN`."""
    plant: Mapping[str, str] = field(default_factory=dict)
    """Hashes of the plant that it simulates, in place of those of its class: the `file` of an FMU."""


def meaning_of(env: gymnasium.Env[Any, Any], dynamics: Dynamics | None = None) -> Meaning:
    """Return what compiled dynamics or else an environment declare; nothing by default."""
    declared = getattr(env.unwrapped, "meaning", None) if dynamics is None else declared_by(dynamics)
    return declared if isinstance(declared, Meaning) else Meaning()


def declared_by(dynamics: Dynamics) -> Meaning:
    """Return what compiled dynamics declare."""
    return Meaning(
        observations=tuple(dynamics.observations),
        actions=tuple(dynamics.actions),
        setpoints=dynamics.setpoints,
        angles=dynamics.angles,
        sample_time=dynamics.sample_time,
        constraints=dynamics.stage_cost.constraints if dynamics.stage_cost else (),
    )
