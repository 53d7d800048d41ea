"""The units of a search: centre and scale of each observation, by what some trees see."""

from __future__ import annotations

import math

import numpy as np

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.kernels.treesearch.candidates import Floats, Units

_LARGEST = 1e100
"""Observations beyond this are not measured: a plant may explode."""
_SCALE_DIGITS = 2
"""Significant digits of a scale."""


def measured(observations: Floats, units: Units, mirror: Mirror | None) -> Units:
    """Return units with the centre and the scale of each observation, with a few digits.

    In them a mirror changes signs only, and the order of numbers. Samples in which a number has its usual
    value do not count for its scale: that of a contact, which is nearly always 0, is 1.
    """
    scale = np.ones(observations.shape[1])
    if not len(observations):
        return units._replace(centre=np.zeros(len(scale)), scale=scale)
    centre = column_means(observations)
    usual = np.median(observations, axis=0)
    for j, column in enumerate(observations.T):
        others = column[column != usual[j]]
        if len(others):
            spread = math.sqrt(math.fsum(((others - centre[j]) ** 2).tolist()) / len(others))
            scale[j] = spread if spread > 0 else 1.0
    for j, x in enumerate(scale.tolist()):
        places = _SCALE_DIGITS - 1 - math.floor(math.log10(x))
        centre[j] = round(float(centre[j]), places)
        scale[j] = round(x, places)
    if mirror is not None:
        order = list(mirror.order)
        signs = np.array(mirror.signs, np.float64)
        centre = (centre + signs * centre[order]) / 2
        scale = (scale + scale[order]) / 2
    return units._replace(centre=centre, scale=scale)


def bounded(observations: Floats) -> Floats:
    """Return the observations of a plant that has not exploded."""
    return observations[(np.abs(observations) < _LARGEST).all(axis=1)]


def change_of_scale(before: Units, after: Units) -> float:
    """Return the largest factor between scales."""
    return float(max((before.scale / after.scale).max(), (after.scale / before.scale).max()))


def column_means(rows: Floats) -> Floats:
    """Return the mean of each column, added one row after the other."""
    return np.asarray(np.add.accumulate(rows, axis=0)[-1] / len(rows))
