"""First laws: controllers of one leaf, or of a few, from an affine model of the steps of a memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.algorithms.first_law.model import AffineModel, motion_of
from spaql.algorithms.replay import ActionCode, ReplayMemory
from spaql.controllers import Controller, Laws
from spaql.kernels.affine_model import LEVELS, RANGE, SCORES
from spaql.kernels.numerics import Bools, Floats, Ints, Rng, weighted_sum
from spaql.problems import Problem
from spaql.values import rounded

PRICES = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Of the square of an action: there is a law for each."""
_TREE_PRICES = (1e-4, 1e-2)
"""The same for trees."""
_DIGITS = 6
_SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Of the samples of a leaf below a cut that is tried."""
_SAMPLES_EACH = 3
"""Samples of a leaf for each input, at least."""
_GAIN = 0.1
"""The share of the squared errors that a cut must remove."""
_UNEXPLAINED = 0.02
"""Of a plant that counts as affine, the share of the variance of its rewards that is left."""
_CURVATURE = 0.1
"""The share of its motion that a cut would explain besides."""
_USUAL = 0.9
"""The share of its steps that count, without the largest: a few, as of a tank that is nearly empty, would
decide alone."""
_CURVED = 1e-10
"""Mean squared errors of an observation below this are of an affine plant."""
Cut = tuple[int, int, float]
"""A leaf that is cut in two, of which the right one comes last; the observation; and where."""
Part = tuple[Ints, Floats, float]
"""Samples, the affine model of their motion, and its squared errors."""


class Offer(NamedTuple):
    """A law to be played."""

    law: Controller
    kind: int
    rank: int = 0
    """Among laws of the same model, the most promising first."""


def first_laws(memory: ReplayMemory, problem: Problem, rng: Rng) -> list[Offer]:
    """Return the regulators of an affine model of some steps, and the best law of a search in the model.

    Discrete actions have two kinds: one affine law that is rounded to the number of an action, for actions in
    an order, and a score for each action.
    """
    offers: list[Offer] = []
    for kind in _kinds(problem):
        model = _model(memory, problem, kind, rng)
        if model is None:
            continue
        rows = [model.regulator(model.motion, price) for price in PRICES]
        rows = [law for law in rows if np.isfinite(law).all()]
        if rows:
            rows = model.searched(rows, memory.states[memory.begins], _levels(problem), rng)
        offers += [Offer(_tree(model, [], [law], problem), kind, rank) for rank, law in enumerate(rows)]
    return offers


def first_trees(memory: ReplayMemory, problem: Problem, kind: int, leaves: int, rng: Rng) -> list[Offer]:
    """Return trees of two leaves and more, with the regulator of its own model in each leaf.

    Leaves are cut where two affine models predict better than one.
    """
    model = _model(memory, problem, kind, rng)
    if model is None:
        return []
    return [
        Offer(_tree(model, cuts, laws, problem), kind)
        for price in _TREE_PRICES
        for cuts, laws in _grown(model, leaves, price)
        if np.isfinite(np.array(laws)).all()
    ]


def is_affine(memory: ReplayMemory, problem: Problem, rng: Rng) -> bool:
    """Return whether an affine model is nearly all that the steps of a memory show, rewards included."""
    model = _model(memory, problem, _kinds(problem)[0], rng)
    if model is None or model.reward.unexplained > _UNEXPLAINED:
        return False
    changes = (model.nexts - model.inputs[:, : model.states])[:, model.moves]
    sizes = (changes * changes).cumsum(axis=1)[:, -1]
    rows = np.argsort(sizes, kind="stable")[: int(_USUAL * len(sizes))]
    best = _best_cut(model, [_fitted(model, rows, model.moves)], model.moves)
    return best is None or best[0] < _CURVATURE * math.fsum(sizes[rows].tolist())


def _kinds(problem: Problem) -> tuple[int, ...]:
    """Return the kinds of laws for the actions of a problem."""
    space = problem.actions.space
    if isinstance(space, Box):
        return (RANGE,)
    return (LEVELS, SCORES) if _levels(problem) > 2 else (LEVELS,)


def _levels(problem: Problem) -> int:
    space = problem.actions.space
    return int(space.n) if isinstance(space, Discrete) else 0


def _model(memory: ReplayMemory, problem: Problem, kind: int, rng: Rng) -> AffineModel | None:
    actions = memory.actions
    if kind == LEVELS:
        actions = 2.0 * actions / (_levels(problem) - 1) - 1.0
    elif kind == SCORES:
        actions = np.asarray(actions == np.arange(float(_levels(problem))), np.float64)
    return AffineModel.fit(memory, actions, kind, problem.horizon, rng)


def _grown(model: AffineModel, leaves: int, price: float) -> Iterator[tuple[list[Cut], list[Floats]]]:
    """Yield the cuts and the laws of trees of two leaves and more, in standardised observations."""
    errors = (model.errors * model.errors).mean(axis=0)
    curved = errors > _CURVED
    if not curved.any():
        return
    parts = [_fitted(model, np.arange(len(model.inputs)), curved)]
    laws = [model.regulator(model.motion, price)]
    cuts: list[Cut] = []
    while len(parts) < leaves:
        best = _best_cut(model, parts, curved)
        if best is None or best[0] < _GAIN * math.fsum(part[2] for part in parts):
            return
        _, cut, left, right = best
        cuts.append(cut)
        parts[cut[0]] = left
        parts.append(right)
        laws = [*laws, model.regulator(right[1], price)]
        laws[cut[0]] = model.regulator(left[1], price)
        yield list(cuts), list(laws)


def _fitted(model: AffineModel, rows: Ints, curved: Bools) -> Part:
    """Return the affine model of some samples, for observations that one model does not predict."""
    inputs = model.inputs[rows]
    nexts = model.nexts[rows]
    motion = motion_of(inputs, inputs[:, : model.states], nexts, model.moves & curved)
    motion[:, ~curved] = model.motion[:, ~curved]
    off = (nexts - weighted_sum(inputs[:, np.newaxis], motion))[:, curved]
    return rows, motion, float((off * off).ravel().cumsum()[-1])


def _best_cut(model: AffineModel, parts: list[Part], curved: Bools) -> tuple[float, Cut, Part, Part] | None:
    """Return the cut that removes most of the squared errors, and how much."""
    before = model.inputs[:, : model.states]
    least = _SAMPLES_EACH * model.inputs.shape[1]
    best: tuple[float, Cut, Part, Part] | None = None
    for leaf, (rows, _, error) in enumerate(parts):
        for j in range(model.states):
            ordered = np.sort(before[rows, j], kind="stable")
            for at in np.unique(ordered[[int(share * len(rows)) for share in _SHARES]]).tolist():
                above = before[rows, j] >= at
                if min(above.sum(), (~above).sum()) < least:
                    continue
                left = _fitted(model, rows[~above], curved)
                right = _fitted(model, rows[above], curved)
                gain = error - left[2] - right[2]
                if best is None or gain > best[0]:
                    best = gain, (leaf, j, at), left, right
    return best


def _tree(model: AffineModel, cuts: list[Cut], laws: list[Floats], problem: Problem) -> Controller:
    """Return a controller of laws in raw units, with a few digits."""
    space = problem.actions.space
    raw = [model.raw(law) for law in laws]
    gains = np.array([gain for gain, _ in raw])
    offsets = np.array([offset for _, offset in raw])
    if isinstance(space, Box):
        code = ActionCode(space)
        gains = gains * code.half[:, np.newaxis]
        offsets = code.middle + offsets * code.half
    else:
        if model.kind == LEVELS:
            gains, offsets = _scores_of_levels(gains, offsets, int(space.n))
        gains = gains - gains[:, :1]
        offsets = offsets - offsets[:, :1]
    feature, threshold, left, leaf = _nodes(cuts, model)
    return Controller(
        feature=feature,
        threshold=threshold,
        left=left,
        right=np.where(left >= 0, left + 1, -1),
        leaf=leaf,
        laws=Laws(rounded(gains, _DIGITS), rounded(offsets, _DIGITS)),
        observation_space=problem.states.space,
        action_space=space,
        observations=problem.states.names,
        actions=problem.actions.names,
    )


def _nodes(cuts: list[Cut], model: AffineModel) -> tuple[NDArray[Any], Floats, NDArray[Any], NDArray[Any]]:
    """Return the nodes of a controller: feature, threshold, left child, leaf."""
    feature = [-1]
    threshold = [0.0]
    left = [-1]
    leaf = [0]
    for count, (row, j, at) in enumerate(cuts, start=1):
        node = leaf.index(row)
        feature[node] = j
        leaf[node] = -1
        left[node] = len(feature)
        threshold[node] = model.centre[j] + at * model.scale[j]
        feature += [-1, -1]
        threshold += [0.0, 0.0]
        left += [-1, -1]
        leaf += [row, count]
    return np.array(feature), rounded(np.array(threshold), _DIGITS), np.array(left), np.array(leaf)


def _scores_of_levels(gains: Floats, offsets: Floats, levels: int) -> tuple[Floats, Floats]:
    """Return the scores whose highest is the level next to a law.

    The level k that is nearest to v is that for which k v - k^2 / 2 is highest.
    """
    half = (levels - 1) / 2
    k = np.arange(float(levels))
    return half * k[:, np.newaxis] * gains, k * half * (offsets + 1.0) - k * k / 2
