"""What to log next: states and actions of promising controllers of which the data say too little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.support import TestPlant
from spaql.algorithms.replay.exact_sums import mean
from spaql.algorithms.replay.memory import Floats
from spaql.controllers import Controller
from spaql.kernels.plantree.pwa_model import Ints

EDGE = "edge of the data"
UNSEEN = "action not logged here"
UNCERTAIN = "predictions differ"
"""Why a place is to be visited."""
MOST = 12
"""Most places of a table."""
_FEW = 0.001
"""Share of steps below which the edge of the data, or an action, is left out."""
_CERTAIN = 0.02
"""Difference of predictions, in standard deviations of the states, below which they count as equal."""
_OUTER = (0.1, 0.9)
"""Quantiles of the actions of a place."""


class Place(NamedTuple):
    """States and actions to visit: steps of controllers in one cell of the learned plant."""

    why: str
    share: float
    """Of all steps of these controllers."""
    rows: int
    """Of the log, in this cell."""
    observations: tuple[float, ...]
    """The logged state that is nearest to the median of these steps: predicted ones may be impossible."""
    low: tuple[float, ...]
    """Of each action, the lowest value to play there: the 10 % quantile of the controllers' actions."""
    high: tuple[float, ...]
    """The highest value: the 90 % quantile."""


class _Steps(NamedTuple):
    states: Floats
    actions: Floats
    inputs: Floats
    cell: Ints
    clipped: NDArray[np.bool_]
    unseen: NDArray[np.bool_]


def places_to_visit(
    plant: TestPlant,
    others: Sequence[TestPlant],
    controllers: Sequence[Controller],
    logged: Floats,
    starts: Floats,
    steps: int,
) -> tuple[Place, ...]:
    """Return where controllers go in a learned plant, and the data do not say enough what happens there.

    First come steps that are cut at the edge of the data and actions that were not logged in their cell, then
    those for which plants that were fitted to parts of the data differ most; in each group, the most frequent
    first.
    """
    played = _play(plant, controllers, starts, steps)
    after = [other.predict(played.states, played.inputs) for other in others]
    differ = (np.std(after, axis=0) / plant.scale.deviation).max(axis=1)
    found: list[Place] = []
    for why, chosen in ((EDGE, played.clipped), (UNSEEN, played.unseen & ~played.clipped)):
        count = np.bincount(played.cell[chosen])
        for cell in np.argsort(-count, kind="stable"):
            if count[cell] > _FEW * len(played.cell):
                found.append(_place(why, plant, played, chosen & (played.cell == cell), logged))
    known = ~(played.clipped | played.unseen)
    weights = np.bincount(played.cell[known], differ[known])
    count = np.bincount(played.cell[known])
    for cell in np.argsort(-weights, kind="stable"):
        if count[cell] and weights[cell] > _CERTAIN * count[cell]:
            found.append(_place(UNCERTAIN, plant, played, known & (played.cell == cell), logged))
    return tuple(found[:MOST])


def _play(plant: TestPlant, controllers: Sequence[Controller], starts: Floats, steps: int) -> _Steps:
    """Return all steps of several controllers, one after the other."""
    parts = [
        [getattr(step, name)[step.going] for name in _Steps._fields]
        for rules in controllers
        for step in plant.steps(rules, starts, steps)
    ]
    return _Steps._make(np.concatenate(column) for column in zip(*parts, strict=True))


def _place(why: str, plant: TestPlant, played: _Steps, chosen: NDArray[np.bool_], logged: Floats) -> Place:
    low, high = np.quantile(played.actions[chosen], _OUTER, axis=0, method="inverted_cdf")
    away = np.abs(logged - np.median(played.states[chosen], axis=0)) / plant.scale.deviation
    return Place(
        why,
        mean(np.asarray(chosen, np.float64)),
        int(plant.rows(played.cell[chosen][:1])[0]),
        tuple(logged[away.max(axis=1).argmin()].tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
    )
