"""What the numbers of an environment mean, as the environment itself declares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium

from spaql.errors import SettingError
from spaql.problems.stage_cost import Constraint
from spaql.values import real_number, refuse_unknown


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
    """Hashes of the plant that it simulates: the `file` of an FMU."""


def meaning_of(env: gymnasium.Env[Any, Any]) -> Meaning:
    """Return what an environment declares; nothing by default."""
    declared = getattr(env.unwrapped, "meaning", None)
    return declared if isinstance(declared, Meaning) else Meaning()


def check_meaning(
    observations: Sequence[str],
    setpoints: Mapping[str, str],
    angles: Sequence[str],
    sample_time: float | None,
) -> None:
    """Refuse set-points and angles that are not observed."""
    refuse_unknown([*setpoints, *setpoints.values()], observations, "setpoints", "observation")
    for name in angles:
        if name not in observations and not {f"cos({name})", f"sin({name})"} <= {*observations}:
            raise SettingError(
                f"angles names {name!r}, and neither {name} nor cos({name}) and sin({name}) are observed."
            )
    if sample_time is not None:
        real_number("sample_time", sample_time, above=0.0)


def renamed_meaning(meaning: Meaning, names: Sequence[str]) -> Meaning:
    """Return what is declared, for observations of other names in the same order.

    Set-points and angles are named by the observations: without names of these there are none.
    """
    new = dict(zip(meaning.observations, names, strict=True)) if meaning.observations else {}
    angles = [new.get(x, x) for x in meaning.angles if x in new or f"cos({x})" in names] if new else []
    return replace(
        meaning,
        observations=tuple(names),
        setpoints={new[output]: new[goal] for output, goal in meaning.setpoints.items()} if new else {},
        angles=tuple(angles),
    )
