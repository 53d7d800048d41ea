"""Transitions of a log that are copies of others: the same recording, logged or joined more than once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spaql.problems.log_tables import Floats

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_LONG = 10
"""Successive transitions that are the same as others, by which a copy is recognised; or a shorter episode."""
_SAME = 1e-5
"""Difference, as a share of the range of a column, below which two values count as the same."""
_COMPARED = 64
"""Most neighbours in the order of the sums with which a stretch is compared."""


def copies(states: Floats, taken: Floats, nexts: Floats, first: Bools) -> Bools:
    """Return which transitions are copies of earlier ones.

    A copy begins as a stretch of successive transitions of one episode, most of which move, and goes on in
    both directions as far as they are the same. One transition alone may well be the same as another.
    """
    rows = np.column_stack([states, taken, nexts])
    width = np.ptp(rows, axis=0)
    rows /= np.where(width > 0.0, width, 1.0)
    dims = states.shape[1]
    moves = np.asarray((np.abs(rows[:, -dims:] - rows[:, :dims]) > _SAME).any(axis=1))
    source = _stretches(rows, _lengths(first), first, moves)
    for step in (1, -1):
        _extend(source, rows, first, step)
    return np.asarray(source >= 0)


def _lengths(first: Bools) -> Ints:
    """Return the length of the stretch that begins with each transition; it does not leave the episode."""
    begins = np.append(np.flatnonzero(first), len(first))
    end = np.repeat(begins[1:], np.diff(begins))
    return np.minimum(end - np.arange(len(first)), _LONG)


def _stretches(rows: Floats, length: Ints, first: Bools, moves: Bools) -> Ints:
    """Return of which transition each is a copy, -1 for none, as far as whole stretches are the same.

    Such stretches have nearly the same weighted sum: only neighbours in the order of sums are compared.
    """
    total = np.zeros(len(rows))
    moving = np.zeros(len(rows))
    row = np.zeros(len(rows))
    for weight, column in zip(_weights(rows.shape[1]), rows.T, strict=True):
        row += weight * column
    for k, weight in enumerate(_weights(_LONG)):
        inside = np.flatnonzero(length > k)
        total[inside] += weight * row[inside + k]
        moving[inside] += moves[inside + k]
    near = _SAME * _weights(_LONG).sum() * _weights(rows.shape[1]).sum()
    begins = np.flatnonzero(((length == _LONG) | first) & (2 * moving >= length))
    order = begins[np.argsort(total[begins], kind="stable")]
    source = np.full(len(rows), -1)
    apart = 1
    while apart < min(len(order), _COMPARED):
        close = np.flatnonzero(total[order[apart:]] - total[order[:-apart]] <= near)
        pairs = np.sort(np.stack([order[close], order[close + apart]]), axis=0)
        earlier, later = pairs[:, _are_same(rows, length, *pairs)]
        if len(later):
            for k in range(_LONG):
                inside = length[later] > k
                source[later[inside] + k] = earlier[inside] + k
            order = order[~np.isin(order, later)]
            apart = 1
        else:
            apart += 1 if len(close) else _COMPARED
    return source


def _are_same(rows: Floats, length: Ints, begin: Ints, other: Ints) -> Bools:
    """Return which pairs of stretches are the same."""
    same = np.asarray(length[begin] == length[other])
    for k in range(_LONG):
        to_compare = np.flatnonzero(same & (length[begin] > k))
        apart = np.abs(rows[begin[to_compare] + k] - rows[other[to_compare] + k])
        same[to_compare] = (apart <= _SAME).all(axis=1)
    return same


def _extend(source: Ints, rows: Floats, first: Bools, step: int) -> None:
    """Extend copies, forwards or backwards, within their episodes."""
    count = len(source)
    for i in np.flatnonzero(source >= 0)[::step].tolist():
        here = i + step
        there = int(source[i]) + step
        while min(here, there) >= 0 and max(here, there) < count and source[here] < 0:
            begins = first[max(here, i)] or first[max(there, there - step)]
            if begins or (np.abs(rows[here] - rows[there]) > _SAME).any():
                break
            source[here] = there
            here = here + step
            there = there + step


def _weights(count: int) -> Floats:
    """Return weights that no simple relation of columns cancels."""
    return 1.0 + (np.arange(1.0, count + 1) * 0.6180339887498949) % 1.0
